//! Stopping a command: its whole process tree, by a second command.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandbox_core::{Error, ErrorKind, KillGuard, KillTicket, Program, Result, shell};
use tokio::time::{sleep, timeout};

use crate::error;
use crate::events::{ExecdEnding, ExecdEvent};
use crate::execd::RunCommand;
use crate::launch::Launch;
use crate::litter;
use crate::live::{Live, State};
use crate::place::User;

/// How long one round of killing may take: at the limit of processes, seconds.
const ROUND: Duration = Duration::from_secs(8);

/// How long stopping a command may take that nobody waits for: a busy server is no reason to end the
/// sandbox.
const PATIENCE: Duration = Duration::from_secs(30);

/// A command to stop.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    launch: Launch,
    /// Who runs it: nobody else may see or kill its processes.
    user: Option<User>,
    started: Instant,
}

impl Target {
    pub(crate) fn new(launch: &Launch, user: Option<User>) -> Self {
        Self {
            launch: launch.clone(),
            user,
            started: Instant::now(),
        }
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }
}

/// Kills the process tree and waits until it is known to be dead. Tries until it is: bound it.
///
/// # Errors
///
/// [`ErrorKind::SandboxGone`] and [`ErrorKind::SandboxPaused`].
pub(crate) async fn stop(live: &Live, target: &Target) -> Result<()> {
    loop {
        match kill_tree(live, target).await {
            Ok(true) => return Ok(()),
            // No room for another process, most likely: there may be in a moment.
            Ok(false) => {}
            Err(e) => {
                let e = live.explain(e).await;
                if is_final(&e) {
                    return Err(e);
                }
            }
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
async fn kill_tree(live: &Live, target: &Target) -> Result<bool> {
    let age = target.started.elapsed();
    let kill = shell::tree_kill(&target.launch.id, age, live.place.floor);
    let Program::Argv(argv) = &kill.program else {
        return Err(Error::new(ErrorKind::Unexpected, "the kill is no program"));
    };
    // First of all, so that it can't begin after this either.
    let stop = shell::quote(&target.launch.files.stop());
    let command = RunCommand {
        command: format!(": >{stop}\nexec {}", shell::join(argv)),
        envs: kill.env.clone(),
        uid: target.user.map(|u| u.uid),
        gid: target.user.and_then(|u| u.gid),
        timeout: u64::try_from(ROUND.as_millis()).ok(),
        ..RunCommand::default()
    };
    let round = async {
        let mut events = live.execd.run(&command).await?;
        while let Some(event) = events.next().await? {
            if let ExecdEvent::Ended(ending) = event {
                return Ok(ending == ExecdEnding::Exited(0));
            }
        }
        Ok(false)
    };
    match timeout(ROUND, round).await {
        Ok(result) => result,
        Err(_) => Err(error::timed_out("stop a command")),
    }
}

/// Stops a command that nobody waits for any more. If that can't be confirmed, the sandbox dies.
async fn abandoned(live: &Live, target: &Target) -> Result<()> {
    match timeout(PATIENCE, stop(live, target)).await {
        Ok(Ok(())) => {
            litter::remove(&live.execd, &target.launch.files.all()).await;
            Ok(())
        }
        Ok(Err(e)) if e.kind() == ErrorKind::SandboxGone => Ok(()),
        Ok(Err(e)) => Err(e),
        // A paused sandbox answers nothing; its command goes on when it does.
        Err(_) if live.state().await == Some(State::Paused) => Err(error::paused()),
        Err(_) => {
            tracing::warn!(
                sandbox.id = %live.id,
                "a dropped command could not be stopped: the sandbox is killed"
            );
            live.lifecycle.kill(&live.id).await
        }
    }
}

/// Kills the command when the first of its clones is dropped, unless it is known to have ended.
#[derive(Clone, Debug)]
pub(crate) struct Guard(Arc<Mutex<Option<KillGuard>>>);

impl Guard {
    /// From now on the command may run.
    pub(crate) fn arm(live: &Live, target: &Target) -> Self {
        let (live, target) = (live.clone(), target.clone());
        let ticket = KillTicket::new(live.id.clone(), move || async move {
            abandoned(&live.elsewhere()?, &target).await
        });
        Self(Arc::new(Mutex::new(Some(KillGuard::arm(ticket)))))
    }

    fn take(&self) -> Option<KillGuard> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guard.take()
    }

    /// The command has ended, or never began.
    pub(crate) fn disarm(&self) {
        if let Some(guard) = self.take() {
            guard.disarm();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.take());
    }
}
