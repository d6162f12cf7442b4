//! Bodies that are fed by a task, piece by piece.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use tokio::sync::mpsc;

use crate::respond::Body;

/// The feeding end. Dropping it ends the body; a body whose feeder fails cuts the connection.
#[derive(Debug)]
pub(crate) struct Feeder {
    sender: mpsc::Sender<io::Result<Bytes>>,
}

impl Feeder {
    /// A body and its feeder, with room for `pieces` between them.
    pub(crate) fn open(pieces: usize) -> (Self, Body) {
        let (sender, receiver) = mpsc::channel(pieces);
        (Self { sender }, Fed { receiver }.boxed_unsync())
    }

    /// Sends a piece, waiting for a slow reader. False when nobody reads any more.
    pub(crate) async fn send(&self, piece: impl Into<Bytes>) -> bool {
        self.sender.send(Ok(piece.into())).await.is_ok()
    }

    /// Ends the body in a way the reader can't mistake for its end.
    pub(crate) async fn fail(self, error: io::Error) {
        // A failing body takes along what was not written yet.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let _ = self.sender.send(Err(error)).await;
    }
}

struct Fed {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
}

impl hyper::body::Body for Fed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.receiver
            .poll_recv(context)
            .map(|it| it.map(|piece| piece.map(Frame::data)))
    }
}
