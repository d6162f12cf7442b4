//! HTTP on the loopback.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{Conversation, Reply, Script, Wire};

/// The largest request read: a conversation with a long script in it is some 100 KiB.
const REQUEST_LIMIT: usize = 64 << 20;

/// A request as it came, for asserting on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The path, without the query.
    pub path: String,
    /// The credential: of the header `authorization` or `x-api-key`, or of the query `key`.
    pub key: Option<String>,
    /// The body.
    pub body: Value,
}

/// A stand-in for one API of a language model. Dropping it ends it.
#[derive(Debug)]
pub struct ChatServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    task: JoinHandle<()>,
}

struct State {
    wire: Wire,
    script: Mutex<Box<dyn Script>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl ChatServer {
    /// Starts a stand-in on a free port of the loopback.
    ///
    /// # Errors
    ///
    /// When no port can be listened on.
    pub async fn start(wire: Wire, script: impl Script) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let requests = Arc::new(Mutex::new(Vec::new()));
        let state = Arc::new(State {
            wire,
            script: Mutex::new(Box::new(script)),
            requests: requests.clone(),
        });
        let task = tokio::spawn(async move {
            // One connection a task; they end with their clients.
            while let Ok((stream, _)) = listener.accept().await {
                let state = state.clone();
                tokio::spawn(async move {
                    let service = service_fn(|request| answer(&state, request));
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(Self {
            address,
            requests,
            task,
        })
    }

    /// Where it listens, as a client's base URL.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.requests).clone()
    }
}

impl Drop for ChatServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    state: &State,
    request: hyper::Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let header = |name: &str| request.headers().get(name).and_then(|v| v.to_str().ok());
    let key = header("authorization")
        .map(|v| v.trim_start_matches("Bearer ").to_owned())
        .or_else(|| header("x-api-key").map(str::to_owned))
        .or_else(|| {
            let query = request.uri().query()?;
            query
                .split('&')
                .find_map(|p| p.strip_prefix("key="))
                .map(str::to_owned)
        });
    if !state.wire.serves(&path) {
        return Ok(refuse(StatusCode::NOT_FOUND, "no such route on this wire"));
    }
    let Ok(body) = Limited::new(request.into_body(), REQUEST_LIMIT)
        .collect()
        .await
    else {
        return Ok(refuse(StatusCode::BAD_REQUEST, "the body can't be read"));
    };
    let Ok(body) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return Ok(refuse(StatusCode::BAD_REQUEST, "the body is no JSON"));
    };
    let conversation = state.wire.read(&path, &body);
    let n = {
        let mut requests = lock(&state.requests);
        requests.push(Request { path, key, body });
        requests.len()
    };
    Ok(match conversation {
        None => refuse(
            StatusCode::BAD_REQUEST,
            "the request does not have this wire's form",
        ),
        Some(conversation) => say(state, &conversation, n),
    })
}

fn say(state: &State, conversation: &Conversation, n: usize) -> Response<Full<Bytes>> {
    let reply = lock(&state.script).reply(conversation);
    let body = state.wire.write(&conversation.model, &reply, n);
    let mut response = Response::new(Full::new(Bytes::from(body)));
    response.headers_mut().insert(
        CONTENT_TYPE,
        hyper::header::HeaderValue::from_static("application/json"),
    );
    if let Reply::Status(code, wait) = reply {
        *response.status_mut() =
            StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some(seconds) = wait {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
    }
    response
}

fn refuse(status: StatusCode, why: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(why.as_bytes())));
    *response.status_mut() = status;
    response
}

/// What was being done under the lock is one push or one reply: a panic there breaks nothing.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
