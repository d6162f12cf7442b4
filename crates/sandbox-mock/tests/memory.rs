//! Scripts that ask for endless memory: each ends, and this process stays under 1 GiB.
//!
//! Each runs in a process of its own, so that its peak can be told.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command as Process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sandbox_core::{Client, Command, SandboxSpec};
use sandbox_mock::MockProvider;

/// Says to the test `child` which script it runs.
const BOMB: &str = "SANDBOX_MOCK_TEST_BOMB";

/// The most that the whole process may have taken, in KiB.
const PEAK: u64 = 1 << 20;

const BOMBS: &[&str] = &[
    "x=a; while :; do x=$x$x; done",
    "head -c 5G /dev/zero | tr '\\0' x | wc -c",
    "head -c 5G /dev/zero | sort",
    "yes | sort",
    "yes | head -n 100000000 | sort | uniq -c",
    "yes >/tmp/f",
    "cat /dev/zero >/tmp/f",
    "echo x >f; while cat f f f >g && cp g f; do :; done",
    "yes | head -c 30000000 >f; cat f f f f f f f f | sort",
    "yes | head -c 30000000 >f; sort f f f f f f f f",
    "yes | head -c 30000000 >f; awk '{a[NR]=$0}' f f f f",
    "yes | head -c 30000000 >f; x=$(cat f f f f)",
    "seq 100000000 | sort -n | tail -1",
    "a=(); while :; do a+=(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx); done",
    "awk 'BEGIN{s=\"x\"; while(1) s = s s}'",
    "awk 'BEGIN{while(1) a[i++]=\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" i}'",
    "printf '%1000000000d' 1",
    "printf '%s' {1..9999}{1..9999}",
    "base64 /dev/zero | base64 | base64 | wc -c",
    "tr '\\0' '\\n' </dev/zero | sort",
    "f() { f | f & }; f",
    "while :; do echo xxxxxxxx; done | sort",
    "x=$(cat /dev/zero); echo ${#x}",
    "x=$(yes); echo ${#x}",
    "dd if=/dev/zero bs=1G count=10 | wc -c",
    "truncate -s 10G /tmp/f; cat /tmp/f | wc -c",
    "printf '%s\\n' $(seq 10000000) | wc -l",
    "i=0; while :; do echo x >/tmp/f$i; i=$((i+1)); done",
    "i=0; while :; do mkdir -p /tmp/d$i/a/b/c/d/e; i=$((i+1)); done",
    "head -c 100M /dev/zero | gzip | gzip -d | gzip | gzip -d | wc -c",
    "sed -e ':a' -e 's/x/xx/' -e 'ta' <<<x",
    "grep -o . /dev/zero | wc -l",
    "(while :; do echo xxxxxxxxxxxxxxxxxxxxxxxx; done) & wait",
    "while :; do sleep 1000 & done",
    "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done",
];

fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Without the variable it runs the first script, so that it never does nothing.
#[tokio::test]
async fn child() {
    let bomb = std::env::var(BOMB).map_or(0, |n| n.parse().unwrap());
    let sandbox = Client::new(MockProvider::new())
        .create(SandboxSpec::new())
        .await
        .unwrap();
    let command = Command::shell(BOMBS[bomb]).timeout(Duration::from_secs(4));
    let r = sandbox.execute(command).await.unwrap();
    let end = r.stderr.to_text();
    let end = end.lines().last().unwrap_or_default().to_owned();
    println!("peak={} status={:?} {end:.150}", peak(), r.status);
    assert!(!r.sandbox_killed, "{r:?}");
    assert_eq!(
        sandbox.execute("echo alive").await.unwrap().output(),
        "alive\n"
    );
    assert!(peak() < PEAK, "{} KiB", peak());
}

/// Runs one in a process of its own. What it printed, if it did not end as it should.
fn bomb(n: usize) -> Result<(), String> {
    let out = Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(BOMB, n.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let line = text
        .lines()
        .find(|l| l.contains("peak="))
        .unwrap_or("no answer");
    eprintln!("{n} {:.60}: {line}", BOMBS[n]);
    if out.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&out.stderr);
    Err(format!("{}\n{text}\n{stderr}", BOMBS[n]))
}

#[test]
fn scripts_that_ask_for_endless_memory_end_within_bounds() {
    let next = AtomicUsize::new(0);
    let each = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        let numbers = numbers.take_while(|n| *n < BOMBS.len());
        numbers.filter_map(|n| bomb(n).err()).collect::<Vec<_>>()
    };
    // Two at once: each keeps one core busy.
    let failed = std::thread::scope(|scope| {
        let other = scope.spawn(each);
        let mut failed = each();
        failed.extend(other.join().unwrap());
        failed
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
