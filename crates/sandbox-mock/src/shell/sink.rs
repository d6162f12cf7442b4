//! Where a command's output goes: into a bounded collector, or to a reader as it comes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sandbox_core::{ExecuteResponse, OutputCollector, Status, Stream};
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
}

#[derive(Debug)]
enum Target {
    Collect(Box<OutputCollector>),
    Send(mpsc::UnboundedSender<(Stream, Bytes)>, usize),
    Closed,
}

/// Bytes on the way to a reader before the command waits.
const IN_FLIGHT: usize = 256 << 10;

impl Sink {
    /// Keeps `limit` bytes of each stream.
    pub(crate) fn collect(limit: u64, merge: bool) -> Self {
        let collector = Box::new(OutputCollector::new(limit, true));
        Self::new(Target::Collect(collector), merge)
    }

    /// Hands everything to a reader, who says with [`taken`](Self::taken) what it took.
    pub(crate) fn send(merge: bool) -> (Self, mpsc::UnboundedReceiver<(Stream, Bytes)>) {
        let (tx, rx) = mpsc::unbounded_channel();
        (Self::new(Target::Send(tx, 0), merge), rx)
    }

    fn new(target: Target, merge: bool) -> Self {
        let state = State {
            target,
            written: [0; 2],
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
        state.written[index(stream)] += bytes.len() as u64;
        let stream = if self.merge { Stream::Stdout } else { stream };
        if let Target::Collect(collector) = &mut state.target {
            collector.push(stream, bytes);
            return;
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

    /// Takes nothing any more. A reader sees the end; a collector keeps what it has.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
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
            Target::Send(..) | Target::Closed => Box::new(OutputCollector::new(0, true)),
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
