//! `cargo xtask report`: the generated documents.

use std::path::{Path, PathBuf};

use crate::{Result, conformance as kit, prepare, wheel, workspace};
use conformance::Report;

mod conformance;
mod errors;
mod python;

/// What the kit found, kept.
const KEPT: &str = "docs/conformance.json";
/// What the Python package's suites found, kept.
const KEPT_PYTHON: &str = "docs/conformance-python.json";
/// The page made from both.
const CONFORMANCE: &str = "docs/conformance.md";
const ERRORS: &str = "docs/errors.md";

pub(crate) fn run(args: &[&str]) -> Result {
    write(ERRORS, &errors::render(&workspace::read(errors::SOURCE)?)?)?;
    let report = match args {
        [] => {
            let prepared = prepare::all("report")?;
            let report = prepared.out.join("conformance.json");
            kit::kit(None, Some(&report))?;
            keep_python(&wheel::Wheel::install()?.suites(&[], &prepared)?)?;
            report
        }
        ["--python", file] => {
            keep_python(Path::new(file))?;
            return write(CONFORMANCE, &page(&kept()?)?);
        }
        [file] => std::path::absolute(file)?,
        _ => return Err("usage: cargo xtask report [[--python] FILE.json]".into()),
    };
    let found = kept()?.updated(found(&report)?);
    write(KEPT, &found.to_json()?)?;
    write(CONFORMANCE, &page(&found)?)
}

/// Keeps what the Python package's suites found.
fn keep_python(report: &Path) -> Result {
    let kept = kept_python()?.updated(found_python(report)?);
    write(KEPT_PYTHON, &kept.to_json()?)
}

fn page(kit: &Report) -> Result<String> {
    Ok(kit.render() + &kept_python()?.render())
}

/// Fails unless what is kept says what `report` of the Python package's suites found.
pub(crate) fn check_python(report: &Path) -> Result {
    kept_python()?
        .check(&found_python(report)?)
        .map_err(|e| format!("{KEPT_PYTHON}: {e}").into())
}

/// Fails unless what is kept says what the kit's `reports` found, for the targets that ran.
pub(crate) fn check_conformance(reports: &[PathBuf]) -> Result {
    let mut all = Report::parse("[]")?;
    for report in reports {
        all = all.updated(found(report)?);
    }
    kept()?
        .check(&all)
        .map_err(|e| format!("{KEPT}: {e}").into())
}

/// The generated documents that do not follow from what they are made of.
pub(crate) fn stale() -> Result<Vec<String>> {
    let errors = errors::render(&workspace::read(errors::SOURCE)?)?;
    let conformance = page(&kept()?)?;
    let mut stale = Vec::new();
    for (path, wanted) in [(ERRORS, errors), (CONFORMANCE, conformance)] {
        if workspace::read(path).ok() != Some(wanted) {
            stale.push(format!(
                "{path}: is not up to date: run `cargo xtask report`"
            ));
        }
    }
    Ok(stale)
}

fn kept() -> Result<Report> {
    if workspace::root().join(KEPT).exists() {
        Report::parse(&workspace::read(KEPT)?)
    } else {
        Report::parse("[]")
    }
}

fn found(report: &Path) -> Result<Report> {
    Report::parse(&text(report)?)
}

fn kept_python() -> Result<python::Report> {
    python::Report::parse(&workspace::read(KEPT_PYTHON)?)
}

fn found_python(report: &Path) -> Result<python::Report> {
    python::Report::parse(&text(report)?)
}

fn text(report: &Path) -> Result<String> {
    std::fs::read_to_string(report)
        .map_err(|e| format!("no report at {}: {e}", report.display()).into())
}

fn write(path: &str, text: &str) -> Result {
    std::fs::write(workspace::root().join(path), text)?;
    eprintln!("wrote {path}");
    Ok(())
}
