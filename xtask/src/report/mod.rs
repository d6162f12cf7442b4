//! `cargo xtask report`: the generated documents.

use std::path::Path;

use crate::{Result, conformance as kit, prepare, workspace};

mod conformance;
mod errors;

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
    let found = conformance::parse(&std::fs::read_to_string(&report)?)?;
    write(CONFORMANCE, &conformance::render(&found))
}

/// Fails unless the committed document says what `report` found, for the targets that ran.
pub(crate) fn check_conformance(report: &Path) -> Result {
    let json = std::fs::read_to_string(report)
        .map_err(|e| format!("the kit left no report at {}: {e}", report.display()))?;
    let found = conformance::parse(&json)?;
    conformance::check(&found, &workspace::read(CONFORMANCE)?)
        .map_err(|e| format!("{CONFORMANCE}: {e}: run `cargo xtask report`").into())
}

/// Fails unless the committed document follows from the source.
pub(crate) fn check_errors() -> Result {
    if workspace::read(ERRORS)? == errors::render(&workspace::read(errors::SOURCE)?)? {
        Ok(())
    } else {
        Err(format!("{ERRORS} is not what the source says: run `cargo xtask report`").into())
    }
}

fn write(path: &str, text: &str) -> Result {
    std::fs::write(workspace::root().join(path), text)?;
    eprintln!("wrote {path}");
    Ok(())
}
