//! `cd`, which asks for search permission: the engine's own enters any directory.

use std::path::Path;
use std::sync::Arc;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait, normalize_path, vfs_join};

use crate::vfs::{FileKind, FsError, Last, View};

/// `cd [-L|-P] [DIR]`, with `-` and `CDPATH`. `..` drops the component before it, which must be a
/// directory; `-P` goes to where links lead.
pub(super) struct Cd(pub(super) Arc<View>);

#[async_trait]
impl Builtin for Cd {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let mut physical = false;
        let mut operands = ctx.args;
        while let Some((option, rest)) = operands.split_first() {
            match option.as_str() {
                "--" => {
                    operands = rest;
                    break;
                }
                "-L" | "-P" => physical = option == "-P",
                _ if option.starts_with('-') && option.len() > 1 => {
                    return Ok(fail(&format!("{option}: invalid option"), 2));
                }
                _ => break,
            }
            operands = rest;
        }
        let variable = |name: &str| ctx.variables.get(name).or_else(|| ctx.env.get(name));
        let (target, mut tell) = match operands {
            [] => match variable("HOME") {
                Some(home) => (home.clone(), false),
                None => return Ok(fail("HOME not set", 1)),
            },
            [dash] if dash == "-" => match variable("OLDPWD") {
                Some(old) => (old.clone(), true),
                None => return Ok(fail("OLDPWD not set", 1)),
            },
            [target] => (target.clone(), false),
            _ => return Ok(fail("too many arguments", 1)),
        };
        if target.is_empty() {
            return Ok(ExecResult::ok(String::new()));
        }
        let search = variable("CDPATH").map_or("", String::as_str);
        let path = match self.look(search, ctx.cwd, &target, physical) {
            Ok((path, elsewhere)) => {
                tell |= elsewhere;
                path
            }
            Err(e) => return Ok(fail(&format!("{target}: {}", e.strerror()), 1)),
        };
        let old = ctx.cwd.to_string_lossy().into_owned();
        ctx.variables.insert("OLDPWD".to_owned(), old);
        ctx.variables.insert("PWD".to_owned(), path.clone());
        let said = if tell {
            format!("{path}\n")
        } else {
            String::new()
        };
        *ctx.cwd = path.into();
        Ok(ExecResult::ok(said))
    }
}

impl Cd {
    /// Looks for the directory in `CDPATH`, then in the current one. The flag says that it was
    /// found elsewhere.
    fn look(
        &self,
        search: &str,
        cwd: &Path,
        target: &str,
        physical: bool,
    ) -> Result<(String, bool), FsError> {
        let first = target.split('/').next().unwrap_or_default();
        if !matches!(first, "" | "." | "..") {
            for dir in search.split(':').filter(|dir| !dir.is_empty()).take(64) {
                let path = vfs_join(&vfs_join(cwd, dir), target);
                if let Ok(path) = self.enter(path.to_str().unwrap_or("/"), physical) {
                    return Ok((path, true));
                }
            }
        }
        let path = vfs_join(cwd, target);
        Ok((self.enter(path.to_str().unwrap_or("/"), physical)?, false))
    }

    /// The path of a directory that may be entered.
    fn enter(&self, path: &str, physical: bool) -> Result<String, FsError> {
        let (vfs, cred) = (self.0.vfs(), self.0.cred());
        if path.split('/').any(|part| part == "..") {
            // What is dropped by `..` must be there.
            let mut before = String::new();
            for part in path.split('/').filter(|p| !p.is_empty() && *p != ".") {
                if part == ".." {
                    let dir = if before.is_empty() { "/" } else { &before };
                    if vfs.stat(dir, cred, Last::Follow)?.kind != FileKind::Dir {
                        return Err(FsError::NotADirectory);
                    }
                    before.truncate(before.rfind('/').unwrap_or(0));
                } else {
                    before.push('/');
                    before.push_str(part);
                }
            }
        }
        let logical = normalize_path(path.as_ref());
        let logical = logical.to_str().unwrap_or("/");
        if vfs.stat(logical, cred, Last::Follow)?.kind != FileKind::Dir {
            return Err(FsError::NotADirectory);
        }
        vfs.access(logical, cred, 1)?;
        if physical {
            vfs.real_path(logical, cred)
        } else {
            Ok(logical.to_owned())
        }
    }
}

fn fail(why: &str, code: i32) -> ExecResult {
    ExecResult::err(format!("sh: cd: {why}\n"), code)
}
