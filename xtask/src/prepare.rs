//! What the tests need on this machine besides cargo. Made before, undone after.

use std::path::{Path, PathBuf};

use crate::{Result, workspace};

/// What was prepared.
pub(crate) struct Prepared {
    /// A folder for what the tests leave to look at.
    pub(crate) out: PathBuf,
    /// What is missing here and why, a line each; tests that need it do not run.
    pub(crate) not_run: Vec<String>,
}

/// Everything, one step after the other.
pub(crate) fn all() -> Result<Prepared> {
    Ok(Prepared {
        out: out_folder()?,
        not_run: Vec::new(),
    })
}

/// An empty folder below `target`.
fn out_folder() -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace::root().join("target"), PathBuf::from);
    let out = workspace::root().join(target).join("xtask");
    if Path::new(&out).exists() {
        std::fs::remove_dir_all(&out)?;
    }
    std::fs::create_dir_all(&out)?;
    Ok(out.canonicalize()?)
}
