//! What the tests need on this machine besides cargo. Made before, undone after.

use std::path::{Path, PathBuf};

use crate::engine::{self, Engine};
use crate::{Result, images, python, workspace};

/// The official client of `OpenSandbox`, for tests that speak with our daemon through it.
const CLIENT: &str = include_str!("../python/opensandbox-client.txt");

/// What was prepared. Dropping it undoes what should not stay.
pub(crate) struct Prepared {
    /// A folder for what the tests leave to look at.
    pub(crate) out: PathBuf,
    /// Variables for the tests: where things are that they would make themselves or go without.
    pub(crate) variables: Vec<(&'static str, PathBuf)>,
    /// What is missing here and why, a line each; tests that need it do not run.
    pub(crate) not_run: Vec<String>,
    /// Stopped at the end if it was started here.
    engine: Option<Engine>,
}

impl Prepared {
    /// Whether a Docker engine answers and has the images.
    pub(crate) fn has_engine(&self) -> bool {
        self.engine.is_some()
    }
}

/// Everything, for the task of that name.
///
/// # Errors
///
/// What is missing and required: by `SANDBOX_REQUIRE`, or all of it under `CI`.
pub(crate) fn all(task: &str) -> Result<Prepared> {
    beside(task, || ()).map(|(prepared, ())| prepared)
}

/// As [`all`], with `work` done beside what takes long: an engine and images wait for downloads.
/// Whoever is asked something is asked before.
///
/// # Errors
///
/// As for [`all`], once `work` is done.
pub(crate) fn beside<T: Send>(
    task: &str,
    work: impl FnOnce() -> T + Send,
) -> Result<(Prepared, T)> {
    let out = out_folder(task)?;
    let plan = engine::plan();
    std::thread::scope(|scope| {
        let work = scope.spawn(work);
        let engine = plan.and_then(|plan| engine::get(&plan, &out));
        let prepared = with(engine, out);
        let done = work.join().map_err(|_| "the work beside it panicked")?;
        Ok((prepared?, done))
    })
}

/// The rest, once it is known whether there is an engine.
fn with(engine: Result<Engine>, out: PathBuf) -> Result<Prepared> {
    let mut variables = Vec::new();
    let mut not_run = Vec::new();
    // The images that the tests use belong to it.
    let engine = engine.and_then(|engine| images::run(&[]).map(|()| engine));
    let engine = optional("docker", engine, &mut not_run)?;
    if engine.is_some() {
        variables.push(("SANDBOX_EXECD_BINARY", images::execd_binary()?));
    }
    let client = python::environment("opensandbox-client", CLIENT);
    if let Some(python) = optional("opensandbox-client", client, &mut not_run)? {
        variables.push(("SANDBOX_OPENSANDBOX_PYTHON", python));
    }
    Ok(Prepared {
        out,
        variables,
        not_run,
        engine,
    })
}

/// What can be had, or a line on why not, or an error where it is required.
fn optional<T>(name: &str, found: Result<T>, not_run: &mut Vec<String>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(why) if required(name) => {
            Err(format!("{name} is required and can't be had: {why}").into())
        }
        Err(why) => {
            not_run.push(format!("{name} ({why})"));
            Ok(None)
        }
    }
}

/// Whether the run is a failure without `what`.
pub(crate) fn required(what: &str) -> bool {
    let named = std::env::var("SANDBOX_REQUIRE").unwrap_or_default();
    named.split(',').any(|name| name.trim() == what) || std::env::var_os("CI").is_some()
}

/// An empty folder below `target`, the task's own: another may run beside it.
fn out_folder(task: &str) -> Result<PathBuf> {
    let out = workspace::target().join("xtask").join(task);
    if Path::new(&out).exists() {
        std::fs::remove_dir_all(&out)?;
    }
    std::fs::create_dir_all(&out)?;
    Ok(out.canonicalize()?)
}
