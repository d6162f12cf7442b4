//! `delete`.

use super::script::{self, Run, script};
use crate::{Result, SandboxBackend, SandboxPath};

/// Argument: what to remove. Paths have no trailing slash here, so `rm` never follows a link.
const DELETE: &str = script!(
    r#"need rm
[ -e "$1" ] || [ -L "$1" ] || gone "$1"
e=$(rm -rf -- "$1" 2>&1) && [ ! -e "$1" ] && [ ! -L "$1" ] && exit 0
fail "$e""#
);

/// See [`crate::Sandbox::delete`].
///
/// # Errors
///
/// As there.
pub async fn delete(backend: &dyn SandboxBackend, path: &SandboxPath) -> Result<()> {
    script::run(backend, DELETE, Run::on(path)).await.map(drop)
}
