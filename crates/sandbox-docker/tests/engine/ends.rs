//! Processes that use the library and end, each in its way and at a point that a seed chooses.
//! Afterwards the engine itself is asked what is left.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::str::Split;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sandbox_core::{Client, Error, Sandbox, SandboxSpec, flush};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use crate::owner;
use crate::support::{BUSYBOX, REMOVED, Random, client, docker, labelled, unique};

/// Rounds of each end, a third of them in each of [`DURING`].
const ROUNDS: u64 = 15;

/// Rounds at once: an engine makes a handful of containers a second.
const AT_ONCE: u64 = 5;

/// What is under way when the end comes.
const DURING: [&str; 3] = ["create", "execute", "upload"];

/// The end comes within so many milliseconds of the beginning. A create takes most of it.
const WITHIN: u64 = 700;

/// The code of a process that ends by itself.
const CODE: i32 = 7;

pub(crate) async fn an_interrupted_owner_leaves_nothing() {
    all("INT", |status| status.signal() == Some(2)).await;
}

pub(crate) async fn a_terminated_owner_leaves_nothing() {
    all("TERM", |status| status.signal() == Some(15)).await;
}

pub(crate) async fn a_killed_owner_leaves_nothing() {
    all("KILL", |status| status.signal() == Some(9)).await;
}

pub(crate) async fn a_panicking_owner_leaves_nothing() {
    all("panic", |status| status.code() == Some(101)).await;
}

pub(crate) async fn an_exiting_owner_leaves_nothing() {
    all("exit", |status| status.code() == Some(CODE)).await;
}

pub(crate) async fn a_dropped_runtime_leaves_nothing() {
    all("runtime", ExitStatus::success).await;
}

pub(crate) async fn a_dropped_future_leaves_nothing() {
    all("future", ExitStatus::success).await;
}

/// All rounds of one end. `right` says how the process must have ended.
async fn all(end: &'static str, right: fn(&ExitStatus) -> bool) {
    let image = with_volume();
    let volumes = loose_volumes();
    let (tag, client) = (unique(end), client(BUSYBOX, "0").await);
    for first in (0..ROUNDS).step_by(usize::try_from(AT_ONCE).unwrap()) {
        std::thread::scope(|scope| {
            for n in first..first + AT_ONCE {
                let (image, tag) = (&image, &tag);
                scope.spawn(move || round(n, end, right, image, tag));
            }
        });
    }
    let start = Instant::now();
    loop {
        let left = labelled("leak", &tag);
        let more = &loose_volumes() - &volumes;
        if left.is_empty() && more.is_empty() {
            break;
        }
        assert!(start.elapsed() < REMOVED, "{left:?}, {more:?}");
        // One that a dead owner made and never started can't end by itself.
        client.gc().await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    docker(&["rmi", &image]);
}

fn round(n: u64, end: &str, right: fn(&ExitStatus) -> bool, image: &str, tag: &str) {
    let during = DURING[usize::try_from(n).unwrap() % DURING.len()];
    // The first numbers of close seeds are close.
    let mut random = Random(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    random.below(2);
    let after = random.below(WITHIN);
    let what = format!("{end} {after} ms into {during}");
    let own = format!("{tag}-{n}");
    let mut child = owner::spawn(&format!("end {end} {during} {after} {image} {tag} {own}"));
    let mut told = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n", "{what}");
    if ["INT", "TERM", "KILL"].contains(&end) {
        std::thread::sleep(Duration::from_millis(after));
        let (signal, pid) = (format!("-{end}"), child.id().to_string());
        let sent = Command::new("kill").args([&signal, &pid]).status().unwrap();
        assert!(sent.success(), "{what}");
    }
    if ["runtime", "future"].contains(&end) {
        line.clear();
        told.read_line(&mut line).unwrap();
        assert_eq!(line, "flushed\n", "{what}");
        // The process lives: its end is not what cleaned up.
        assert_eq!(labelled("round", &own), [""; 0], "{what}");
        drop(child.stdin.take());
    }
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    let status = child.wait().unwrap();
    assert!(right(&status) && rest.is_empty(), "{what}: {status} {rest}");
}

/// The owner of one round.
pub(crate) fn child(mut words: Split<'_, char>) {
    let mut next = || words.next().unwrap();
    let (end, during, after) = (next(), next().to_owned(), next().parse().unwrap());
    let (image, tag, own) = (next(), next(), next());
    let spec = SandboxSpec::new().label("leak", tag).label("round", own);
    let after = Duration::from_millis(after);
    let runtime = Runtime::new().unwrap();
    let client = runtime.block_on(client(image, "1000"));
    let sandbox = match during.as_str() {
        "create" => None,
        _ => Some(runtime.block_on(client.create(spec.clone())).unwrap()),
    };
    owner::print("begun");
    let over = Arc::new(AtomicBool::new(false));
    let dropping = Arc::clone(&over);
    let work = async move {
        // Only the end ends it. While a runtime is dropped, its connections may go first.
        if let Err(e) = work(&during, client, spec, sandbox).await
            && !dropping.load(Ordering::SeqCst)
        {
            owner::print(e);
            std::process::exit(3);
        }
    };
    match end {
        "panic" => {
            // Nobody wants to read of it.
            std::panic::set_hook(Box::new(|_| {}));
            runtime.block_on(async {
                tokio::select! {
                    () = work => {}
                    () = sleep(after) => panic!("on purpose"),
                }
            });
        }
        "exit" => runtime.block_on(async {
            tokio::select! {
                () = work => {}
                () = sleep(after) => std::process::exit(CODE),
            }
        }),
        "runtime" => {
            runtime.spawn(work);
            std::thread::sleep(after);
            over.store(true, Ordering::SeqCst);
            drop(runtime);
            flushed();
        }
        "future" => {
            let ended = runtime.block_on(async { timeout(after, work).await });
            assert!(ended.is_err());
            flushed();
        }
        // A signal.
        _ => runtime.block_on(work),
    }
}

/// Tells so once all is cleaned up, and lives on until the test has looked.
fn flushed() {
    assert!(flush(REMOVED));
    owner::print("flushed");
    // Its end is all that matters.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Does one thing over and over.
async fn work(
    during: &str,
    client: Client,
    spec: SandboxSpec,
    sandbox: Option<Sandbox>,
) -> Result<(), Error> {
    let big = vec![7; 20 << 20];
    loop {
        match &sandbox {
            None => drop(client.create(spec.clone()).await?),
            Some(sandbox) if during == "upload" => {
                sandbox.upload("/workspace/big", big.clone()).await?;
            }
            Some(sandbox) => {
                let command = "(setsid sleep 111 >/dev/null 2>&1 &); sleep 0.1; echo ok";
                sandbox.execute(command).await?;
            }
        }
    }
}

/// An image whose containers have a volume each.
fn with_volume() -> String {
    let base = docker(&["create", BUSYBOX]);
    let image = format!("{}:latest", unique("sandbox-test-volume"));
    docker(&["commit", "--change", "VOLUME /data", &base, &image]);
    docker(&["rm", &base]);
    image
}

/// The volumes without a name that no container has: removed with their container, there are none.
fn loose_volumes() -> BTreeSet<String> {
    let nameless = |v: &&str| v.len() == 64 && v.bytes().all(|b| b.is_ascii_hexdigit());
    docker(&["volume", "ls", "-q", "--filter", "dangling=true"])
        .lines()
        .filter(nameless)
        .map(str::to_owned)
        .collect()
}
