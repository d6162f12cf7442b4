//! `cargo xtask report`: the generated documents.

use std::path::Path;

use crate::{Result, conformance as kit, prepare, workspace};
use conformance::Report;

mod conformance;
mod errors;

/// What the kit found, kept.
const KEPT: &str = "docs/conformance.json";
/// The page made from it.
const CONFORMANCE: &str = "docs/conformance.md";
const ERRORS: &str = "docs/errors.md";

pub(crate) fn run(args: &[&str]) -> Result {
    write(ERRORS, &errors::render(&workspace::read(errors::SOURCE)?)?)?;
    let report = match args {
        [] => {
            let report = prepare::all()?.out.join("conformance.json");
            kit::kit(None, Some(&report))?;
            report
        }
        [file] => std::path::absolute(file)?,
        _ => return Err("usage: cargo xtask report [FILE.json]".into()),
    };
    let found = kept()?.updated(found(&report)?);
    write(KEPT, &found.to_json()?)?;
    write(CONFORMANCE, &found.render())
}

/// Fails unless what is kept says what `report` found, for the targets that ran.
pub(crate) fn check_conformance(report: &Path) -> Result {
    kept()?
        .check(&found(report)?)
        .map_err(|e| format!("{KEPT}: {e}: run `cargo xtask report`").into())
}

/// The generated documents that do not follow from what they are made of.
pub(crate) fn stale() -> Result<Vec<String>> {
    let errors = errors::render(&workspace::read(errors::SOURCE)?)?;
    let conformance = kept()?.render();
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
    let json = std::fs::read_to_string(report)
        .map_err(|e| format!("no report at {}: {e}", report.display()))?;
    Report::parse(&json)
}

fn write(path: &str, text: &str) -> Result {
    std::fs::write(workspace::root().join(path), text)?;
    eprintln!("wrote {path}");
    Ok(())
}
