//! `delete`.

use crate::{Error, Result, SandboxBackend, SandboxPath};

/// See [`crate::Sandbox::delete`].
///
/// # Errors
///
/// As there.
pub async fn delete(backend: &dyn SandboxBackend, path: &SandboxPath) -> Result<()> {
    let _ = (backend, path);
    Err(Error::unsupported("`delete` yet"))
}
