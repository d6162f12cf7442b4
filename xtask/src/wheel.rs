//! `cargo xtask python`: the Python package, made and tested as its users get it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::opensandbox::Server;
use crate::prepare::{self, Prepared};
use crate::programs::Program;
use crate::steps::Steps;
use crate::{Result, command, python, report, workspace};

/// The task's name.
const TASK: &str = "python";

/// Where the package's sources are.
const PACKAGE: &str = "crates/sandbox-python";

/// What the package is built, tested and shown with.
const REQUIREMENTS: &str = include_str!("../python/package.txt");

/// Names the file that the suites write their report to.
const REPORT: &str = "SANDBOX_PYTHON_REPORT";

/// Names the address of a server that the suites may use.
const SERVER: &str = "SANDBOX_PYTHON_OPENSANDBOX";

/// No example takes longer than this on two slow cores.
const LIMIT: Duration = Duration::from_mins(3);

/// A built wheel, installed in an environment of its own.
pub(crate) struct Wheel {
    python: PathBuf,
}

/// `cargo xtask python [ARGUMENTS OF PYTEST]`: all that there is to test about the package, or with
/// arguments the tests that they choose.
pub(crate) fn run(args: &[&str]) -> Result {
    let prepared = prepare::all(TASK)?;
    let mut steps = Steps::default();
    for what in &prepared.not_run {
        steps.not_run(what);
    }
    if args.is_empty() {
        steps_of(&mut steps, &prepared)?;
    } else {
        Wheel::install()?.suites(args, &prepared)?;
    }
    steps.finish()
}

fn steps_of(steps: &mut Steps, prepared: &Prepared) -> Result {
    if let Err(why) = environment()
        && !prepare::required("python")
    {
        steps.not_run(format!("python ({why})"));
        return Ok(());
    }
    let Some(wheel) = steps.step("python: the wheel", Wheel::install) else {
        return Ok(());
    };
    let report = steps.step("python: tests, langchain's standard suite", || {
        wheel.suites(&[], prepared)
    });
    if let Some(found) = report {
        let name = "python: docs/conformance.md is what the suites found";
        steps.step(name, || report::check_python(&found));
    }
    steps.step("python: types", || wheel.types());
    for example in examples()? {
        let name = example.file_name().unwrap_or_default().to_string_lossy();
        steps.step(&format!("python: example {name}"), || {
            wheel.example(&example, &prepared.out)
        });
    }
    Ok(())
}

/// The task as a program, to run beside others.
pub(crate) fn program() -> Program {
    let command = command::cargo(&["xtask", TASK]);
    let name = TASK.to_owned();
    Program { name, command }
}

impl Wheel {
    /// Builds the wheel of what the tests are built of, and installs it beside what the suites
    /// need. Both are kept below `target`.
    pub(crate) fn install() -> Result<Self> {
        let wheel = Self {
            python: environment()?,
        };
        let wheels = workspace::target().join("wheels");
        if wheels.exists() {
            fs::remove_dir_all(&wheels)?;
        }
        let package = workspace::root().join(PACKAGE);
        let mut maturin = wheel.module("maturin");
        maturin
            .args(["build", "--profile", "dev", "--features", "unify", "--out"])
            .arg(&wheels)
            .current_dir(&package)
            // The same as for cargo's own builds: else the bindings are built twice.
            .env("PYO3_CONFIG_FILE", package.join("pyo3-config.txt"));
        command::run(&mut maturin)?;
        let built = fs::read_dir(&wheels)?
            .next()
            .ok_or("maturin made no wheel")??;
        let mut install = wheel.module("pip");
        install.args(["install", "--quiet", "--no-deps", "--force-reinstall"]);
        command::run(install.arg(built.path()))?;
        Ok(wheel)
    }

    /// Runs the suites from outside the repository's sources, so that the wheel is what is tested.
    /// Gives their report.
    pub(crate) fn suites(&self, args: &[&str], prepared: &Prepared) -> Result<PathBuf> {
        let report = prepared.out.join("python.json");
        let package = workspace::root().join(PACKAGE);
        let mut pytest = self.module("pytest");
        pytest
            .args(["-q", "-p", "no:cacheprovider", "-c"])
            .arg(package.join("pyproject.toml"))
            // Pytest keeps what tests left in temporary folders.
            .arg("--basetemp")
            .arg(prepared.out.join("pytest"))
            .args(args)
            .arg(package.join("tests"))
            .current_dir(&prepared.out)
            .env(REPORT, &report);
        // Held until the end.
        let _server = if prepared.has_engine() {
            let server = Server::start("sandbox-python-tests")?;
            pytest.env(SERVER, &server.address);
            pytest.env("OPEN_SANDBOX_API_KEY", &server.key);
            Some(server)
        } else {
            None
        };
        command::run(&mut pytest)?;
        Ok(report)
    }

    /// The types that are declared are those that are there, and the package keeps its own.
    fn types(&self) -> Result {
        let mut stubtest = self.module("mypy.stubtest");
        stubtest
            .args(["anysandbox", "--mypy-config-file"])
            .arg(workspace::root().join(PACKAGE).join("pyproject.toml"))
            .current_dir(workspace::target());
        command::run(&mut stubtest)
    }

    /// Runs an example; a notebook cell by cell. What it leaves goes below `out`.
    fn example(&self, example: &Path, out: &Path) -> Result {
        let name = example.file_stem().unwrap_or_default().to_string_lossy();
        let folder = out.join(format!("python-{name}"));
        fs::create_dir_all(&folder)?;
        let mut run = if example.extension().is_some_and(|e| e == "ipynb") {
            let mut notebook = Command::new(self.python.with_file_name("jupyter-execute"));
            notebook.arg(format!("--output={}", folder.join("executed").display()));
            notebook
        } else {
            Command::new(&self.python)
        };
        // Also what it makes for its user to look at and keep.
        run.arg(example).current_dir(&folder).env("TMPDIR", &folder);
        command::run_within(&mut run, LIMIT)
    }

    fn module(&self, name: &str) -> Command {
        let mut python = Command::new(&self.python);
        python.args(["-m", name]);
        python
    }
}

fn environment() -> Result<PathBuf> {
    python::environment("package", REQUIREMENTS)
}

/// All files of `examples/python` that run.
fn examples() -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(workspace::root().join("examples/python"))?;
    let mut files: Vec<PathBuf> = files
        .map(|file| Ok(file?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.retain(|f| f.extension().is_some_and(|e| e == "py" || e == "ipynb"));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_examples_and_all_that_is_installed_is_pinned() {
        let examples = examples().unwrap();
        assert!(examples.iter().any(|e| e.ends_with("data_analysis.py")));
        let mut lines = REQUIREMENTS.lines().filter(|l| !l.starts_with('#'));
        assert!(lines.all(|l| l.contains("==")), "{REQUIREMENTS}");
    }
}
