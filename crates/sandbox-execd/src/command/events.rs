//! The stream of events: one JSON object each, with an empty line after it.

use std::time::Duration;

use bytes::Bytes;
use hyper::Response;

use super::lines::Piece;
use crate::clock::unix_ms;
use crate::json::{Object, base64, push_escaped, push_string};
use crate::options::Profile;
use crate::respond::{ApiError, Body, event_stream};
use crate::stream::Feeder;

/// How often a stream shows that it lives.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(3);

/// Events of one write: enough that a command with many short lines is not slow.
const BATCH: usize = 32 * 1024;

/// Which output a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Stdout,
    Stderr,
}

impl Channel {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Events waiting to be sent, in pieces of a bounded size.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    done: Vec<Bytes>,
    open: Vec<u8>,
}

impl Batch {
    fn close_if_full(&mut self) {
        if self.open.len() >= BATCH {
            self.done.push(std::mem::take(&mut self.open).into());
        }
    }

    fn event(&mut self, object: Object) {
        self.open.extend_from_slice(&object.finish());
        self.open.extend_from_slice(b"\n\n");
        self.close_if_full();
    }

    /// The first event, with the id of the execution.
    pub(crate) fn init(&mut self, id: &str) {
        self.event(
            Object::new()
                .str("type", "init")
                .str("text", id)
                .int("timestamp", unix_ms()),
        );
    }

    pub(crate) fn ping(&mut self) {
        let event = Object::new().str("type", "ping").str("text", "pong");
        self.event(event.int("timestamp", unix_ms()));
    }

    /// The last event of a command that exited with 0.
    pub(crate) fn complete(&mut self, took: Duration) {
        let mut event = Object::new().str("type", "execution_complete");
        let took = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        if took > 0 {
            event = event.int("execution_time", took);
        }
        self.event(event.int("timestamp", unix_ms()));
    }

    /// The last event of any other command.
    pub(crate) fn error(&mut self, value: &str, text: &str) {
        let mut traceback = vec![b'['];
        push_string(&mut traceback, text.as_bytes());
        traceback.push(b']');
        let error = Object::new()
            .str("ename", "CommandExecError")
            .str("evalue", value)
            .raw("traceback", &traceback)
            .finish();
        let event = Object::new()
            .str("type", "error")
            .int("timestamp", unix_ms());
        self.event(event.raw("error", &error));
    }

    /// What ends a stream where the real one can't begin the command any more.
    pub(crate) fn bare_error(&mut self, error: &ApiError) {
        self.open.extend_from_slice(&error.to_json());
    }

    /// A piece of output.
    ///
    /// In the stock profile a blank line is the text `"\n"`, bytes that are not UTF-8 are lost,
    /// and a part looks like a line. In the default profile a blank line is `""`, `base64` has
    /// the bytes where the text could not, and a part is marked `"partial":true`.
    pub(crate) fn output(&mut self, channel: Channel, piece: Piece<'_>, profile: Profile) {
        let stock = profile.is_stock();
        let (bytes, partial) = match piece {
            Piece::Line(line) => (line, false),
            Piece::Blank if stock => (&b"\n"[..], false),
            Piece::Blank => (&b""[..], false),
            Piece::Part(part) => (part, true),
        };
        if bytes.is_empty() && stock {
            return;
        }
        self.open.extend_from_slice(b"{\"type\":\"");
        self.open.extend_from_slice(channel.name().as_bytes());
        self.open.extend_from_slice(b"\",\"text\":\"");
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut length = rest.len().min(BATCH);
            if length < rest.len() {
                // Never between the bytes of one character.
                let before = (length - 3..=length)
                    .rev()
                    .find(|&at| rest[at] & 0xC0 != 0x80);
                length = before.unwrap_or(length);
            }
            push_escaped(&mut self.open, &rest[..length]);
            rest = &rest[length..];
            self.close_if_full();
        }
        self.open.extend_from_slice(b"\",\"timestamp\":");
        self.open
            .extend_from_slice(unix_ms().to_string().as_bytes());
        if !stock && std::str::from_utf8(bytes).is_err() {
            self.open.extend_from_slice(b",\"base64\":\"");
            self.open.extend_from_slice(&base64(bytes));
            self.open.push(b'"');
        }
        if !stock && partial {
            self.open.extend_from_slice(b",\"partial\":true");
        }
        self.open.extend_from_slice(b"}\n\n");
        self.close_if_full();
    }

    fn into_pieces(mut self) -> Vec<Bytes> {
        if !self.open.is_empty() {
            self.done.push(self.open.into());
        }
        self.done
    }
}

/// The sending end of a stream. The command it belongs to runs on when nobody listens any more.
#[derive(Debug)]
pub(crate) struct EventSink {
    /// `None` when nobody listens any more.
    feeder: Option<Feeder>,
}

impl EventSink {
    /// A stream and the response that carries it.
    pub(crate) fn open() -> (Self, Response<Body>) {
        let (feeder, body) = Feeder::open(8);
        (
            Self {
                feeder: Some(feeder),
            },
            event_stream(body),
        )
    }

    /// A stream nobody listens to.
    #[cfg(test)]
    fn closed() -> Self {
        Self { feeder: None }
    }

    /// Sends what was collected, waiting for a slow listener.
    pub(crate) async fn send(&mut self, batch: Batch) {
        for piece in batch.into_pieces() {
            let Some(feeder) = &self.feeder else {
                return;
            };
            if !feeder.send(piece).await {
                self.feeder = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(batch: Batch) -> String {
        let bytes: Vec<u8> = batch.into_pieces().concat();
        String::from_utf8(bytes).unwrap()
    }

    /// The events without their timestamps.
    fn events(fill: impl FnOnce(&mut Batch)) -> Vec<serde_json::Value> {
        let mut batch = Batch::default();
        fill(&mut batch);
        text_of(batch)
            .split_terminator("\n\n")
            .map(|event| {
                let mut event: serde_json::Value = serde_json::from_str(event).unwrap();
                event.as_object_mut().unwrap().remove("timestamp");
                event
            })
            .collect()
    }

    #[test]
    fn blank_lines_and_lost_bytes_differ_by_profile() {
        let of = |profile| {
            events(|batch| {
                batch.output(Channel::Stdout, Piece::Blank, profile);
                batch.output(Channel::Stderr, Piece::Line(b"x\xff"), profile);
                batch.output(Channel::Stdout, Piece::Part(b"p"), profile);
                batch.output(Channel::Stdout, Piece::Line(b""), profile);
            })
        };
        let stock = serde_json::json!([
            {"type": "stdout", "text": "\n"},
            {"type": "stderr", "text": "x\u{fffd}"},
            {"type": "stdout", "text": "p"},
        ]);
        assert_eq!(serde_json::Value::from(of(Profile::Stock)), stock);
        let default = serde_json::json!([
            {"type": "stdout", "text": ""},
            {"type": "stderr", "text": "x\u{fffd}", "base64": "eP8="},
            {"type": "stdout", "text": "p", "partial": true},
            {"type": "stdout", "text": ""},
        ]);
        assert_eq!(serde_json::Value::from(of(Profile::Default)), default);
    }

    #[test]
    fn a_long_line_is_one_event_in_bounded_pieces() {
        let line = "é☃😀x".repeat(40_000);
        let mut batch = Batch::default();
        batch.output(
            Channel::Stdout,
            Piece::Line(line.as_bytes()),
            Profile::Stock,
        );
        assert!(batch.done.len() > 5);
        assert!(batch.done.iter().all(|it| it.len() <= 7 * BATCH));
        let text = text_of(batch);
        let event: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
        assert!(event["text"] == line);
    }

    #[test]
    fn zero_milliseconds_are_left_out() {
        let events = events(|batch| {
            batch.complete(Duration::ZERO);
            batch.complete(Duration::from_millis(6));
        });
        assert_eq!(events[0], serde_json::json!({"type": "execution_complete"}));
        assert_eq!(events[1]["execution_time"], 6);
    }

    #[tokio::test]
    async fn a_stream_without_a_listener_takes_everything() {
        let (mut sink, response) = EventSink::open();
        drop(response);
        for _ in 0..100 {
            let mut batch = Batch::default();
            batch.ping();
            sink.send(batch).await;
        }
        EventSink::closed().send(Batch::default()).await;
    }
}
