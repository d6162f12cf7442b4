//! The command `sandbox`.
//!
//! `main` starts the task and ends it: by itself, or because a signal came. Whatever is dropped then
//! is cleaned up before the process ends.

mod args;
mod doctor;
mod files;
mod life;
mod output;
mod progress;
mod run;

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{CommandFactory as _, Parser as _};
use tokio::signal::unix::{Signal, SignalKind, signal};

use args::{Cli, Task};
use output::{BROKEN_PIPE, FAILED, Failure, Outcome};

/// How long the sandboxes that are left may take to end.
const ENDING: Duration = Duration::from_secs(30);

/// Signals that come so soon after the first are the first.
const TWICE: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(e) => {
            output::say(format!("no runtime could be started: {e}"));
            return FAILED.into();
        }
    };
    let code = runtime.block_on(until_stopped(cli));
    // A read of stdin that nothing comes from would be waited for.
    runtime.shutdown_background();
    code.into()
}

/// Does the task until it ends or a signal comes, then waits until nothing is left behind.
async fn until_stopped(cli: Cli) -> u8 {
    let mut stop = match Stop::listen() {
        Ok(stop) => stop,
        Err(e) => {
            output::say(format!("signals can't be received: {e}"));
            return FAILED;
        }
    };
    let json = cli.json;
    let code = tokio::select! {
        outcome = Box::pin(work(cli)) => match outcome {
            Ok(code) => code,
            Err(Failure::NobodyReads) => BROKEN_PIPE,
            Err(Failure::Error(e)) => {
                output::report(&e, json);
                FAILED
            }
        },
        // What the task holds is dropped, and so killed.
        signal = stop.next() => 128 + signal,
    };
    let flushed = tokio::task::spawn_blocking(|| sandbox::flush(ENDING));
    let ended = tokio::select! {
        ended = flushed => ended.unwrap_or(false),
        () = again(&mut stop) => false,
    };
    if !ended {
        output::say("not everything could be ended: `sandbox gc` removes what is left");
    }
    code
}

/// Waits for a signal of somebody who waits no longer. One signal may come twice, as from
/// `timeout`, which sends it to the process and to its group.
async fn again(stop: &mut Stop) {
    let begin = Instant::now();
    loop {
        stop.next().await;
        if begin.elapsed() > TWICE {
            return;
        }
    }
}

async fn work(cli: Cli) -> Outcome {
    let Cli {
        backend,
        json,
        task,
    } = cli;
    let at = life::Backend { url: backend, json };
    match task {
        Task::Run(args) => run::run(&at, args).await,
        Task::Exec(args) => run::exec(&at, args).await,
        Task::Create(new) => life::create(&at, &new).await,
        Task::List { labels } => life::list(&at, labels).await,
        Task::Kill { ids } => life::kill(&at, &ids).await,
        Task::Gc => life::gc(&at).await,
        Task::Ls { id, path } => files::ls(&at, &id, &path).await,
        Task::Cat { id, paths } => files::cat(&at, &id, &paths).await,
        Task::Cp { from, to } => files::cp(&at, &from, &to).await,
        Task::Doctor => doctor::doctor(&at).await,
        Task::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "sandbox", &mut script);
            output::line(String::from_utf8_lossy(&script).trim_end()).map(|()| 0)
        }
    }
}

/// The signals that end a program from outside.
struct Stop {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one; gives its number.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.hangup.recv() => 1,
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
        }
    }
}
