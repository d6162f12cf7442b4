//! How a command's end is told from the end of what it left running.
//!
//! The engine returns when all background jobs have ended; a command ends when its shell does.
//! So the user's text runs in a child shell of one constant line, which then calls a builtin of
//! ours. It needs a token that no text can know.

use std::sync::Arc;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait};
use tokio::sync::watch;

/// The line. `$1` is the token, the rest the arguments of `sh`.
pub(super) const LINE: &str = r#"sh "${@:2}"; __leader "$1" "$?""#;

/// The builtin's name in [`LINE`].
pub(super) const NAME: &str = "__leader";

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
