//! `cargo xtask ci`: what must hold before a merge.

use crate::steps::Steps;
use crate::{Result, command, test, tidy};

pub(crate) fn run(args: &[&str]) -> Result {
    let with_tests = match args {
        [] => true,
        ["--without-tests"] => false,
        _ => return Err("usage: cargo xtask ci [--without-tests]".into()),
    };
    let mut steps = Steps::default();
    steps.step("format", || {
        command::run(&mut command::cargo(&["fmt", "--all", "--check"]))
    });
    steps.step("tidy", tidy::run);
    steps.step("clippy", || {
        let scope = ["clippy", "--workspace", "--all-targets", "--all-features"];
        command::run(command::cargo(&scope).args(["--", "-D", "warnings"]))
    });
    steps.step("rustdoc", || {
        let scope = ["doc", "--workspace", "--all-features", "--no-deps"];
        command::run(command::cargo(&scope).env("RUSTDOCFLAGS", "-D warnings"))
    });
    if with_tests {
        test::steps_of(&mut steps)?;
    }
    steps.finish()
}
