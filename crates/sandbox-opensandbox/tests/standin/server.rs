//! A server with one sandbox and its daemon, behind one address, that does what it should unless a
//! test says otherwise.

use std::net::SocketAddr;
use std::time::Duration;

use sandbox_core::{Client, Sandbox, SandboxId};
use sandbox_opensandbox::{OpenSandbox, OpenSandboxConfig};
use serde_json::{Value, json};

use crate::http::{End, Listener, Reply, Request};

/// The sandbox that is there.
pub(crate) const ID: &str = "sb-1";

/// The key that tests use.
pub(crate) const KEY: &str = "k3y-of-a-test";

/// The end of a command that exits with 0.
pub(crate) fn complete() -> Value {
    json!({"type": "execution_complete", "execution_time": 1})
}

pub(crate) fn init() -> Value {
    json!({"type": "init", "text": "e1"})
}

pub(crate) fn object(state: &str) -> Value {
    json!({
        "id": ID,
        "status": {"state": state},
        "metadata": {"rs.sandbox/managed": "1"},
        "createdAt": "2026-11-29T13:07:17Z",
    })
}

/// What the server and the daemon do where a test does not say.
pub(crate) fn usual(request: &Request, own: SocketAddr) -> Reply {
    let path = request.target.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("GET", "/health") => Reply::json(200, &json!({"status": "healthy"})),
        ("GET", "/v1/sandboxes") => Reply::json(200, &json!({"items": []})),
        ("POST", "/v1/sandboxes") => Reply::json(202, &object("Running")),
        ("GET", "/v1/sandboxes/sb-1") => Reply::json(200, &object("Running")),
        ("DELETE", "/v1/sandboxes/sb-1") => Reply::Whole(204, Vec::new(), Vec::new()),
        ("GET", "/v1/sandboxes/sb-1/endpoints/44772") => {
            Reply::json(200, &json!({"endpoint": format!("{own}/proxy/44772")}))
        }
        ("GET", "/ping" | "/files/download") | ("DELETE", "/files") => Reply::empty(),
        ("POST", "/command") if is_setup(request) => prepared(),
        ("POST", "/command") => Reply::events(&[init(), complete()], End::Clean),
        ("GET", "/files/info") => infos(request, 0),
        _ => Reply::status(404, "404 page not found"),
    }
}

/// Whether a command is the preparation of the sandbox.
pub(crate) fn is_setup(request: &Request) -> bool {
    request.text().contains("/opt/opensandbox /var/lib")
}

/// Whether a command is the killing of another's process tree.
pub(crate) fn is_kill(request: &Request) -> bool {
    request.text().contains("kill -STOP")
}

fn prepared() -> Reply {
    let lines = [
        "me 0", "dir /d", "uid ", "gid ", "home ", "work /w", "floor 1",
    ];
    let mut events = vec![init()];
    events.extend(lines.map(|line| json!({"type": "stdout", "text": line})));
    events.push(complete());
    Reply::events(&events, End::Clean)
}

/// Each asked path is a file of this size.
pub(crate) fn infos(request: &Request, size: u64) -> Reply {
    let query = request.target.split('?').nth(1).unwrap_or_default();
    let infos: serde_json::Map<String, Value> = query
        .split('&')
        .filter_map(|pair| pair.strip_prefix("path="))
        .map(|path| path.replace("%2F", "/"))
        .map(|path| {
            (
                path.clone(),
                json!({"path": path, "type": "file", "size": size}),
            )
        })
        .collect();
    Reply::json(200, &Value::Object(infos))
}

/// Starts it; `other` says what differs from the usual.
pub(crate) async fn start(
    other: impl Fn(&Request, SocketAddr) -> Option<Reply> + Send + Sync + 'static,
) -> Listener {
    Listener::start(move |request, own| other(request, own).unwrap_or_else(|| usual(request, own)))
        .await
}

pub(crate) fn config(listener: &Listener) -> OpenSandboxConfig {
    OpenSandboxConfig::new(listener.address.to_string())
        .image("python:3.12")
        .api_key(KEY)
        .ready_timeout(Duration::from_secs(2))
}

pub(crate) async fn client(listener: &Listener) -> Client {
    Client::new(OpenSandbox::connect(config(listener)).await.unwrap())
}

/// The sandbox that is there.
pub(crate) async fn sandbox(listener: &Listener) -> Sandbox {
    let client = client(listener).await;
    client.connect(&SandboxId::new(ID)).await.unwrap()
}
