//! `cargo xtask conformance`: the kit over this workspace's targets.

use std::path::{Path, PathBuf};

use crate::{Result, command, prepare};

/// Names the backend whose targets run.
const TARGET: &str = "SANDBOX_TARGET";

/// Names the file that the kit writes its report to.
pub(crate) const REPORT: &str = "SANDBOX_REPORT";

const USAGE: &str = "usage: cargo xtask conformance [--target T] [--report FILE.json]";

pub(crate) fn run(args: &[&str]) -> Result {
    let (target, report) = parse(args)?;
    for what in prepare::all()?.not_run {
        eprintln!("NOT RUN: {what}");
    }
    kit(target, report.as_deref())
}

/// Runs the kit, all targets or those of one backend, and has it write its report.
pub(crate) fn kit(target: Option<&str>, report: Option<&Path>) -> Result {
    let mut kit = command::cargo(&["test", "-p", "sandbox-conformance", "--all-features"]);
    kit.args(["--test", "conformance"]);
    if let Some(target) = target {
        kit.env(TARGET, target);
    }
    if let Some(report) = report {
        kit.env(REPORT, report);
    }
    command::run(&mut kit)
}

fn parse<'a>(args: &[&'a str]) -> Result<(Option<&'a str>, Option<PathBuf>)> {
    let (mut target, mut report) = (None, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || {
            args.next()
                .ok_or_else(|| format!("{arg} wants a value\n{USAGE}"))
        };
        match *arg {
            "--target" => target = Some(*value()?),
            // The kit runs in its own folder, so the path has to be absolute.
            "--report" => report = Some(std::path::absolute(value()?)?),
            _ => return Err(USAGE.into()),
        }
    }
    Ok((target, report))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_optional_and_unknown_ones_refused() {
        assert_eq!(parse(&[]).unwrap(), (None, None));
        let (target, report) = parse(&["--report", "c.json", "--target", "mock"]).unwrap();
        assert_eq!(target, Some("mock"));
        assert!(report.unwrap().is_absolute());
        for bad in [&["--target"][..], &["mock"], &["--targets", "mock"]] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
