//! Stopping a command: its whole process tree, from a second program in the container.

use std::time::{Duration, Instant};

use sandbox_core::{Error, ErrorKind, Result, defaults};
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
                Ok(Look::Ended(_) | Look::NeverStarted) => return Ok(()),
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
    let argv = tree_kill(&target.id, target.started.elapsed(), container.floor);
    let (code, _) = container.program(argv, target.user.clone(), ROUND).await?;
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
            Ok(Look::Running | Look::Ended(_)) => break,
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

/// A process without an id whose parent is outside the container (0) is left alone: it is another
/// program that the engine is just starting. Were it the command itself, its end can't be confirmed.
///
/// Arguments: the command's id, its age in hundredths of a second, a floor. No process that began
/// before the floor (in clock ticks) is touched.
const TREE_KILL: &str = r#"v=SANDBOX_COMMAND_ID=; m=$v$1
st() { IFS= read -r l <"/proc/$1/stat" 2>/dev/null || return 1; set -- ${l##*) }; s0=$1; p0=$2; t0=${20}; }
st $$; born=$((t0-$2-10)); [ "$born" -gt "$3" ] || born=$(($3+1)); up=" 1 $$ "; while [ "$p0" -gt 1 ]; do up="$up$p0 "; st "$p0" || break; done
own() { seen=; while IFS= read -r l || [ -n "$l" ]; do case $l in *"$m"*) return 0;; *"$v"*) seen=1;; esac; done 2>/dev/null <"/proc/$1/environ"
 [ -n "$seen" ] && return 1; st "$1" || return 1; [ "$s0" = Z ] && return 1; [ "$p0" = 0 ] && return 1; [ "$t0" -ge "$born" ]; }
r=0; s=" "; while [ $r -lt 100 ]; do r=$((r+1)); n=0; for d in /proc/[0-9]*; do p=${d#/proc/}; case $up in *" $p "*) continue;; esac
 case $s in *" $p "*) continue;; esac; if own "$p"; then kill -STOP "$p" 2>/dev/null && { n=$((n+1)); s="$s$p "; }; fi; done; [ $n = 0 ] && break; done; [ "$s" = " " ] || kill -KILL $s; exit 0"#;

fn tree_kill(id: &str, age: Duration, floor: u64) -> Vec<String> {
    let centiseconds = age.as_millis() / 10;
    [
        "/bin/sh",
        "-c",
        TREE_KILL,
        "k",
        id,
        &centiseconds.to_string(),
        &floor.to_string(),
    ]
    .map(str::to_owned)
    .to_vec()
}
