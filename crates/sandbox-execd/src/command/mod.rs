//! Running commands: in the foreground with a stream of events, in the background, and asking
//! for and ending either by id.

mod background;
pub(crate) mod events;
mod foreground;
mod lines;
mod output;
pub(crate) mod registry;
mod request;

use std::ffi::OsString;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use rustix::process::{Pid, Signal};
use tokio::sync::oneshot;

use self::events::{Batch, EventSink};
use self::registry::End;
use self::request::RunRequest;
use crate::daemon::{Daemon, blocking};
use crate::process::accounts::Accounts;
use crate::process::reaper::Ended;
use crate::process::spawn::{Launch, Started};
use crate::query::Query;
use crate::respond::{ApiError, Body, TEXT, empty, json, whole};

/// How long a command has between SIGTERM and SIGKILL.
pub(crate) const TERM_GRACE: Duration = Duration::from_secs(3);

/// An id for an execution: 32 hexadecimal digits nobody can guess.
pub(crate) fn new_id() -> String {
    let mut bytes = [0_u8; 16];
    // The kernel's generator answers 16 bytes whole once it is seeded, which it waits for.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    format!("{:032x}", u128::from_be_bytes(bytes))
}

/// A file for what has to wait on disk, without a name.
pub(crate) use self::output::unnamed as spool_file;

/// The answer to a run that is lost on its way: it begins, and it ends, and nothing was run.
pub(crate) async fn lost_run() -> Response<Body> {
    let (mut sink, response) = EventSink::open();
    let mut batch = Batch::default();
    batch.init(&new_id());
    batch.ping();
    sink.send(batch).await;
    response
}

/// Where a run's answer goes; the run goes on when the client that asked has left.
type Answer = oneshot::Sender<Result<Response<Body>, ApiError>>;

/// `POST /command`.
pub(crate) async fn run(daemon: &Arc<Daemon>, body: &[u8]) -> Result<Response<Body>, ApiError> {
    let request = RunRequest::parse(body)?;
    let slot = daemon.commands.slot().ok_or_else(|| {
        ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            crate::respond::Code::Runtime,
            "error running commands too many commands are running",
        )
    })?;
    let (answer, answered) = oneshot::channel();
    let daemon = daemon.clone();
    // On a task of its own: dropping the connection must not stop what was begun.
    tokio::spawn(async move {
        let _slot = slot;
        if request.background {
            background::run(daemon, request, answer).await;
        } else {
            foreground::run(daemon, request, answer).await;
        }
    });
    answered
        .await
        .unwrap_or_else(|_| Err(ApiError::runtime("error running commands")))
}

/// The shell for a request, ready to start. Reads files.
fn prepare(
    daemon: &Daemon,
    request: &RunRequest,
    (stdout, stderr): (Stdio, Stdio),
) -> Result<Launch, ApiError> {
    let variables = daemon.environment.for_command(&request.envs);
    let directory = request.directory(&daemon.environment, &variables)?;
    Ok(Launch {
        text: request.command.clone(),
        directory,
        environment: variables.into_iter().collect::<Vec<(OsString, OsString)>>(),
        identity: request
            .uid
            .map(|uid| Accounts::load().identity(uid, request.gid)),
        stdout,
        stderr,
        takes_group_along: request.background,
    })
}

/// Waits for a command's end, killing its process group at the timeout.
async fn supervise(daemon: &Daemon, started: Started, timeout: Option<Duration>) -> End {
    let Started { leader, mut ended } = started;
    let mut timed_out = false;
    if let Some(timeout) = timeout {
        let deadline = tokio::time::sleep(timeout);
        tokio::select! {
            biased;
            ended = &mut ended => return ending(daemon, ended.ok(), None),
            () = deadline => timed_out = daemon.reaper.signal_group(leader, Signal::KILL),
        }
    }
    let ended = ended.await.ok();
    ending(daemon, ended, timeout.filter(|_| timed_out))
}

/// The end in the words of the profile. The stock one says -1 for every signal, and nothing of a
/// timeout; the default one says 128 and the signal's number as a shell does, and 124.
fn ending(daemon: &Daemon, ended: Option<Ended>, timed_out: Option<Duration>) -> End {
    let stock = daemon.options.profile.is_stock();
    let Some(ended) = ended else {
        return End::now(255, "its end was not seen".into());
    };
    match (ended, timed_out) {
        (Ended::Exited(0), _) => End::now(0, String::new()),
        (Ended::Exited(code), _) => End::now(code, ended.text()),
        (Ended::Signaled { .. }, _) if stock => End::now(-1, ended.text()),
        (Ended::Signaled { .. }, Some(after)) => End::now(
            124,
            format!("timed out after {}ms: {}", after.as_millis(), ended.text()),
        ),
        (Ended::Signaled { signal, .. }, None) => End::now(128 + signal, ended.text()),
    }
}

/// `GET /command/status/{id}`.
pub(crate) fn status(daemon: &Daemon, id: &str) -> Result<Response<Body>, ApiError> {
    let record = daemon.commands.get(id).ok_or_else(|| {
        let message = format!("command not found: {id}");
        ApiError::new(
            StatusCode::NOT_FOUND,
            crate::respond::Code::InvalidRequest,
            message,
        )
    })?;
    Ok(json(record.to_json()))
}

/// `GET /command/{id}/logs`.
pub(crate) async fn logs(
    daemon: &Daemon,
    id: &str,
    query: &Query,
) -> Result<Response<Body>, ApiError> {
    let record = daemon
        .commands
        .get(id)
        .ok_or_else(|| ApiError::invalid(format!("command not found: {id}")))?;
    let cursor = query.text("cursor").parse().unwrap_or(0);
    let (bytes, cursor) = blocking(move || {
        let id = &record.id;
        let output = record.output.as_ref().ok_or_else(|| {
            ApiError::invalid(format!("command {id} is not running in background"))
        })?;
        output.read(id, cursor).map_err(ApiError::invalid)
    })
    .await?;
    let mut response = Response::new(whole(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, TEXT);
    headers.insert("EXECD-COMMANDS-TAIL-CURSOR", HeaderValue::from(cursor));
    Ok(response)
}

/// `DELETE /command?id=`: SIGTERM to the process group, SIGKILL if it does not end.
pub(crate) async fn interrupt(daemon: &Daemon, query: &Query) -> Result<Response<Body>, ApiError> {
    let id = query.text("id");
    if id.is_empty() {
        return Err(ApiError::missing_query("id"));
    }
    let failed = |why: &str| {
        // The word is misspelt on the wire.
        ApiError::runtime(format!("error interruptting code context. {why}"))
    };
    let record = daemon
        .commands
        .get(&id)
        .ok_or_else(|| failed("no such session"))?;
    let not_running = || failed(&format!("command session {id} is not running"));
    let leader = record
        .leader
        .filter(|_| record.is_running())
        .ok_or_else(not_running)?;
    if !daemon.reaper.signal_group(leader, Signal::TERM) {
        return Err(not_running());
    }
    if !is_gone(leader, TERM_GRACE).await {
        // The leader may have ended while others of its group have not; a group that exists
        // keeps its number from being given away.
        let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        is_gone(leader, Duration::from_millis(150)).await;
    }
    Ok(empty())
}

/// Whether no process of `group` is left, looking again until `limit` is over.
async fn is_gone(group: Pid, limit: Duration) -> bool {
    let end = tokio::time::Instant::now() + limit;
    loop {
        if rustix::process::test_kill_process_group(group) == Err(rustix::io::Errno::SRCH) {
            return true;
        }
        if tokio::time::Instant::now() >= end {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Ends every command that runs: for the daemon's own end.
pub(crate) async fn end_all(daemon: &Daemon) {
    let signal = |signal| {
        let running = daemon.commands.running();
        for leader in running.iter().filter_map(|it| it.leader) {
            daemon.reaper.signal_group(leader, signal);
        }
        !running.is_empty()
    };
    let end = tokio::time::Instant::now() + TERM_GRACE;
    let mut left = signal(Signal::TERM);
    while left && tokio::time::Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(50)).await;
        left = !daemon.commands.running().is_empty();
    }
    if left {
        signal(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_like_the_real_ones() {
        let id = new_id();
        assert_eq!(id.len(), 32);
        assert!(id.bytes().all(|it| it.is_ascii_hexdigit()));
        assert_ne!(id, new_id());
    }
}
