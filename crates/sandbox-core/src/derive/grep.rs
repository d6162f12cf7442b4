//! `grep`.

use crate::files::{GrepMatches, GrepOptions};
use crate::{Error, Result, SandboxBackend, SandboxPath};

/// See [`crate::Sandbox::grep`].
///
/// # Errors
///
/// As there.
pub async fn grep(
    backend: &dyn SandboxBackend,
    text: &str,
    path: &SandboxPath,
    options: &GrepOptions,
) -> Result<GrepMatches> {
    let _ = (backend, text, path, options);
    Err(Error::unsupported("`grep` yet"))
}
