//! How a command's end is told from the end of what it left running.
//!
//! The engine returns when all background jobs have ended; a command ends when its shell does.
//! So the user's text runs in a child shell of one constant line, which then calls a builtin of
//! ours. It needs a token that no text can know.
//!
//! In a child shell the engine does not route output after `exec >file` and the like. Text with
//! such a redirection runs as the outermost shell, with a trap that calls the builtin; if it sets
//! an `EXIT` trap of its own, the command ends only with its background jobs.

use std::sync::Arc;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait};
use tokio::sync::watch;

/// The line. `$1` is the token, the rest the arguments of `sh`.
const LINE: &str = r#"sh "${@:2}"; __leader "$1" "$?""#;

/// The builtin's name.
pub(super) const NAME: &str = "__leader";

/// The script and the positional parameters that run `args` of `sh`.
pub(super) fn script(token: &str, args: Vec<String>) -> Script {
    match args.split_first() {
        Some((c, rest)) if c == "-c" && rest.first().is_some_and(|t| redirects_itself(t)) => {
            let text = &rest[0];
            Script {
                line: format!("trap '{NAME} {token} \"$?\"' EXIT; {text}"),
                arg0: rest.get(1).cloned().unwrap_or_else(|| "sh".to_owned()),
                positional: rest.get(2..).unwrap_or_default().to_vec(),
            }
        }
        _ => Script {
            line: LINE.to_owned(),
            arg0: "sh".to_owned(),
            positional: std::iter::once(token.to_owned()).chain(args).collect(),
        },
    }
}

/// What the engine is given.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) line: String,
    pub(super) arg0: String,
    pub(super) positional: Vec<String>,
}

/// Whether shell text may redirect the shell itself: `exec` with nothing but a redirection.
fn redirects_itself(text: &str) -> bool {
    text.match_indices("exec").any(|(at, word)| {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || "_-./$".contains(c)) {
            return false;
        }
        let after = &text[at + word.len()..];
        let rest = after.trim_start_matches([' ', '\t']);
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        let rest = match rest.strip_prefix('{').and_then(|r| r.split_once('}')) {
            Some((_, rest)) => rest,
            None => rest,
        };
        rest.len() < after.len() && rest.starts_with(['<', '>'])
    })
}

/// The end of a leader, as its builtin tells it.
#[derive(Debug)]
pub(super) struct Leader {
    token: String,
    ended: watch::Sender<Option<i32>>,
}

impl Leader {
    pub(super) fn new(token: String) -> Arc<Self> {
        Arc::new(Self {
            token,
            ended: watch::Sender::new(None),
        })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Waits for the leader's exit code.
    pub(super) async fn ended(&self) -> i32 {
        let mut ended = self.ended.subscribe();
        match ended.wait_for(Option::is_some).await {
            Ok(code) => code.unwrap_or_default(),
            // The sender is ours.
            Err(_) => std::future::pending().await,
        }
    }

    /// The leader's exit code, if it has ended.
    pub(super) fn code(&self) -> Option<i32> {
        *self.ended.borrow()
    }
}

/// The builtin.
pub(super) struct Tell(pub(super) Arc<Leader>);

#[async_trait]
impl Builtin for Tell {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        match ctx.args {
            [token, code] if *token == self.0.token => {
                self.0.ended.send_replace(Some(code.parse().unwrap_or(-1)));
                Ok(ExecResult::ok(String::new()))
            }
            _ => Ok(ExecResult::err(
                format!("sh: {NAME}: command not found\n"),
                127,
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_that_redirects_the_shell_runs_outermost() {
        for text in [
            "exec 2>&1",
            "cd /; exec >f",
            "exec 3<f",
            "exec {fd}>f",
            "exec &>f",
            "x && exec\t>f",
        ] {
            assert!(redirects_itself(text), "{text}");
        }
        for text in [
            "exec ls",
            "find . -exec cat {} >f",
            "docker exec a >f",
            "execute >f",
            "exec",
        ] {
            assert!(!redirects_itself(text), "{text}");
        }
    }
}
