//! Output while a command runs: its files are followed.

use std::time::Duration;

use futures_util::stream::poll_fn;
use sandbox_core::{Command, Error, ErrorKind, ExecuteEvent, ExecuteStream, Result, Status};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::live::Live;
use crate::output::Follower;
use crate::place::User;
use crate::running::{Ending, Running};
use crate::stop::Guard;

/// How many parts of output wait for a slow reader.
const WAITING: usize = 16;

/// How often the files are looked at: at first, and while nothing comes.
const LOOK: [Duration; 2] = [Duration::from_millis(30), Duration::from_millis(250)];

/// Starts a command and hands out its output as it comes.
pub(crate) async fn start(
    live: Live,
    command: Command,
    user: Option<User>,
) -> Result<ExecuteStream> {
    let (tell, begun) = oneshot::channel::<Result<Guard>>();
    let (tx, mut rx) = mpsc::channel(WAITING);
    // A task, so that the deadline holds while nobody reads. It ends when the stream is dropped.
    tokio::spawn(async move {
        let closed = tx.clone();
        tokio::select! {
            () = run(&live, &command, user, tell, tx) => {}
            // Dropping what runs kills the command.
            () = closed.closed() => {}
        }
    });
    let guard = begun.await.unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::Unexpected,
            "the command's task has ended",
        ))
    })?;
    Ok(ExecuteStream::new(poll_fn(move |cx| {
        // Dropped with the stream, so that the kill is under way at once.
        let _with_the_stream = &guard;
        rx.poll_recv(cx)
    })))
}

async fn run(
    live: &Live,
    command: &Command,
    user: Option<User>,
    tell: oneshot::Sender<Result<Guard>>,
    tx: mpsc::Sender<ExecuteEvent>,
) {
    let started = async {
        let mut running = Running::start(live, command, user).await?;
        running.begin().await?;
        Ok(running)
    };
    let mut running = match started.await {
        Ok(running) => running,
        Err(e) => {
            // Whoever does not wait any more does not want to know.
            let _ = tell.send(Err(e));
            return;
        }
    };
    if tell.send(Ok(running.guard())).is_err() {
        return;
    }
    let mut follower = Follower::new(live.execd.clone(), running.files().clone());
    let ending = follow(&mut running, &mut follower, &tx).await;
    let ending = match follower.rest(&tx).await {
        Ok(()) => {
            running.forget();
            ending
        }
        Err(e) if matches!(ending.status, Status::Lost(_) | Status::TimedOut) => {
            tracing::debug!(error = %e, "the rest of the output is lost");
            ending
        }
        Err(e) => Ending::of(Status::Lost(format!(
            "the rest of the output is lost: {}",
            e.message()
        ))),
    };
    let end = ExecuteEvent::Ended {
        status: ending.status,
        sandbox_killed: ending.sandbox_killed,
    };
    let _ = tx.send(end).await;
}

/// Waits for the end, and hands out what comes meanwhile.
async fn follow(
    running: &mut Running<'_>,
    follower: &mut Follower,
    tx: &mpsc::Sender<ExecuteEvent>,
) -> Ending {
    let wait = running.wait();
    tokio::pin!(wait);
    let [first, longest] = LOOK;
    let mut pause = first;
    loop {
        let look = async {
            sleep(pause).await;
            // What can't be fetched now is at the end.
            follower.step(tx).await.unwrap_or(false)
        };
        tokio::select! {
            biased;
            ending = &mut wait => {
                return ending.unwrap_or_else(|e| Ending::of(Status::Lost(e.to_string())));
            }
            some = look => pause = if some { first } else { (pause * 2).min(longest) },
        }
    }
}
