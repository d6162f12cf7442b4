//! Engines that do not answer as they should: a socket that says what a test tells it to.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sandbox_core::{
    Client, Error, ErrorKind, Filter, Retry, Sandbox, SandboxId, SandboxSpec, Status,
};
use sandbox_docker::{Docker, DockerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;

/// What the engine sends for a method and a path; `None` for nothing, ever.
type Answer = dyn Fn(&str, &str) -> Option<Vec<u8>> + Send + Sync;

struct FakeEngine {
    dir: tempfile::TempDir,
}

impl FakeEngine {
    fn new(answer: impl Fn(&str, &str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("engine.sock")).unwrap();
        let answer: Arc<Answer> = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    let mut part = [0; 4096];
                    while !request.windows(4).any(|w| w == b"\r\n\r\n") {
                        match stream.read(&mut part).await {
                            Ok(n) if n > 0 => request.extend_from_slice(&part[..n]),
                            _ => return,
                        }
                    }
                    let request = String::from_utf8_lossy(&request).into_owned();
                    let mut words = request.split(' ');
                    let method = words.next().unwrap_or_default();
                    let path = words.next().unwrap_or_default();
                    match answer(method, path) {
                        Some(bytes) => {
                            // The client may have gone.
                            let _ = stream.write_all(&bytes).await;
                            let _ = stream.shutdown().await;
                        }
                        None => std::future::pending::<()>().await,
                    }
                });
            }
        });
        Self { dir }
    }

    fn config(&self) -> DockerConfig {
        let socket = self.dir.path().join("engine.sock");
        DockerConfig::new("image:1").host(format!("unix://{}", socket.display()))
    }

    async fn client(&self) -> Client {
        Client::new(Docker::connect(self.config()).await.unwrap())
    }

    /// Why it makes no sandbox.
    async fn refused(&self) -> Error {
        let made = self.client().await.create(SandboxSpec::new()).await;
        made.unwrap_err()
    }

    async fn sandbox(&self) -> Sandbox {
        self.client()
            .await
            .connect(&SandboxId::new("c1"))
            .await
            .unwrap()
    }
}

fn json(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

fn frame(stream: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![stream, 0, 0, 0];
    frame.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
    frame.extend(content);
    frame
}

fn upgraded(body: &[u8]) -> Vec<u8> {
    let head = "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n\
                Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
    [head.as_bytes(), body].concat()
}

/// An engine with one running container of somebody else's. The second command that is started in
/// it prints `raw`, all others the number 0.
fn engine_whose_second_command_sends(raw: Vec<u8>) -> FakeEngine {
    let started = AtomicUsize::new(0);
    FakeEngine::new(move |method, path| {
        let is = |end: &str| path.split('?').next().unwrap_or_default().ends_with(end);
        Some(if is("/version") {
            json("200 OK", r#"{"ApiVersion":"1.41","MinAPIVersion":"1.12"}"#)
        } else if is("/containers/c1/json") {
            json(
                "200 OK",
                r#"{"Id":"c1","State":{"Running":true,"Paused":false},"Config":{}}"#,
            )
        } else if is("/containers/c1/exec") {
            json("201 Created", r#"{"Id":"e1"}"#)
        } else if is("/start") && method == "POST" {
            match started.fetch_add(1, Ordering::SeqCst) {
                1 => raw.clone(),
                _ => upgraded(&frame(1, b"0")),
            }
        } else if is("/exec/e1/json") {
            json(
                "200 OK",
                r#"{"ID":"e1","Running":false,"ExitCode":0,"Pid":5}"#,
            )
        } else {
            json("404 Not Found", r#"{"message":"page not found"}"#)
        })
    })
}

async fn connect(config: DockerConfig) -> Error {
    Docker::connect(config).await.unwrap_err()
}

#[tokio::test]
async fn without_a_socket_it_says_what_to_do_at_once() {
    let start = Instant::now();
    let e = connect(DockerConfig::new("x").host("unix:///no/such.sock")).await;
    assert_eq!(
        (e.kind(), e.retry_advice()),
        (ErrorKind::Unavailable, Retry::Safe)
    );
    assert!(e.to_string().contains("DOCKER_HOST"), "{e}");
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_socket_that_nobody_serves_is_unavailable() {
    let dir = tempfile::tempdir().unwrap();
    let socket: PathBuf = dir.path().join("dead.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let e = connect(DockerConfig::new("x").host(socket.to_str().unwrap())).await;
    assert_eq!(e.kind(), ErrorKind::Unavailable, "{e:?}");
}

/// Set in the process that this test starts.
const WITHOUT_RIGHTS: &str = "SANDBOX_TEST_WITHOUT_RIGHTS";

#[tokio::test]
async fn without_the_right_to_the_socket_it_says_how_to_get_it() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("engine.sock");
    let _engine = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let nobody = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(&socket, nobody).unwrap();
    if std::os::unix::net::UnixStream::connect(&socket).is_ok() {
        // Root may use every socket: this test once more, as a root that may not.
        assert!(std::env::var_os(WITHOUT_RIGHTS).is_none());
        let lesser = "-dac_override,-dac_read_search";
        let again = tokio::process::Command::new("setpriv")
            .args(["--bounding-set", lesser, "--inh-caps", lesser])
            .arg(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "without_the_right_to_the_socket_it_says_how_to_get_it",
            ])
            .env(WITHOUT_RIGHTS, "1")
            .status()
            .await;
        assert!(again.unwrap().success());
        return;
    }
    let start = Instant::now();
    let e = connect(DockerConfig::new("x").host(socket.to_str().unwrap())).await;
    assert_eq!(
        (e.kind(), e.retry_advice()),
        (ErrorKind::Unauthorized, Retry::Never)
    );
    assert!(e.to_string().contains("join its group"), "{e}");
    assert!(start.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn what_is_no_engine_is_a_protocol_error() {
    for garbage in [
        b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
        json("200 OK", "<html>hello</html>"),
        json("200 OK", r#"{"ApiVersion":41}"#),
        json("200 OK", r#"{"ApiVersion":"new"}"#),
    ] {
        let shown = String::from_utf8_lossy(&garbage).into_owned();
        let engine = FakeEngine::new(move |_, _| Some(garbage.clone()));
        let e = connect(engine.config()).await;
        assert_eq!(e.kind(), ErrorKind::Protocol, "{shown}: {e:?}");
    }
    let silent_close = FakeEngine::new(|_, _| Some(Vec::new()));
    assert_eq!(
        connect(silent_close.config()).await.kind(),
        ErrorKind::Unavailable
    );
}

#[tokio::test]
async fn an_engine_that_never_answers_is_given_up() {
    let engine = FakeEngine::new(|_, _| None);
    let start = Instant::now();
    assert_eq!(connect(engine.config()).await.kind(), ErrorKind::Timeout);
    assert!(start.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn garbage_in_place_of_output_is_a_protocol_error_and_the_next_call_works() {
    for raw in [
        upgraded(b"<html>bad gateway</html>"),
        upgraded(&frame(7, b"x")),
        upgraded(&frame(0, b"x")),
        upgraded(&[0; 100]),
        json("200 OK", "<html>bad gateway</html>"),
        b"nonsense\r\n\r\n".to_vec(),
    ] {
        let shown = String::from_utf8_lossy(&raw).into_owned();
        let engine = engine_whose_second_command_sends(raw);
        let sandbox = engine.sandbox().await;
        let e = sandbox.execute("echo hi").await.unwrap_err();
        let known = [ErrorKind::Protocol, ErrorKind::Unavailable];
        assert!(known.contains(&e.kind()), "{shown}: {e:?}");
        assert_eq!(sandbox.execute("echo hi").await.unwrap().stdout, "0");
    }
}

#[tokio::test]
async fn output_that_breaks_off_is_lost_and_what_came_is_kept() {
    let mut cut = frame(1, b"whole");
    cut.extend(&frame(2, b"cut off")[..11]);
    let engine = engine_whose_second_command_sends(upgraded(&cut));
    let sandbox = engine.sandbox().await;
    let run = sandbox.execute("echo hi").await.unwrap();
    assert!(matches!(run.status, Status::Lost(_)), "{:?}", run.status);
    assert_eq!(run.stdout, "whole");
}

#[tokio::test]
async fn a_download_that_never_ends_is_too_large() {
    let endless = frame(1, &vec![0; 30_000]).repeat(200);
    let engine = engine_whose_second_command_sends(upgraded(&endless));
    let sandbox = engine.sandbox().await;
    let file = sandbox_core::SandboxPath::new("/x").unwrap();
    let mut file = sandbox_core::FileDownload::new(file);
    file.limit = 1000;
    let results = sandbox.backend().download_files(&[file]).await;
    assert_eq!(results[0].as_ref().unwrap_err().kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn an_engine_that_is_too_new_is_told_in_its_words() {
    let words = "client version 1.52 is too old. Minimum supported API version is 1.99";
    let engine = FakeEngine::new(move |_, path| {
        Some(if path.contains("/version") {
            json("200 OK", r#"{"ApiVersion":"1.100","MinAPIVersion":"1.99"}"#)
        } else {
            json("400 Bad Request", &format!(r#"{{"message":"{words}"}}"#))
        })
    });
    let refused = engine.client().await.list(&Filter::all()).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains(words), "{text}");
}

#[tokio::test]
async fn why_a_pull_failed_is_told() {
    let engine = FakeEngine::new(|_, path| {
        Some(if path.contains("/version") {
            json("200 OK", r#"{"ApiVersion":"1.41"}"#)
        } else if path.contains("/images/create") {
            let steps = "{\"status\":\"Pulling\"}\n\
                         {\"errorDetail\":{\"message\":\"manifest unknown zz\"},\"error\":\"x\"}\n";
            json("200 OK", steps)
        } else {
            json("404 Not Found", r#"{"message":"No such image: image:1"}"#)
        })
    });
    let e = engine.refused().await;
    assert_eq!(e.kind(), ErrorKind::ImageNotFound);
    let text = e.to_string();
    assert!(
        text.contains("manifest unknown zz") && text.contains("docker pull image:1"),
        "{text}"
    );
}

#[tokio::test]
async fn why_a_create_failed_is_told() {
    let engine = FakeEngine::new(|_, path| {
        Some(if path.contains("/version") {
            json("200 OK", r#"{"ApiVersion":"1.41"}"#)
        } else if path.contains("/containers/create") {
            json(
                "400 Bad Request",
                r#"{"message":"Unknown runtime specified runsc"}"#,
            )
        } else {
            json("200 OK", r#"{"Id":"sha256:1","Config":{"User":""}}"#)
        })
    });
    let e = engine.refused().await;
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e:?}");
    assert!(
        e.to_string().contains("Unknown runtime specified runsc"),
        "{e}"
    );
}

#[tokio::test]
async fn an_engine_too_busy_to_start_a_container_is_asked_twice() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let calls = seen.clone();
    let engine = FakeEngine::new(move |method, path| {
        let path = path.split('?').next().unwrap_or_default();
        let last = path.rsplit('/').next().unwrap_or_default();
        calls.lock().unwrap().push(format!("{method} {last}"));
        Some(match (method, last) {
            (_, "version") => json("200 OK", r#"{"ApiVersion":"1.41"}"#),
            (_, "attach") => upgraded(b""),
            ("HEAD", _) => json("404 Not Found", ""),
            ("POST", "start") => json(
                "500 Internal Server Error",
                r#"{"message":"failed to start io pipe copy: context deadline exceeded"}"#,
            ),
            _ => json(
                "200 OK",
                r#"{"Id":"c1","Warnings":[],"Config":{"User":""}}"#,
            ),
        })
    });
    let e = engine.refused().await;
    assert_eq!(e.kind(), ErrorKind::Unavailable, "{e:?}");
    assert_eq!(e.retry_advice(), Retry::Safe, "{e:?}");
    let flush = || sandbox_core::flush(Duration::from_secs(10));
    assert!(tokio::task::spawn_blocking(flush).await.unwrap());
    let seen = seen.lock().unwrap();
    let count = |call: &str| seen.iter().filter(|c| *c == call).count();
    assert_eq!(
        (count("POST create"), count("POST start")),
        (2, 2),
        "{seen:?}"
    );
    assert_eq!(count("DELETE c1"), 2, "{seen:?}");
}

#[tokio::test]
async fn an_id_that_is_none_never_reaches_the_engine() {
    let engine = engine_whose_second_command_sends(Vec::new());
    let client = engine.client().await;
    for id in ["", "../images/json", "c1?x", "a b", "c1/../../x"] {
        let e = client.connect(&SandboxId::new(id)).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::SandboxGone, "{id}");
    }
}
