//! A command in the engine: a fresh shell on the sandbox's files, on a worker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bashkit::{Bash, ExecOptions, ExecResult, LimitExceeded, SessionLimits};
use bytes::Bytes;
use sandbox_core::{Status, Stream};
use tokio::runtime::Runtime;

use super::cd::Cd;
use super::leader::{self, Leader, Tell};
use super::run::{Run, Why};
use super::{guard, limits, pool};
use crate::tools;
use crate::vfs::View;

/// How long a command whose leader has ended may take to end wholly before it is taken for one
/// with something left in the background.
const SLACK: Duration = Duration::from_millis(2);

/// What a tool of a command sees besides its arguments.
#[derive(Debug)]
pub(crate) struct Session {
    /// The files, with the command's rights and umask.
    pub(crate) view: Arc<View>,
    /// The name of the command's user.
    pub(crate) user: String,
}

/// All that a command begins with.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) session: Arc<Session>,
    /// The arguments of `sh`.
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: String,
    pub(crate) stdin: Bytes,
    /// The sandbox's memory in bytes.
    pub(crate) memory: u64,
    /// Something that nobody inside can guess.
    pub(crate) token: String,
}

/// Starts a command on a worker. `over` is called when nothing of it runs any more.
pub(crate) fn start(
    run: Arc<Run>,
    launch: Launch,
    over: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    pool::submit(move |runtime| {
        let status = if run.begin() {
            work(&run, launch, runtime)
        } else {
            Status::TimedOut
        };
        run.finish(status);
        over();
    })
}

fn work(run: &Arc<Run>, launch: Launch, runtime: &Runtime) -> Status {
    let driven = catch_unwind(AssertUnwindSafe(|| runtime.block_on(drive(run, launch))));
    driven.unwrap_or_else(|_| {
        note(run, "the engine failed at this command");
        Status::Signaled(6)
    })
}

async fn drive(run: &Arc<Run>, launch: Launch) -> Status {
    let leader = Leader::new(launch.token.clone());
    let mut bash = shell(run, &leader, &launch);
    run.attach(bash.cancellation_token());
    let sink = run.clone();
    let script = leader::script(leader.token(), launch.args);
    let options = ExecOptions::new()
        .arg0(script.arg0)
        .positional(script.positional)
        .stdin(launch.stdin.to_vec())
        .streaming(Box::new(move |stdout, stderr| {
            sink.sink.push(Stream::Stdout, stdout.as_bytes());
            sink.sink.push(Stream::Stderr, stderr.as_bytes());
            if sink.sink.is_cut() {
                sink.end(Why::Killed("the output was cut"));
            }
        }));
    let exec = bash.exec_with_options(&script.line, options);
    tokio::pin!(exec);
    tokio::select! {
        biased;
        () = run.stopped() => return stopped(run),
        result = &mut exec => return finished(run, &leader, result),
        _ = leader.ended() => {}
    }
    tokio::select! {
        biased;
        () = run.stopped() => return stopped(run),
        result = &mut exec => return finished(run, &leader, result),
        () = tokio::time::sleep(SLACK) => {}
    }
    // Something was left in the background: it lives on until the sandbox dies.
    let status = run.status_of(leader.code().unwrap_or(-1));
    run.answer(status.clone());
    pool::detach();
    tokio::select! {
        biased;
        () = run.stopped() => {}
        _ = &mut exec => {}
    }
    status
}

fn shell(run: &Arc<Run>, leader: &Arc<Leader>, launch: &Launch) -> Bash {
    let session = &launch.session;
    let mut builder = Bash::builder()
        .fs(session.view.clone())
        // Ours is the tree of a container already.
        .rootfs(false)
        .cwd(&launch.cwd)
        .username(&session.user)
        .hostname(crate::vfs::HOSTNAME)
        .builtin_filter(tools::keeps)
        .limits(limits::execution(launch.memory))
        .session_limits(SessionLimits::unlimited())
        .memory_limits(limits::variables(launch.memory))
        .before_tool(guard::hook(run.clone()))
        .builtin("cd", Box::new(Cd(session.view.clone())))
        .builtin(leader::NAME, Box::new(Tell(leader.clone())));
    for (name, value) in &launch.env {
        builder = builder.env(name, value);
    }
    tools::register(builder, session).build()
}

/// The names of all commands, for `/usr/bin`.
pub(crate) fn command_names() -> Vec<String> {
    let session = Arc::new(Session {
        view: Arc::new(View::empty()),
        user: "root".into(),
    });
    let builder = Bash::builder()
        .fs(session.view.clone())
        .rootfs(false)
        .builtin_filter(tools::keeps);
    tools::register(builder, &session).build().builtin_names()
}

fn stopped(run: &Run) -> Status {
    // Who stopped it knows why; only a crash is the command's own end.
    Status::Signaled(run.signal().unwrap_or(9))
}

fn finished(run: &Run, leader: &Leader, result: bashkit::Result<ExecResult>) -> Status {
    let result = match result {
        Ok(result) => result,
        Err(error) => return failed(run, leader, &error),
    };
    complete(run, Stream::Stdout, result.stdout.as_bytes());
    complete(run, Stream::Stderr, result.stderr.as_bytes());
    if result.stdout_truncated || result.stderr_truncated {
        note(run, "output was dropped: one tool printed too much at once");
    }
    run.status_of(leader.code().unwrap_or(result.exit_code))
}

/// Hands on what the engine kept back: after `exec 2>&1` and the like output does not stream.
fn complete(run: &Run, stream: Stream, all: &[u8]) {
    let written = usize::try_from(run.sink.written(stream)).unwrap_or(usize::MAX);
    if let Some(rest) = all.get(written..) {
        run.sink.push(stream, rest);
    }
}

/// An error of the engine ends the command as a signal would, and says why on stderr.
fn failed(run: &Run, leader: &Leader, error: &bashkit::Error) -> Status {
    use LimitExceeded as Limit;
    if matches!(error, bashkit::Error::Cancelled) {
        // By us: for the stack, or because someone stopped the command.
        if let Some(signal) = run.signal() {
            note(run, "killed: nested too deep");
            return Status::Signaled(signal);
        }
        return stopped(run);
    }
    if let Some(code) = leader.code() {
        return run.status_of(code);
    }
    match error {
        bashkit::Error::ResourceLimit(limit) => {
            note(run, &format!("killed: {limit}"));
            Status::Signaled(match limit {
                Limit::MaxFunctionDepth(_)
                | Limit::MaxSubstDepth(_)
                | Limit::MaxSubshellDepth(_)
                | Limit::MaxPromptDepth(_)
                | Limit::MaxTrapDepth(_)
                | Limit::AstTooDeep(..) => 11,
                // As a container ends a process that uses too much CPU time.
                Limit::MaxLoopIterations(_) | Limit::MaxTotalLoopIterations(_) => 24,
                // As it ends one that uses too much memory.
                _ => 9,
            })
        }
        bashkit::Error::Parse { message, .. } => {
            run.sink
                .push(Stream::Stderr, format!("sh: -c: {message}\n").as_bytes());
            Status::Exited(2)
        }
        _ => {
            note(run, &error.to_string());
            Status::Exited(1)
        }
    }
}

fn note(run: &Run, what: &str) {
    run.sink
        .push(Stream::Stderr, format!("sandbox-mock: {what}\n").as_bytes());
}
