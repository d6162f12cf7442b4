//! `cargo xtask test`: all tests, from nothing.

use crate::examples::Example;
use crate::steps::Steps;
use crate::{Result, command, conformance, examples, prepare, report, wheel, workspace};

/// One set of packages and features for all steps, so that nothing is built twice.
const EVERYTHING: [&str; 3] = ["test", "--workspace", "--all-features"];

pub(crate) fn run() -> Result {
    let mut steps = Steps::default();
    steps_of(&mut steps)?;
    steps.finish()
}

/// Adds the steps of this task to others.
pub(crate) fn steps_of(steps: &mut Steps) -> Result {
    let built = steps.step("build, images", || {
        let (prepared, built) = prepare::beside(build)?;
        Ok((prepared, built?))
    });
    // What does not build has said so; running would only say it again.
    let Some((prepared, built)) = built else {
        return Ok(());
    };
    for what in &prepared.not_run {
        steps.not_run(what);
    }
    let report = prepared.out.join("conformance.json");

    steps.step("tests, doctests, conformance, teeth", || {
        let mut test = command::cargo(&EVERYTHING);
        test.arg("--no-fail-fast").env(conformance::REPORT, &report);
        test.envs(prepared.variables.iter().map(|(name, path)| (name, path)));
        command::run(&mut test)
    });
    steps.step("docs/conformance.md is what the kit found", || {
        report::check_conformance(&report)
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
    for example in &built {
        if example.needs_engine() && !prepared.has_engine() {
            steps.not_run(format!("example {} (no engine)", example.name));
            continue;
        }
        steps.step(&format!("example {}", example.name), || {
            examples::run(example, &prepared.out)
        });
    }
    if let Some(found) = wheel::steps_of(steps, &prepared)? {
        steps.step(
            "python: docs/conformance.md is what the suites found",
            || report::check_python(&found),
        );
    }
    Ok(())
}

/// Builds all tests and examples. Gives the examples; an error is text, so that it can come from
/// another thread.
fn build() -> Result<Vec<Example>, String> {
    let mut build = command::cargo(&EVERYTHING);
    build.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let built = command::output(&mut build).and_then(|messages| examples::built(&messages));
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
