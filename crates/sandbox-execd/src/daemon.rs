//! The daemon as a whole: from its start to its end.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use rustix::process::Signal;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::body::Budget;
use crate::command;
use crate::command::registry::Registry;
use crate::environment::Environment;
use crate::log::{self, Level};
use crate::options::{BadOption, Options};
use crate::process::reaper::{Ended, Reaper};
use crate::process::shim;
use crate::respond::ApiError;
use crate::{server, token};

/// Threads for calls that block. All are there from the start: beside a fork bomb there are no
/// new ones to be had.
const BLOCKING_THREADS: usize = 16;

/// What every request sees.
pub(crate) struct Daemon {
    pub(crate) options: Options,
    pub(crate) environment: Environment,
    pub(crate) reaper: Reaper,
    pub(crate) commands: Registry,
    pub(crate) budget: Budget,
    /// Runs that came through the daemon's own proxy, for the stock profile to lose some.
    pub(crate) proxied_runs: AtomicU32,
}

impl Daemon {
    /// Whether the stock profile loses this run that came through the proxy.
    pub(crate) fn loses_this_run(&self) -> bool {
        let every = self.options.lose_one_of;
        self.options.profile.is_stock()
            && every > 0
            && self.proxied_runs.fetch_add(1, Ordering::Relaxed) % every == every - 1
    }
}

/// Runs `work` where it may block.
///
/// # Errors
///
/// Its own; or 500 should it panic, which is a defect of this program that ends one request only.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err(ApiError::runtime("internal error: the work did not end")))
}

/// Runs the program with `arguments`, the first of which is its own name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().skip(1).collect();
    if arguments.first().is_some_and(|it| it == shim::ARGUMENT) {
        return shim::main(&arguments[1..]);
    }
    let mut options = match Options::read(arguments.iter().cloned(), |it| std::env::var_os(it)) {
        Ok(options) => options,
        Err(BadOption(why)) => {
            log::init(7, None);
            log::line(Level::Error, format_args!("{why}"));
            return ExitCode::from(2);
        }
    };
    log::init(options.log_level, options.log_file.as_deref());
    if options.token_on_stdin {
        match token::from_stdin() {
            Ok(token) => options.token = Some(token),
            Err(error) => {
                log::line(
                    Level::Error,
                    format_args!("no access token on stdin: {error}"),
                );
                return ExitCode::from(2);
            }
        }
    } else if let Some(token) = &options.token {
        let error = token::restart_without(token, &arguments);
        // Without /proc there is nothing a command could read the token from either.
        log::line(
            Level::Warning,
            format_args!("could not hide the access token: {error}"),
        );
    }
    if options.token.is_some()
        && let Err(error) = token::shut_proc()
    {
        log::line(
            Level::Warning,
            format_args!("could not close /proc to others: {error}"),
        );
    }
    match serve(options) {
        Ok(code) => code,
        Err(error) => {
            log::line(Level::Error, format_args!("{error}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(options: Options) -> io::Result<ExitCode> {
    // Orphans of commands come here and are collected, whatever process 1 does.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let reaper = Reaper::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(Duration::from_secs(u64::MAX / 4))
        .enable_all()
        .build()?;
    let daemon = Arc::new(Daemon {
        environment: Environment::new(options.profile),
        options,
        reaper,
        commands: Registry::default(),
        budget: Budget::default(),
        proxied_runs: AtomicU32::new(0),
    });
    let code = runtime.block_on(async {
        let ready = Arc::new(Barrier::new(BLOCKING_THREADS));
        for _ in 0..BLOCKING_THREADS {
            let ready = ready.clone();
            tokio::task::spawn_blocking(move || ready.wait());
        }
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, daemon.options.port));
        let listener = TcpListener::bind(address).await.map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("failed to listen on {address}: {error}"),
            )
        })?;
        let address = listener.local_addr()?;
        log::line(Level::Notice, format_args!("execd listening on {address}"));
        let end = end(&daemon);
        tokio::pin!(end);
        let (code, connections) = server::serve(&daemon, listener, end).await;
        let code = code?;
        command::end_all(&daemon).await;
        connections.close(Duration::from_secs(1)).await;
        io::Result::Ok(code)
    });
    runtime.shutdown_background();
    code
}

/// Waits for what ends the daemon: a signal, or the end of the program it was started with.
async fn end(daemon: &Daemon) -> io::Result<ExitCode> {
    let mut signals = [
        (signal(SignalKind::terminate())?, Signal::TERM),
        (signal(SignalKind::interrupt())?, Signal::INT),
        (signal(SignalKind::quit())?, Signal::QUIT),
        (signal(SignalKind::hangup())?, Signal::HUP),
    ];
    let [term, int, quit, hup] = &mut signals;
    let mut next = async || {
        tokio::select! {
            _ = term.0.recv() => term.1,
            _ = int.0.recv() => int.1,
            _ = quit.0.recv() => quit.1,
            _ = hup.0.recv() => hup.1,
        }
    };
    let Some([program, arguments @ ..]) = daemon.options.init.as_deref() else {
        let signal = next().await;
        log::line(
            Level::Notice,
            format_args!("ending on signal {}", signal.as_raw()),
        );
        return Ok(ExitCode::SUCCESS);
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_remove(crate::options::TOKEN_VARIABLE);
    let (pid, mut ended) = daemon.reaper.spawn(&mut command, false).map_err(|error| {
        let text = crate::names::error_text(&error);
        io::Error::new(
            error.kind(),
            format!("could not start {}: {text}", program.display()),
        )
    })?;
    loop {
        tokio::select! {
            signal = next() => {
                daemon.reaper.signal(pid, signal);
            }
            ended = &mut ended => {
                let code = match ended {
                    Ok(Ended::Exited(code)) => code,
                    Ok(Ended::Signaled { signal, .. }) => 128 + signal,
                    Err(_) => 1,
                };
                return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)));
            }
        }
    }
}
