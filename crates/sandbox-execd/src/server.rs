//! Connections: how many, how slow, and how they end.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep};

use crate::daemon::Daemon;
use crate::log::{self, Level};
use crate::router;

/// Connections at once; others wait to be accepted. The stock profile has no such limit but the
/// number of open files.
const CONNECTION_LIMIT: u32 = 1024;
/// How long a client may take for a request's head, and how long it may keep a connection idle:
/// longer than any client keeps one in its pool.
const HEAD_TIMEOUT: Duration = Duration::from_mins(2);
/// The largest head of a request.
const HEAD_LIMIT: usize = 256 * 1024;
/// How long a client may read nothing while there is something to read.
const STALL_LIMIT: Duration = Duration::from_mins(5);

/// What is left of the connections after the end of accepting.
pub(crate) struct Connections {
    ending: watch::Sender<bool>,
    open: Arc<Semaphore>,
    limit: u32,
}

impl Connections {
    /// Lets requests under way end within `limit`, and closes all that is idle.
    pub(crate) async fn close(self, limit: Duration) {
        let _ = self.ending.send(true);
        // All places free means no connection is left.
        let _ = tokio::time::timeout(limit, self.open.acquire_many(self.limit)).await;
    }
}

/// Serves until `end` is ready, and gives its outcome.
pub(crate) async fn serve<T>(
    daemon: &Arc<Daemon>,
    listener: TcpListener,
    end: impl Future<Output = T>,
) -> (T, Connections) {
    let limit = if daemon.options.profile.is_stock() {
        // More than there can be open files.
        u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX >> 3)
    } else {
        CONNECTION_LIMIT
    };
    let open = Arc::new(Semaphore::new(limit as usize));
    let (ending, ended) = watch::channel(false);
    let connections = Connections {
        ending,
        open: open.clone(),
        limit,
    };
    tokio::pin!(end);
    loop {
        let accept = async {
            // Never closed, so there is always a place at some time.
            let place = open.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, stream) = tokio::select! {
            biased;
            outcome = &mut end => return (outcome, connections),
            accepted = accept => accepted,
        };
        match stream {
            Ok((stream, _)) => {
                let (daemon, ended) = (daemon.clone(), ended.clone());
                tokio::spawn(async move {
                    let _place = place;
                    connection(daemon, stream, ended).await;
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: some will be free again.
                log::line(Level::Warning, format_args!("error accepting: {error}"));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(daemon: Arc<Daemon>, stream: TcpStream, mut ended: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let peer = stream.peer_addr().ok();
    let stock = daemon.options.profile.is_stock();
    let service = service_fn(|request| {
        let daemon = daemon.clone();
        async move { Ok::<_, Infallible>(router::handle(&daemon, request, peer).await) }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .max_buf_size(HEAD_LIMIT)
        .title_case_headers(true)
        .half_close(false);
    // The stock profile keeps an idle connection for ever: its proxy's leak lives on that.
    builder.header_read_timeout(if stock { None } else { Some(HEAD_TIMEOUT) });
    let io = TokioIo::new(Stalling::new(stream));
    let connection = builder.serve_connection(io, service).with_upgrades();
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = async { drop(ended.wait_for(|it| *it).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        log::line(Level::Info, format_args!("connection ended: {error}"));
    }
}

/// A connection that gives up on a peer that reads nothing for too long.
struct Stalling {
    stream: TcpStream,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Stalling {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            deadline: None,
        }
    }

    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.deadline = None;
            return outcome;
        }
        let deadline = self.deadline.get_or_insert_with(|| {
            Box::pin(tokio::time::sleep_until(Instant::now() + STALL_LIMIT))
        });
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Stalling {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stalling {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, buffer);
        self.watch(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.watch(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
