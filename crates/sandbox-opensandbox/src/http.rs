//! HTTP with a deadline on every call and a bound on every answer.
//!
//! Nothing is sent twice, but for a connection that was refused before anything was sent.
//! Redirects are not followed, and no proxy of the environment is used: a key goes where the
//! configuration says, and nowhere else.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Body, Client, Method, Response, StatusCode};
use sandbox_core::{Error, ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::error;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How long an unused connection is kept: the server closes it after 30 s, and one that is just
/// being closed must not be used.
const IDLE: Duration = Duration::from_secs(15);

/// Unused connections to one address.
const IDLE_CONNECTIONS: usize = 64;

/// Pauses before a refused connection is tried again.
const AGAIN: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];

/// The largest answer that is no file: a list of 200 sandboxes is a tenth of it.
pub(crate) const ANSWER: usize = 4 << 20;

/// The largest refusal that is read.
const REFUSAL: usize = 64 << 10;

/// How long the rest of an answer that nobody needs is read: a command that was left ends sooner.
const DRAIN: Duration = Duration::from_mins(1);

/// How long the rest of a refusal may take.
const REST: Duration = Duration::from_secs(5);

/// An address with what goes with each request to it.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// Scheme, host, port and the beginning of the path, without a slash at the end.
    pub(crate) base: String,
    /// Values of secrets among them are marked sensitive.
    pub(crate) headers: HeaderMap,
}

/// A client for one address. Belongs to the runtime that uses it first.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    client: Client,
    address: Arc<Address>,
}

/// What a request carries.
pub(crate) enum Content {
    None,
    Json(Bytes),
    /// A content type and the parts, which are not copied.
    Parts(HeaderValue, Vec<Bytes>),
}

impl Content {
    pub(crate) fn json(value: &impl Serialize) -> Result<Self> {
        let body = serde_json::to_vec(value)
            .map_err(|e| Error::new(ErrorKind::Unexpected, "no JSON of a request").because(e))?;
        Ok(Self::Json(body.into()))
    }
}

/// A request, ready to be sent.
pub(crate) struct Request {
    /// What it is for, for messages: «could not …».
    pub(crate) what: &'static str,
    pub(crate) method: Method,
    /// Path and query, beginning with a slash.
    pub(crate) target: String,
    pub(crate) content: Content,
    pub(crate) headers: HeaderMap,
    /// How long the beginning of the answer may take, and all of it where all is read.
    pub(crate) limit: Duration,
}

impl Request {
    pub(crate) fn new(
        what: &'static str,
        method: Method,
        target: impl Into<String>,
        limit: Duration,
    ) -> Self {
        Self {
            what,
            method,
            target: target.into(),
            content: Content::None,
            headers: HeaderMap::new(),
            limit,
        }
    }

    pub(crate) fn content(mut self, content: Content) -> Self {
        self.content = content;
        self
    }
}

/// The beginning of an answer of success.
#[derive(Debug)]
pub(crate) struct Answer {
    what: &'static str,
    response: Response,
}

impl Http {
    /// A client for `address`. No I/O.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the system's certificates can't be used.
    pub(crate) fn new(address: Address) -> Result<Self> {
        let tls = address.base.starts_with("https:");
        let client = Client::builder()
            .tls_backend_preconfigured(tls_config(tls)?)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .http1_only()
            .tcp_nodelay(true)
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .user_agent(concat!("sandbox-opensandbox/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| Error::new(ErrorKind::Config, "no HTTP client").because(e))?;
        Ok(Self {
            client,
            address: Arc::new(address),
        })
    }

    /// A client for another address that shares the connections.
    pub(crate) fn at(&self, address: Address) -> Result<Self> {
        let secure = |base: &str| base.starts_with("https:");
        if secure(&address.base) != secure(&self.address.base) {
            return Self::new(address);
        }
        Ok(Self {
            client: self.client.clone(),
            address: Arc::new(address),
        })
    }

    /// A client of its own for another runtime. No I/O.
    pub(crate) fn elsewhere(&self) -> Result<Self> {
        Self::new(Address::clone(&self.address))
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a request and waits for the beginning of its answer.
    ///
    /// # Errors
    ///
    /// Any other answer than success, typed, with its code and request id; those of the transport.
    pub(crate) async fn send(&self, request: Request) -> Result<Answer> {
        let what = request.what;
        let response = match timeout(request.limit, self.sent(request)).await {
            Ok(sent) => sent.map_err(|e| error::transport(what, e))?,
            Err(_) => return Err(error::timed_out(what)),
        };
        let status = response.status();
        if status.is_success() {
            return Ok(Answer { what, response });
        }
        let headers = response.headers().clone();
        // A refusal that is cut is one all the same.
        let mut answer = Answer { what, response };
        let mut body = Vec::new();
        let rest = async {
            while let Ok(Some(part)) = answer.response.chunk().await {
                body.extend_from_slice(&part[..part.len().min(REFUSAL - body.len())]);
                if body.len() == REFUSAL {
                    break;
                }
            }
        };
        let _ = timeout(REST, rest).await;
        Err(error::answered(what, status, &headers, &body))
    }

    async fn sent(&self, request: Request) -> reqwest::Result<Response> {
        let url = format!("{}{}", self.address.base, request.target);
        let mut headers = self.address.headers.clone();
        headers.extend(request.headers);
        let mut pauses = AGAIN.iter();
        loop {
            let mut sent = self
                .client
                .request(request.method.clone(), &url)
                .headers(headers.clone());
            sent = match &request.content {
                Content::None => sent,
                Content::Json(body) => sent
                    .header(CONTENT_TYPE, "application/json")
                    .body(body.clone()),
                Content::Parts(kind, parts) => sent
                    .header(CONTENT_TYPE, kind.clone())
                    .body(Body::wrap(Parts::new(parts.clone()))),
            };
            match sent.send().await {
                Err(e) if error::is_refused(&e) => match pauses.next() {
                    Some(pause) => tokio::time::sleep(*pause).await,
                    None => return Err(e),
                },
                other => return other,
            }
        }
    }

    /// Sends a request and reads its answer as JSON.
    pub(crate) async fn json<T: DeserializeOwned>(&self, request: Request) -> Result<T> {
        let what = request.what;
        let body = self.whole(request).await?;
        serde_json::from_slice(&body).map_err(|e| error::garbled(what).because(e))
    }

    /// Sends a request and reads its answer, of at most [`ANSWER`] bytes.
    pub(crate) async fn whole(&self, request: Request) -> Result<Vec<u8>> {
        let (what, limit) = (request.what, request.limit);
        let whole = async {
            let mut answer = self.send(request).await?;
            let mut body = Vec::new();
            while let Some(part) = answer.next().await? {
                if body.len() + part.len() > ANSWER {
                    return Err(error::endless(what));
                }
                body.extend_from_slice(&part);
            }
            Ok(body)
        };
        match timeout(limit, whole).await {
            Ok(result) => result,
            Err(_) => Err(error::timed_out(what)),
        }
    }
}

impl Answer {
    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next part of the body. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        self.response
            .chunk()
            .await
            .map_err(|e| error::transport(self.what, e))
    }

    /// Reads what is left, in the background.
    ///
    /// The stock daemon must not write to a connection that was closed: it hands the signal that
    /// this brings it on to every command that it runs, which ends them. And one that was read to
    /// its end is used again.
    pub(crate) fn drain(mut self) {
        // Without a runtime the connection is gone with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
            let _ = timeout(DRAIN, rest).await;
        });
    }
}

/// Which certificates are believed: the system's. For plain HTTP, none.
fn tls_config(used: bool) -> Result<rustls::ClientConfig> {
    let bad = |e: rustls::Error| {
        Error::new(ErrorKind::Config, "the system's certificates can't be used").because(e)
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(bad)?;
    let config = if used {
        let verifier = rustls_platform_verifier::Verifier::new(provider).map_err(bad)?;
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
    } else {
        builder.with_root_certificates(rustls::RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}

/// What stays as it is in a path or a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Text as a part of a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// A body in parts whose length is known: a proxy in between may not take an unknown one.
struct Parts {
    parts: VecDeque<Bytes>,
    left: u64,
}

impl Parts {
    fn new(parts: Vec<Bytes>) -> Self {
        Self {
            left: parts.iter().map(|p| p.len() as u64).sum(),
            parts: parts.into_iter().filter(|p| !p.is_empty()).collect(),
        }
    }
}

impl HttpBody for Parts {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.parts.pop_front();
        self.left -= next.as_ref().map_or(0, |p| p.len() as u64);
        Poll::Ready(next.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
