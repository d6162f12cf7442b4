//! `cargo xtask tidy`: what no compiler checks. Every rule reports all that it finds.

use crate::{Result, report, workspace};

mod crates;
mod documents;
mod features;
mod files;
mod layers;
mod size;

pub(crate) fn run() -> Result {
    let files = workspace::files()?;
    let members = workspace::members()?;
    let mut found = Vec::new();
    found.extend(files::check(&files)?);
    found.extend(documents::check(&files, &members)?);
    found.extend(crates::check(&files, &members)?);
    found.extend(layers::check(&members));
    found.extend(size::check()?);
    found.extend(features::check()?);
    found.extend(report::stale()?);
    match found.len() {
        0 => Ok(()),
        n => Err(format!("{n} found by tidy\n{}", found.join("\n")).into()),
    }
}
