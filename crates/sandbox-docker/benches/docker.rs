//! What the operations cost beside the Engine's own exec of one command, in the same container and
//! in the same minute: `cargo bench -p sandbox-docker`.
//!
//! Ends with 1 where a ratio is above what is promised: `echo` 1.2, an operation on files 1.5.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "this is what a benchmark does")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use bollard::exec::StartExecResults;
use bollard::models::ExecConfig;
use futures_util::StreamExt as _;
use sandbox_core::{Client, GrepOptions, ReadOptions, Sandbox, SandboxSpec};
use sandbox_docker::{Docker, DockerConfig, Pull};

/// Each operation is measured so often, in turn with all others: what the machine does besides
/// meets all alike.
const ROUNDS: usize = 60;

/// Rounds before, that do not count.
const WARM_UP: usize = 5;

const IMAGES: [&str; 2] = ["sandbox-python:latest", "sandbox-busybox:latest"];

/// The name of each, and what its median may be in terms of the Engine's own exec.
const OPERATIONS: [(&str, f64); 11] = [
    ("engine's exec of echo", 1.0),
    ("echo", 1.2),
    ("upload", 1.5),
    ("download", 1.5),
    ("ls", 1.5),
    ("read", 1.5),
    ("write", 1.5),
    ("edit", 1.5),
    ("glob", 1.5),
    ("grep", 1.5),
    ("delete", 1.5),
];

#[tokio::main]
async fn main() -> ExitCode {
    let mut kept = true;
    for image in IMAGES {
        kept &= bench(image).await;
    }
    ExitCode::from(u8::from(!kept))
}

async fn bench(image: &str) -> bool {
    let config = DockerConfig::new(image).pull(Pull::Never).user("1000");
    let client = Client::new(Docker::connect(config).await.unwrap());
    let engine = bollard::Docker::connect_with_defaults().unwrap();
    let engine = engine.negotiate_version().await.unwrap();
    let sandbox = client.create(SandboxSpec::new()).await.unwrap();
    let files = "mkdir d; for i in 1 2 3 4 5 6 7 8 9; do echo needle $i >d/$i.txt; done";
    assert!(sandbox.execute(files).await.unwrap().success());

    let mut times = vec![Vec::with_capacity(ROUNDS); OPERATIONS.len()];
    for round in 0..WARM_UP + ROUNDS {
        for (n, (name, _)) in OPERATIONS.iter().enumerate() {
            let start = Instant::now();
            if n == 0 {
                exec(&engine, sandbox.id().as_str()).await;
            } else {
                operate(&sandbox, name, round).await;
            }
            if round >= WARM_UP {
                times[n].push(start.elapsed());
            }
        }
    }
    sandbox.kill().await.unwrap();
    report(image, times)
}

/// What a client of the Engine API does for one command, at the least.
async fn exec(engine: &bollard::Docker, id: &str) {
    let words = |words: &[&str]| Some(words.iter().map(ToString::to_string).collect());
    let config = ExecConfig {
        cmd: words(&["/bin/sh", "-c", "echo hi"]),
        user: Some("1000".to_owned()),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        ..ExecConfig::default()
    };
    let made = engine.create_exec(id, config).await.unwrap();
    let started = engine.start_exec(&made.id, None).await.unwrap();
    let StartExecResults::Attached { mut output, .. } = started else {
        panic!("not attached");
    };
    let mut printed = Vec::new();
    while let Some(part) = output.next().await {
        printed.extend_from_slice(&part.unwrap().into_bytes());
    }
    assert_eq!(printed, b"hi\n");
    let ended = engine.inspect_exec(&made.id).await.unwrap();
    assert_eq!(ended.exit_code, Some(0));
}

async fn operate(sandbox: &Sandbox, name: &str, round: usize) {
    let file = format!("/workspace/d/new {round}");
    let old = "/workspace/d/1.txt";
    match name {
        "echo" => assert_eq!(sandbox.execute("echo hi").await.unwrap().stdout, "hi\n"),
        "upload" => sandbox.upload(&file, "needle\n").await.unwrap(),
        "download" => assert_eq!(sandbox.download(&file).await.unwrap(), "needle\n"),
        "ls" => assert_eq!(sandbox.ls("/workspace/d").await.unwrap().entries.len(), 10),
        "read" => {
            let page = sandbox.read(old, ReadOptions::default()).await.unwrap();
            assert!(page.text().unwrap().starts_with("needle"));
        }
        "write" => sandbox.write(old, "needle 1\n").await.unwrap(),
        "edit" => {
            let edited = sandbox.edit(old, "needle 1", "needle 2", false).await;
            assert_eq!(edited.unwrap().replaced, 1);
        }
        "glob" => {
            let found = sandbox.glob("*.txt", "/workspace").await.unwrap();
            assert_eq!(found.paths.len(), 9);
        }
        "grep" => {
            let options = GrepOptions::default();
            let found = sandbox.grep("needle", "/workspace", options).await.unwrap();
            assert_eq!(found.matches.len(), 10);
        }
        _ => sandbox.delete(&file).await.unwrap(),
    }
}

/// Prints the medians; whether all are within what is promised.
fn report(image: &str, times: Vec<Vec<Duration>>) -> bool {
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let times: Vec<Duration> = times.into_iter().map(median).collect();
    let mut kept = true;
    println!("{image}, medians of {ROUNDS}");
    for ((name, most), time) in OPERATIONS.iter().zip(&times) {
        let ratio = time.as_secs_f64() / times[0].as_secs_f64();
        let word = if ratio > *most { "MISSED" } else { "" };
        kept &= ratio <= *most;
        let ms = time.as_secs_f64() * 1e3;
        println!("{name:<24} {ms:>8.1} ms  {ratio:>5.2} of at most {most:.1} {word}");
    }
    kept
}
