//! `rm`: the engine's own is silent about what `-f` could not remove.

use std::fmt::Write as _;
use std::sync::Arc;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait, vfs_join};

use crate::vfs::{FileKind, FsError, Last, View};

/// `rm [-dfirRv] [--] FILE...`.
pub(super) struct Rm(pub(super) Arc<View>);

#[async_trait]
impl Builtin for Rm {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        // The letters given; `R` and the long options as the short ones they mean.
        let mut options = String::new();
        let mut files = Vec::new();
        let mut arguments = ctx.args.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--" => {
                    files.extend(arguments);
                    break;
                }
                "--force" => options.push('f'),
                "--recursive" => options.push('r'),
                "--dir" => options.push('d'),
                "--verbose" => options.push('v'),
                "--no-preserve-root" | "--preserve-root" | "--one-file-system" => {}
                long if long.starts_with("--") => {
                    return Ok(usage(&format!("unrecognized option '{long}'")));
                }
                short if short.len() > 1 && short.starts_with('-') => {
                    for letter in short[1..].chars() {
                        match letter {
                            'R' => options.push('r'),
                            // `i` too: nobody is there to be asked.
                            'f' | 'r' | 'd' | 'v' | 'i' | 'I' => options.push(letter),
                            other => return Ok(usage(&format!("invalid option -- '{other}'"))),
                        }
                    }
                }
                _ => files.push(argument),
            }
        }
        let (force, verbose) = (options.contains('f'), options.contains('v'));
        if files.is_empty() && !force {
            return Ok(usage("missing operand"));
        }
        let (mut out, mut err) = (String::new(), String::new());
        for file in files {
            let path = vfs_join(ctx.cwd, file);
            match self.remove(path.to_str().unwrap_or_default(), file, &options) {
                Ok(()) if verbose => {
                    let _ = writeln!(out, "removed '{file}'");
                }
                Ok(()) => {}
                Err(FsError::NotFound | FsError::NotADirectory) if force => {}
                Err(e) => {
                    let _ = writeln!(err, "rm: cannot remove '{file}': {}", e.strerror());
                }
            }
        }
        let mut result = ExecResult::ok(out);
        result.exit_code = i32::from(!err.is_empty());
        result.stderr = err.into();
        Ok(result)
    }
}

impl Rm {
    fn remove(&self, path: &str, named: &str, options: &str) -> Result<(), FsError> {
        let (vfs, cred) = (self.0.vfs(), self.0.cred());
        let stat = vfs.stat(path, cred, Last::Keep)?;
        let last = named.trim_end_matches('/').rsplit('/').next();
        if stat.kind == FileKind::Dir {
            if matches!(last, Some("." | "..")) || path.trim_matches('/').is_empty() {
                return Err(FsError::Invalid);
            }
            if !options.contains(['r', 'd']) {
                return Err(FsError::IsADirectory);
            }
        }
        vfs.remove(path, cred, options.contains('r'))
    }
}

fn usage(why: &str) -> ExecResult {
    ExecResult::err(
        format!("rm: {why}\nTry 'rm --help' for more information.\n"),
        1,
    )
}
