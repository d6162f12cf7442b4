//! What the tests need on this machine besides cargo. Made before, undone after.

use std::path::{Path, PathBuf};

use crate::engine::{self, Engine};
use crate::{Result, images, workspace};

/// What was prepared. Dropping it undoes what should not stay.
pub(crate) struct Prepared {
    /// A folder for what the tests leave to look at.
    pub(crate) out: PathBuf,
    /// What is missing here and why, a line each; tests that need it do not run.
    pub(crate) not_run: Vec<String>,
    /// Stopped at the end if it was started here.
    _engine: Option<Engine>,
}

/// Everything, one step after the other.
///
/// # Errors
///
/// What is missing and required: by `SANDBOX_REQUIRE`, or all of it under `CI`.
pub(crate) fn all() -> Result<Prepared> {
    let out = out_folder()?;
    let mut not_run = Vec::new();
    let engine = match docker(&out) {
        Ok(engine) => Some(engine),
        Err(why) if required("docker") => {
            return Err(format!("docker is required and can't be had: {why}").into());
        }
        Err(why) => {
            not_run.push(format!("docker ({why})"));
            None
        }
    };
    Ok(Prepared {
        out,
        not_run,
        _engine: engine,
    })
}

/// An engine with the images that the tests use.
fn docker(out: &Path) -> Result<Engine> {
    let engine = engine::get(out)?;
    images::run(&[])?;
    Ok(engine)
}

/// Whether the run is a failure without `what`.
fn required(what: &str) -> bool {
    let named = std::env::var("SANDBOX_REQUIRE").unwrap_or_default();
    named.split(',').any(|name| name.trim() == what) || std::env::var_os("CI").is_some()
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
