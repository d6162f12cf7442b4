//! Builtins of the shell that reach the sandbox: `umask`, `disown`.

use std::sync::Arc;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait};

use super::mode;
use crate::vfs::View;

/// `umask`: the mask of the command's view of the files.
pub(super) struct Umask(pub(super) Arc<View>);

#[async_trait]
impl Builtin for Umask {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let mask = self.0.umask();
        let said = |text: String| Ok(ExecResult::ok(text));
        match ctx.args.first().map(String::as_str) {
            None => said(format!("{mask:04o}\n")),
            Some("-p") => said(format!("umask {mask:04o}\n")),
            Some("-S") if ctx.args.len() == 1 => {
                let class = |shift: u32| {
                    let allowed = !mask >> shift & 7;
                    let letters = [(4, 'r'), (2, 'w'), (1, 'x')];
                    letters
                        .iter()
                        .filter(|(bit, _)| allowed & bit != 0)
                        .map(|(_, letter)| *letter)
                        .collect::<String>()
                };
                said(format!("u={},g={},o={}\n", class(6), class(3), class(0)))
            }
            Some(text) => {
                // Symbolic masks say what is allowed, octal ones what is not.
                let wanted = if text.starts_with(|c: char| c.is_ascii_digit()) {
                    u32::from_str_radix(text, 8)
                        .ok()
                        .filter(|mask| *mask <= 0o777)
                } else {
                    mode::apply(text, 0o777 & !mask, false, 0).map(|allowed| 0o777 & !allowed)
                };
                match wanted {
                    Some(mask) => {
                        self.0.set_umask(mask);
                        said(String::new())
                    }
                    None => Ok(ExecResult::err(
                        format!("sh: umask: {text}: octal number out of range\n"),
                        1,
                    )),
                }
            }
        }
    }
}

/// `disown`: jobs outlive their command anyway.
pub(super) struct Disown;

#[async_trait]
impl Builtin for Disown {
    async fn execute(&self, _: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(ExecResult::ok(String::new()))
    }
}
