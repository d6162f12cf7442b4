//! The test programs of the workspace, two at a time. Cargo runs one after the other, and most of
//! them wait for containers and timeouts much of their time.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Result, command, steps};

/// How many run at once: more would only make what they wait for late.
const AT_ONCE: usize = 2;

/// The longest, which begin first.
const LONGEST: [&str; 4] = [
    "sandbox-docker conformance",
    "sandbox-opensandbox conformance",
    "python",
    "sandbox-docker engine",
];

/// Something to run to its end.
pub(crate) struct Program {
    /// As `sandbox-docker conformance`: the package and the target.
    pub(crate) name: String,
    pub(crate) command: Command,
}

/// What came of a program.
pub(crate) struct Ended {
    pub(crate) output: String,
    /// Which program failed, why, and its tests or steps that did.
    pub(crate) error: Option<String>,
}

/// The test programs among the artifacts that cargo reports, a JSON message a line.
pub(crate) fn built(messages: &str) -> Result<Vec<Program>> {
    let mut built = Vec::new();
    for line in messages.lines().filter(|l| l.starts_with('{')) {
        let message: Value = serde_json::from_str(line)?;
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            continue;
        }
        if let (Some(target), Some(path), Some(manifest)) = (
            message["target"]["name"].as_str(),
            message["executable"].as_str(),
            message["manifest_path"].as_str(),
        ) {
            let manifest = Path::new(manifest);
            let folder = manifest.parent().ok_or("a manifest has no folder")?;
            let package = folder.file_name().unwrap_or_default().to_string_lossy();
            let mut command = Command::new(path);
            // As cargo does.
            command.current_dir(folder);
            built.push(Program {
                name: format!("{package} {target}"),
                command,
            });
        }
    }
    if built.is_empty() {
        return Err("cargo built no test program".into());
    }
    Ok(built)
}

/// Runs all. The output of each goes below `out` and is shown when it ends.
pub(crate) fn run(mut programs: Vec<Program>, out: &Path) -> Vec<Ended> {
    let place = |p: &Program| LONGEST.iter().position(|l| *l == p.name);
    programs.sort_by_key(|p| place(p).unwrap_or(LONGEST.len()));
    let waiting = Mutex::new(VecDeque::from(programs));
    let ended = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(program) = next(&waiting) {
                    let done = program.run(out);
                    ended
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(done);
                }
            });
        }
    });
    ended.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn next(waiting: &Mutex<VecDeque<Program>>) -> Option<Program> {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.pop_front()
}

impl Program {
    fn run(mut self, out: &Path) -> Ended {
        eprintln!("-- {}: begins", self.name);
        let begin = Instant::now();
        let file = out.join(self.name.replace(' ', "-") + ".log");
        let result = self.write(&file);
        let output = fs::read(&file).unwrap_or_default();
        let output = String::from_utf8_lossy(&output).into_owned();
        show(&self.name, begin.elapsed(), &output);
        let error = result.err().map(|e| told(&self.name, &*e, &output));
        Ended { output, error }
    }

    fn write(&mut self, file: &Path) -> Result {
        let file = File::create(file)?;
        self.command.stdout(file.try_clone()?).stderr(file);
        command::run(&mut self.command)
    }
}

/// In one piece: another program may end at the same time.
fn show(name: &str, time: Duration, output: &str) {
    eprint!("\n-- {name}: {:.1} s\n{output}", time.as_secs_f64());
}

/// An error with what the end of the output says about it: the names of the tests that failed, as
/// libtest lists them, or the summary of a task.
fn told(name: &str, error: &dyn std::error::Error, output: &str) -> String {
    let listed = output.rsplit_once("\nfailures:\n").map_or("", |it| it.1);
    let tests = listed.lines().take_while(|line| line.starts_with("    "));
    let steps = steps::summary(output).unwrap_or_default().lines();
    std::iter::once(format!("{name}: {error}").as_str())
        .chain(tests)
        .chain(steps)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_told_from_what_else_cargo_builds() {
        let message = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml",
                "target":{{"name":"t"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
            .replace('\n', "")
        };
        let messages = [
            message(true, r#""/w/target/t-1""#),
            message(false, r#""/w/target/a""#),
            message(true, "null"),
            "not JSON".to_owned(),
        ];
        let built = built(&messages.join("\n")).unwrap();
        let names: Vec<&str> = built.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["a t"]);
        let folder = built[0].command.get_current_dir();
        assert_eq!(folder, Some(Path::new("/w/crates/a")));
        assert!(super::built("").is_err());
    }

    #[test]
    fn a_failure_names_its_tests() {
        let output =
            "\nfailures:\n\n---- a::b ----\nwhy\n\nfailures:\n    a::b\n    c\n\ntest result\n";
        let error: crate::Error = "e".into();
        assert_eq!(told("a t", &*error, output), "a t: e\n    a::b\n    c");
        assert_eq!(told("a t", &*error, "no tests"), "a t: e");
        let output = "\n== summary\nFAILED  1 s  wheel\n";
        assert_eq!(
            told("python", &*error, output),
            "python: e\nFAILED  1 s  wheel"
        );
    }

    #[test]
    fn all_run_and_each_keeps_its_output() {
        let out = std::env::temp_dir().join(format!("xtask-programs-{}", std::process::id()));
        fs::create_dir_all(&out).unwrap();
        let program = |name: &str, script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let name = name.to_owned();
            Program { name, command }
        };
        let mut ended = run(
            vec![
                program("a a", "echo out; echo err >&2"),
                program("b b", "echo no; exit 3"),
                program("c c", "true"),
            ],
            &out,
        );
        fs::remove_dir_all(&out).unwrap();
        ended.sort_by(|a, b| a.output.cmp(&b.output));
        let outputs: Vec<&str> = ended.iter().map(|e| e.output.as_str()).collect();
        assert_eq!(outputs, ["", "no\n", "out\nerr\n"]);
        assert!(ended[1].error.as_ref().unwrap().starts_with("b b: "));
        assert!(ended[0].error.is_none() && ended[2].error.is_none());
    }
}
