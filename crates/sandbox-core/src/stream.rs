//! Output while a command runs.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures_util::{Stream as FuturesStream, StreamExt as _};

use crate::{ExecuteResponse, OutputCollector, Status, Stream};

/// What a running command tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecuteEvent {
    /// Bytes of one stream, cut anywhere.
    Output(Stream, Bytes),
    /// The end, always the last event.
    Ended {
        /// How it ended.
        status: Status,
        /// As [`ExecuteResponse::sandbox_killed`].
        sandbox_killed: bool,
    },
}

impl ExecuteEvent {
    /// The end of a command in a sandbox that lives on.
    pub fn ended(status: Status) -> Self {
        Self::Ended {
            status,
            sandbox_killed: false,
        }
    }
}

/// The events of a running command. Dropping it kills the command.
pub struct ExecuteStream(Pin<Box<dyn FuturesStream<Item = ExecuteEvent> + Send>>);

impl ExecuteStream {
    /// From a stream that ends with [`ExecuteEvent::Ended`]; one that does not is reported as
    /// [`Status::Lost`].
    pub fn new(events: impl FuturesStream<Item = ExecuteEvent> + Send + 'static) -> Self {
        Self(Box::pin(Terminated {
            events: Box::pin(events),
            ended: false,
        }))
    }

    /// The next event; `None` after [`ExecuteEvent::Ended`]. Cancel safe: no event is lost.
    pub async fn next(&mut self) -> Option<ExecuteEvent> {
        self.0.next().await
    }

    /// Reads to the end and keeps at most `limit` bytes of each stream.
    pub async fn collect(mut self, limit: u64, exact_order: bool) -> ExecuteResponse {
        let start = Instant::now();
        let mut output = OutputCollector::new(limit, exact_order);
        let mut ending = (
            Status::Lost("the stream ended without a result".into()),
            false,
        );
        while let Some(event) = self.next().await {
            match event {
                ExecuteEvent::Output(stream, bytes) => output.push(stream, &bytes),
                ExecuteEvent::Ended {
                    status,
                    sandbox_killed,
                } => ending = (status, sandbox_killed),
            }
        }
        let mut response = output.finish(ending.0, start.elapsed());
        response.sandbox_killed = ending.1;
        response
    }
}

impl FuturesStream for ExecuteStream {
    type Item = ExecuteEvent;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ExecuteEvent>> {
        self.0.poll_next_unpin(cx)
    }
}

impl fmt::Debug for ExecuteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExecuteStream")
    }
}

/// Makes sure of exactly one end.
struct Terminated {
    events: Pin<Box<dyn FuturesStream<Item = ExecuteEvent> + Send>>,
    ended: bool,
}

impl FuturesStream for Terminated {
    type Item = ExecuteEvent;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ExecuteEvent>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let event = match self.events.poll_next_unpin(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(event)) => event,
            Poll::Ready(None) => {
                ExecuteEvent::ended(Status::Lost("the stream ended without a result".into()))
            }
        };
        self.ended = matches!(event, ExecuteEvent::Ended { .. });
        Poll::Ready(Some(event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stream_without_an_end_is_lost_and_one_with_two_ends_once() {
        let out = ExecuteEvent::Output(Stream::Stdout, Bytes::from_static(b"a"));
        let cut = ExecuteStream::new(futures_util::stream::iter([out.clone()]));
        let r = cut.collect(10, true).await;
        assert!(matches!(r.status, Status::Lost(_)));
        assert_eq!(r.output(), "a");
        let end = ExecuteEvent::ended(Status::Exited(0));
        let twice = ExecuteStream::new(futures_util::stream::iter([end.clone(), out, end]));
        assert_eq!(twice.collect(10, false).await.output(), "");
    }
}
