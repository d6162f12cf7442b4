//! `cargo xtask conformance`: the kit over this workspace's targets.

use std::path::{Path, PathBuf};

use crate::{Result, command, prepare};

/// Names the backend whose targets run.
const TARGET: &str = "SANDBOX_TARGET";

/// Names the file that the kit writes its report to.
pub(crate) const REPORT: &str = "SANDBOX_REPORT";

/// The packages whose targets need an engine.
const DOCKER: &str = "sandbox-docker";
const OPENSANDBOX: &str = "sandbox-opensandbox";

const USAGE: &str = "usage: cargo xtask conformance [--target T] [--report FILE.json]";

pub(crate) fn run(args: &[&str]) -> Result {
    let (target, report) = parse(args)?;
    // Held until the end: it may keep an engine running.
    let needs_engine = |p: &&str| [DOCKER, OPENSANDBOX].contains(p);
    let _prepared = if packages(target).iter().any(needs_engine) {
        let prepared = prepare::all("conformance")?;
        for what in &prepared.not_run {
            eprintln!("NOT RUN: {what}");
        }
        Some(prepared)
    } else {
        None
    };
    kit(target, report.as_deref())
}

/// Runs the kit, all targets or those of one backend, and has it write its report.
pub(crate) fn kit(target: Option<&str>, report: Option<&Path>) -> Result {
    let mut result = Ok(());
    // One package's failure does not keep the next from running.
    for package in packages(target) {
        let mut kit = command::cargo(&["test", "-p", package, "--all-features"]);
        kit.args(["--test", "conformance"]);
        if let Some(target) = target {
            kit.env(TARGET, target);
        }
        if let Some(report) = report {
            kit.env(REPORT, report);
        }
        result = result.and(command::run(&mut kit));
    }
    result
}

/// The packages whose targets are asked for: the kit's own has all but those of backends that need
/// something running.
fn packages(target: Option<&str>) -> Vec<&'static str> {
    const KIT: &str = "sandbox-conformance";
    match target.and_then(|t| t.split('-').next()) {
        None => vec![KIT, DOCKER, OPENSANDBOX],
        Some("docker") => vec![DOCKER],
        Some("opensandbox") => vec![OPENSANDBOX],
        Some(_) => vec![KIT],
    }
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
    fn a_target_that_needs_an_engine_is_found_in_its_own_package() {
        assert_eq!(packages(Some("docker-busybox-root")), ["sandbox-docker"]);
        let stock = packages(Some("opensandbox-stock-gnu-root-direct"));
        assert_eq!(stock, ["sandbox-opensandbox"]);
        assert_eq!(packages(Some("mock")), ["sandbox-conformance"]);
        assert_eq!(packages(None).len(), 3);
    }

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
