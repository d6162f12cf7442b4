//! A listener that answers each request as it is told, well or badly.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// `METHOD /path`, without the query.
    pub(crate) fn line(&self) -> String {
        let path = self.target.split('?').next().unwrap_or_default();
        format!("{} {path}", self.method)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// How an answer in parts ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// As it should.
    Clean,
    /// The connection is cut.
    Cut,
    /// Nothing more comes, and the connection stays.
    Hold,
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Whole(u16, Vec<(String, String)>, Vec<u8>),
    /// 200, in parts as they are.
    Parts(Vec<Vec<u8>>, End),
    /// Nothing, and the connection stays.
    Silence,
    /// The connection is cut before an answer.
    HangUp,
    /// 200, and then this for ever.
    Endless(Vec<u8>),
}

impl Reply {
    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        Self::Whole(status, headers, body.to_string().into_bytes())
    }

    pub(crate) fn empty() -> Self {
        Self::Whole(200, Vec::new(), Vec::new())
    }

    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self::Whole(status, Vec::new(), body.as_bytes().to_vec())
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        if let Self::Whole(_, headers, _) = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// A stream of events, one part each.
    pub(crate) fn events(events: &[serde_json::Value], end: End) -> Self {
        let parts = events.iter().map(|e| format!("{e}\n\n").into_bytes());
        Self::Parts(parts.collect(), end)
    }
}

/// A listener on the loopback. Ends with its runtime.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    /// Answers written to their end, and those that were broken off.
    written: Arc<[AtomicUsize; 2]>,
}

impl Listener {
    /// Answers with what `reply` makes of each request and the listener's own address.
    pub(crate) async fn start(
        reply: impl Fn(&Request, SocketAddr) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let written: Arc<[AtomicUsize; 2]> = Arc::default();
        let (reply, log, count) = (Arc::new(reply), seen.clone(), written.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                let (reply, log, count) = (reply.clone(), log.clone(), count.clone());
                tokio::spawn(async move {
                    let mut stream = stream;
                    if let Some(request) = read(&mut stream).await {
                        log.lock().unwrap().push(request.clone());
                        let answer = reply(&request, address);
                        let broken = write(&mut stream, answer).await.is_err();
                        count[usize::from(broken)].fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        Self {
            address,
            seen,
            written,
        }
    }

    /// How many answers were written to their end, and how many could not be.
    pub(crate) fn written(&self) -> [usize; 2] {
        [0, 1].map(|at| self.written[at].load(Ordering::SeqCst))
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// Those of a method and a path.
    pub(crate) fn seen_of(&self, line: &str) -> Vec<Request> {
        let mut seen = self.seen();
        seen.retain(|r| r.line() == line);
        seen
    }

    /// Waits until there is one of a method and a path.
    pub(crate) async fn wait_for(&self, line: &str) -> Request {
        loop {
            if let Some(request) = self.seen_of(line).pop() {
                return request;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Request {
        method: first.next()?.to_owned(),
        target: first.next()?.to_owned(),
        headers,
        body,
    })
}

async fn write(stream: &mut TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::Whole(status, headers, body) => {
            let mut head = format!("HTTP/1.1 {status} -\r\nConnection: close\r\n");
            let length = ("Content-Length".to_owned(), body.len().to_string());
            for (name, value) in headers.iter().chain([&length]) {
                head = format!("{head}{name}: {value}\r\n");
            }
            stream.write_all(format!("{head}\r\n").as_bytes()).await?;
            stream.write_all(&body).await
        }
        Reply::Parts(parts, end) => {
            chunked(stream).await?;
            for part in parts {
                chunk(stream, &part).await?;
                // Each part comes alone.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            match end {
                End::Clean => stream.write_all(b"0\r\n\r\n").await,
                End::Cut => Ok(()),
                End::Hold => std::future::pending().await,
            }
        }
        Reply::Silence => std::future::pending().await,
        Reply::HangUp => Ok(()),
        Reply::Endless(part) => {
            chunked(stream).await?;
            loop {
                chunk(stream, &part).await?;
            }
        }
    }
}

async fn chunked(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await
}

async fn chunk(stream: &mut TcpStream, part: &[u8]) -> std::io::Result<()> {
    let head = format!("{:x}\r\n", part.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(part).await?;
    stream.write_all(b"\r\n").await
}
