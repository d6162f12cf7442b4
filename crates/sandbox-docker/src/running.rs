//! One command from its start to its end.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use sandbox_core::{
    Error, ErrorKind, KillGuard, KillTicket, Result, SandboxId, Status, Stream, defaults,
};
use tokio::io::AsyncWriteExt as _;
use tokio::time::{sleep, timeout};

use crate::container::Container;
use crate::exec::{self, Input, Launch, Look, Output};
use crate::stop;

/// How often a quiet command is looked at: its leader may have ended while a child of it holds the
/// pipes.
const LOOK: Duration = Duration::from_secs(1);

/// How soon the first time.
const FIRST_LOOK: Duration = Duration::from_millis(250);

/// How long the output may be quiet, once the leader has ended, before it is taken as complete.
const QUIET: Duration = Duration::from_millis(400);

/// How long a child that goes on printing is listened to, once the leader has ended.
const DRAIN: Duration = Duration::from_secs(2);

/// How long the engine may be out of reach before a command is given up as lost.
const OUT_OF_REACH: Duration = Duration::from_secs(30);

/// What of the output is kept for explaining why a command did not start.
const WORDS: usize = 2048;

/// Where output goes.
pub(crate) trait Sink: Send {
    /// Waits until there is room; `false` when nobody listens any more. Cancel safe.
    fn ready(&mut self) -> impl Future<Output = bool> + Send;
    /// Takes a part, after [`ready`](Self::ready).
    fn put(&mut self, stream: Stream, bytes: Bytes);
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) status: Status,
    pub(crate) sandbox_killed: bool,
}

impl Ending {
    /// The exit code of a program of ours.
    ///
    /// # Errors
    ///
    /// It has none: the sandbox or the engine was lost.
    pub(crate) fn code(self) -> Result<i32> {
        match self.status {
            Status::Exited(code) => Ok(code),
            Status::Lost(why) => Err(Error::new(ErrorKind::SandboxGone, why)),
            other => Err(Error::new(
                ErrorKind::Unexpected,
                format!("a program of ours did not end: {other}"),
            )),
        }
    }

    fn of(status: Status) -> Self {
        Self {
            status,
            sandbox_killed: false,
        }
    }
}

/// A started command. Dropping it kills the process tree.
pub(crate) struct Running<'a> {
    container: &'a Container,
    /// The route's name of it.
    name: String,
    command: stop::Target,
    output: Output,
    ended: bool,
    feed: Pin<Box<dyn Future<Output = ()> + Send>>,
    fed: bool,
    words: Vec<u8>,
    printed: bool,
    tail: Option<Tail>,
    guard: Guard,
}

/// The end of stdout, beside what it is where all went well.
struct Tail {
    wanted: &'static [u8],
    came: Vec<u8>,
}

impl Tail {
    fn new(wanted: &'static [u8]) -> Self {
        Self {
            wanted,
            came: Vec::new(),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(self.wanted.len())..];
        self.came.extend_from_slice(last);
        let surplus = self.came.len().saturating_sub(self.wanted.len());
        self.came.drain(..surplus);
    }

    fn is_as_wanted(&self) -> bool {
        self.came == self.wanted
    }
}

/// Kills the command when the first of its clones is dropped, unless it is known to have ended.
#[derive(Clone)]
pub(crate) struct Guard(Arc<Mutex<Duty>>);

enum Duty {
    /// The command has not been asked to start.
    NotYet,
    Kill(KillGuard),
    /// It has ended, or is killed, or must not start any more.
    Over,
}

impl Guard {
    /// For a command that is not started yet.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Duty::NotYet)))
    }

    /// Takes the duty; `false` if a clone was dropped already: nobody wants the command.
    fn arm(&self, ticket: KillTicket) -> bool {
        let mut duty = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = matches!(*duty, Duty::NotYet);
        if wanted {
            *duty = Duty::Kill(KillGuard::arm(ticket));
        }
        wanted
    }

    fn end(&self) -> Duty {
        let mut duty = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *duty, Duty::Over)
    }

    fn disarm(&self) {
        if let Duty::Kill(guard) = self.end() {
            guard.disarm();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.end());
    }
}

impl<'a> Running<'a> {
    /// Starts a command. `id` is the command id in its environment. `guard` is new; who waits for
    /// the command in another task keeps a clone.
    ///
    /// # Errors
    ///
    /// It did not start, or nobody knows.
    pub(crate) async fn start(
        container: &'a Container,
        launch: &Launch,
        id: String,
        input: Vec<Bytes>,
        guard: Guard,
    ) -> Result<Self> {
        let name = container.route.prepare(launch).await?;
        let command = stop::Target {
            id,
            user: launch.user.clone(),
            started: Instant::now(),
        };
        if !guard.arm(ticket(container, &name, &command)) {
            return Err(Error::new(
                ErrorKind::Unexpected,
                "nobody waits for the command",
            ));
        }
        let (output, stdin) = match container.route.start(&name).await {
            Ok(attached) => attached,
            Err(e) => {
                // Known not to run: there is nothing to kill.
                if !matches!(e.kind(), ErrorKind::Timeout | ErrorKind::Unavailable) {
                    guard.disarm();
                }
                return Err(container.explain(e).await);
            }
        };
        Ok(Self {
            container,
            name,
            command,
            output,
            ended: false,
            feed: Box::pin(feed(stdin, input, launch.stdin)),
            fed: false,
            words: Vec::new(),
            printed: false,
            tail: launch.ends_with.map(Tail::new),
            guard,
        })
    }

    /// When it was asked to start.
    pub(crate) fn started(&self) -> Instant {
        self.command.started
    }

    /// Waits until it is known that the command runs or has run.
    ///
    /// # Errors
    ///
    /// It did not start.
    pub(crate) async fn confirm(&mut self) -> Result<()> {
        let mut pause = Duration::from_millis(2);
        loop {
            match self.container.route.look(&self.name).await? {
                Look::NotYet => {}
                // What is unclear is told at its end, by the output.
                Look::Running | Look::Ended(_) | Look::Unclear(_) => return Ok(()),
                Look::NeverStarted => {
                    self.drain_words().await;
                    return Err(self.never_started().await);
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(FIRST_LOOK);
        }
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// It did not start. What has started ends with a value.
    pub(crate) async fn drive(
        &mut self,
        deadline: Option<Duration>,
        sink: &mut impl Sink,
    ) -> Result<Ending> {
        let left = deadline.map(|limit| limit.saturating_sub(self.command.started.elapsed()));
        let deadline = async {
            match left {
                Some(left) => sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(deadline);
        let mut look_at = tokio::time::Instant::now() + FIRST_LOOK;
        let mut exit: Option<Exit> = None;
        let mut unreachable_since: Option<Instant> = None;
        let mut pending: Option<(Stream, Bytes)> = None;
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(exit) = &exit
                && pending.is_none()
                && (self.ended || exit.is_complete())
            {
                if exit.unclear && exec::no_start(&self.words) {
                    return Err(self.never_started().await);
                }
                return self.finish(exit.code).await;
            }
            tokio::select! {
                biased;
                () = &mut deadline, if exit.is_none() => return self.time_out(pending, sink).await,
                () = tokio::time::sleep_until(look_at), if exit.is_none() => {
                    match self.container.route.look(&self.name).await {
                        Ok(Look::Ended(code)) => exit = Some(Exit::now(code, false)),
                        Ok(Look::Unclear(code)) => exit = Some(Exit::now(code, true)),
                        Ok(Look::NeverStarted) => {
                            self.drain_words().await;
                            return Err(self.never_started().await);
                        }
                        Ok(Look::Running | Look::NotYet) => unreachable_since = None,
                        Err(e) => {
                            if let Some(ending) = self.lost(&e, &mut unreachable_since) {
                                return Ok(ending);
                            }
                        }
                    }
                    // At the end of the stream the exit code is a matter of milliseconds.
                    pause = if self.ended { (pause * 2).min(LOOK) } else { LOOK };
                    look_at = tokio::time::Instant::now() + pause;
                }
                room = sink.ready(), if pending.is_some() => {
                    let Some((stream, bytes)) = pending.take() else { continue };
                    if !room {
                        // Dropping this kills the command.
                        return Ok(Ending::of(Status::Lost("nobody reads the output".into())));
                    }
                    sink.put(stream, bytes);
                    if let Some(exit) = &mut exit {
                        exit.heard();
                    }
                }
                part = self.output.next(), if !self.ended && pending.is_none() => match part {
                    Some(Ok((stream, bytes))) => {
                        self.remember(&bytes);
                        if let (Some(tail), Stream::Stdout) = (&mut self.tail, stream) {
                            tail.push(&bytes);
                        }
                        pending = Some((stream, bytes));
                        if let Some(exit) = &mut exit {
                            exit.came = Instant::now();
                        }
                    }
                    Some(Err(e)) => return self.broken(e).await,
                    None => {
                        self.ended = true;
                        if self.tail.as_ref().is_some_and(Tail::is_as_wanted) {
                            return self.finish(0).await;
                        }
                        look_at = tokio::time::Instant::now();
                    }
                },
                () = &mut self.feed, if !self.fed => self.fed = true,
                () = sleep(QUIET / 4), if exit.is_some() && pending.is_none() => {}
            }
        }
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.printed = true;
        let room = WORDS.saturating_sub(self.words.len());
        self.words
            .extend_from_slice(&bytes[..room.min(bytes.len())]);
    }

    /// Reads on for the engine's words.
    async fn drain_words(&mut self) {
        let read = async {
            while let Some(Ok((_, bytes))) = self.output.next().await {
                self.remember(&bytes);
            }
        };
        // Without the rest, the beginning says enough.
        let _ = timeout(QUIET, read).await;
    }

    async fn never_started(&mut self) -> Error {
        self.disarm();
        self.container.never_started(&self.words).await
    }

    fn disarm(&self) {
        self.guard.disarm();
    }

    /// The leader has ended with `code`.
    async fn finish(&mut self, code: i32) -> Result<Ending> {
        self.disarm();
        // A container killed in the middle of a command leaves 137 too.
        if code == 137
            && let Some(why) = self.container.died().await
        {
            return Ok(Ending::of(Status::Lost(why)));
        }
        Ok(Ending::of(Status::Exited(code)))
    }

    /// The output broke off.
    async fn broken(&mut self, error: Error) -> Result<Ending> {
        if error.kind() == ErrorKind::Protocol && !self.printed {
            return Err(error);
        }
        if let Some(why) = self.container.died().await {
            self.disarm();
            return Ok(Ending::of(Status::Lost(why)));
        }
        Ok(Ending::of(Status::Lost(format!(
            "the output broke off: {}",
            error.message()
        ))))
    }

    /// A look failed: whether that is the end.
    fn lost(&mut self, error: &Error, since: &mut Option<Instant>) -> Option<Ending> {
        if error.kind() == ErrorKind::SandboxGone {
            self.disarm();
            return Some(Ending::of(Status::Lost(error.message().to_owned())));
        }
        let since = since.get_or_insert_with(Instant::now);
        (since.elapsed() > OUT_OF_REACH || error.kind() == ErrorKind::Protocol).then(|| {
            Ending::of(Status::Lost(format!(
                "the engine can't be asked any more: {}",
                error.message()
            )))
        })
    }

    /// Kills the process tree, and reads on meanwhile.
    async fn time_out(
        &mut self,
        pending: Option<(Stream, Bytes)>,
        sink: &mut impl Sink,
    ) -> Result<Ending> {
        let (name, command) = (self.name.clone(), self.command.clone());
        let kill = timeout(
            defaults::KILL_GRACE,
            stop::stop(self.container, &name, &command),
        );
        tokio::pin!(kill);
        let mut pending = pending;
        let mut confirmed = None;
        let (mut quiet_from, mut dead_from) = (Instant::now(), Instant::now());
        while confirmed.is_none() || !self.ended {
            tokio::select! {
                done = &mut kill, if confirmed.is_none() => {
                    confirmed = Some(matches!(done, Ok(Ok(()))));
                    (quiet_from, dead_from) = (Instant::now(), Instant::now());
                }
                room = sink.ready(), if pending.is_some() => {
                    if let (Some((stream, bytes)), true) = (pending.take(), room) {
                        sink.put(stream, bytes);
                    }
                }
                part = self.output.next(), if !self.ended && pending.is_none() => match part {
                    Some(Ok((stream, bytes))) => {
                        pending = Some((stream, bytes));
                        quiet_from = Instant::now();
                    }
                    Some(Err(_)) | None => self.ended = true,
                },
                () = sleep(QUIET / 4), if confirmed.is_some() => {
                    if quiet_from.elapsed() > QUIET || dead_from.elapsed() > DRAIN {
                        break;
                    }
                }
            }
        }
        if let Some((stream, bytes)) = pending
            && sink.ready().now_or_never() == Some(true)
        {
            sink.put(stream, bytes);
        }
        let sandbox_killed = confirmed != Some(true);
        if sandbox_killed {
            tracing::warn!(
                sandbox.id = %self.container.id,
                "a command could not be stopped: the sandbox is killed"
            );
            self.container.engine.remove(&self.container.id).await?;
        }
        self.disarm();
        Ok(Ending {
            status: Status::TimedOut,
            sandbox_killed,
        })
    }
}

/// The leader's end, while output may still come.
struct Exit {
    code: i32,
    /// As [`Look::Unclear`].
    unclear: bool,
    drained_from: Instant,
    quiet_from: Instant,
    came: Instant,
}

impl Exit {
    fn now(code: i32, unclear: bool) -> Self {
        let now = Instant::now();
        Self {
            code,
            unclear,
            drained_from: now,
            quiet_from: now,
            came: now,
        }
    }

    /// A part was handed out: the time that its reader took does not count.
    fn heard(&mut self) {
        self.quiet_from = Instant::now();
        self.drained_from += self.came.elapsed();
    }

    fn is_complete(&self) -> bool {
        self.quiet_from.elapsed() > QUIET || self.drained_from.elapsed() > DRAIN
    }
}

/// Writes what the command reads, then the end of input. A command that does not read is none of
/// our business.
async fn feed(mut stdin: Input, input: Vec<Bytes>, attached: bool) {
    if !attached {
        return;
    }
    for part in input {
        if stdin.write_all(&part).await.is_err() {
            return;
        }
    }
    let _ = stdin.flush().await;
    let _ = stdin.shutdown().await;
}

/// Stops a command whose future was dropped, on whatever runtime is left.
fn ticket(container: &Container, name: &str, command: &stop::Target) -> KillTicket {
    let (elsewhere, name, command) = (container.elsewhere(), name.to_owned(), command.clone());
    KillTicket::new(SandboxId::new(&container.id), move || async move {
        stop::abandoned(&elsewhere.open()?, &name, &command).await
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_end_of_all_parts() {
        let is_as_wanted = |parts: &[&[u8]]| {
            let mut tail = Tail::new(b"\x000\0");
            for part in parts {
                tail.push(part);
            }
            tail.is_as_wanted()
        };
        assert!(is_as_wanted(&[b"much of it \x000\0"]));
        assert!(is_as_wanted(&[b"a\0", b"", b"0", b"\0"]));
        assert!(!is_as_wanted(&[b"a\x000\0", b"b"]));
        assert!(!is_as_wanted(&[b"0\0"]));
        assert!(!is_as_wanted(&[]));
    }
}
