//! What the mock costs: time to make a sandbox, to run a command, and the memory of many.
//!
//! `cargo bench -p sandbox-mock` prints the numbers; nothing is asserted.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "this is what a benchmark does")]

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use sandbox_core::{Client, Sandbox, SandboxSpec};
use sandbox_mock::MockProvider;

const SANDBOXES: usize = 10_000;
const AT_ONCE: usize = 32;

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("{what:<28} p50 {:>10.1?}  p99 {:>10.1?}", at(50), at(99));
}

/// Resident memory of this process in MiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}

async fn times(n: usize, mut call: impl AsyncFnMut()) -> Vec<Duration> {
    let mut times = Vec::with_capacity(n);
    for _ in 0..n {
        let start = Instant::now();
        call().await;
        times.push(start.elapsed());
    }
    times
}

#[tokio::main]
async fn main() {
    let client = Client::new(MockProvider::new());
    let spec = SandboxSpec::new;
    let warm = client.create(spec()).await.unwrap();
    warm.execute("true").await.unwrap();

    let mut made: Vec<Sandbox> = Vec::new();
    let create = times(2_000, async || {
        made.push(client.create(spec()).await.unwrap());
    })
    .await;
    report("create", create);
    for (what, text) in [
        ("execute `echo hi`", "echo hi"),
        ("execute a pipeline", "printf 'b\\na\\n' | sort | head -n 1"),
    ] {
        let run = times(2_000, async || {
            assert!(warm.execute(text).await.unwrap().success());
        })
        .await;
        report(what, run);
    }
    let upload = times(2_000, async || warm.upload("/tmp/f", "x").await.unwrap()).await;
    report("upload a small file", upload);
    let read = times(2_000, async || {
        warm.read("/tmp/f", sandbox_core::ReadOptions::default())
            .await
            .unwrap();
    })
    .await;
    report("read a small file", read);
    drop(made);
    assert!(sandbox_core::flush(Duration::from_secs(10)));

    let before = resident();
    let start = Instant::now();
    let alive: Vec<Sandbox> = stream::iter(0..SANDBOXES)
        .map(|n| {
            let client = &client;
            async move {
                let sandbox = client.create(spec()).await.unwrap();
                let text = format!("echo {n} >f; cat f");
                let r = sandbox.execute(text).await.unwrap();
                assert_eq!(r.output(), format!("{n}\n"));
                sandbox
            }
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    println!(
        "{} sandboxes alive, each after a command, {AT_ONCE} at once: {:.1?}, {} MiB, the process {} MiB",
        alive.len(),
        start.elapsed(),
        resident() - before,
        resident()
    );
}
