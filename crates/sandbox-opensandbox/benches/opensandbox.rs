//! What a command costs, beside the official client of `OpenSandbox` in the same run, on a daemon
//! that behaves as the real one: `cargo bench -p sandbox-opensandbox`.
//!
//! `SANDBOX_EXECD_IMAGE` names the real daemon's image, `SANDBOX_OPENSANDBOX_PYTHON` a Python that
//! has the official client (`cargo xtask test` makes one, `target/python/opensandbox-client`).
//!
//! Ends with 1 where more is taken than promised: a median of 25 ms for `echo` with its exact bytes;
//! 100 commands a second, 16 at a time.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "this is what a benchmark does")]

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use sandbox_core::{Client, Sandbox, SandboxSpec};
use sandbox_opensandbox::{OpenSandbox, OpenSandboxConfig};
use sandbox_testkit::engine::{ExecdProfile, OpenSandbox as Server, execd_image};

const IMAGE: &str = "sandbox-python:latest";

/// The official client's half; prints `NAME MEDIAN_MS COMMANDS_A_SECOND`.
const OFFICIAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/official.py");

const ECHOES: usize = 200;
const AT_ONCE: usize = 16;
const MANY: usize = 800;

const MEDIAN: Duration = Duration::from_millis(25);
const RATE: f64 = 100.0;

#[tokio::main]
async fn main() -> ExitCode {
    let server = Server::start(ExecdProfile::Stock).unwrap();
    let config = OpenSandboxConfig::new(server.address().to_string())
        .api_key(server.key())
        .image(IMAGE);
    let client = Client::new(OpenSandbox::connect(config).await.unwrap());
    let sandbox = client.create(SandboxSpec::new()).await.unwrap();
    echo(&sandbox).await;

    let mut times = Vec::with_capacity(ECHOES);
    for _ in 0..ECHOES {
        let start = Instant::now();
        echo(&sandbox).await;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let median = times[ECHOES / 2];

    let start = Instant::now();
    stream::iter(0..MANY)
        .for_each_concurrent(AT_ONCE, |_| echo(&sandbox))
        .await;
    let rate = f64::from(u32::try_from(MANY).unwrap()) / start.elapsed().as_secs_f64();
    sandbox.kill().await.unwrap();

    println!("daemon: {}, as the real one behaves", execd_image());
    println!("client     echo, median    {AT_ONCE} at a time");
    let ms = median.as_secs_f64() * 1e3;
    println!("ours       {ms:9.1} ms    {rate:9.1} commands/s");
    match std::env::var_os("SANDBOX_OPENSANDBOX_PYTHON") {
        None => println!("official   not run: SANDBOX_OPENSANDBOX_PYTHON names no Python"),
        Some(python) => {
            let official = Command::new(python)
                .args([OFFICIAL, &server.address().to_string(), IMAGE])
                .env("OPEN_SANDBOX_API_KEY", server.key())
                .output()
                .unwrap();
            let words = String::from_utf8_lossy(&official.stderr);
            assert!(official.status.success(), "{words}");
            print!("{}", String::from_utf8_lossy(&official.stdout));
        }
    }
    let kept = median <= MEDIAN && rate >= RATE;
    if !kept {
        println!("promised: {MEDIAN:?} and {RATE} commands/s");
    }
    ExitCode::from(u8::from(!kept))
}

async fn echo(sandbox: &Sandbox) {
    let response = sandbox.execute("echo hi").await.unwrap();
    assert_eq!(response.stdout, "hi\n", "{:?}", response.status);
}
