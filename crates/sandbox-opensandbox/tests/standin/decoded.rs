//! Every recorded answer is understood.

use std::sync::{Arc, Mutex};

use sandbox_core::{ErrorKind, SandboxId, Stream};
use sandbox_opensandbox::{ExecdEnding, ExecdEvent, OpenSandbox, RunCommand};
use sandbox_testkit::recordings::Recorded;
use serde_json::Value;

use crate::http::{End, Listener, Reply};
use crate::server;

/// All recorded requests to the daemon that are made again here.
fn recorded(groups: &[&str]) -> Vec<Recorded> {
    let all = groups.iter().flat_map(|g| Recorded::load(g).unwrap());
    all.filter(|r| !r.name().starts_with("setup/") && r.status() != 0)
        .collect()
}

/// A server whose daemon answers `POST /command` and `GET /recorded` with what is put into it.
async fn playing() -> (Listener, Arc<Mutex<Option<Reply>>>) {
    let next: Arc<Mutex<Option<Reply>>> = Arc::default();
    let playing = next.clone();
    let listener = server::start(move |request, _| {
        let wanted = !request.target.starts_with("/v1") && request.target != "/health";
        playing.lock().unwrap().clone().filter(|_| wanted)
    })
    .await;
    (listener, next)
}

/// The answer as it was, cut into parts.
fn reply(recorded: &Recorded, cut: usize) -> Reply {
    if recorded.status() == 200 {
        let body = recorded.body();
        let end = if recorded.is_complete() {
            End::Clean
        } else {
            End::Cut
        };
        return Reply::Parts(body.chunks(cut).map(<[u8]>::to_vec).collect(), end);
    }
    Reply::Whole(recorded.status(), Vec::new(), recorded.body())
}

fn is_stream(recorded: &Recorded) -> bool {
    let events = |(name, value): &(String, String)| {
        name.eq_ignore_ascii_case("content-type") && value.starts_with("text/event-stream")
    };
    recorded.status() == 200 && recorded.is_whole() && recorded.headers().iter().any(events)
}

/// What the recording says, read in the simplest way: lines, and the last one that is an end.
fn expected(recorded: &Recorded) -> (Vec<(Stream, String)>, Option<ExecdEnding>) {
    let (mut lines, mut ending) = (Vec::new(), None);
    for line in String::from_utf8(recorded.body()).unwrap().lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let text = || event["text"].as_str().unwrap_or_default().to_owned();
        let line = || {
            if text() == "\n" {
                String::new()
            } else {
                text()
            }
        };
        match event["type"].as_str() {
            Some("stdout") => lines.push((Stream::Stdout, line())),
            Some("stderr") => lines.push((Stream::Stderr, line())),
            Some("execution_complete") => ending = Some(ExecdEnding::Exited(0)),
            Some("error") => ending = Some(as_recorded(&event["error"])),
            None => {
                let why = event["message"].as_str().unwrap().to_owned();
                ending = Some(ExecdEnding::NotStarted(why));
            }
            _ => {}
        }
    }
    (lines, ending)
}

/// The endings there are in the recordings.
fn as_recorded(error: &Value) -> ExecdEnding {
    let code = error["evalue"].as_str().unwrap();
    match (code, error["traceback"][0].as_str().unwrap()) {
        ("-1", "signal: killed") => ExecdEnding::Signaled(9),
        ("-1", "signal: segmentation fault") => ExecdEnding::Signaled(11),
        ("-1", "signal: terminated") => ExecdEnding::Signaled(15),
        (code, words) if words == format!("exit status {code}") => {
            ExecdEnding::Exited(code.parse().unwrap())
        }
        (why, words) if why == words => ExecdEnding::NotStarted(why.to_owned()),
        other => panic!("an ending that was not looked at: {other:?}"),
    }
}

#[tokio::test]
async fn every_recorded_stream_is_read_however_it_is_cut() {
    let (listener, next) = playing().await;
    let provider = OpenSandbox::connect(server::config(&listener))
        .await
        .unwrap();
    let execd = provider.execd(&SandboxId::new(server::ID)).await.unwrap();
    let groups = [
        "command",
        "background",
        "interrupt",
        "busybox",
        "token",
        "anomaly",
        "files",
    ];
    let mut count = 0;
    for recorded in recorded(&groups).iter().filter(|r| is_stream(r)) {
        for cut in [7, 1 << 20] {
            *next.lock().unwrap() = Some(reply(recorded, cut));
            let mut events = execd.run(&RunCommand::default()).await.unwrap();
            let (mut lines, mut ending, mut first) = (Vec::new(), None, true);
            while let Ok(Some(event)) = events.next().await {
                let is_init = matches!(&event, ExecdEvent::Init(id) if id.len() >= 32);
                assert_eq!(is_init, std::mem::take(&mut first), "{}", recorded.name());
                match event {
                    ExecdEvent::Line(stream, line) => lines.push((stream, line)),
                    ExecdEvent::Ended(end) => ending = Some(end),
                    _ => {}
                }
            }
            assert_eq!((lines, ending), expected(recorded), "{}", recorded.name());
        }
        count += 1;
    }
    assert!(count >= 78, "only {count} streams were found");
}

/// The kind that a recorded refusal should be, by what it says.
fn refusal(recorded: &Recorded) -> ErrorKind {
    let body = String::from_utf8_lossy(&recorded.body()).into_owned();
    match recorded.status() {
        404 if body.contains("SANDBOX_NOT_FOUND") => ErrorKind::SandboxGone,
        500 if body.contains("IMAGE_PULL_FAILED") => ErrorKind::ImageNotFound,
        301 => ErrorKind::Protocol,
        400 | 405 | 416 | 422 => ErrorKind::InvalidArgument,
        401 => ErrorKind::Unauthorized,
        404 => ErrorKind::NotFound,
        409 => ErrorKind::Conflict,
        501 => ErrorKind::Unsupported,
        502 => ErrorKind::Unavailable,
        500 => ErrorKind::Unexpected,
        other => panic!("a status that was not looked at: {other}"),
    }
}

#[tokio::test]
async fn every_recorded_refusal_is_typed_and_keeps_code_status_and_id() {
    let (listener, next) = playing().await;
    let provider = OpenSandbox::connect(server::config(&listener))
        .await
        .unwrap();
    let execd = provider.execd(&SandboxId::new(server::ID)).await.unwrap();
    let groups = [
        "command",
        "background",
        "interrupt",
        "busybox",
        "token",
        "files",
        "dirs",
        "direct",
        "misc",
        "lifecycle",
    ];
    let mut count = 0;
    for recorded in recorded(&groups).iter().filter(|r| r.status() >= 300) {
        let mut reply = Reply::Whole(recorded.status(), Vec::new(), recorded.body());
        for (name, value) in recorded.headers() {
            if name.eq_ignore_ascii_case("x-request-id") {
                reply = reply.header(&name, &value);
            }
        }
        *next.lock().unwrap() = Some(reply);
        let error = execd.metrics().await.unwrap_err();
        assert_eq!(
            error.kind(),
            refusal(recorded),
            "{}: {error}",
            recorded.name()
        );
        let status = recorded.status().to_string();
        assert_eq!(error.context("status"), Some(status.as_str()), "{error}");
        let body: Value = serde_json::from_slice(&recorded.body()).unwrap_or_default();
        assert_eq!(error.context("code"), body["code"].as_str(), "{error}");
        let sent = recorded.headers();
        let id = sent
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case("x-request-id"));
        assert_eq!(error.context("request_id"), id.map(|(_, v)| v.as_str()));
        count += 1;
    }
    assert!(count >= 130, "only {count} refusals were found");
}

#[tokio::test]
async fn every_recorded_file_comes_out_to_the_byte() {
    let (listener, next) = playing().await;
    let provider = OpenSandbox::connect(server::config(&listener))
        .await
        .unwrap();
    let execd = provider.execd(&SandboxId::new(server::ID)).await.unwrap();
    let mut count = 0;
    for recorded in recorded(&["files", "direct"]) {
        let is_file = recorded.target().starts_with("/files/download")
            && [200, 206].contains(&recorded.status())
            && recorded.is_whole()
            && recorded.is_complete();
        if !is_file {
            continue;
        }
        *next.lock().unwrap() = Some(Reply::Whole(recorded.status(), Vec::new(), recorded.body()));
        let range = (recorded.status() == 206).then_some((0, 1));
        let mut download = execd.download("/f", range).await.unwrap();
        assert_eq!(download.left(), recorded.body().len() as u64);
        let mut bytes = Vec::new();
        while let Some(part) = download.next().await.unwrap() {
            bytes.extend_from_slice(&part);
        }
        assert_eq!(bytes, recorded.body(), "{}", recorded.name());
        count += 1;
    }
    assert!(count >= 12, "only {count} files were found");
}
