//! What the client itself takes: threads, descriptors, memory.

use std::fs;
use std::io::Read as _;
use std::str::Split;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use sandbox_core::{Client, Error, SandboxSpec, flush};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::owner;
use crate::support::{BUSYBOX, Random, client, labelled, unique};

/// Sandboxes that are made, used and removed.
const SANDBOXES: usize = 100;

/// As many of them at once.
const IN_FLIGHT: usize = 16;

/// Commands that each runs.
const COMMANDS: usize = 10;

/// What the client may take at its peak, in KiB.
const MEMORY: u64 = 100 << 10;

pub(crate) async fn threads_and_descriptors_are_as_before() {
    let mut child = owner::spawn("cycles");
    let mut told = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut told).unwrap();
    assert!(child.wait().unwrap().success(), "{told}");
    assert_eq!(told, "as before\n");
}

/// Uses and drops sandboxes again and again, and compares what this process has.
pub(crate) fn cycles() {
    let runtime = Runtime::new().unwrap();
    // What is made once and stays: the background thread, the runtime's own.
    runtime.block_on(cycle(1));
    assert!(flush(Duration::from_mins(1)));
    let before = Held::now();
    for seed in 2..12 {
        runtime.block_on(cycle(seed));
    }
    assert!(flush(Duration::from_mins(1)));
    let start = Instant::now();
    loop {
        let now = Held::now();
        if now.threads <= before.threads && now.descriptors <= before.descriptors {
            break;
        }
        // Idle threads and closed connections take a while to go.
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "{before:?}, {now:?}"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    owner::print("as before");
}

async fn cycle(seed: u64) {
    let mut random = Random(seed);
    let client = client(BUSYBOX, "1000").await;
    let sandbox = client.create(SandboxSpec::new()).await.unwrap();
    assert!(sandbox.execute("echo ok").await.unwrap().success());
    sandbox
        .upload("/workspace/x", vec![1; 1 << 20])
        .await
        .unwrap();
    sandbox.download("/workspace/x").await.unwrap();
    let late = sandbox.execute("sleep 100 & sleep 100");
    let _ = timeout(Duration::from_millis(random.below(300)), late).await;
    let stream = sandbox.stream("yes").await.unwrap();
    drop(stream);
    let another = client.create(SandboxSpec::new());
    let _ = timeout(Duration::from_millis(random.below(400)), another).await;
    match random.below(2) {
        0 => sandbox.kill().await.unwrap(),
        _ => drop(sandbox),
    }
}

#[derive(Debug)]
struct Held {
    threads: usize,
    descriptors: usize,
}

impl Held {
    fn now() -> Self {
        let count = |dir: &str| fs::read_dir(dir).unwrap().count();
        Self {
            threads: count("/proc/self/task"),
            descriptors: count("/proc/self/fd"),
        }
    }
}

pub(crate) async fn a_hundred_take_little_memory_and_leave_nothing() {
    let tag = unique("many");
    let mut child = owner::spawn(&format!("many {tag}"));
    let mut told = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut told).unwrap();
    assert!(child.wait().unwrap().success(), "{told}");
    let peak: u64 = told.trim().parse().unwrap();
    assert!(peak < MEMORY, "{peak} KiB");
    assert_eq!(labelled("many", &tag), [""; 0]);
}

/// Makes, uses and removes the sandboxes, and tells the most memory that this process had.
pub(crate) fn many(mut words: Split<'_, char>) {
    let tag = words.next().unwrap();
    let done = Runtime::new().unwrap().block_on(async {
        let client = client(BUSYBOX, "1000").await;
        stream::iter(0..SANDBOXES)
            .map(|n| one(&client, n, tag))
            .buffer_unordered(IN_FLIGHT)
            .try_collect::<Vec<()>>()
            .await
    });
    assert_eq!(done.unwrap().len(), SANDBOXES);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    owner::print(peak.trim().trim_end_matches(" kB"));
}

async fn one(client: &Client, n: usize, tag: &str) -> Result<(), Error> {
    let spec = SandboxSpec::new().label("many", tag);
    let sandbox = client.create(spec).await?;
    for i in 0..COMMANDS {
        let run = sandbox.execute(format!("echo {n}.{i}")).await?;
        assert_eq!(run.output(), format!("{n}.{i}\n"));
    }
    sandbox.kill().await
}
