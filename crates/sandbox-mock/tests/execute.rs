//! What a command does, as any sandbox promises it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use sandbox_core::defaults::KILL_GRACE;
use sandbox_core::{Client, Command, ErrorKind, Sandbox, SandboxSpec, Status};
use sandbox_mock::MockProvider;

async fn sandbox() -> Sandbox {
    Client::new(MockProvider::new())
        .create(SandboxSpec::new())
        .await
        .unwrap()
}

async fn run(sandbox: &Sandbox, command: impl Into<Command>) -> (Status, String, String) {
    let r = sandbox.execute(command).await.unwrap();
    (r.status, r.stdout.to_text(), r.stderr.to_text())
}

#[tokio::test]
async fn bytes_are_exact() {
    let s = sandbox().await;
    for (text, bytes) in [
        ("printf abc", "abc"),
        ("echo abc", "abc\n"),
        (r"printf '\n\n'", "\n\n"),
        (r"printf 'a\n\nb\n\n\nc\n'", "a\n\nb\n\n\nc\n"),
        (r"printf 'a\rb\n'", "a\rb\n"),
    ] {
        assert_eq!(run(&s, text).await.1, bytes, "{text}");
    }
    let r = s.execute(r"printf 'ok\377\376\n'; echo end").await.unwrap();
    assert_eq!(r.stdout, b"ok\xff\xfe\nend\n");
}

#[tokio::test]
async fn exit_codes_and_signals() {
    let s = sandbox().await;
    for (text, status) in [
        ("exit 7", Status::Exited(7)),
        ("exit 256", Status::Exited(0)),
        ("exit 124", Status::Exited(124)),
        ("exit 137", Status::Exited(137)),
        ("kill -9 $$", Status::Signaled(9)),
        ("kill -SEGV $$", Status::Signaled(11)),
        ("nosuchcmd_zz", Status::Exited(127)),
        ("/etc/passwd", Status::Exited(126)),
        (")", Status::Exited(2)),
        ("if true; then", Status::Exited(2)),
        ("echo hi # note", Status::Exited(0)),
        ("cat <<EOF\nhi\nEOF", Status::Exited(0)),
    ] {
        let (got, stdout, stderr) = run(&s, text).await;
        assert_eq!(got, status, "{text}: {stdout} {stderr}");
        assert!(!stderr.contains("__leader"), "{text}: {stderr}");
    }
    assert_eq!(
        run(&s, Command::new("nosuchcmd_zz")).await.0,
        Status::Exited(127)
    );
    assert_eq!(
        run(&s, Command::new("/etc/passwd")).await.0,
        Status::Exited(126)
    );
    let argv = Command::new("printf")
        .arg("%s|")
        .args(["a b", "$HOME", "*"]);
    assert_eq!(run(&s, argv).await.1, "a b|$HOME|*|");
}

#[tokio::test]
async fn a_command_ends_with_its_leader() {
    let s = sandbox().await;
    let start = Instant::now();
    let started = run(&s, "(sleep 30 &); echo started").await;
    assert_eq!(
        (started.0, started.1.as_str()),
        (Status::Exited(0), "started\n")
    );
    assert_eq!(run(&s, "sleep 30 & exit 5").await.0, Status::Exited(5));
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    run(&s, "(sleep 0.2; echo late >/tmp/late) & exit 0").await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(run(&s, "cat /tmp/late").await.1, "late\n");
}

#[tokio::test]
async fn deadlines_keep_the_output() {
    let s = sandbox().await;
    for text in ["echo before; sleep 60", "echo before; while :; do :; done"] {
        let start = Instant::now();
        let command = Command::shell(text).timeout(Duration::from_millis(100));
        let r = s.execute(command).await.unwrap();
        assert_eq!(r.status, Status::TimedOut, "{text}");
        assert_eq!(r.stdout, "before\n", "{text}");
        assert!(!r.sandbox_killed);
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{text}: {:?}",
            start.elapsed()
        );
    }
    assert_eq!(run(&s, "echo alive").await.1, "alive\n");
}

/// Only its number of turns ends a loop inside `awk`: seconds of a core, and where those take longer
/// than the grace the sandbox goes with the command.
#[tokio::test]
async fn a_deadline_ends_a_loop_of_awk_within_the_grace() {
    let s = sandbox().await;
    let start = Instant::now();
    let text = "echo before; awk 'BEGIN{while(1);}'";
    let command = Command::shell(text).timeout(Duration::from_millis(100));
    let r = s.execute(command).await.unwrap();
    assert_eq!(
        (r.status, r.stdout.to_text()),
        (Status::TimedOut, "before\n".into())
    );
    let took = start.elapsed();
    assert!(took < Duration::from_secs(9), "{took:?}");
    // It goes for nothing less.
    assert!(!r.sandbox_killed || took >= KILL_GRACE, "{took:?}");
    assert_eq!(s.execute("echo alive").await.is_err(), r.sandbox_killed);
}

#[tokio::test]
async fn what_is_missing_before_the_start_is_an_error() {
    let s = sandbox().await;
    for command in [
        Command::shell("echo x").cwd("/missing"),
        Command::shell("echo x").user("nosuchuser"),
    ] {
        let e = s.execute(command).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound);
    }
    s.kill().await.unwrap();
    assert_eq!(
        s.execute("echo x").await.unwrap_err().kind(),
        ErrorKind::SandboxGone
    );
}

#[tokio::test]
async fn surroundings_are_as_asked() {
    let s = sandbox().await;
    let command = Command::shell("pwd; echo $A; cat")
        .cwd("/tmp")
        .env("A", "x  y")
        .stdin("in\n");
    assert_eq!(run(&s, command).await.1, "/tmp\nx y\nin\n");
    let merged = Command::shell("echo a; echo b >&2; echo c").merge_stderr();
    assert_eq!(run(&s, merged).await.1, "a\nb\nc\n");
    let r = s.execute("echo a; echo b >&2; echo c").await.unwrap();
    assert_eq!(r.output(), "a\nb\nc\n");
    assert_eq!(
        (r.stdout.to_text(), r.stderr.to_text()),
        ("a\nc\n".into(), "b\n".into())
    );
}

#[tokio::test]
async fn tools_write_to_the_standard_streams_by_name() {
    let s = sandbox().await;
    for (text, stdout, stderr) in [
        (
            "printf 'a\\377\\n' | tee /dev/stderr | wc -c",
            "3\n",
            b"a\xff\n",
        ),
        (
            "printf 'b\\377\\n' | tee /dev/fd/2 >/dev/null",
            "",
            b"b\xff\n",
        ),
        (
            "echo cc | tee /dev/stdout f | cat; cat f >&2",
            "cc\ncc\n",
            b"cc\n",
        ),
        (
            "printf 'd\\377\\n' | sed -n 'w /dev/stderr'",
            "",
            b"d\xff\n",
        ),
    ] {
        let r = s.execute(text).await.unwrap();
        assert!(r.success(), "{text}: {r:?}");
        assert_eq!(r.stdout, stdout, "{text}");
        assert_eq!(r.stderr.bytes(), &stderr[..], "{text}");
    }
}

#[tokio::test]
async fn redirections_of_the_shell_itself_lose_nothing() {
    let s = sandbox().await;
    assert_eq!(
        run(&s, "exec 2>&1; echo a; echo b >&2; echo c").await.1,
        "a\nb\nc\n"
    );
    assert_eq!(run(&s, "exec >/tmp/f; echo a; echo b").await.1, "");
    assert_eq!(run(&s, "cat /tmp/f").await.1, "a\nb\n");
    let start = Instant::now();
    let r = run(&s, "exec >/tmp/g 2>&1; sleep 30 & echo x; exit 4").await;
    assert_eq!(r.0, Status::Exited(4));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(run(&s, "exec 2>&1; if").await.0, Status::Exited(2));
}
