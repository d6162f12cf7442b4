//! `read`.

use crate::files::{ReadOptions, ReadPage};
use crate::{Error, Result, SandboxBackend, SandboxPath};

/// See [`crate::Sandbox::read`].
///
/// # Errors
///
/// As there.
pub async fn read(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    options: ReadOptions,
) -> Result<ReadPage> {
    let _ = (backend, path, options);
    Err(Error::unsupported("`read` yet"))
}
