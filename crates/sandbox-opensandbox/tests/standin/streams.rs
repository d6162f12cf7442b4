//! A command whose stream of events is not as it should be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sandbox_core::{Command, ErrorKind, Status};
use serde_json::{Value, json};

use crate::http::{End, Listener, Reply, Request};
use crate::server::{self, complete, init, is_kill, is_setup};

/// A server whose daemon answers commands with this.
async fn answering(reply: Reply) -> Listener {
    server::start(move |request, _| is_users(request).then(|| reply.clone())).await
}

/// Whether it is a command of the user.
fn is_users(request: &Request) -> bool {
    request.line() == "POST /command" && !is_setup(request) && !is_kill(request)
}

async fn status_of(listener: &Listener) -> Status {
    let sandbox = server::sandbox(listener).await;
    sandbox.execute("true").await.unwrap().status
}

async fn refusal_of(listener: &Listener) -> ErrorKind {
    let sandbox = server::sandbox(listener).await;
    sandbox.execute("true").await.unwrap_err().kind()
}

#[tokio::test]
async fn an_empty_stream_is_an_error_and_the_command_is_sent_once() {
    let listener = answering(Reply::Parts(Vec::new(), End::Clean)).await;
    assert_eq!(refusal_of(&listener).await, ErrorKind::Protocol);
    let sent = listener.seen();
    assert_eq!(sent.iter().filter(|r| is_users(r)).count(), 1);
}

#[tokio::test]
async fn a_stream_without_an_end_is_lost_and_never_a_success() {
    for end in [End::Clean, End::Cut] {
        let listener = answering(Reply::events(&[init()], end)).await;
        let status = status_of(&listener).await;
        assert!(matches!(status, Status::Lost(_)), "{status}");
    }
}

#[tokio::test]
async fn the_end_of_a_cut_stream_is_asked_for() {
    for (code, words, wanted) in [
        (0, None, Status::Exited(0)),
        (7, Some("exit status 7"), Status::Exited(7)),
        (-1, Some("signal: killed"), Status::Signaled(9)),
    ] {
        let looks = Arc::new(AtomicUsize::new(0));
        let listener = server::start(move |request, _| {
            if is_users(request) {
                return Some(Reply::events(&[init()], End::Cut));
            }
            (request.line() == "GET /command/status/e1").then(|| {
                // At first it still runs.
                let running = looks.fetch_add(1, Ordering::SeqCst) < 2;
                let ended = json!({"running": false, "exit_code": code, "error": words});
                Reply::json(
                    200,
                    &if running {
                        json!({"running": true})
                    } else {
                        ended
                    },
                )
            })
        })
        .await;
        assert_eq!(status_of(&listener).await, wanted);
    }
}

#[tokio::test]
async fn the_first_end_counts_and_nothing_is_waited_for_after_it() {
    let events = [
        init(),
        json!({"type": "error", "error": {
            "ename": "CommandExecError", "evalue": "3", "traceback": ["exit status 3"]
        }}),
        complete(),
    ];
    let listener = answering(Reply::events(&events, End::Hold)).await;
    assert_eq!(status_of(&listener).await, Status::Exited(3));
}

#[tokio::test]
async fn a_cut_after_the_end_loses_nothing() {
    let listener = answering(Reply::events(&[init(), complete()], End::Cut)).await;
    assert_eq!(status_of(&listener).await, Status::Exited(0));
}

#[tokio::test]
async fn what_is_not_known_is_passed_over() {
    let events = [
        init(),
        json!({"type": "ping", "text": "pong"}),
        json!({"type": "news", "text": ["x"]}),
        json!([1, 2]),
        json!({"type": 7}),
        json!("text"),
        complete(),
    ];
    let listener = answering(Reply::events(&events, End::Clean)).await;
    assert_eq!(status_of(&listener).await, Status::Exited(0));
}

#[tokio::test]
async fn a_bare_error_says_why_the_command_did_not_start() {
    for (why, kind) in [
        (
            "fork/exec /bin/bash: argument list too long",
            ErrorKind::TooLarge,
        ),
        (
            "fork/exec /bin/bash: resource temporarily unavailable",
            ErrorKind::LimitExceeded,
        ),
        (
            "fork/exec /bin/bash: operation not permitted",
            ErrorKind::PermissionDenied,
        ),
        ("something else", ErrorKind::Unexpected),
    ] {
        let bare = json!({"code": "RUNTIME_ERROR", "message": why}).to_string();
        let parts = vec![format!("{}\n\n", init()).into_bytes(), bare.into_bytes()];
        let listener = answering(Reply::Parts(parts, End::Clean)).await;
        assert_eq!(refusal_of(&listener).await, kind, "{why}");
    }
}

#[tokio::test]
async fn a_character_may_be_cut_at_the_border_of_two_parts() {
    let text = format!(
        "{}\n\n{}\n\n{}\n\n",
        init(),
        json!({"type": "stderr", "text": "é漢😀"}),
        complete()
    );
    let parts = text.as_bytes().chunks(1).map(<[u8]>::to_vec).collect();
    let listener = answering(Reply::Parts(parts, End::Clean)).await;
    assert_eq!(status_of(&listener).await, Status::Exited(0));
}

#[tokio::test]
async fn an_event_of_100_megabytes_hides_no_end() {
    let mut parts = vec![
        format!("{}\n\n", init()).into_bytes(),
        b"{\"type\":\"stdout\",\"text\":\"".to_vec(),
    ];
    parts.extend(std::iter::repeat_n(vec![b'x'; 4 << 20], 25));
    parts.push(format!("\"}}\n\n{}\n\n", complete()).into_bytes());
    let listener = answering(Reply::Parts(parts, End::Clean)).await;
    assert_eq!(status_of(&listener).await, Status::Exited(0));
}

#[tokio::test]
async fn a_daemon_that_falls_silent_holds_no_call_beyond_deadline_and_grace() {
    let listener = server::start(|request, _| {
        if is_users(request) {
            return Some(Reply::events(&[init()], End::Hold));
        }
        is_kill(request).then_some(Reply::Silence)
    })
    .await;
    let sandbox = server::sandbox(&listener).await;
    let command = Command::shell("sleep 60").timeout(Duration::from_millis(200));
    let response = sandbox.execute(command).await.unwrap();
    assert_eq!(response.status, Status::TimedOut);
    // Nobody confirmed that the processes are dead.
    assert!(response.sandbox_killed);
    assert_eq!(listener.seen_of("DELETE /v1/sandboxes/sb-1").len(), 1);
}

#[tokio::test]
async fn a_deadline_is_the_daemons_too_and_the_tree_is_proven_dead() {
    let killed = json!({"type": "error", "error": {
        "ename": "CommandExecError", "evalue": "-1", "traceback": ["signal: killed"]
    }});
    let listener = server::start(move |request, _| {
        let limit = request.json()["timeout"].as_u64().unwrap_or(0);
        is_users(request).then(|| {
            std::thread::sleep(Duration::from_millis(limit));
            Reply::events(&[init(), killed.clone()], End::Clean)
        })
    })
    .await;
    let sandbox = server::sandbox(&listener).await;
    let command = Command::shell("sleep 60").timeout(Duration::from_millis(150));
    let response = sandbox.execute(command).await.unwrap();
    assert_eq!(
        (response.status, response.sandbox_killed),
        (Status::TimedOut, false)
    );
    assert!(
        listener.seen().iter().any(is_kill),
        "the tree was not killed"
    );
}

#[tokio::test]
async fn the_same_death_before_the_deadline_is_a_signal() {
    let killed = json!({"type": "error", "error": {
        "ename": "CommandExecError", "evalue": "-1", "traceback": ["signal: killed"]
    }});
    let listener = answering(Reply::events(&[init(), killed], End::Clean)).await;
    let sandbox = server::sandbox(&listener).await;
    let command = Command::shell("kill -9 $$").timeout(Duration::from_hours(1));
    let response = sandbox.execute(command).await.unwrap();
    assert_eq!(response.status, Status::Signaled(9));
}

#[tokio::test]
async fn a_sandbox_deleted_in_the_middle_is_lost() {
    let deleted = Arc::new(AtomicUsize::new(0));
    let gone = json!({"code": "DOCKER::SANDBOX_NOT_FOUND", "message": "not found"});
    let listener = server::start(move |request, _| {
        if is_users(request) {
            deleted.store(1, Ordering::SeqCst);
            return Some(Reply::events(&[init()], End::Cut));
        }
        if deleted.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let of_server = request.target.starts_with("/v1");
        Some(if of_server {
            Reply::json(404, &gone)
        } else {
            Reply::HangUp
        })
    })
    .await;
    let status = status_of(&listener).await;
    assert!(matches!(status, Status::Lost(_)), "{status}");
}

#[tokio::test]
async fn output_that_was_removed_is_lost_and_not_empty() {
    let missing = json!({"code": "FILE_NOT_FOUND", "message": "file not found"});
    let listener = server::start(move |request, _| {
        request
            .line()
            .starts_with("GET /files/")
            .then(|| Reply::json(404, &missing))
    })
    .await;
    let status = status_of(&listener).await;
    assert!(matches!(status, Status::Lost(_)), "{status}");
}

#[tokio::test]
async fn what_was_written_is_asked_for_again_where_a_connection_is_lost() {
    let first = |asked: &AtomicUsize| asked.fetch_add(1, Ordering::SeqCst) < 2;
    let (looks, fetches) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let listener = server::start(move |request, _| match request.line().as_str() {
        "GET /files/info" if first(&looks) => Some(Reply::HangUp),
        "GET /files/info" => Some(server::infos(request, 2)),
        "GET /files/download" if first(&fetches) => Some(Reply::HangUp),
        "GET /files/download" => Some(Reply::Whole(206, Vec::new(), b"hi".to_vec())),
        _ => None,
    })
    .await;
    let sandbox = server::sandbox(&listener).await;
    let response = sandbox.execute("true").await.unwrap();
    assert_eq!(response.status, Status::Exited(0));
    assert_eq!(
        (&*response.stdout.to_text(), &*response.stderr.to_text()),
        ("hi", "hi")
    );
}

#[tokio::test]
async fn dropping_the_call_kills_by_id_from_another_thread() {
    let listener =
        server::start(|request, _| is_users(request).then(|| Reply::events(&[init()], End::Hold)))
            .await;
    let sandbox = server::sandbox(&listener).await;
    let call = sandbox.execute("sleep 60");
    let sent = async {
        while !listener.seen().iter().any(is_users) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        _ = call => panic!("it has no end"),
        () = sent => {}
    }
    let id = |request: &Request| -> Option<Value> {
        Some(request.json()["envs"]["SANDBOX_COMMAND_ID"].clone())
    };
    let started = Instant::now();
    loop {
        let seen = listener.seen();
        let command = seen.iter().find(|r| is_users(r)).and_then(id);
        let kill = seen
            .iter()
            .find(|r| r.line() == "POST /command" && is_kill(r));
        if let (Some(Value::String(command)), Some(kill)) = (command, kill) {
            assert!(kill.text().contains(&command), "another command is killed");
            return;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "nothing is killed"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The stock daemon hands the signal of a broken connection on to every command.
#[tokio::test]
async fn no_stream_is_broken_off_neither_at_the_end_nor_by_dropping_the_call() {
    let mut events = vec![init(), complete()];
    events.extend(std::iter::repeat_n(json!({"type": "ping"}), 100));
    let listener = answering(Reply::events(&events, End::Clean)).await;
    let sandbox = server::sandbox(&listener).await;
    assert!(sandbox.execute("true").await.unwrap().success());

    events.retain(|event| *event != complete());
    events.push(complete());
    let slow = answering(Reply::events(&events, End::Clean)).await;
    let dropped = server::sandbox(&slow).await;
    let sent = async {
        while !slow.seen().iter().any(is_users) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = dropped.execute("true") => {}
        () = sent => {}
    }
    for listener in [listener, slow] {
        while listener.written().iter().sum::<usize>() < listener.seen().len() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(
            listener.written()[1],
            0,
            "an answer could not be written to its end"
        );
    }
}
