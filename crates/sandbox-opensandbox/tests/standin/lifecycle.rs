//! Making and ending sandboxes when something goes wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use sandbox_core::SandboxState::{NotRunning, Paused, Running};
use sandbox_core::{Client, ErrorKind, SandboxId, SandboxSpec};
use sandbox_opensandbox::{OpenSandbox, OpenSandboxConfig};
use serde_json::{Value, json};

use crate::http::Reply;
use crate::server::{self, ID};

#[tokio::test]
async fn a_sandbox_whose_answer_was_lost_is_found_by_its_label() {
    let asked = Arc::new(AtomicUsize::new(0));
    let listener = server::start(move |request, _| match request.line().as_str() {
        "POST /v1/sandboxes" => Some(Reply::HangUp),
        // It takes a moment to appear.
        "GET /v1/sandboxes" if asked.fetch_add(1, Ordering::SeqCst) > 0 => {
            assert!(
                request.target.contains("rs.sandbox%252Ftoken%3D"),
                "{request:?}"
            );
            Some(Reply::json(
                200,
                &json!({"items": [server::object("Running")]}),
            ))
        }
        _ => None,
    })
    .await;
    let client = server::client(&listener).await;
    let sandbox = client.create(SandboxSpec::new()).await.unwrap();
    assert_eq!(sandbox.id().as_str(), ID);
    assert_eq!(
        listener.seen_of("POST /v1/sandboxes").len(),
        1,
        "it was sent again"
    );
    sandbox.kill().await.unwrap();
}

#[tokio::test]
async fn a_creation_that_is_dropped_or_fails_leaves_nothing() {
    // Dropped while the server works on it.
    let listener =
        server::start(|request, _| (request.line() == "GET /ping").then_some(Reply::Silence)).await;
    let client = server::client(&listener).await;
    tokio::select! {
        _ = client.create(SandboxSpec::new()) => panic!("its daemon does not answer"),
        _ = listener.wait_for("GET /ping") => {}
    }
    listener.wait_for("DELETE /v1/sandboxes/sb-1").await;

    // Its process 1 is not in the image.
    let listener = server::start(|request, _| match request.line().as_str() {
        "GET /ping" => Some(Reply::HangUp),
        "GET /v1/sandboxes/sb-1" => Some(Reply::json(200, &server::object("Failed"))),
        _ => None,
    })
    .await;
    let client = server::client(&listener).await;
    let error = client.create(SandboxSpec::new()).await.unwrap_err();
    assert!(error.message().contains("entrypoint"), "{error}");
    assert_eq!(error.context("image"), Some("python:3.12"));
    listener.wait_for("DELETE /v1/sandboxes/sb-1").await;
}

#[tokio::test]
async fn an_image_that_is_not_there_is_named() {
    let refused = json!({"code": "DOCKER::SANDBOX_IMAGE_PULL_FAILED", "message": "no such image"});
    let listener = server::start(move |request, _| {
        (request.line() == "POST /v1/sandboxes").then(|| Reply::json(500, &refused))
    })
    .await;
    let client = server::client(&listener).await;
    let error = client.create(SandboxSpec::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ImageNotFound);
    assert_eq!(error.context("image"), Some("python:3.12"));
}

#[tokio::test]
async fn what_the_server_can_t_honour_is_unsupported_by_name() {
    for (message, field) in [
        (
            "egress.image must be configured when networkPolicy is provided.",
            "network",
        ),
        (
            "networkPolicy is not supported when docker network_mode='host'.",
            "network",
        ),
        (
            "Host path '/x' is not under any allowed prefix. Allowed prefixes: []",
            "mounts",
        ),
    ] {
        let refused = json!({"code": "SANDBOX::INVALID_PARAMETER", "message": message});
        let listener = server::start(move |request, _| {
            (request.line() == "POST /v1/sandboxes").then(|| Reply::json(400, &refused))
        })
        .await;
        let client = server::client(&listener).await;
        let spec = SandboxSpec::new()
            .network(sandbox_core::Network::None)
            .mount(sandbox_core::Mount::read_only("/x", "/y"));
        let error = client.create(spec).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert_eq!(error.context("field"), Some(field), "{error}");
    }
}

#[tokio::test]
async fn an_expired_sandbox_is_gone_and_a_failed_one_too() {
    let gone = json!({"code": "DOCKER::SANDBOX_NOT_FOUND", "message": "not found"});
    for (status, body) in [(404, gone), (200, server::object("Terminated"))] {
        let listener = server::start(move |request, _| {
            (request.line() == "GET /v1/sandboxes/sb-1").then(|| Reply::json(status, &body))
        })
        .await;
        let client = server::client(&listener).await;
        let error = client.connect(&SandboxId::new(ID)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SandboxGone);
    }
}

#[tokio::test]
async fn ending_one_that_somebody_else_is_ending_is_a_success() {
    let tries = Arc::new(AtomicUsize::new(0));
    let busy = json!({"code": "DOCKER::SANDBOX_DELETE_FAILED", "message": "in progress"});
    let gone = json!({"code": "DOCKER::SANDBOX_NOT_FOUND", "message": "not found"});
    let listener = server::start(move |request, _| {
        (request.line() == "DELETE /v1/sandboxes/sb-1").then(|| {
            match tries.fetch_add(1, Ordering::SeqCst) {
                0 => Reply::json(500, &busy),
                _ => Reply::json(404, &gone),
            }
        })
    })
    .await;
    server::sandbox(&listener).await.kill().await.unwrap();
}

#[tokio::test]
async fn renewing_goes_by_the_servers_clock() {
    let ahead = Duration::from_hours(3);
    let listener = server::start(move |request, _| match request.line().as_str() {
        "GET /v1/sandboxes/sb-1" => {
            let date = httpdate::fmt_http_date(SystemTime::now() + ahead);
            Some(Reply::json(200, &server::object("Running")).header("Date", &date))
        }
        "POST /v1/sandboxes/sb-1/renew-expiration" => Some(Reply::json(200, &request.json())),
        _ => None,
    })
    .await;
    let provider = OpenSandbox::connect(server::config(&listener))
        .await
        .unwrap();
    let lifetime = Duration::from_mins(10);
    let end = provider
        .lifecycle()
        .renew(&SandboxId::new(ID), lifetime)
        .await
        .unwrap();
    // By this clock it is ten minutes from now all the same.
    let left = end.unwrap().duration_since(SystemTime::now()).unwrap();
    assert!(left.abs_diff(lifetime) < Duration::from_mins(1), "{left:?}");
    let sent = listener
        .seen_of("POST /v1/sandboxes/sb-1/renew-expiration")
        .pop()
        .unwrap();
    let sent = sent.json()["expiresAt"].as_str().unwrap().to_owned();
    let hour = |at: SystemTime| httpdate::fmt_http_date(at)[17..19].to_owned();
    let earliest = SystemTime::now() + ahead + lifetime - Duration::from_mins(1);
    let latest = SystemTime::now() + ahead + lifetime;
    let hours = [hour(earliest), hour(latest)];
    assert!(
        hours.contains(&sent[11..13].to_owned()),
        "{sent} is not at {hours:?}"
    );
}

#[tokio::test]
async fn labels_of_ours_are_not_shown_and_the_state_is_told() {
    let item = |id: &str, state: &str| -> Value {
        json!({
            "id": id,
            "status": {"state": state},
            "metadata": {"rs.sandbox/managed": "1", "rs.sandbox/token": "t", "team": "a"},
        })
    };
    let items = json!({"items": [
        item("a", "Running"), item("b", "Paused"), item("c", "Failed"), item("a", "Running"),
    ]});
    let listener = server::start(move |request, _| match request.line().as_str() {
        "GET /v1/sandboxes" => Some(Reply::json(200, &items)),
        "DELETE /v1/sandboxes/c" => Some(Reply::Whole(204, Vec::new(), Vec::new())),
        _ => None,
    })
    .await;
    let client = server::client(&listener).await;
    let found = client.list(&sandbox_core::Filter::all()).await.unwrap();
    let states: Vec<_> = found.iter().map(|i| (i.id.as_str(), i.state)).collect();
    assert_eq!(states, [("a", Running), ("b", Paused), ("c", NotRunning)]);
    assert!(
        found
            .iter()
            .all(|i| i.labels.len() == 1 && i.labels["team"] == "a")
    );

    assert_eq!(client.gc().await.unwrap(), [SandboxId::new("c")]);
    assert_eq!(listener.seen_of("DELETE /v1/sandboxes/c").len(), 1);
}

#[tokio::test]
async fn a_sandbox_this_client_paused_gets_no_command() {
    let paused = Arc::new(AtomicBool::new(false));
    let state = paused.clone();
    let listener = server::start(move |request, _| match request.line().as_str() {
        "POST /v1/sandboxes/sb-1/pause" => {
            state.store(true, Ordering::SeqCst);
            Some(Reply::empty())
        }
        "POST /v1/sandboxes/sb-1/resume" => {
            state.store(false, Ordering::SeqCst);
            Some(Reply::empty())
        }
        "GET /v1/sandboxes/sb-1" if state.load(Ordering::SeqCst) => {
            Some(Reply::json(200, &server::object("Paused")))
        }
        _ => None,
    })
    .await;
    let sandbox = server::sandbox(&listener).await;
    sandbox.pause().await.unwrap();
    let before = listener.seen_of("POST /command").len();
    let error = sandbox.execute("true").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SandboxPaused);
    assert_eq!(
        listener.seen_of("POST /command").len(),
        before,
        "it was sent all the same"
    );
    sandbox.resume().await.unwrap();
    assert!(sandbox.execute("true").await.unwrap().success());
}

#[tokio::test]
async fn risks_are_warnings_and_none_holds_the_key() {
    let listener = server::start(|_, _| None).await;
    let sandbox = server::sandbox(&listener).await;
    assert_eq!(sandbox.warnings(), [] as [String; 0]);
    let config = OpenSandboxConfig::new(listener.address.to_string());
    let client = Client::new(OpenSandbox::connect(config).await.unwrap());
    let sandbox = client.connect(&SandboxId::new(ID)).await.unwrap();
    assert!(sandbox.warnings()[0].contains("OPEN_SANDBOX_API_KEY"));
}
