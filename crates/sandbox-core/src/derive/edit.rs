//! `edit`.

use crate::files::EditReport;
use crate::{Error, Result, SandboxBackend, SandboxPath};

/// See [`crate::Sandbox::edit`].
///
/// # Errors
///
/// As there.
pub async fn edit(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    old: &str,
    new: &str,
    replace_all: bool,
) -> Result<EditReport> {
    let _ = (backend, path, old, new, replace_all);
    Err(Error::unsupported("`edit` yet"))
}
