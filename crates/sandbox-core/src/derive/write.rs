//! `write`.

use bytes::Bytes;

use super::install::{self, Source};
use crate::files::WriteMode;
use crate::{Result, SandboxBackend, SandboxPath};

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
    install::install(backend, path, Source::Content(content), mode).await
}
