//! A server that is not there, is another one, or answers badly.

use std::time::{Duration, Instant};

use sandbox_core::{ErrorKind, Retry, SandboxId, SandboxSpec};
use sandbox_opensandbox::{OpenSandbox, OpenSandboxConfig, ServerProxy};
use serde_json::json;

use crate::http::{Listener, Reply};
use crate::server::{self, ID, KEY};

#[tokio::test]
async fn nothing_at_the_address_is_unavailable_and_safe_to_repeat() {
    // Bound and closed again: nobody listens there.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let error = OpenSandbox::connect(OpenSandboxConfig::new(address.to_string()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(error.retry_advice(), Retry::Safe);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn something_else_at_the_address_is_told_from_a_server() {
    for reply in [
        Reply::status(200, "<html>Welcome to nginx!</html>"),
        Reply::json(200, &json!({"status": "on fire"})),
        Reply::json(200, &json!([])),
    ] {
        let listener = Listener::start(move |_, _| reply.clone()).await;
        let error = OpenSandbox::connect(server::config(&listener))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_key_not_sent_on() {
    let other = Listener::start(|_, _| Reply::empty()).await;
    let to = format!("http://{}/v1/sandboxes", other.address);
    let listener = server::start(move |request, _| {
        let list = request.line() == "GET /v1/sandboxes";
        list.then(|| Reply::status(302, "").header("Location", &to))
    })
    .await;
    let client = server::client(&listener).await;
    let error = client.list(&sandbox_core::Filter::all()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    assert!(other.seen().is_empty());
    assert!(!format!("{error:?}").contains(KEY));
}

#[tokio::test]
async fn a_wrong_key_names_the_variable_and_is_never_shown() {
    let refused = json!({"code": "INVALID_API_KEY", "message": "wrong"});
    let listener = server::start(move |request, _| {
        let asked = request.target.starts_with("/v1");
        asked.then(|| Reply::json(401, &refused).header("x-request-id", "r-1"))
    })
    .await;
    let client = server::client(&listener).await;
    let error = client.create(SandboxSpec::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert_eq!(error.context("code"), Some("INVALID_API_KEY"));
    assert_eq!(error.context("request_id"), Some("r-1"));
    let shown = format!("{error} {error:?} {client:?}");
    assert!(
        shown.contains("OPEN_SANDBOX_API_KEY") && !shown.contains(KEY),
        "{shown}"
    );
}

#[tokio::test]
async fn being_asked_to_wait_is_told_with_how_long() {
    for (status, kind) in [(429, ErrorKind::RateLimited), (503, ErrorKind::Unavailable)] {
        let listener = server::start(move |request, _| {
            let create = request.line() == "POST /v1/sandboxes";
            create.then(|| Reply::status(status, "busy").header("Retry-After", "7"))
        })
        .await;
        let client = server::client(&listener).await;
        let error = client.create(SandboxSpec::new()).await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert_eq!(error.retry_advice(), Retry::Safe);
        assert_eq!(error.context("retry_after_seconds"), Some("7"));
        assert_eq!(
            listener.seen_of("POST /v1/sandboxes").len(),
            1,
            "it was sent again"
        );
    }
}

#[tokio::test]
async fn endless_answers_end() {
    let listener = server::start(|request, _| {
        let list = request.line() == "GET /v1/sandboxes";
        list.then(|| Reply::Endless(vec![b' '; 1 << 16]))
    })
    .await;
    let client = server::client(&listener).await;
    let error = client.list(&sandbox_core::Filter::all()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
}

#[tokio::test]
async fn endless_pages_end() {
    let more = json!({"items": [server::object("Running")], "pagination": {"hasNextPage": true}});
    let listener = server::start(move |request, _| {
        (request.line() == "GET /v1/sandboxes").then(|| Reply::json(200, &more))
    })
    .await;
    let client = server::client(&listener).await;
    let error = client.list(&sandbox_core::Filter::all()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
}

#[tokio::test]
async fn an_endpoint_elsewhere_gets_no_key_and_a_strange_one_no_request() {
    let daemon = server::start(|_, _| None).await;
    let at = daemon.address;
    let listener = server::start(move |request, _| {
        let endpoint = request.target.contains("/endpoints/");
        endpoint.then(|| Reply::json(200, &json!({"endpoint": at.to_string()})))
    })
    .await;
    let config = server::config(&listener).use_server_proxy(ServerProxy::On);
    let provider = OpenSandbox::connect(config).await.unwrap();
    provider.execd(&SandboxId::new(ID)).await.unwrap();
    let asked = daemon.seen();
    assert!(!asked.is_empty());
    assert!(asked.iter().all(|r| !format!("{r:?}").contains(KEY)));

    for strange in [
        "169.254.169.254/latest",
        "u:p@127.0.0.1:1",
        "h:1/../x",
        "",
        "h:0",
    ] {
        let listener = server::start(move |request, _| {
            let endpoint = request.target.contains("/endpoints/");
            endpoint.then(|| Reply::json(200, &json!({"endpoint": strange})))
        })
        .await;
        let provider = OpenSandbox::connect(server::config(&listener))
            .await
            .unwrap();
        let error = provider
            .lifecycle()
            .endpoint(&SandboxId::new(ID), 1, false)
            .await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Protocol, "{strange}");
    }
}

#[tokio::test]
async fn the_daemons_own_address_is_taken_where_it_answers_as_the_daemon() {
    let listener = server::start(|_, _| None).await;
    let sandbox = server::sandbox(&listener).await;
    sandbox.execute("true").await.unwrap();
    assert!(
        listener
            .seen()
            .iter()
            .all(|r| !r.target.starts_with("/proxy/"))
    );

    // Something else is at the bare address.
    let listener =
        server::start(
            |request, own| match request.target.strip_prefix("/proxy/44772") {
                Some(rest) => {
                    let inner = crate::http::Request {
                        target: rest.to_owned(),
                        ..request.clone()
                    };
                    Some(server::usual(&inner, own))
                }
                None if request.target == "/ping" => Some(Reply::status(404, "404 page not found")),
                None => None,
            },
        )
        .await;
    let sandbox = server::sandbox(&listener).await;
    sandbox.execute("true").await.unwrap();
    assert!(listener.seen_of("POST /command").is_empty());
    assert!(!listener.seen_of("POST /proxy/44772/command").is_empty());
}

#[tokio::test]
async fn the_servers_way_is_taken_where_the_direct_one_fails() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = free.local_addr().unwrap();
    drop(free);
    let listener = server::start(move |request, own| {
        let proxy = "/v1/sandboxes/sb-1/proxy/44772";
        if let Some(rest) = request.target.strip_prefix(proxy) {
            let inner = crate::http::Request {
                target: rest.to_owned(),
                ..request.clone()
            };
            return Some(server::usual(&inner, own));
        }
        request.target.contains("/endpoints/").then(|| {
            let endpoint = if request.target.contains("use_server_proxy=true") {
                format!("{own}{proxy}")
            } else {
                dead.to_string()
            };
            Reply::json(200, &json!({ "endpoint": endpoint }))
        })
    })
    .await;
    let sandbox = server::sandbox(&listener).await;
    assert!(sandbox.execute("true").await.unwrap().success());
    let through = listener.seen_of("POST /v1/sandboxes/sb-1/proxy/44772/command");
    // Through the server it is the server that the key goes to.
    assert!(
        through
            .iter()
            .all(|r| r.headers["open-sandbox-api-key"] == KEY)
    );
    // And none over a connection that it may be closing.
    assert!(through.iter().all(|r| r.headers["connection"] == "close"));

    let config = server::config(&listener).use_server_proxy(ServerProxy::Off);
    let provider = OpenSandbox::connect(config).await.unwrap();
    let error = provider.execd(&SandboxId::new(ID)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("use_server_proxy"), "{error}");
}

#[tokio::test]
async fn a_paused_sandbox_is_told_from_a_slow_one() {
    let paused = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let now = paused.clone();
    let listener = server::start(move |request, _| {
        if !now.load(std::sync::atomic::Ordering::SeqCst) {
            return None;
        }
        match request.line().as_str() {
            "GET /v1/sandboxes/sb-1" => Some(Reply::json(200, &server::object("Paused"))),
            _ => Some(Reply::Silence),
        }
    })
    .await;
    let sandbox = server::sandbox(&listener).await;
    paused.store(true, std::sync::atomic::Ordering::SeqCst);
    let started = Instant::now();
    let error = sandbox.execute("true").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SandboxPaused, "{error}");
    assert!(
        started.elapsed() < Duration::from_secs(25),
        "{:?}",
        started.elapsed()
    );
    // One that goes on may find the request then: it is not killed for it.
    assert!(listener.seen_of("DELETE /v1/sandboxes/sb-1").is_empty());
}
