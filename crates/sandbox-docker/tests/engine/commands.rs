//! Commands, and what happens to them from outside.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sandbox_core::{Command, ErrorKind, LogCursor, Status};

use crate::support::{BUSYBOX, GNU, docker, has_begun, sandbox};

pub(crate) async fn stopped_from_outside_is_gone() {
    let sandbox = sandbox(GNU, "0").await;
    docker(&["kill", sandbox.id().as_str()]);
    let start = Instant::now();
    let gone = sandbox.execute("echo hi").await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::SandboxGone, "{gone}");
    let gone = sandbox.upload("/tmp/x", "x").await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::SandboxGone, "{gone}");
    assert!(start.elapsed() < Duration::from_secs(10));
}

pub(crate) async fn a_command_whose_container_dies_is_lost_and_keeps_its_output() {
    let sandbox = sandbox(GNU, "1000").await;
    let id = sandbox.id().to_string();
    let killer = async {
        has_begun(&sandbox, "/tmp/begun").await;
        // What it printed may take a while.
        tokio::time::sleep(Duration::from_secs(1)).await;
        docker(&["kill", &id]);
    };
    let start = Instant::now();
    let text = "echo before; : >/tmp/begun; sleep 120";
    let (run, ()) = tokio::join!(sandbox.execute(text), killer);
    let run = run.unwrap();
    assert!(matches!(run.status, Status::Lost(_)), "{:?}", run.status);
    assert_eq!(run.stdout, "before\n");
    assert!(start.elapsed() < Duration::from_mins(1));
}

pub(crate) async fn paused_from_outside_is_told() {
    let sandbox = sandbox(GNU, "0").await;
    docker(&["pause", sandbox.id().as_str()]);
    let command = Command::shell("echo hi").timeout(Duration::from_secs(3));
    let paused = sandbox.execute(command).await.unwrap_err();
    assert_eq!(paused.kind(), ErrorKind::SandboxPaused, "{paused}");
    let paused = sandbox.download("/etc/passwd").await.unwrap_err();
    assert_eq!(paused.kind(), ErrorKind::SandboxPaused, "{paused}");
    docker(&["unpause", sandbox.id().as_str()]);
    assert_eq!(sandbox.execute("echo ok").await.unwrap().stdout, "ok\n");
}

pub(crate) async fn a_deadline_holds_though_it_was_paused_from_outside() {
    let sandbox = sandbox(GNU, "1000").await;
    let text = "echo before; : >/tmp/begun; sleep 60";
    let command = Command::shell(text).timeout(Duration::from_secs(8));
    let pausing = async {
        has_begun(&sandbox, "/tmp/begun").await;
        docker(&["pause", sandbox.id().as_str()]);
    };
    let start = Instant::now();
    let (run, ()) = tokio::join!(sandbox.execute(command), pausing);
    let run = run.unwrap();
    assert_eq!(run.status, Status::TimedOut);
    assert_eq!(run.stdout, "before\n");
    assert!(start.elapsed() < Duration::from_secs(30));
    // What can't be stopped has to die with all.
    assert!(run.sandbox_killed);
    let gone = sandbox.execute("echo hi").await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::SandboxGone, "{gone}");
}

pub(crate) async fn a_command_that_kills_all_it_may_is_told() {
    // Root's reaches what keeps the sandbox, another user's nothing.
    for (user, lives) in [("0", false), ("1000", true)] {
        let sandbox = sandbox(BUSYBOX, user).await;
        let command = Command::shell("echo before; kill -9 -1; kill -TERM 1; sleep 2; exit 3");
        let run = sandbox
            .execute(command.timeout(Duration::from_secs(20)))
            .await
            .unwrap();
        assert_eq!(run.stdout, "before\n");
        if lives {
            assert_eq!(run.status, Status::Exited(3));
            assert_eq!(sandbox.execute("echo ok").await.unwrap().stdout, "ok\n");
        } else {
            assert!(matches!(run.status, Status::Lost(_)), "{:?}", run.status);
            let gone = sandbox.execute("echo hi").await.unwrap_err();
            assert_eq!(gone.kind(), ErrorKind::SandboxGone, "{gone}");
        }
        sandbox.kill().await.unwrap();
    }
}

pub(crate) async fn every_exit_code_arrives() {
    let sandbox = sandbox(BUSYBOX, "1000").await;
    for tens in 0..20 {
        let runs = (0..10).map(|n| sandbox.execute(format!("exit {}", tens * 10 + n)));
        for (n, run) in (0..).zip(join_all(runs).await) {
            assert_eq!(run.unwrap().status, Status::Exited(tens * 10 + n));
        }
    }
}

pub(crate) async fn hundreds_at_once_get_their_own_output() {
    let sandbox = sandbox(GNU, "0").await;
    for round in 0..10 {
        let runs = (0..50).map(|i| sandbox.execute(format!("echo running-{round}-{i}")));
        for (i, run) in join_all(runs).await.into_iter().enumerate() {
            assert_eq!(
                run.unwrap().stdout,
                format!("running-{round}-{i}\n").as_str()
            );
        }
    }
}

pub(crate) async fn frames_in_the_output_are_bytes() {
    let sandbox = sandbox(GNU, "0").await;
    let forged = sandbox
        .execute(r"printf '\001\000\000\000\000\000\000\005hello'")
        .await
        .unwrap();
    assert_eq!(forged.stdout, b"\x01\0\0\0\0\0\0\x05hello");
    let command = Command::shell("head -c 1000000 /dev/urandom >r; base64 -w0 r; sha256sum r >&2")
        .output_limit(2_000_000);
    let run = sandbox.execute(command).await.unwrap();
    assert_eq!(run.stdout.bytes().len(), 1_333_336);
    let back = Command::shell("base64 -d | sha256sum").stdin(run.stdout.bytes().clone());
    let back = sandbox.execute(back).await.unwrap();
    assert_eq!(back.stdout.bytes()[..64], run.stderr.bytes()[..64]);
}

pub(crate) async fn starting_commands_survive_another_one_s_death() {
    let sandbox = sandbox(GNU, "0").await;
    for _ in 0..5 {
        let doomed = Command::shell("sleep 50 & sleep 60").timeout(Duration::from_millis(300));
        let doomed = sandbox.execute(doomed);
        let others = join_all((0..20).map(|i| {
            let sandbox = &sandbox;
            async move {
                tokio::time::sleep(Duration::from_millis(i * 40)).await;
                sandbox.execute("echo alive").await
            }
        }));
        let (doomed, others) = tokio::join!(doomed, others);
        assert_eq!(doomed.unwrap().status, Status::TimedOut);
        for other in others {
            assert_eq!(other.unwrap().stdout, "alive\n");
        }
    }
}

/// The HTTP client below has a deadline of two minutes for requests; a command is not one.
pub(crate) async fn a_silent_command_outlives_the_client_s_own_deadline() {
    let sandbox = sandbox(BUSYBOX, "1000").await;
    let run = sandbox.execute("sleep 125; echo ok").await.unwrap();
    assert_eq!(run.stdout, "ok\n");
    assert!(run.success());
}

pub(crate) async fn zombies_are_reaped() {
    let sandbox = sandbox(GNU, "1000").await;
    let many = "i=0; while [ $i -lt 300 ]; do (sleep 0 &); i=$((i+1)); done; sleep 1; \
                grep -c '^[0-9]* ([^)]*) Z' /proc/[0-9]*/stat | grep -c ':1$'";
    let run = sandbox.execute(many).await.unwrap();
    let zombies: u32 = run.stdout.to_text().trim().parse().unwrap();
    assert!(zombies < 10, "{zombies}");
}

pub(crate) async fn background_commands_live_on_and_die_when_told() {
    let sandbox = sandbox(BUSYBOX, "1000").await;
    let process = sandbox
        .spawn("echo out; echo err >&2; sleep 100 & sleep 101")
        .await
        .unwrap();
    let again = sandbox.process(process.id().clone());
    drop(process);
    let start = Instant::now();
    let logs = loop {
        let logs = again.logs(LogCursor::default(), 100).await.unwrap();
        if !logs.stderr.is_empty() {
            break logs;
        }
        assert!(start.elapsed() < Duration::from_secs(10));
    };
    assert_eq!(
        (&logs.stdout[..], &logs.stderr[..]),
        (&b"out\n"[..], &b"err\n"[..])
    );
    assert_eq!(again.status().await.unwrap(), None);
    again.kill().await.unwrap();
    assert!(again.wait().await.unwrap() != Status::Exited(0));
    let left =
        "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done | grep -c '^sleep 10'";
    assert_eq!(sandbox.execute(left).await.unwrap().stdout, "0\n");
}
