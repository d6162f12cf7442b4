//! Commands of our own, in place of the engine's or besides them.

mod rm;

use std::sync::Arc;

use bashkit::{BashBuilder, Builtin, BuiltinContext, ExecResult, async_trait};

use crate::shell::Session;

/// Which of the engine's commands stay: not those that no small container has, nor those that
/// mislead.
pub(crate) fn keeps(name: &str) -> bool {
    !matches!(
        name,
        "assert"
            | "bc"
            | "csv"
            | "curl"
            | "dotenv"
            | "file"
            | "git"
            | "glob"
            | "hexdump"
            | "http"
            | "json"
            | "less"
            | "log"
            | "make"
            | "man"
            | "nano"
            | "retry"
            | "rg"
            | "runas"
            | "semver"
            | "ssh"
            | "su"
            | "sudo"
            | "template"
            | "tomlq"
            | "tree"
            | "unzip"
            | "verify"
            | "vi"
            | "vim"
            | "wget"
            | "xxd"
            | "yq"
            | "zip"
    )
}

/// Adds our commands to a shell.
pub(crate) fn register(builder: BashBuilder, session: &Arc<Session>) -> BashBuilder {
    builder
        .builtin("rm", Box::new(rm::Rm(session.view.clone())))
        .builtin("umask", Box::new(Umask(session.clone())))
        .builtin("disown", Box::new(Disown))
}

/// `umask`: the mask of the command's view of the files.
struct Umask(Arc<Session>);

#[async_trait]
impl Builtin for Umask {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let view = &self.0.view;
        match ctx.args.first().map(String::as_str) {
            None => Ok(ExecResult::ok(format!("{:04o}\n", view.umask()))),
            Some(mask) => match u32::from_str_radix(mask, 8) {
                Ok(mask) if mask <= 0o777 => {
                    view.set_umask(mask);
                    Ok(ExecResult::ok(String::new()))
                }
                _ => Ok(ExecResult::err(
                    format!("sh: umask: {mask}: octal number out of range\n"),
                    1,
                )),
            },
        }
    }
}

/// `disown`: jobs outlive their command anyway.
struct Disown;

#[async_trait]
impl Builtin for Disown {
    async fn execute(&self, _: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(ExecResult::ok(String::new()))
    }
}
