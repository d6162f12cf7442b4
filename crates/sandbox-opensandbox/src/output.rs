//! What a command wrote: its files, fetched over the daemon's file API.
//!
//! The daemon reads with its own rights, so it is looked first whether a file is one: a command
//! could have put a link in its place. (A kernel that protects links in directories like ours
//! refuses that too.) What is fetched is never more than is there: a download that is broken off
//! harms other commands on the stock daemon.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use sandbox_core::{Error, ErrorKind, ExecuteEvent, OutputCollector, Result, Stream};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::error;
use crate::execd::Execd;
use crate::launch::Files;

/// Bytes that are fetched at once while a command runs.
const PART: u64 = 1 << 20;

/// Pauses before what a command wrote is asked for again.
const AGAIN: [Duration; 3] = [
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
];

/// Asks again where a connection was lost: reading twice harms nothing, and output must not be
/// lost with a connection (RFC 9110, 9.2.2).
struct Again(std::slice::Iter<'static, Duration>);

impl Again {
    fn new() -> Self {
        Self(AGAIN.iter())
    }

    /// Waits, if one more try may help; else gives the error back.
    async fn after(&mut self, error: Error) -> Result<()> {
        match self.0.next() {
            Some(pause) if error.kind() == ErrorKind::Unavailable => {
                sleep(*pause).await;
                Ok(())
            }
            _ => Err(error),
        }
    }
}

/// The size of each stream's file.
async fn sizes(execd: &Execd, files: &Files) -> Result<Vec<u64>> {
    let paths: Vec<String> = files.streams().iter().map(|s| files.output(*s)).collect();
    let asked: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut again = Again::new();
    let infos = loop {
        match execd.info(&asked).await {
            Ok(infos) => break infos,
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(removed(e)),
            Err(e) => again.after(e).await?,
        }
    };
    asked
        .iter()
        .map(|path| match infos.get(*path) {
            Some(info) if info.kind == "file" || info.kind.is_empty() => Ok(info.size),
            Some(_) => Err(Error::new(
                ErrorKind::PermissionDenied,
                "something else is in the place of the command's output",
            )),
            None => Err(error::garbled("look at files")),
        })
        .collect()
}

/// `length` bytes of a file that has them.
async fn range(execd: &Execd, path: &str, from: u64, length: u64) -> Result<Bytes> {
    let mut again = Again::new();
    loop {
        match range_once(execd, path, from, length).await {
            Err(e) => again.after(e).await?,
            bytes => return bytes,
        }
    }
}

async fn range_once(execd: &Execd, path: &str, from: u64, length: u64) -> Result<Bytes> {
    let mut bytes = Vec::new();
    if length > 0 {
        let mut download = execd
            .download(path, Some((from, from + length - 1)))
            .await?;
        while let Some(part) = download.next().await? {
            let left = usize::try_from(length).unwrap_or(usize::MAX) - bytes.len();
            bytes.extend_from_slice(&part[..part.len().min(left)]);
        }
    }
    if bytes.len() as u64 == length {
        Ok(bytes.into())
    } else {
        Err(error::garbled("fetch what a command wrote"))
    }
}

/// What of a stream is kept: the parts, with what was passed over between them.
struct Kept {
    stream: Stream,
    head: Bytes,
    skipped: u64,
    tail: Bytes,
}

/// Records what a command writes, of each stream the first and the last half of a limit.
#[derive(Debug)]
pub(crate) struct Recorder {
    execd: Execd,
    files: Files,
    limit: u64,
    seen: [u64; 2],
    output: OutputCollector,
}

impl Recorder {
    /// Keeps `limit` bytes of each stream.
    pub(crate) fn new(execd: &Execd, files: &Files, limit: u64) -> Self {
        Self {
            execd: execd.clone(),
            files: files.clone(),
            limit,
            seen: [0; 2],
            output: OutputCollector::new(limit, files.streams().len() == 1),
        }
    }

    /// Records all that has been written by now. Cancel safe.
    ///
    /// # Errors
    ///
    /// What was written is not there any more, or can't be fetched.
    pub(crate) async fn step(&mut self) -> Result<()> {
        let sizes = sizes(&self.execd, &self.files).await?;
        let fetches = self
            .files
            .streams()
            .iter()
            .zip(&sizes)
            .zip(&self.seen)
            .map(|((stream, size), seen)| self.fetch(*stream, *seen, *size));
        let kept = try_join_all(fetches).await?;
        self.record(kept, &sizes);
        Ok(())
    }

    pub(crate) fn into_output(self) -> OutputCollector {
        self.output
    }

    /// What is to be kept of a stream between two places.
    async fn fetch(&self, stream: Stream, from: u64, to: u64) -> Result<Kept> {
        let path = self.files.output(stream);
        let length = to.saturating_sub(from);
        let (head, tail) = if length <= self.limit {
            (length, 0)
        } else {
            (self.limit / 2, self.limit - self.limit / 2)
        };
        Ok(Kept {
            stream,
            head: range(&self.execd, &path, from, head).await?,
            skipped: length - head - tail,
            tail: range(&self.execd, &path, to - tail, tail).await?,
        })
    }

    fn record(&mut self, kept: Vec<Kept>, sizes: &[u64]) {
        for (seen, size) in self.seen.iter_mut().zip(sizes) {
            *seen = (*seen).max(*size);
        }
        for part in kept {
            self.output.push(part.stream, &part.head);
            self.output.skip(part.stream, part.skipped);
            self.output.push(part.stream, &part.tail);
        }
    }
}

/// Follows the files of a command and hands all of it out.
#[derive(Debug)]
pub(crate) struct Follower {
    execd: Execd,
    files: Files,
    seen: [u64; 2],
    /// Fetched, and not handed out yet.
    waiting: VecDeque<(Stream, Bytes)>,
}

impl Follower {
    pub(crate) fn new(execd: Execd, files: Files) -> Self {
        Self {
            execd,
            files,
            seen: [0; 2],
            waiting: VecDeque::new(),
        }
    }

    /// Fetches the next part of each stream that has grown, and hands out what waits. True if
    /// there was something. Cancel safe.
    ///
    /// # Errors
    ///
    /// The files can't be read; or nobody listens any more.
    pub(crate) async fn step(&mut self, to: &mpsc::Sender<ExecuteEvent>) -> Result<bool> {
        if self.waiting.is_empty() {
            let sizes = sizes(&self.execd, &self.files).await?;
            self.fetch(&sizes).await?;
        }
        let some = !self.waiting.is_empty();
        self.hand_out(to).await?;
        Ok(some)
    }

    /// Hands out all that has been written by now.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub(crate) async fn rest(&mut self, to: &mpsc::Sender<ExecuteEvent>) -> Result<()> {
        self.hand_out(to).await?;
        let sizes = sizes(&self.execd, &self.files).await?;
        while self.fetch(&sizes).await? {
            self.hand_out(to).await?;
        }
        Ok(())
    }

    /// Fetches a part of each stream that is longer than what has been seen; false if none is.
    async fn fetch(&mut self, sizes: &[u64]) -> Result<bool> {
        for (at, (stream, size)) in self.files.streams().iter().zip(sizes).enumerate() {
            let length = size.saturating_sub(self.seen[at]).min(PART);
            if length > 0 {
                let path = self.files.output(*stream);
                let part = range(&self.execd, &path, self.seen[at], length).await?;
                self.seen[at] += length;
                self.waiting.push_back((*stream, part));
            }
        }
        Ok(!self.waiting.is_empty())
    }

    async fn hand_out(&mut self, to: &mpsc::Sender<ExecuteEvent>) -> Result<()> {
        while !self.waiting.is_empty() {
            let room = to
                .reserve()
                .await
                .map_err(|_| Error::new(ErrorKind::Unexpected, "nobody reads the output"))?;
            if let Some((stream, bytes)) = self.waiting.pop_front() {
                room.send(ExecuteEvent::Output(stream, bytes));
            }
        }
        Ok(())
    }
}

/// What a command wrote is not there any more.
pub(crate) fn removed(error: Error) -> Error {
    Error::new(
        ErrorKind::Unexpected,
        "the command's output was removed before it was fetched: something in the sandbox emptied \
         the directory that it waits in",
    )
    .because(error)
}
