//! One command from its start to its end.

use std::time::{Duration, Instant};

use bytes::Bytes;
use sandbox_core::{Command, Error, ErrorKind, Result, Retry, Status, defaults};
use tokio::time::{Instant as Deadline, sleep, timeout};

use crate::error;
use crate::events::{ExecdEnding, ExecdEvent};
use crate::execd::{Events, Permissions};
use crate::launch::{FAILED, Files, Launch};
use crate::live::{Live, State};
use crate::output::Recorder;
use crate::place::User;
use crate::stop::{self, Guard, Target};

/// How long after its deadline the daemon may take to say that it has killed a command.
const LATE: Duration = Duration::from_millis(300);

/// How long the daemon may be out of reach before a command is given up as lost.
const OUT_OF_REACH: Duration = Duration::from_secs(15);

/// How often a command is asked for whose stream was cut, at first and at last.
const LOOK: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// What of the daemon's words about a start is kept.
const WORDS: usize = 2048;

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) status: Status,
    pub(crate) sandbox_killed: bool,
}

impl Ending {
    pub(crate) fn of(status: Status) -> Self {
        Self {
            status,
            sandbox_killed: false,
        }
    }

    /// The exit code of a program of ours.
    ///
    /// # Errors
    ///
    /// It has none.
    pub(crate) fn code(self) -> Result<i32> {
        match self.status {
            Status::Exited(code) => Ok(code),
            Status::Lost(why) => Err(Error::new(ErrorKind::Unavailable, why)),
            other => Err(Error::new(
                ErrorKind::Unexpected,
                format!("a program of ours did not end: {other}"),
            )),
        }
    }
}

/// A started command. Dropping it kills the process tree.
pub(crate) struct Running<'a> {
    live: &'a Live,
    target: Target,
    files: Files,
    /// The id that its processes carry.
    id: String,
    deadline: Option<Duration>,
    events: Events,
    /// The daemon's name of it.
    execution: Option<String>,
    /// What was said before the command began.
    words: String,
    guard: Guard,
}

impl<'a> Running<'a> {
    /// Starts a command.
    ///
    /// # Errors
    ///
    /// It did not start, or nobody knows.
    pub(crate) async fn start(
        live: &'a Live,
        command: &Command,
        user: Option<User>,
    ) -> Result<Self> {
        let input = command.stdin.iter().cloned().collect();
        Self::start_with(live, command, user, input).await
    }

    /// As [`start`](Self::start), with what it reads in parts.
    pub(crate) async fn start_with(
        live: &'a Live,
        command: &Command,
        user: Option<User>,
        input: Vec<Bytes>,
    ) -> Result<Self> {
        let mut launch = Launch::new(&live.place, command, user, input)?;
        live.check_running().await?;
        if let Err(e) = send_along(live, &mut launch).await {
            live.litter.add(&live.execd, &launch.files, None);
            return Err(e);
        }
        let target = Target::new(&launch, user);
        let guard = Guard::arm(live, &target);
        // A task, so that the request is never broken off: see `Answer::drain`.
        let (execd, run) = (live.execd.clone(), launch.run.clone());
        let started = tokio::spawn(async move { execd.run(&run).await });
        let started = async {
            started
                .await
                .unwrap_or_else(|e| Err(Error::new(ErrorKind::Unexpected, "no answer").because(e)))
        };
        let events = match live.answered(started).await {
            Ok(events) => events,
            Err(e) => {
                let unsure = match e.kind() {
                    ErrorKind::SandboxPaused => true,
                    ErrorKind::Timeout | ErrorKind::Unavailable => e.retry_advice() != Retry::Safe,
                    _ => false,
                };
                if !unsure {
                    // Known not to run: there is nothing to kill.
                    guard.disarm();
                    live.litter.add(&live.execd, &launch.files, None);
                }
                return Err(live.explain(e).await);
            }
        };
        Ok(Self {
            live,
            target,
            files: launch.files,
            id: launch.id,
            deadline: command.timeout,
            events,
            execution: None,
            words: String::new(),
            guard,
        })
    }

    pub(crate) fn started(&self) -> Instant {
        self.target.started()
    }

    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    /// Removes what the command left, once its output was fetched.
    pub(crate) fn forget(&self) {
        let execution = self.execution.as_deref();
        self.live
            .litter
            .add(&self.live.execd, &self.files, execution);
    }

    /// A recorder of what it writes, of each stream at most `limit` bytes.
    pub(crate) fn recorder(&self, limit: u64) -> Recorder {
        Recorder::new(&self.live.execd, &self.files, limit)
    }

    pub(crate) fn guard(&self) -> Guard {
        self.guard.clone()
    }

    /// Waits until the command has begun, as far as the daemon knows.
    ///
    /// # Errors
    ///
    /// It did not start.
    pub(crate) async fn begin(&mut self) -> Result<()> {
        match self.events.next().await {
            Ok(Some(ExecdEvent::Init(id))) => {
                self.execution = Some(id);
                Ok(())
            }
            Ok(_) => Err(self
                .never_began("the daemon's answer does not begin as one")
                .await),
            Err(e) => Err(self.live.explain(e).await),
        }
    }

    /// An answer that says nothing about the command: it may run or not. Dropping this kills it.
    async fn never_began(&self, why: &'static str) -> Error {
        self.live
            .explain(Error::new(ErrorKind::Protocol, why))
            .await
    }

    /// Waits for the end.
    ///
    /// # Errors
    ///
    /// It did not start. What has started ends with a value.
    pub(crate) async fn wait(&mut self) -> Result<Ending> {
        let late = self.deadline.map(|limit| self.started() + limit + LATE);
        loop {
            let event = tokio::select! {
                biased;
                () = until(late) => return self.time_out().await,
                event = self.events.next() => event,
            };
            match event {
                Ok(Some(ExecdEvent::Init(id))) => self.execution = Some(id),
                Ok(Some(ExecdEvent::Line(_, line))) => {
                    if self.words.len() + line.len() < WORDS {
                        self.words.push_str(&line);
                        self.words.push('\n');
                    }
                }
                Ok(Some(ExecdEvent::Ended(ending))) => return self.ended(ending).await,
                Ok(Some(ExecdEvent::LongLine)) => {}
                Ok(None) if self.execution.is_none() => {
                    return Err(self
                        .never_began("the daemon's answer ended before the command began")
                        .await);
                }
                Ok(None) => return self.cut(late, "the stream ended without a result").await,
                Err(e) => {
                    let why = e.message().to_owned();
                    return self.cut(late, &why).await;
                }
            }
        }
    }

    /// The daemon says how it ended.
    async fn ended(&mut self, ending: ExecdEnding) -> Result<Ending> {
        let overdue = self
            .deadline
            .is_some_and(|limit| self.started().elapsed() >= limit);
        match ending {
            ExecdEnding::TimedOut => self.time_out().await,
            ExecdEnding::Signaled(9) if overdue => self.time_out().await,
            ExecdEnding::Exited(FAILED) if self.words.contains(&self.id) => {
                self.over();
                self.forget();
                Err(self.failed())
            }
            ExecdEnding::Exited(code) => Ok(self.over_with(Status::Exited(code))),
            ExecdEnding::Signaled(9) if self.live.state().await == Some(State::Gone) => {
                Ok(self.over_with(Status::Lost("the sandbox died".into())))
            }
            ExecdEnding::Signaled(signal) => Ok(self.over_with(Status::Signaled(signal))),
            // The deadline came before the daemon had begun.
            ExecdEnding::NotStarted(why)
                if self.deadline.is_some() && why.contains("deadline exceeded") =>
            {
                self.time_out().await
            }
            ExecdEnding::NotStarted(why) => {
                self.over();
                self.forget();
                Err(error::not_started(&why))
            }
            ExecdEnding::Unknown(why) => Ok(Ending::of(Status::Lost(format!(
                "the daemon does not say how the command ended: {why}"
            )))),
        }
    }

    /// Why the lines before the command failed.
    fn failed(&self) -> Error {
        let (_, why) = self.words.split_once(&self.id).unwrap_or_default();
        match why.trim_start_matches(':').lines().next() {
            Some("cwd") => Error::new(
                ErrorKind::NotFound,
                "the command's cwd is not a directory that can be entered",
            ),
            Some("output") => Error::new(
                ErrorKind::LimitExceeded,
                "the command's output can't be stored: no space is left, or the directory for it \
                 was removed",
            )
            .with("why", error::shorten(&self.words)),
            _ => Error::new(ErrorKind::Unexpected, "the command was stopped as it began"),
        }
    }

    /// There is nothing left to kill.
    fn over(&self) {
        self.guard.disarm();
    }

    fn over_with(&self, status: Status) -> Ending {
        self.over();
        Ending::of(status)
    }

    /// The stream is over and the end not known: the daemon may know it.
    async fn cut(&mut self, late: Option<Instant>, why: &str) -> Result<Ending> {
        let Some(id) = self.execution.clone() else {
            return Err(self
                .never_began("the connection was lost before the command began")
                .await);
        };
        let [mut pause, longest] = LOOK;
        let mut unreachable: Option<Instant> = None;
        loop {
            let looked = tokio::select! {
                biased;
                () = until(late) => return self.time_out().await,
                status = self.live.execd.status(&id) => status,
            };
            match looked {
                Ok(status) => match status.ending() {
                    Some(ending) => return self.ended(ending).await,
                    None => unreachable = None,
                },
                Err(e) => {
                    let since = *unreachable.get_or_insert_with(Instant::now);
                    let known = e.kind() == ErrorKind::NotFound;
                    match self.live.explain(e).await {
                        e if e.kind() == ErrorKind::SandboxGone => {
                            return Ok(self.over_with(Status::Lost("the sandbox died".into())));
                        }
                        e if known || since.elapsed() > OUT_OF_REACH => {
                            return Ok(Ending::of(Status::Lost(format!("{why}: {}", e.message()))));
                        }
                        _ => {}
                    }
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }

    /// The deadline has come: proves the process tree dead, or kills the sandbox.
    async fn time_out(&mut self) -> Result<Ending> {
        let stopped = timeout(defaults::KILL_GRACE, stop::stop(self.live, &self.target)).await;
        let sandbox_killed = match stopped {
            Ok(Ok(())) => false,
            Ok(Err(e)) if e.kind() == ErrorKind::SandboxGone => false,
            _ => {
                tracing::warn!(
                    sandbox.id = %self.live.id,
                    "a command could not be stopped: the sandbox is killed"
                );
                self.live.lifecycle.kill(&self.live.id).await?;
                true
            }
        };
        self.over();
        Ok(Ending {
            status: Status::TimedOut,
            sandbox_killed,
        })
    }
}

/// Uploads what the command needs besides its text.
async fn send_along(live: &Live, launch: &mut Launch) -> Result<()> {
    // Nobody but who knows the name finds it.
    let readable = Permissions {
        mode: Some(644),
        ..Permissions::default()
    };
    let input = std::mem::take(&mut launch.input);
    let script = launch.script.take().map(|script| vec![script]);
    for (path, content) in [
        (launch.files.input(), Some(input).filter(|s| !s.is_empty())),
        (launch.files.script(), script),
    ] {
        if let Some(content) = content {
            let sent = live.execd.upload(&path, &readable, content).await;
            if let Err(e) = sent {
                return Err(live.explain(e).await);
            }
        }
    }
    Ok(())
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(Deadline::from_std(at)).await,
        None => std::future::pending().await,
    }
}
