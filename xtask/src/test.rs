//! `cargo xtask test`: all tests, from nothing.

use crate::steps::Steps;
use crate::{Result, command, conformance, examples, prepare, report};

/// One set of packages and features for all steps, so that nothing is built twice.
const EVERYTHING: [&str; 3] = ["test", "--workspace", "--all-features"];

/// What the facade is tested with besides: none, and each backend alone.
const FEATURE_SETS: [&str; 2] = ["", "mock"];

pub(crate) fn run() -> Result {
    let mut steps = Steps::default();
    steps_of(&mut steps)?;
    steps.finish()
}

/// Adds the steps of this task to others.
pub(crate) fn steps_of(steps: &mut Steps) -> Result {
    let prepared = prepare::all()?;
    for what in &prepared.not_run {
        steps.not_run(what);
    }
    let report = prepared.out.join("conformance.json");

    let built = steps.step("build", || {
        let mut build = command::cargo(&EVERYTHING);
        build.args(["--no-run", "--message-format=json-render-diagnostics"]);
        examples::built(&command::output(&mut build)?)
    });
    // What does not build has said so; running would only say it again.
    let Some(built) = built else { return Ok(()) };

    steps.step("tests, doctests, conformance, teeth", || {
        let mut test = command::cargo(&EVERYTHING);
        test.arg("--no-fail-fast").env(conformance::REPORT, &report);
        command::run(&mut test)
    });
    steps.step("docs/conformance.md is what the kit found", || {
        report::check_conformance(&report)
    });
    for features in FEATURE_SETS {
        let name = if features.is_empty() {
            "none"
        } else {
            features
        };
        steps.step(&format!("facade with features: {name}"), || {
            command::run(&mut command::cargo(&[
                "test",
                "-p",
                "sandbox",
                "--features",
                features,
            ]))
        });
    }
    for example in &built {
        steps.step(&format!("example {}", example.name), || {
            examples::run(example, &prepared.out)
        });
    }
    Ok(())
}
