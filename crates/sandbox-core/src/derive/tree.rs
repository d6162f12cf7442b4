//! `tree`.

use std::path::Path;

use crate::files::TreeReport;
use crate::{Error, Result, SandboxBackend, SandboxPath};

/// See [`crate::Sandbox::upload_dir`].
///
/// # Errors
///
/// As there.
pub async fn upload_dir(
    backend: &dyn SandboxBackend,
    local: &Path,
    path: &SandboxPath,
) -> Result<TreeReport> {
    let _ = (backend, local, path);
    Err(Error::unsupported("`upload_dir` yet"))
}

/// See [`crate::Sandbox::download_dir`].
///
/// # Errors
///
/// As there.
pub async fn download_dir(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    local: &Path,
) -> Result<TreeReport> {
    let _ = (backend, path, local);
    Err(Error::unsupported("`download_dir` yet"))
}
