//! `cargo xtask test`: all tests, from nothing.

use crate::examples::Example;
use crate::programs::{self, Program};
use crate::steps::{self, Steps};
use crate::{Result, command, conformance, examples, prepare, report, wheel, workspace};

/// One set of packages and features for all steps, so that nothing is built twice.
const EVERYTHING: [&str; 3] = ["test", "--workspace", "--all-features"];

/// What the name of a program ends with that is the kit on some targets.
const KIT: &str = " conformance";

pub(crate) fn run() -> Result {
    let mut steps = Steps::default();
    steps_of(&mut steps)?;
    steps.finish()
}

/// Adds the steps of this task to others.
pub(crate) fn steps_of(steps: &mut Steps) -> Result {
    let built = steps.step("build, images", || {
        let (prepared, built) = prepare::beside("test", build)?;
        Ok((prepared, built?))
    });
    // What does not build has said so; running would only say it again.
    let Some((prepared, mut built)) = built else {
        return Ok(());
    };
    for what in &prepared.not_run {
        steps.not_run(what);
    }
    let mut reports = Vec::new();
    for program in &mut built.programs {
        program.command.envs(prepared.variables.iter().cloned());
        // Each its own: two kits may end at the same time.
        if program.name.ends_with(KIT) {
            let report = prepared.out.join(format!("kit-{}.json", reports.len()));
            program.command.env(conformance::REPORT, &report);
            reports.push(report);
        }
    }
    built.programs.push(wheel::program());
    let mut not_run = Vec::new();
    steps.step("tests, conformance, teeth, python", || {
        let mut failed = Vec::new();
        for ended in programs::run(built.programs, &prepared.out) {
            not_run.extend(steps::said_not_run(&ended.output).map(str::to_owned));
            failed.extend(ended.error);
        }
        match failed.as_slice() {
            [] => Ok(()),
            _ => Err(failed.join("\n").into()),
        }
    });
    for what in not_run {
        steps.not_run(what);
    }
    steps.step("docs/conformance.md is what the kit found", || {
        report::check_conformance(&reports)
    });
    steps.step("doctests", || {
        command::run(command::cargo(&EVERYTHING).arg("--doc"))
    });
    for features in feature_sets()? {
        let name = if features.is_empty() {
            "no feature"
        } else {
            &features
        };
        steps.step(&format!("facade with {name}"), || {
            let facade = ["test", "-p", "sandbox", "--features", &features];
            command::run(&mut command::cargo(&facade))
        });
    }
    for example in &built.examples {
        if example.needs_engine() && !prepared.has_engine() {
            steps.not_run(format!("example {} (no engine)", example.name));
            continue;
        }
        steps.step(&format!("example {}", example.name), || {
            examples::run(example, &prepared.out)
        });
    }
    Ok(())
}

/// What there is to run.
struct Built {
    programs: Vec<Program>,
    examples: Vec<Example>,
}

/// Builds all tests and examples. An error is text, so that it can come from another thread.
fn build() -> Result<Built, String> {
    let mut build = command::cargo(&EVERYTHING);
    build.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let built = command::output(&mut build).and_then(|messages| {
        Ok(Built {
            programs: programs::built(&messages)?,
            examples: examples::built(&messages)?,
        })
    });
    built.map_err(|e| e.to_string())
}

/// What the facade is tested with besides all: no feature, and each backend alone.
fn feature_sets() -> Result<Vec<String>> {
    let members = workspace::members()?;
    let facade = members.iter().find(|m| m.name == "sandbox");
    let features = facade.into_iter().flat_map(|m| &m.features);
    let alone = features
        .filter(|f| *f != "default" && *f != "full")
        .cloned();
    Ok(std::iter::once(String::new()).chain(alone).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facade_is_tested_with_nothing_and_with_each_backend() {
        let sets = feature_sets().unwrap();
        assert_eq!(sets[0], "");
        assert!(sets.iter().any(|s| s == "mock"), "{sets:?}");
    }
}
