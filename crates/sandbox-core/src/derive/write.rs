//! `write`.

use bytes::Bytes;

use crate::files::WriteMode;
use crate::{Error, Result, SandboxBackend, SandboxPath};

/// See [`crate::Sandbox::write`].
///
/// # Errors
///
/// As there.
pub async fn write(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    content: Bytes,
    mode: WriteMode,
) -> Result<()> {
    let _ = (backend, path, content, mode);
    Err(Error::unsupported("`write` yet"))
}
