//! What a command printed and how it ended.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::{Error, ErrorKind, Result};

/// How a command that had started ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// It ended by itself with this code. A backend that can't tell a signal says
    /// `Exited(128 + signal)` ([`crate::Capabilities::reports_signals`]).
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// Its deadline came and its process tree was killed.
    TimedOut,
    /// Nobody knows: the connection or the sandbox was lost. The text says why.
    Lost(String),
}

impl Status {
    /// The shell's convention: the code, 128 + signal, 124 for a timeout, `None` when lost.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(*code),
            Self::Signaled(signal) => Some(128 + signal),
            Self::TimedOut => Some(124),
            Self::Lost(_) => None,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signaled(signal) => write!(f, "killed by signal {signal}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Lost(why) => write!(f, "lost: {why}"),
        }
    }
}

/// Which of a command's two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What was kept of one output stream: all of it, or its beginning and its end.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Captured {
    bytes: Bytes,
    head: usize,
    dropped: u64,
}

impl Captured {
    /// All of a stream.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            head: bytes.len(),
            bytes,
            dropped: 0,
        }
    }

    /// The bytes kept, exactly as the process wrote them. If [`dropped`](Self::dropped) is not 0
    /// they are the first and the last part, put together.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Bytes that the process wrote and that were not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The first part kept; everything unless bytes were dropped.
    pub fn head(&self) -> &[u8] {
        &self.bytes[..self.head]
    }

    /// The last part kept; empty unless bytes were dropped.
    pub fn tail(&self) -> &[u8] {
        &self.bytes[self.head..]
    }

    /// As text: invalid UTF-8 becomes U+FFFD, and a line says where bytes were dropped.
    pub fn to_text(&self) -> String {
        if self.dropped == 0 {
            return String::from_utf8_lossy(&self.bytes).into_owned();
        }
        // A character cut at the gap is not the process's fault: leave its halves out.
        let head = self.head();
        let head = match std::str::from_utf8(head) {
            Err(e) if e.error_len().is_none() => &head[..e.valid_up_to()],
            _ => head,
        };
        let tail = self.tail();
        let cut = tail
            .iter()
            .take(3)
            .take_while(|b| **b & 0xC0 == 0x80)
            .count();
        format!(
            "{}\n[... {} bytes dropped ...]\n{}",
            String::from_utf8_lossy(head),
            self.dropped,
            String::from_utf8_lossy(&tail[cut..])
        )
    }

    /// The same with at most `limit` bytes kept.
    #[must_use]
    pub fn limited(self, limit: u64) -> Self {
        if self.bytes.len() as u64 <= limit {
            return self;
        }
        let mut collector = Collector::new(limit);
        if self.dropped == 0 {
            collector.push(&self.bytes);
            return collector.finish();
        }
        // The ends stay the ends: what is between them only grows.
        let keep = usize::try_from(limit).unwrap_or(usize::MAX);
        let head = self.head.min(keep / 2);
        let tail = (self.bytes.len() - self.head).min(keep - head);
        let mut bytes = Vec::with_capacity(head + tail);
        bytes.extend_from_slice(&self.bytes[..head]);
        bytes.extend_from_slice(&self.bytes[self.bytes.len() - tail..]);
        let dropped = self.dropped + (self.bytes.len() - head - tail) as u64;
        Self {
            bytes: bytes.into(),
            head,
            dropped,
        }
    }
}

impl AsRef<[u8]> for Captured {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl PartialEq<[u8]> for Captured {
    fn eq(&self, other: &[u8]) -> bool {
        self.dropped == 0 && self.bytes == *other
    }
}

impl PartialEq<&[u8]> for Captured {
    fn eq(&self, other: &&[u8]) -> bool {
        *self == **other
    }
}

impl<const N: usize> PartialEq<&[u8; N]> for Captured {
    fn eq(&self, other: &&[u8; N]) -> bool {
        *self == other[..]
    }
}

impl PartialEq<&str> for Captured {
    fn eq(&self, other: &&str) -> bool {
        *self == *other.as_bytes()
    }
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_text(), f)
    }
}

/// Keeps the first and the last half of a limit of bytes, whatever flows through.
///
/// Memory never passes the limit by more than the largest chunk pushed.
#[derive(Debug)]
pub struct Collector {
    head_limit: usize,
    tail_limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Collector {
    /// A collector that keeps `limit` bytes.
    pub fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let head_limit = limit / 2;
        Self {
            head_limit,
            tail_limit: limit - head_limit,
            head: Vec::new(),
            tail: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, mut bytes: &[u8]) {
        let room = self.head_limit - self.head.len();
        let first = room.min(bytes.len());
        self.head.extend_from_slice(&bytes[..first]);
        bytes = &bytes[first..];
        if bytes.len() > self.tail_limit {
            let skip = bytes.len() - self.tail_limit;
            self.dropped += (self.tail.len() + skip) as u64;
            self.tail.clear();
            bytes = &bytes[skip..];
        }
        let over = (self.tail.len() + bytes.len()).saturating_sub(self.tail_limit);
        self.dropped += over as u64;
        self.tail.drain(..over);
        self.tail.extend(bytes);
    }

    /// Counts bytes that flowed by and that nobody has: what came before stays the head, what comes
    /// after is the tail.
    pub fn skip(&mut self, bytes: u64) {
        if bytes > 0 {
            self.head_limit = self.head.len();
            self.dropped += self.tail.len() as u64 + bytes;
            self.tail.clear();
        }
    }

    /// Bytes that had to be dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// What was kept.
    pub fn finish(self) -> Captured {
        let mut bytes = self.head;
        let head = if self.dropped == 0 {
            bytes.len() + self.tail.len()
        } else {
            bytes.len()
        };
        bytes.extend(self.tail);
        Captured {
            bytes: bytes.into(),
            head,
            dropped: self.dropped,
        }
    }
}

/// Collects both streams of a command, and their order where the backend knows it.
#[derive(Debug)]
pub struct OutputCollector {
    stdout: Collector,
    stderr: Collector,
    ordered: Option<Collector>,
}

impl OutputCollector {
    /// Keeps `limit` bytes of each stream. With `exact_order`, pushes must come in the order in
    /// which the process wrote.
    pub fn new(limit: u64, exact_order: bool) -> Self {
        Self {
            stdout: Collector::new(limit),
            stderr: Collector::new(limit),
            ordered: exact_order.then(|| Collector::new(limit)),
        }
    }

    /// Takes the next bytes of one stream.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.stdout.push(bytes),
            Stream::Stderr => self.stderr.push(bytes),
        }
        if let Some(ordered) = &mut self.ordered {
            ordered.push(bytes);
        }
    }

    /// Counts bytes of one stream that nobody has, see [`Collector::skip`].
    pub fn skip(&mut self, stream: Stream, bytes: u64) {
        match stream {
            Stream::Stdout => self.stdout.skip(bytes),
            Stream::Stderr => self.stderr.skip(bytes),
        }
        if let Some(ordered) = &mut self.ordered {
            ordered.skip(bytes);
        }
    }

    /// The response, once the ending is known.
    pub fn finish(self, status: Status, elapsed: Duration) -> ExecuteResponse {
        ExecuteResponse {
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
            ordered: self.ordered.map(Collector::finish),
            status,
            elapsed,
            sandbox_killed: false,
        }
    }
}

/// The result of [`execute`](crate::SandboxBackend::execute).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecuteResponse {
    /// What was kept of standard output, byte for byte.
    pub stdout: Captured,
    /// What was kept of standard error, byte for byte.
    pub stderr: Captured,
    /// Both streams in order of arrival, where the backend knows the order.
    pub ordered: Option<Captured>,
    /// How the command ended.
    pub status: Status,
    /// From the start to the end of the command, as this side saw it.
    pub elapsed: Duration,
    /// The death of the command's process tree could not be confirmed within
    /// [`crate::defaults::KILL_GRACE`], so the whole sandbox was killed.
    pub sandbox_killed: bool,
}

impl ExecuteResponse {
    /// A response from whole streams.
    pub fn new(status: Status, stdout: impl Into<Bytes>, stderr: impl Into<Bytes>) -> Self {
        Self {
            stdout: Captured::whole(stdout),
            stderr: Captured::whole(stderr),
            ordered: None,
            status,
            elapsed: Duration::ZERO,
            sandbox_killed: false,
        }
    }

    /// Both streams as one text for a model: in order of arrival where the backend knows it
    /// ([`crate::Capabilities::output_order`]), else stdout, a newline if it lacks one, stderr.
    pub fn output(&self) -> String {
        if let Some(ordered) = &self.ordered {
            return ordered.to_text();
        }
        let mut text = self.stdout.to_text();
        let stderr = self.stderr.to_text();
        if !text.is_empty() && !text.ends_with('\n') && !stderr.is_empty() {
            text.push('\n');
        }
        text + &stderr
    }

    /// The shell's convention, see [`Status::exit_code`].
    pub fn exit_code(&self) -> Option<i32> {
        self.status.exit_code()
    }

    /// True for exit code 0 only.
    pub fn success(&self) -> bool {
        self.status == Status::Exited(0)
    }

    /// True when output was dropped; [`Captured::dropped`] says how much of which stream.
    pub fn truncated(&self) -> bool {
        self.stdout.dropped() > 0 || self.stderr.dropped() > 0
    }

    /// For those who want every ending but success as an error.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::CommandFailed`] with the status and the end of the output.
    pub fn into_result(self) -> Result<Self> {
        if self.success() {
            return Ok(self);
        }
        let output = self.output();
        let start = output.char_indices().rev().nth(399).map_or(0, |(i, _)| i);
        Err(Error::new(
            ErrorKind::CommandFailed,
            format!("the command failed: {}", self.status),
        )
        .with("output", &output[start..]))
    }

    /// The same with at most `limit` bytes of each stream.
    #[must_use]
    pub(crate) fn limited(mut self, limit: u64) -> Self {
        self.stdout = self.stdout.limited(limit);
        self.stderr = self.stderr.limited(limit);
        self.ordered = self.ordered.map(|c| c.limited(limit));
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn at_the_limit_nothing_is_dropped_and_one_more_byte_is() {
        for (n, dropped) in [(9, 0), (10, 0), (11, 1)] {
            let mut c = Collector::new(10);
            c.push(&vec![b'x'; n]);
            assert_eq!(c.finish().dropped(), dropped);
        }
    }

    #[test]
    fn what_is_skipped_lies_between_the_ends() {
        let mut c = Collector::new(10);
        c.push(b"abc");
        c.skip(0);
        c.push(b"de");
        c.skip(100);
        c.push(b"wxyz");
        let kept = c.finish();
        assert_eq!((kept.head(), kept.tail()), (&b"abcde"[..], &b"wxyz"[..]));
        assert_eq!(kept.dropped(), 100);
    }

    #[test]
    fn text_marks_the_gap_and_does_not_blame_the_process_for_the_cut() {
        let mut c = Collector::new(5);
        c.push("aéé middle éz".as_bytes());
        let text = c.finish().to_text();
        assert_eq!(text, "a\n[... 11 bytes dropped ...]\néz");
    }

    #[test]
    fn stderr_starts_on_a_line_of_its_own() {
        let r = ExecuteResponse::new(Status::Exited(1), "out", "err");
        assert_eq!(r.output(), "out\nerr");
        assert_eq!(
            r.into_result().unwrap_err().context("output"),
            Some("out\nerr")
        );
    }

    proptest! {
        #[test]
        fn keeps_exactly_the_ends_however_the_stream_is_cut(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20),
            limit in 0u64..40,
            second in 0u64..40,
        ) {
            let all: Vec<u8> = chunks.concat();
            let mut c = Collector::new(limit);
            for chunk in &chunks {
                c.push(chunk);
            }
            let kept = c.finish();
            prop_assert_eq!(kept.bytes().len() as u64 + kept.dropped(), all.len() as u64);
            prop_assert!(kept.bytes().len() as u64 <= limit);
            prop_assert!(all.starts_with(kept.head()) && all.ends_with(kept.tail()));
            let again = kept.limited(second);
            prop_assert_eq!(again.bytes().len() as u64 + again.dropped(), all.len() as u64);
            prop_assert!(all.starts_with(again.head()) && all.ends_with(again.tail()));
        }
    }
}
