//! The lifecycle API of a server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use reqwest::Method;
use reqwest::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};
use sandbox_core::{Error, ErrorKind, Result, SandboxId};
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::config::OpenSandboxConfig;
use crate::error;
use crate::http::{Address, Content, Http, Request, encoded};
use crate::model::{CreateRequest, EndpointObject, Page, Renewed, SandboxObject};
use crate::origin::{Endpoint, Origin};
use crate::secret::Secret;
use crate::skew::Skew;
use crate::time;

/// How long the server may take for what it does at once.
const QUICK: Duration = Duration::from_secs(20);

/// How long it may take to end, pause or resume a sandbox.
const SLOW: Duration = Duration::from_mins(1);

/// Pause before a sandbox that could not be ended is ended again.
const AGAIN: Duration = Duration::from_millis(200);

/// Sandboxes a page: the most that the server gives.
const PAGE_SIZE: usize = 200;

/// Pages at most: what a server can make this read.
const PAGES: usize = 100;

/// The header that the key goes in.
const KEY: HeaderName = HeaderName::from_static("open-sandbox-api-key");

/// The lifecycle API of one server. Cheap to clone. Belongs to the runtime that uses it first.
///
/// What a sandbox does inside is [`Execd`](crate::Execd)'s.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    http: Http,
    origin: Origin,
}

/// A port of a sandbox, and what goes with each request to it.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) endpoint: Endpoint,
    pub(crate) headers: HeaderMap,
}

impl Port {
    pub(crate) fn address(&self) -> Address {
        Address {
            base: self.endpoint.base(),
            headers: self.headers.clone(),
        }
    }
}

impl Lifecycle {
    /// A client of the server that the configuration names. No I/O.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] for an address or a key that can't be used.
    pub fn new(config: &OpenSandboxConfig) -> Result<Self> {
        let origin = config.origin()?;
        let mut headers = HeaderMap::new();
        if let Some(key) = &config.key {
            headers.insert(KEY, secret_header(key, "the key")?);
        }
        let address = Address {
            base: origin.to_string(),
            headers,
        };
        Ok(Self {
            http: Http::new(address)?,
            origin,
        })
    }

    /// The same for another runtime. No I/O.
    pub(crate) fn elsewhere(&self) -> Result<Self> {
        Ok(Self {
            http: self.http.elsewhere()?,
            origin: self.origin.clone(),
        })
    }

    pub(crate) fn http(&self) -> &Http {
        &self.http
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Whether a server answers at the address, without asking for a key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] where nothing answers, [`ErrorKind::Protocol`] where something
    /// else does, [`ErrorKind::Timeout`].
    pub async fn health(&self) -> Result<()> {
        let request = Request::new("ask the server's health", Method::GET, "/health", QUICK);
        let answer: Value = self.http.json(request).await.map_err(|e| self.place(e))?;
        match answer["status"].as_str() {
            Some("healthy") => Ok(()),
            _ => Err(self.place(error::garbled("ask the server's health"))),
        }
    }

    /// Makes a sandbox; the server answers when it runs.
    pub(crate) async fn create(
        &self,
        request: &CreateRequest,
        limit: Duration,
    ) -> Result<SandboxObject> {
        let create = Request::new("create the sandbox", Method::POST, "/v1/sandboxes", limit)
            .content(Content::json(request)?);
        self.http.json(create).await.map_err(|e| self.place(e))
    }

    /// The sandbox as it is now.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SandboxGone`], [`ErrorKind::Unauthorized`], those of the transport.
    pub async fn get(&self, id: &SandboxId) -> Result<SandboxObject> {
        Ok(self.get_with_clock(id).await?.0)
    }

    /// The sandbox, and what the server's clock said then.
    async fn get_with_clock(&self, id: &SandboxId) -> Result<(SandboxObject, Option<SystemTime>)> {
        let what = "look at the sandbox";
        let request = Request::new(what, Method::GET, target(id, "")?, QUICK);
        let look = async {
            let mut answer = self.http.send(request).await?;
            let date = answer
                .header("date")
                .and_then(|d| httpdate::parse_http_date(d).ok());
            let mut body = Vec::new();
            while let Some(part) = answer.next().await? {
                if body.len() + part.len() > crate::http::ANSWER {
                    return Err(error::endless(what));
                }
                body.extend_from_slice(&part);
            }
            let object =
                serde_json::from_slice(&body).map_err(|e| error::garbled(what).because(e))?;
            Ok((object, date))
        };
        match tokio::time::timeout(QUICK, look).await {
            Ok(result) => result.map_err(|e| self.place(e)),
            Err(_) => Err(self.place(error::timed_out(what))),
        }
    }

    /// The sandboxes that have all the labels, each once, whatever moves between two pages.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unauthorized`], those of the transport.
    pub async fn list(&self, labels: &BTreeMap<String, String>) -> Result<Vec<SandboxObject>> {
        let mut found: Vec<SandboxObject> = Vec::new();
        for page in 1..=PAGES {
            let target = list_target(labels, page);
            let request = Request::new("list sandboxes", Method::GET, target, QUICK);
            let answer: Page = self.http.json(request).await.map_err(|e| self.place(e))?;
            for item in answer.items {
                if !found.iter().any(|other| other.id == item.id) {
                    found.push(item);
                }
            }
            if !answer.pagination.has_next_page {
                return Ok(found);
            }
        }
        Err(self.place(error::endless("list sandboxes")))
    }

    /// Ends the sandbox. One that is gone already is a success.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unauthorized`], those of the transport.
    pub async fn kill(&self, id: &SandboxId) -> Result<()> {
        let started = Instant::now();
        loop {
            let failed = match self.act(id, "end the sandbox", Method::DELETE, "").await {
                Err(e) if e.kind() == ErrorKind::SandboxGone => return Ok(()),
                Err(e) => e,
                Ok(()) => return Ok(()),
            };
            // Somebody else is just removing it, most likely: then it is gone in a moment.
            if failed
                .context("code")
                .is_none_or(|c| !c.ends_with("::SANDBOX_DELETE_FAILED"))
                || started.elapsed() > SLOW
            {
                return Err(failed);
            }
            sleep(AGAIN).await;
        }
    }

    /// Freezes all processes of the sandbox. Its lifetime runs on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SandboxGone`], [`ErrorKind::Conflict`] if it does not run,
    /// [`ErrorKind::Unsupported`] where the runtime can't.
    pub async fn pause(&self, id: &SandboxId) -> Result<()> {
        self.act(id, "pause the sandbox", Method::POST, "/pause")
            .await
    }

    /// Ends a pause.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause).
    pub async fn resume(&self, id: &SandboxId) -> Result<()> {
        self.act(id, "resume the sandbox", Method::POST, "/resume")
            .await
    }

    async fn act(
        &self,
        id: &SandboxId,
        what: &'static str,
        method: Method,
        action: &str,
    ) -> Result<()> {
        let request = Request::new(what, method, target(id, action)?, SLOW);
        let done = self.http.whole(request).await;
        done.map(drop).map_err(|e| self.place(e))
    }

    /// Sets the remaining lifetime, counted from now. The server takes a point in time: where its
    /// clock and this one differ, its own counts. Gives the end by this machine's clock.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SandboxGone`], [`ErrorKind::Conflict`] for a sandbox without an end.
    pub async fn renew(&self, id: &SandboxId, lifetime: Duration) -> Result<Option<SystemTime>> {
        let (_, date) = self.get_with_clock(id).await?;
        let skew = Skew::of(date);
        let too_far = || Error::new(ErrorKind::InvalidArgument, "the lifetime is too long");
        let end = skew.to_server(
            SystemTime::now()
                .checked_add(lifetime)
                .ok_or_else(too_far)?,
        );
        let body = serde_json::json!({ "expiresAt": time::format(end) });
        let request = Request::new(
            "renew the sandbox",
            Method::POST,
            target(id, "/renew-expiration")?,
            QUICK,
        )
        .content(Content::json(&body)?);
        let renewed: Renewed = self.http.json(request).await.map_err(|e| self.place(e))?;
        Ok(renewed.expires_at.map(|at| skew.to_here(at)))
    }

    /// When the sandbox ends, by this machine's clock; `None` for never.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn expires_at(&self, id: &SandboxId) -> Result<Option<SystemTime>> {
        let (object, date) = self.get_with_clock(id).await?;
        Ok(object.expires_at.map(|at| Skew::of(date).to_here(at)))
    }

    /// Sets labels, and removes those that are `None`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SandboxGone`], [`ErrorKind::InvalidArgument`] for a label that can't be.
    pub async fn patch_metadata(
        &self,
        id: &SandboxId,
        labels: &BTreeMap<String, Option<String>>,
    ) -> Result<SandboxObject> {
        let patch: Map<String, Value> = labels
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(value.clone())))
            .collect();
        let request = Request::new(
            "set the sandbox's labels",
            Method::PATCH,
            target(id, "/metadata")?,
            QUICK,
        )
        .content(Content::json(&patch)?);
        self.http.json(request).await.map_err(|e| self.place(e))
    }

    /// Where a port of a sandbox can be reached, as a URL without a slash at the end: directly, or
    /// through the server. Whether something listens there is not looked at.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SandboxGone`], [`ErrorKind::Protocol`] for an endpoint that can't be used.
    pub async fn endpoint(&self, id: &SandboxId, port: u16, proxied: bool) -> Result<String> {
        Ok(self.port(id, port, proxied).await?.endpoint.base())
    }

    pub(crate) async fn port(&self, id: &SandboxId, port: u16, proxied: bool) -> Result<Port> {
        let query = if proxied {
            "?use_server_proxy=true"
        } else {
            ""
        };
        let target = target(id, &format!("/endpoints/{port}{query}"))?;
        let request = Request::new("find the sandbox's port", Method::GET, target, QUICK);
        let found: EndpointObject = self.http.json(request).await.map_err(|e| self.place(e))?;
        let endpoint = Endpoint::parse(&found.endpoint, self.origin.is_tls())?;
        let mut headers = HeaderMap::new();
        for (name, value) in &found.headers {
            let pair = HeaderName::try_from(name)
                .ok()
                .zip(HeaderValue::try_from(value).ok());
            let (name, mut value) =
                pair.ok_or_else(|| error::garbled("find the sandbox's port"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.remove(KEY);
        if proxied {
            // The server may close a connection behind an answer that it passed on, and what is
            // sent over it next is lost: a command can't be sent again.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        // Through the server, the key goes to the server, and to no other.
        if proxied && endpoint.origin == self.origin {
            headers.extend(self.http.address().headers.clone());
        }
        Ok(Port { endpoint, headers })
    }

    /// Which server an error is of.
    fn place(&self, error: Error) -> Error {
        error.with("server", &self.origin)
    }
}

/// The path of a sandbox. An id becomes a part of it, so it must be a plain word.
fn target(id: &SandboxId, rest: &str) -> Result<String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    let id = id.as_str();
    if id.is_empty() || id.len() > 128 || id.starts_with('.') || !id.bytes().all(plain) {
        return Err(error::gone());
    }
    Ok(format!("/v1/sandboxes/{id}{rest}"))
}

/// The filter is one parameter that holds a query of its own: what it holds is encoded twice.
fn list_target(labels: &BTreeMap<String, String>, page: usize) -> String {
    let filter: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
        .collect();
    let mut target = format!("/v1/sandboxes?page={page}&pageSize={PAGE_SIZE}");
    if !filter.is_empty() {
        target = format!("{target}&metadata={}", encoded(&filter.join("&")));
    }
    target
}

/// A secret as the value of a header.
pub(crate) fn secret_header(secret: &Secret, what: &'static str) -> Result<HeaderValue> {
    let mut value = HeaderValue::try_from(secret.reveal()).map_err(|_| {
        Error::new(
            ErrorKind::Config,
            format!("{what} holds characters that can't be sent"),
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_plain_word_of_a_path() {
        assert!(target(&SandboxId::new("795896eb-aaf0"), "/pause").is_ok());
        for bad in ["", "..", "a/b", "a?b", "a%2fb", ".", &"a".repeat(200)] {
            let e = target(&SandboxId::new(bad), "").unwrap_err();
            assert_eq!(e.kind(), ErrorKind::SandboxGone, "{bad}");
        }
    }

    #[test]
    fn a_filter_is_encoded_twice() {
        let labels = BTreeMap::from([("example.com/app".to_owned(), "x_1".to_owned())]);
        assert_eq!(
            list_target(&labels, 2),
            "/v1/sandboxes?page=2&pageSize=200&metadata=example.com%252Fapp%3Dx_1"
        );
        assert_eq!(
            list_target(&BTreeMap::new(), 1),
            "/v1/sandboxes?page=1&pageSize=200"
        );
    }
}
