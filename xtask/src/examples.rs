//! Every example runs in CI, to its end, with exit code 0.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::{Result, command, workspace};

/// No example takes longer than this on two slow cores.
const LIMIT: Duration = Duration::from_mins(3);

/// An example that has been built.
pub(crate) struct Example {
    pub(crate) name: String,
    program: PathBuf,
}

/// Those that make containers.
const WITH_ENGINE: [&str; 1] = ["docker"];

impl Example {
    /// Whether it can't run without a Docker engine.
    pub(crate) fn needs_engine(&self) -> bool {
        WITH_ENGINE.contains(&self.name.as_str())
    }
}

/// The examples among the artifacts that cargo reports, a JSON message a line. All that the
/// workspace declares must be there.
pub(crate) fn built(messages: &str) -> Result<Vec<Example>> {
    let mut built = Vec::new();
    for line in messages.lines().filter(|l| l.starts_with('{')) {
        let message: Value = serde_json::from_str(line)?;
        if message["reason"] != "compiler-artifact" || message["target"]["kind"][0] != "example" {
            continue;
        }
        if let (Some(name), Some(program)) = (
            message["target"]["name"].as_str(),
            message["executable"].as_str(),
        ) {
            let (name, program) = (name.to_owned(), PathBuf::from(program));
            built.push(Example { name, program });
        }
    }
    built.sort_by(|a, b| a.name.cmp(&b.name));
    for member in workspace::members()? {
        for name in member.examples {
            if !built.iter().any(|e| e.name == name) {
                return Err(format!("example `{name}` was not built").into());
            }
        }
    }
    Ok(built)
}

/// Runs one. What it writes goes below `out`.
pub(crate) fn run(example: &Example, out: &Path) -> Result {
    let folder = out.join(&example.name);
    std::fs::create_dir_all(&folder)?;
    let mut program = Command::new(&example.program);
    program.current_dir(&folder);
    command::run_within(&mut program, LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_that_was_not_built_is_noticed() {
        let declared = workspace::members()
            .unwrap()
            .iter()
            .any(|m| !m.examples.is_empty());
        assert_eq!(built("").is_err(), declared);
    }
}
