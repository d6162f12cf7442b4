//! Stopping a command: its whole process tree, from a second program in the container.

use std::time::{Duration, Instant};

use sandbox_core::{Error, ErrorKind, Result, defaults, shell};
use tokio::time::{sleep, timeout};

use crate::container::Container;
use crate::exec::Look;

/// How long a command that was dropped right after the request to start it may take to begin.
const MAY_START: Duration = Duration::from_secs(3);

/// How long one round of killing may take: at the limit of processes, seconds.
const ROUND: Duration = Duration::from_secs(8);

/// A command to stop.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The id that its processes carry.
    pub(crate) id: String,
    /// Who runs it: nobody else may see or kill its processes.
    pub(crate) user: Option<String>,
    pub(crate) started: Instant,
}

/// Kills the process tree and waits until it is known to be dead. Tries until it is: bound it.
///
/// # Errors
///
/// [`ErrorKind::SandboxGone`] and [`ErrorKind::SandboxPaused`].
pub(crate) async fn stop(container: &Container, name: &str, target: &Target) -> Result<()> {
    loop {
        match kill_tree(container, target).await {
            Ok(true) => match container.route.look(name).await {
                Ok(Look::Ended(_) | Look::Unclear(_) | Look::NeverStarted) => return Ok(()),
                Err(e) if is_final(&e) => return Err(e),
                Ok(_) | Err(_) => {}
            },
            Err(e) if is_final(&e) => return Err(e),
            // No room for another process, most likely: there may be in a moment.
            Ok(false) | Err(_) => {}
        }
        sleep(Duration::from_millis(50)).await;
    }
}

fn is_final(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::SandboxGone | ErrorKind::SandboxPaused
    )
}

/// One round; true when nothing was left.
async fn kill_tree(container: &Container, target: &Target) -> Result<bool> {
    let mut kill = shell::tree_kill(&target.id, target.started.elapsed(), container.floor);
    kill.user.clone_from(&target.user);
    let (code, _) = container.program(&kill, ROUND).await?;
    Ok(code == 0)
}

/// Stops a command that nobody waits for any more. If that can't be confirmed, the sandbox dies.
pub(crate) async fn abandoned(container: &Container, name: &str, target: &Target) -> Result<()> {
    let dropped = Instant::now();
    // The request to start it may still be under way.
    loop {
        match container.route.look(name).await {
            Ok(Look::NotYet) if dropped.elapsed() < MAY_START => {}
            Ok(Look::NotYet | Look::NeverStarted) => return Ok(()),
            Ok(Look::Running | Look::Ended(_) | Look::Unclear(_)) => break,
            Err(e) if e.kind() == ErrorKind::SandboxGone => return Ok(()),
            Err(_) if dropped.elapsed() < MAY_START => {}
            Err(e) => return Err(e),
        }
        sleep(Duration::from_millis(20)).await;
    }
    match timeout(defaults::KILL_GRACE, stop(container, name, target)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(e)) if e.kind() == ErrorKind::SandboxGone => Ok(()),
        _ => {
            tracing::warn!(
                sandbox.id = %container.id,
                "a dropped command could not be stopped: the sandbox is killed"
            );
            container.engine.remove(&container.id).await
        }
    }
}
