//! The stream of events of a running command.
//!
//! It says it is an event stream and is none: each event is a JSON object on a line of its own,
//! without a field's name before it. An error after the first event is a bare object of another
//! shape, and may lack its newline. What is not known is passed over.

use memchr::memchr;
use sandbox_core::Stream;
use serde_json::Value;

use crate::error::{Refusal, shorten};

/// The longest event that is read. The daemon has no limit: a line of output is one event. What is
/// longer is passed over, so that the end behind it is still seen.
const EVENT: usize = 4 << 20;

/// What a command's stream tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecdEvent {
    /// The daemon's name of the execution: always the first event.
    Init(String),
    /// A line of output, without its end. Bytes that are not UTF-8, the kind of the line's end and
    /// the order of the two streams are lost; `sandbox_core`'s `execute` loses nothing.
    Line(Stream, String),
    /// A line of output was longer than is read.
    LongLine,
    /// The end.
    Ended(ExecdEnding),
}

/// How a command ended, as the daemon says it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecdEnding {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal. The daemon's own timeout is signal 9, if it does not say more.
    Signaled(i32),
    /// The daemon killed it at its timeout, and says so.
    TimedOut,
    /// It never ran; why, in the daemon's words.
    NotStarted(String),
    /// In a way that can't be understood.
    Unknown(String),
}

impl ExecdEnding {
    /// From an exit code as text and the daemon's words about it.
    pub(crate) fn of(code: &str, words: &str) -> Self {
        let Ok(code) = code.trim().parse::<i32>() else {
            return Self::NotStarted(shorten(code));
        };
        if words.starts_with("timed out after ") {
            return Self::TimedOut;
        }
        if let Some(name) = words.strip_prefix("signal: ") {
            return match signal(name.trim_end_matches(" (core dumped)")) {
                Some(signal) => Self::Signaled(signal),
                None => Self::Unknown(shorten(words)),
            };
        }
        match code {
            0..=255 => Self::Exited(code),
            _ => Self::Unknown(shorten(words)),
        }
    }
}

/// The number of a signal from the name that Go has for it on Linux.
fn signal(name: &str) -> Option<i32> {
    const NAMES: [&str; 31] = [
        "hangup",
        "interrupt",
        "quit",
        "illegal instruction",
        "trace/breakpoint trap",
        "aborted",
        "bus error",
        "floating point exception",
        "killed",
        "user defined signal 1",
        "segmentation fault",
        "user defined signal 2",
        "broken pipe",
        "alarm clock",
        "terminated",
        "stack fault",
        "child exited",
        "continued",
        "stopped (signal)",
        "stopped",
        "stopped (tty input)",
        "stopped (tty output)",
        "urgent I/O condition",
        "CPU time limit exceeded",
        "file size limit exceeded",
        "virtual timer expired",
        "profiling timer expired",
        "window changed",
        "I/O possible",
        "power failure",
        "bad system call",
    ];
    if let Some(number) = name.strip_prefix("signal ") {
        return number.parse().ok().filter(|n| (1..=64).contains(n));
    }
    let at = NAMES.iter().position(|known| *known == name)?;
    i32::try_from(at + 1).ok()
}

/// Takes a stream apart, however it is cut.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    line: Vec<u8>,
    /// The line is too long: its rest is passed over.
    skipping: bool,
}

impl Decoder {
    /// Takes the next bytes and hands each event to `event`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut event: impl FnMut(ExecdEvent)) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.take(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.end_of_line(&mut event);
        }
        self.take(bytes);
    }

    /// The stream is at its end: what has no newline counts too.
    pub(crate) fn finish(&mut self, mut event: impl FnMut(ExecdEvent)) {
        self.end_of_line(&mut event);
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.skipping || self.line.len() + bytes.len() > EVENT {
            self.line = Vec::new();
            self.skipping = true;
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_of_line(&mut self, event: &mut impl FnMut(ExecdEvent)) {
        if std::mem::take(&mut self.skipping) {
            event(ExecdEvent::LongLine);
        } else if let Some(known) = parse(&self.line) {
            event(known);
        }
        self.line.clear();
    }
}

/// The event of a line; `None` for what means nothing here.
fn parse(line: &[u8]) -> Option<ExecdEvent> {
    let line = line.strip_prefix(b"data:").unwrap_or(line);
    let value: Value = serde_json::from_slice(line.trim_ascii()).ok()?;
    let text = || value["text"].as_str().unwrap_or_default();
    let Some(kind) = value["type"].as_str() else {
        // A refusal in the middle of a stream: the command can't go on.
        value.get("code")?;
        let refusal = Refusal::parse(line);
        return Some(ExecdEvent::Ended(ExecdEnding::NotStarted(refusal.message)));
    };
    let line = |stream| {
        // A blank line is a newline, so that it is not left out.
        let text = if text() == "\n" { "" } else { text() };
        ExecdEvent::Line(stream, text.to_owned())
    };
    match kind {
        "init" => Some(ExecdEvent::Init(text().to_owned())),
        "stdout" => Some(line(Stream::Stdout)),
        "stderr" => Some(line(Stream::Stderr)),
        "execution_complete" => Some(ExecdEvent::Ended(ExecdEnding::Exited(0))),
        "error" => {
            let error = &value["error"];
            let code = error["evalue"].as_str().unwrap_or_default();
            let words = error["traceback"][0].as_str().unwrap_or_default();
            Some(ExecdEvent::Ended(ExecdEnding::of(code, words)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(text: &[u8], cut: usize) -> Vec<ExecdEvent> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for part in text.chunks(cut.max(1)) {
            decoder.push(part, |e| events.push(e));
        }
        decoder.finish(|e| events.push(e));
        events
    }

    fn exited(code: i32) -> ExecdEvent {
        ExecdEvent::Ended(ExecdEnding::Exited(code))
    }

    #[test]
    fn a_stream_is_read_however_it_is_cut() {
        let text = "{\"type\":\"init\",\"text\":\"a1\"}\n\n{\"type\":\"ping\",\"text\":\"pong\"}\n\n\
                    {\"type\":\"stdout\",\"text\":\"h\u{e9}\"}\r\n\n{\"type\":\"stdout\",\"text\":\"\\n\"}\n\n\
                    data: {\"type\":\"stderr\"}\n\n: comment\nevent: x\n\
                    {\"type\":\"news\"}\n\n{\"type\":\"execution_complete\"}\n\n";
        for cut in [1, 2, 3, 7, 1000] {
            assert_eq!(
                decode(text.as_bytes(), cut),
                [
                    ExecdEvent::Init("a1".into()),
                    ExecdEvent::Line(Stream::Stdout, "hé".into()),
                    ExecdEvent::Line(Stream::Stdout, String::new()),
                    ExecdEvent::Line(Stream::Stderr, String::new()),
                    exited(0),
                ]
            );
        }
    }

    #[test]
    fn a_bare_error_without_a_newline_ends_the_stream() {
        let text = br#"{"code":"RUNTIME_ERROR","message":"no such thing"}"#;
        assert_eq!(
            decode(text, 10),
            [ExecdEvent::Ended(ExecdEnding::NotStarted(
                "no such thing".into()
            ))]
        );
    }

    #[test]
    fn endings_are_told_apart() {
        for (code, words, ending) in [
            ("0", "", ExecdEnding::Exited(0)),
            ("3", "exit status 3", ExecdEnding::Exited(3)),
            ("137", "exit status 137", ExecdEnding::Exited(137)),
            ("-1", "signal: killed", ExecdEnding::Signaled(9)),
            ("137", "signal: killed", ExecdEnding::Signaled(9)),
            (
                "-1",
                "signal: segmentation fault (core dumped)",
                ExecdEnding::Signaled(11),
            ),
            ("-1", "signal: signal 34", ExecdEnding::Signaled(34)),
            (
                "124",
                "timed out after 700ms: signal: killed",
                ExecdEnding::TimedOut,
            ),
            ("124", "exit status 124", ExecdEnding::Exited(124)),
            (
                "fork/exec /bin/sh: no",
                "",
                ExecdEnding::NotStarted("fork/exec /bin/sh: no".into()),
            ),
            (
                "-1",
                "signal: dreaming",
                ExecdEnding::Unknown("signal: dreaming".into()),
            ),
            ("-1", "", ExecdEnding::Unknown(String::new())),
        ] {
            assert_eq!(ExecdEnding::of(code, words), ending, "{code} {words}");
        }
    }

    #[test]
    fn a_huge_event_is_passed_over_in_bounded_memory() {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        decoder.push(br#"{"type":"stdout","text":""#, |e| events.push(e));
        let part = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            decoder.push(&part, |e| events.push(e));
            assert!(decoder.line.capacity() <= 2 * EVENT);
        }
        decoder.push(b"\"}\n\n{\"type\":\"execution_complete\"}\n", |e| {
            events.push(e);
        });
        assert_eq!(events, [ExecdEvent::LongLine, exited(0)]);
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 1usize..20) {
            decode(&bytes, cut);
        }
    }
}
