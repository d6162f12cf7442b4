//! A command whose output is streamed while it runs.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior};

use super::events::{Batch, Channel, EventSink, PING_EVERY};
use super::lines::LineSplitter;
use super::output::{create_named, named};
use super::registry::{End, Record};
use super::request::RunRequest;
use super::{Answer, new_id, prepare, supervise};
use crate::daemon::{Daemon, blocking};
use crate::options::Profile;
use crate::respond::ApiError;

/// Bytes read at once.
const READ: usize = 64 * 1024;
/// How long an unfinished line is held back, in bytes: what a hostile command can make the
/// daemon keep.
const LINE_LIMIT: usize = 1 << 20;
/// The same where a line has to be one event whatever its length.
const STOCK_LINE_LIMIT: usize = 64 << 20;
/// How often the stock profile looks at its files.
const POLL: Duration = Duration::from_millis(100);

/// Where the daemon reads what the command writes.
enum Capture {
    Pipes([pipe::Receiver; 2]),
    Files([PathBuf; 2]),
}

impl Capture {
    /// Makes it, with the ends for the command. Must be called within the runtime.
    fn open(id: &str, profile: Profile) -> io::Result<(Self, (Stdio, Stdio))> {
        if profile.is_stock() {
            let paths = [named(id, "stdout"), named(id, "stderr")];
            let stdio = (
                create_named(&paths[0])?.into(),
                create_named(&paths[1])?.into(),
            );
            return Ok((Self::Files(paths), stdio));
        }
        let (stdout, stdout_writer) = io::pipe()?;
        let (stderr, stderr_writer) = io::pipe()?;
        let readers = [
            pipe::Receiver::from_owned_fd(OwnedFd::from(stdout))?,
            pipe::Receiver::from_owned_fd(OwnedFd::from(stderr))?,
        ];
        Ok((
            Self::Pipes(readers),
            (stdout_writer.into(), stderr_writer.into()),
        ))
    }
}

/// Starts the command, answers, and stays with it to its end.
pub(super) async fn run(daemon: Arc<Daemon>, request: RunRequest, answer: Answer) {
    let profile = daemon.options.profile;
    let id = new_id();
    let (begun, started_at) = (Instant::now(), SystemTime::now());
    let (capture, stdio) = match Capture::open(&id, profile) {
        Ok(it) => it,
        Err(error) => {
            let text = crate::names::error_text(&error);
            let why = format!("error running commands failed to get stdlog descriptor: {text}");
            let _ = answer.send(Err(ApiError::runtime(why)));
            return;
        }
    };
    let (text, timeout) = (request.command.clone(), request.timeout);
    let launching = daemon.clone();
    let started = blocking(move || {
        let launch = prepare(&launching, &request, stdio)?;
        Ok(launch.start(&launching.reaper, launching.environment.get("PATH")))
    })
    .await;
    let started = match started {
        Ok(started) => started,
        Err(error) => {
            let _ = answer.send(Err(error));
            return;
        }
    };
    let (mut sink, response) = EventSink::open();
    let mut first = Batch::default();
    first.init(&id);
    let started = match started {
        Ok(started) => started,
        Err(why) => {
            if !profile.is_stock() {
                let record = Record::new(&id, &text, started_at, None, None);
                record.finish(End::now(255, why.clone()));
                daemon.commands.insert(record);
            }
            first.error(&why, &why);
            first.ping();
            let _ = answer.send(Ok(response));
            sink.send(first).await;
            return hold(&daemon, sink).await;
        }
    };
    first.ping();
    let record = Record::new(&id, &text, started_at, Some(started.leader), None);
    daemon.commands.insert(record.clone());
    let _ = answer.send(Ok(response));

    // The end is awaited, and a timeout kept, whether or not anybody reads the stream.
    let (ended, end) = oneshot::channel();
    let streamed = Stream {
        profile,
        sink,
        first,
        begun,
        ended: end,
    };
    let (held, ()) = tokio::join!(streamed.run(capture), async {
        let end = supervise(&daemon, started, timeout).await;
        record.finish(end.clone());
        let _ = ended.send(end);
    });
    hold(&daemon, held).await;
}

/// Keeps a stream open after its last event, as the stock profile does.
pub(super) async fn hold(daemon: &Daemon, mut sink: EventSink) {
    if !daemon.options.profile.is_stock() {
        return;
    }
    let mut pings = pings();
    let end = tokio::time::sleep(daemon.options.grace);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => return,
            _ = pings.tick() => {
                let mut batch = Batch::default();
                batch.ping();
                sink.send(batch).await;
            }
        }
    }
}

fn pings() -> Interval {
    let mut pings = tokio::time::interval_at(tokio::time::Instant::now() + PING_EVERY, PING_EVERY);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings
}

struct Stream {
    profile: Profile,
    sink: EventSink,
    first: Batch,
    begun: Instant,
    ended: oneshot::Receiver<End>,
}

impl Stream {
    async fn run(mut self, capture: Capture) -> EventSink {
        self.sink.send(std::mem::take(&mut self.first)).await;
        match capture {
            Capture::Pipes(pipes) => self.pump(pipes).await,
            Capture::Files(paths) => self.tail(paths).await,
        }
    }

    /// The last pieces of output and the last event.
    async fn finish(&mut self, splitters: &mut [LineSplitter; 2], end: &End) {
        let mut batch = Batch::default();
        let [stdout, stderr] = splitters;
        let profile = self.profile;
        stdout.finish(|piece| batch.output(Channel::Stdout, piece, profile));
        stderr.finish(|piece| batch.output(Channel::Stderr, piece, profile));
        if end.code == 0 && end.error.is_empty() {
            batch.complete(self.begun.elapsed());
        } else {
            batch.error(&end.code.to_string(), &end.error);
        }
        self.sink.send(batch).await;
    }

    async fn output(&mut self, splitter: &mut LineSplitter, channel: Channel, bytes: &[u8]) {
        let mut batch = Batch::default();
        let profile = self.profile;
        splitter.push(bytes, |piece| batch.output(channel, piece, profile));
        self.sink.send(batch).await;
    }

    async fn ping(&mut self) {
        let mut batch = Batch::default();
        batch.ping();
        self.sink.send(batch).await;
    }

    async fn pump(mut self, pipes: [pipe::Receiver; 2]) -> EventSink {
        let [mut stdout, mut stderr] = pipes;
        let mut splitters = [LineSplitter::new(LINE_LIMIT), LineSplitter::new(LINE_LIMIT)];
        let [out_lines, err_lines] = &mut splitters;
        let (mut out_open, mut err_open) = (true, true);
        let (mut out_buffer, mut err_buffer) = (vec![0; READ], vec![0; READ]);
        let mut pings = pings();
        let end = loop {
            tokio::select! {
                read = stdout.read(&mut out_buffer), if out_open => match read {
                    Ok(length @ 1..) => {
                        self.output(out_lines, Channel::Stdout, &out_buffer[..length]).await;
                    }
                    _ => out_open = false,
                },
                read = stderr.read(&mut err_buffer), if err_open => match read {
                    Ok(length @ 1..) => {
                        self.output(err_lines, Channel::Stderr, &err_buffer[..length]).await;
                    }
                    _ => err_open = false,
                },
                _ = pings.tick() => self.ping().await,
                end = &mut self.ended => break end,
            }
        };
        // What was written by now counts; what children that live on write later does not.
        for (pipe, lines, channel) in [
            (&mut stdout, &mut *out_lines, Channel::Stdout),
            (&mut stderr, &mut *err_lines, Channel::Stderr),
        ] {
            let mut left = rustix::io::ioctl_fionread(pipe.as_fd()).unwrap_or(0);
            while left > 0 {
                let most = out_buffer.len().min(usize::try_from(left).unwrap_or(READ));
                // Past the runtime, which may not have heard yet that there is something.
                let Ok(length @ 1..) = rustix::io::read(pipe.as_fd(), &mut out_buffer[..most])
                else {
                    break;
                };
                left -= length as u64;
                self.output(lines, channel, &out_buffer[..length]).await;
            }
        }
        let end = end.unwrap_or_else(|_| End::now(255, "its end was not seen".into()));
        self.finish(&mut splitters, &end).await;
        // Children that live on are not to die of a closed pipe.
        for pipe in [stdout, stderr] {
            tokio::spawn(discard(pipe));
        }
        self.sink
    }

    async fn tail(mut self, paths: [PathBuf; 2]) -> EventSink {
        let mut splitters = [
            LineSplitter::new(STOCK_LINE_LIMIT),
            LineSplitter::new(STOCK_LINE_LIMIT),
        ];
        let mut positions = [0, 0];
        let mut pings = pings();
        let mut polls = tokio::time::interval_at(tokio::time::Instant::now() + POLL, POLL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = loop {
            tokio::select! {
                _ = polls.tick() => self.catch_up(&paths, &mut positions, &mut splitters).await,
                _ = pings.tick() => self.ping().await,
                end = &mut self.ended => break end,
            }
        };
        self.catch_up(&paths, &mut positions, &mut splitters).await;
        let end = end.unwrap_or_else(|_| End::now(255, "its end was not seen".into()));
        self.finish(&mut splitters, &end).await;
        self.sink
    }

    /// Sends what the files have from `positions` on.
    async fn catch_up(
        &mut self,
        paths: &[PathBuf; 2],
        positions: &mut [u64; 2],
        splitters: &mut [LineSplitter; 2],
    ) {
        for (at, channel) in [Channel::Stdout, Channel::Stderr].into_iter().enumerate() {
            loop {
                let (path, position) = (paths[at].clone(), positions[at]);
                let read = tokio::task::spawn_blocking(move || {
                    let mut bytes = vec![0; READ];
                    let length = File::open(path)?.read_at(&mut bytes, position)?;
                    bytes.truncate(length);
                    io::Result::Ok(bytes)
                });
                // A file that is gone has nothing more to tell.
                let bytes = read.await.ok().and_then(Result::ok).unwrap_or_default();
                if bytes.is_empty() {
                    break;
                }
                positions[at] += bytes.len() as u64;
                self.output(&mut splitters[at], channel, &bytes).await;
            }
        }
    }
}

async fn discard(mut pipe: pipe::Receiver) {
    let mut buffer = vec![0; 4096];
    while matches!(pipe.read(&mut buffer).await, Ok(1..)) {}
}
