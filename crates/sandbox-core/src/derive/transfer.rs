//! `transfer`.

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{Error, Result, SandboxBackend, SandboxPath};

/// See [`crate::Sandbox::upload_from`].
///
/// # Errors
///
/// As there.
pub async fn upload_from(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    reader: &mut (dyn AsyncRead + Send + Unpin),
) -> Result<u64> {
    let _ = (backend, path, reader);
    Err(Error::unsupported("`upload_from` yet"))
}

/// See [`crate::Sandbox::download_to`].
///
/// # Errors
///
/// As there.
pub async fn download_to(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    writer: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<u64> {
    let _ = (backend, path, writer);
    Err(Error::unsupported("`download_to` yet"))
}
