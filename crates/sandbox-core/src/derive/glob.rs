//! `glob`.

use crate::files::GlobMatches;
use crate::{Error, Result, SandboxBackend, SandboxPath};

/// See [`crate::Sandbox::glob`].
///
/// # Errors
///
/// As there.
pub async fn glob(
    backend: &dyn SandboxBackend,
    pattern: &str,
    path: &SandboxPath,
) -> Result<GlobMatches> {
    let _ = (backend, pattern, path);
    Err(Error::unsupported("`glob` yet"))
}
