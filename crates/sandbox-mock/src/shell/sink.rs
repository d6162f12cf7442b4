//! Where a command's output goes: into a bounded collector, or to a reader as it comes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sandbox_core::{ExecuteResponse, LogCursor, OutputCollector, ProcessLogs, Status, Stream};
use tokio::sync::mpsc;

/// Takes what a command prints until it is closed. What comes later is dropped, as by a pipe
/// that nobody reads.
#[derive(Debug)]
pub(crate) struct Sink {
    state: Mutex<State>,
    /// Woken when a blocked writer may go on.
    room: Condvar,
    merge: bool,
}

#[derive(Debug)]
struct State {
    target: Target,
    written: [u64; 2],
    /// Bytes until the output breaks off.
    cut: Option<u64>,
    /// Nothing is taken any more.
    closed: bool,
}

#[derive(Debug)]
enum Target {
    Collect(Box<OutputCollector>),
    Send(mpsc::UnboundedSender<(Stream, Bytes)>, usize),
    Log(Log),
    Closed,
}

/// What a background command printed.
#[derive(Debug, Default)]
struct Log {
    streams: [Vec<u8>; 2],
    limit: usize,
}

impl Log {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let log = &mut self.streams[index(stream)];
        let room = self.limit.saturating_sub(log.len());
        if room == 0 {
            return;
        }
        log.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() >= room {
            log.extend_from_slice(b"\n[sandbox-mock: the log is full, what follows is dropped]\n");
        }
    }
}

/// Bytes on the way to a reader before the command waits.
const IN_FLIGHT: usize = 256 << 10;

impl Sink {
    /// Keeps `limit` bytes of each stream.
    pub(crate) fn collect(limit: u64, merge: bool, cut: Option<u64>) -> Self {
        let collector = Box::new(OutputCollector::new(limit, true));
        Self::new(Target::Collect(collector), merge, cut)
    }

    /// Hands everything to a reader, who says with [`taken`](Self::taken) what it took.
    pub(crate) fn send(
        merge: bool,
        cut: Option<u64>,
    ) -> (Self, mpsc::UnboundedReceiver<(Stream, Bytes)>) {
        let (tx, rx) = mpsc::unbounded_channel();
        (Self::new(Target::Send(tx, 0), merge, cut), rx)
    }

    /// Keeps the first `limit` bytes of each stream, to be read again and again.
    pub(crate) fn log(limit: usize, merge: bool) -> Self {
        let log = Log {
            limit,
            ..Log::default()
        };
        Self::new(Target::Log(log), merge, None)
    }

    fn new(target: Target, merge: bool, cut: Option<u64>) -> Self {
        let state = State {
            target,
            written: [0; 2],
            cut,
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            room: Condvar::new(),
            merge,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next bytes. Blocks the thread, which is the command's own, while a reader has
    /// too much to read.
    pub(crate) fn push(&self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.written[index(stream)] += bytes.len() as u64;
        let stream = if self.merge { Stream::Stdout } else { stream };
        let mut bytes = bytes;
        if let Some(left) = &mut state.cut {
            let taken = bytes
                .len()
                .min(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= taken as u64;
            bytes = &bytes[..taken];
        }
        match &mut state.target {
            Target::Collect(collector) => return collector.push(stream, bytes),
            Target::Log(log) => return log.push(stream, bytes),
            Target::Send(..) | Target::Closed => {}
        }
        for chunk in bytes.chunks(IN_FLIGHT / 4) {
            while matches!(state.target, Target::Send(_, n) if n >= IN_FLIGHT) {
                state = self
                    .room
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let Target::Send(tx, in_flight) = &mut state.target else {
                return;
            };
            *in_flight += chunk.len();
            if tx.send((stream, Bytes::copy_from_slice(chunk))).is_err() {
                state.target = Target::Closed;
                return;
            }
        }
    }

    /// The reader took `bytes`.
    pub(crate) fn taken(&self, bytes: usize) {
        if let Target::Send(_, in_flight) = &mut self.lock().target {
            *in_flight = in_flight.saturating_sub(bytes);
        }
        self.room.notify_all();
    }

    /// Bytes written to a stream so far.
    pub(crate) fn written(&self, stream: Stream) -> u64 {
        self.lock().written[index(stream)]
    }

    /// Whether the output has broken off.
    pub(crate) fn is_cut(&self) -> bool {
        self.lock().cut == Some(0)
    }

    /// What a log holds from a cursor on, at most `max` bytes a stream.
    pub(crate) fn logs(&self, from: LogCursor, max: u64) -> ProcessLogs {
        let state = self.lock();
        let Target::Log(log) = &state.target else {
            return ProcessLogs::default();
        };
        let part = |stream: Stream, from: u64| {
            let all = &log.streams[index(stream)];
            let start = usize::try_from(from).unwrap_or(usize::MAX).min(all.len());
            let end = start.saturating_add(usize::try_from(max).unwrap_or(usize::MAX));
            Bytes::copy_from_slice(&all[start..end.min(all.len())])
        };
        let stdout = part(Stream::Stdout, from.stdout);
        let stderr = part(Stream::Stderr, from.stderr);
        let next = LogCursor {
            stdout: from.stdout + stdout.len() as u64,
            stderr: from.stderr + stderr.len() as u64,
        };
        ProcessLogs::new(stdout, stderr, next)
    }

    /// Takes nothing any more. A reader sees the end; a collector keeps what it has.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        if matches!(state.target, Target::Send(..)) {
            state.target = Target::Closed;
        }
        drop(state);
        self.room.notify_all();
    }

    /// Closes, and gives what a collector kept; nothing for a reader's.
    pub(crate) fn finish(&self, status: Status, elapsed: std::time::Duration) -> ExecuteResponse {
        let target = std::mem::replace(&mut self.lock().target, Target::Closed);
        self.room.notify_all();
        let collector = match target {
            Target::Collect(collector) => collector,
            Target::Send(..) | Target::Log(_) | Target::Closed => {
                Box::new(OutputCollector::new(0, true))
            }
        };
        collector.finish(status, elapsed)
    }
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}
