//! Inputs that have cost most in systems like this one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use sandbox_core::{Client, Command, Sandbox, SandboxSpec, Status};
use sandbox_mock::MockProvider;

async fn sandbox() -> Sandbox {
    Client::new(MockProvider::new())
        .create(SandboxSpec::new())
        .await
        .unwrap()
}

#[tokio::test]
async fn what_was_stopped_does_nothing_later() {
    let s = sandbox().await;
    let timed = Command::shell("sleep 1; touch /tmp/timed").timeout(Duration::from_millis(100));
    assert_eq!(s.execute(timed).await.unwrap().status, Status::TimedOut);
    let dropped = s.execute("sleep 1; touch /tmp/dropped");
    assert!(
        tokio::time::timeout(Duration::from_millis(100), dropped)
            .await
            .is_err()
    );
    let process = s.spawn("sleep 1; touch /tmp/killed").await.unwrap();
    process.kill().await.unwrap();
    let background = Command::shell("(sleep 1; touch /tmp/child) & sleep 60")
        .timeout(Duration::from_millis(100));
    assert_eq!(
        s.execute(background).await.unwrap().status,
        Status::TimedOut
    );
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(s.ls("/tmp").await.unwrap().entries.is_empty());
}

#[tokio::test]
async fn large_output_never_blocks_and_says_what_was_dropped() {
    let s = sandbox().await;
    let r = s
        .execute(
            "for i in 1 2 3 4 5; do head -c 1000000 /dev/zero; done | tr '\\0' e >&2; echo done",
        )
        .await
        .unwrap();
    assert_eq!(
        (r.status.clone(), r.stdout.to_text().as_str()),
        (Status::Exited(0), "done\n")
    );
    assert!(r.truncated());
    for n in [65_535, 65_536, 65_537] {
        let text = format!("printf '%{n}s' | tr ' ' x; echo; echo tail");
        let text = text.replace(
            &format!("printf '%{n}s'"),
            &format!("head -c {n} /dev/zero | tr '\\0' ' '"),
        );
        let r = s.execute(text).await.unwrap();
        assert_eq!((r.stdout.bytes().len(), r.truncated()), (n + 6, false));
    }
    for (n, cut) in [(99, false), (100, false), (101, true)] {
        let command = Command::shell(format!("head -c {n} /dev/zero; exit 7")).output_limit(100);
        let r = s.execute(command).await.unwrap();
        assert_eq!((r.truncated(), r.status), (cut, Status::Exited(7)), "{n}");
    }
}

#[tokio::test]
async fn characters_are_not_torn() {
    let s = sandbox().await;
    let r = s
        .execute("printf '\\303'; sleep 0.1; printf '\\251\\n'")
        .await
        .unwrap();
    assert_eq!(r.output(), "é\n");
    let r = s
        .execute("printf 'ok\\377\\376\\n'; echo end")
        .await
        .unwrap();
    assert_eq!(r.output(), "ok\u{fffd}\u{fffd}\nend\n");
}

#[tokio::test]
async fn input_ends_at_once_unless_given() {
    let s = sandbox().await;
    for text in ["cat", "read x; echo rc=$?", "sort", "wc -c"] {
        let start = Instant::now();
        let command = Command::shell(text).timeout(Duration::from_secs(10));
        assert_ne!(
            s.execute(command).await.unwrap().status,
            Status::TimedOut,
            "{text}"
        );
        assert!(start.elapsed() < Duration::from_secs(1), "{text}");
    }
    let all: Vec<u8> = (0..=255).collect();
    let r = s
        .execute(Command::shell("cat").stdin(all.clone()))
        .await
        .unwrap();
    assert_eq!(r.stdout, &all[..]);
}

#[tokio::test]
async fn long_text_and_arguments_work() {
    let s = sandbox().await;
    let long = "x".repeat(140 << 10);
    let r = s
        .execute(format!("printf %s {long} | wc -c"))
        .await
        .unwrap();
    assert_eq!(r.output().trim(), (140 << 10).to_string());
    let r = s
        .execute(Command::new("printf").arg("%s").arg(&long))
        .await
        .unwrap();
    assert_eq!(r.stdout.bytes().len(), 140 << 10);
    let content = "line\n".repeat(500_000);
    s.write("/workspace/big", content.clone()).await.unwrap();
    assert_eq!(s.download("/workspace/big").await.unwrap(), content);
}

#[tokio::test]
async fn content_is_data() {
    let s = sandbox().await;
    let content =
        "EOF\nEOT\n{0} %s $1 \\1 `touch /tmp/pwned` $(touch /tmp/pwned)\n'; touch /tmp/pwned; '\n";
    s.write("/workspace/f", content).await.unwrap();
    s.edit("/workspace/f", "%s", "$& $1 \\1 &", false)
        .await
        .unwrap();
    let expected = content.replace("%s", "$& $1 \\1 &");
    assert_eq!(s.download("/workspace/f").await.unwrap(), expected);
    assert!(s.ls("/tmp").await.unwrap().entries.is_empty());
}

#[tokio::test]
async fn commands_at_once_do_not_wait_for_each_other() {
    let s = sandbox().await;
    let start = Instant::now();
    // More than the machine has processors, and one that all the others wait for.
    let waiting =
        (0..40).map(|_| s.execute("while [ ! -e /tmp/go ]; do sleep 0.05; done; echo went"));
    let waiting = futures_util::future::join_all(waiting);
    let go = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        s.execute("touch /tmp/go").await
    };
    let (went, go) = tokio::join!(waiting, go);
    assert!(go.unwrap().success());
    assert!(went.into_iter().all(|r| r.unwrap().output() == "went\n"));
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn killing_the_sandbox_ends_everything_in_it() {
    let s = sandbox().await;
    s.execute("(sleep 60; echo) &").await.unwrap();
    s.spawn("while :; do :; done").await.unwrap();
    let process = s.spawn("sleep 60").await.unwrap();
    let (running, killed) = tokio::join!(s.execute("echo part; sleep 60"), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        s.kill().await
    });
    killed.unwrap();
    let running = running.unwrap();
    assert!(matches!(running.status, Status::Lost(_)), "{running:?}");
    assert_eq!(running.output(), "part\n");
    assert!(process.status().await.is_err());
    // No thread works on for it.
    let busy = || {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let times = stat.rsplit(' ').collect::<Vec<_>>();
        let at = times.len() - 14;
        times[at].parse::<u64>().unwrap() + times[at - 1].parse::<u64>().unwrap()
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = busy();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(
        busy() - before < 40,
        "{} ticks in half a second",
        busy() - before
    );
}
