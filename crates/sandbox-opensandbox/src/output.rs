//! Fetching what a command wrote, while it runs and when it has ended.
//!
//! The daemon reads the files with its own rights, so what a file is is looked at first: a command
//! could have put a link in its place.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::future::try_join_all;
use sandbox_core::{Error, ErrorKind, ExecuteEvent, OutputCollector, Result, Stream};
use tokio::sync::mpsc;

use crate::error;
use crate::execd::Execd;
use crate::launch::Files;

/// Bytes that are fetched at once while a command runs.
const PART: u64 = 1 << 20;

/// Fetches all that was written, of each stream at most `limit` bytes: the first and the last half.
pub(crate) async fn collect(
    execd: &Execd,
    files: &Files,
    limit: u64,
    output: &mut OutputCollector,
) -> Result<()> {
    let sizes = sizes(execd, files).await?;
    let fetches = files.streams().iter().zip(sizes).map(|(stream, size)| {
        let path = files.output(*stream);
        async move { Ok::<_, Error>((*stream, size, ends(execd, &path, size, limit).await?)) }
    });
    for (stream, size, parts) in try_join_all(fetches).await? {
        let [head, tail] = parts;
        let kept = (head.len() + tail.len()) as u64;
        output.push(stream, &head);
        if size > kept {
            output.skip(stream, size - kept);
        }
        output.push(stream, &tail);
    }
    Ok(())
}

/// The size of each stream's file.
async fn sizes(execd: &Execd, files: &Files) -> Result<Vec<u64>> {
    let paths: Vec<String> = files.streams().iter().map(|s| files.output(*s)).collect();
    let asked: Vec<&str> = paths.iter().map(String::as_str).collect();
    let infos = match execd.info(&asked).await {
        Err(e) if e.kind() == ErrorKind::NotFound => return Err(removed(e)),
        other => other?,
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

/// The beginning and the end of a file of `size` bytes, `limit` bytes in sum.
async fn ends(execd: &Execd, path: &str, size: u64, limit: u64) -> Result<[Vec<u8>; 2]> {
    let head = if size <= limit { size } else { limit / 2 };
    let tail = if size <= limit { 0 } else { limit - head };
    Ok([
        range(execd, path, 0, head).await?,
        range(execd, path, size - tail, tail).await?,
    ])
}

/// `length` bytes of a file that has them.
async fn range(execd: &Execd, path: &str, from: u64, length: u64) -> Result<Vec<u8>> {
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
        Ok(bytes)
    } else {
        Err(error::garbled("fetch what a command wrote"))
    }
}

/// Follows the files of a command while it writes them.
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
                self.waiting.push_back((*stream, part.into()));
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

/// Removes what a command left, in the background: nobody waits for it, and what stays is a file
/// that nobody finds.
pub(crate) fn forget(execd: &Execd, files: &Files) {
    let (execd, files) = (execd.clone(), files.all());
    tokio::spawn(async move {
        let paths: Vec<&str> = files.iter().map(String::as_str).collect();
        if let Err(error) = execd.delete(&paths).await {
            tracing::debug!(%error, "what a command left could not be removed");
        }
    });
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
