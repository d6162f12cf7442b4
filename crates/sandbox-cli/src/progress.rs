//! One line on stderr that tells how something long gets on, where stderr is a terminal.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sandbox::docker::PullProgress;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::output::plain;

/// What is done sooner is not worth a line.
const FIRST: Duration = Duration::from_millis(700);

/// How often the line changes.
const EVERY: Duration = Duration::from_millis(100);

/// The line. Dropping it clears it.
#[derive(Debug)]
pub(crate) struct Line {
    next: Instant,
    shown: bool,
}

impl Line {
    /// A line, if there is somebody to see it.
    pub(crate) fn new() -> Option<Self> {
        io::stderr().is_terminal().then(|| Self {
            next: Instant::now() + FIRST,
            shown: false,
        })
    }

    fn show(&mut self, text: impl FnOnce() -> String) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        self.shown = true;
        // A longer one would wrap, and could not be cleared.
        let text: String = plain(&text()).chars().take(78).collect();
        let _ = write!(io::stderr(), "\r\x1b[2K{text}");
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

/// Shows a pull: the bytes of all layers together.
pub(crate) fn pull() -> Option<impl Fn(&PullProgress) + Send + Sync + 'static> {
    let state = Mutex::new((Line::new()?, HashMap::<String, (u64, u64)>::new()));
    Some(move |progress: &PullProgress| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (line, layers) = &mut *state;
        // Unpacking counts from the beginning again.
        if let Some(bytes) = progress.bytes
            && progress.status == "Downloading"
        {
            layers.insert(progress.layer.clone(), bytes);
        }
        let (done, all) = layers
            .values()
            .fold((0, 0), |(d, a), (done, all)| (d + done, a + all));
        line.show(|| {
            format!(
                "pulling {}: {} of {}",
                progress.image,
                size(done),
                size(all)
            )
        });
        if progress.status.starts_with("Status:") {
            line.clear();
        }
    })
}

impl Line {
    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

/// A reader or writer that shows how many bytes have passed.
pub(crate) struct Counted<T> {
    inner: T,
    what: String,
    bytes: u64,
    line: Option<Line>,
}

impl<T> Counted<T> {
    pub(crate) fn new(inner: T, what: impl Into<String>) -> Self {
        Self {
            inner,
            what: what.into(),
            bytes: 0,
            line: Line::new(),
        }
    }

    fn passed(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if let Some(line) = &mut self.line {
            line.show(|| format!("copying {}: {}", self.what, size(self.bytes)));
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let ready = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.passed(buf.filled().len() - before);
        ready
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let ready = Pin::new(&mut self.inner).poll_write(cx, buf);
        if let Poll::Ready(Ok(n)) = &ready {
            self.passed(*n);
        }
        ready
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(*unit);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(u64::MAX), "17179869183.9 GiB");
    }
}
