//! `ls`.

use crate::files::Listing;
use crate::{Error, Result, SandboxBackend, SandboxPath};

/// See [`crate::Sandbox::ls`].
///
/// # Errors
///
/// As there.
pub async fn ls(backend: &dyn SandboxBackend, path: &SandboxPath) -> Result<Listing> {
    let _ = (backend, path);
    Err(Error::unsupported("`ls` yet"))
}
