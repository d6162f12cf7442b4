//! The optional families: streaming, background commands, lease, snapshots, and that hidden ones
//! are hidden.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant, SystemTime};

use sandbox_core::{
    Client, Command, ErrorKind, ExecuteEvent, LogCursor, Sandbox, SandboxSpec, Status,
};
use sandbox_mock::{MockConfig, MockProvider};

async fn sandbox() -> Sandbox {
    Client::new(MockProvider::new())
        .create(SandboxSpec::new())
        .await
        .unwrap()
}

#[tokio::test]
async fn output_comes_while_the_command_runs() {
    let s = sandbox().await;
    let start = Instant::now();
    let mut stream = s
        .stream("echo a; sleep 1; echo b >&2; exit 3")
        .await
        .unwrap();
    let Some(ExecuteEvent::Output(_, first)) = stream.next().await else {
        panic!("no output");
    };
    assert_eq!(&first[..], b"a\n");
    assert!(start.elapsed() < Duration::from_millis(700));
    let r = stream.collect(100, true).await;
    assert_eq!(
        (r.status, r.stderr.to_text()),
        (Status::Exited(3), "b\n".into())
    );
}

#[tokio::test]
async fn a_slow_reader_slows_the_command_down_and_none_stops_it() {
    let s = sandbox().await;
    let text = "i=0; while [ $i -lt 400 ]; do head -c 10000 /dev/zero; i=$((i+1)); done; echo end >/tmp/end";
    let mut stream = s.stream(text).await.unwrap();
    stream.next().await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(s.download("/tmp/end").await.is_err());
    let r = stream.collect(1 << 30, false).await;
    assert_eq!(r.status, Status::Exited(0));
    assert!(s.download("/tmp/end").await.is_ok());

    let mut stream = s.stream("echo a; while :; do echo x; done").await.unwrap();
    stream.next().await.unwrap();
    drop(stream);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(s.execute("echo alive").await.unwrap().output(), "alive\n");
}

#[tokio::test]
async fn background_commands_run_are_read_and_killed() {
    let s = sandbox().await;
    let p = s.spawn("echo out; echo err >&2; sleep 60").await.unwrap();
    assert_eq!(p.status().await.unwrap(), None);
    let mut logs = p.logs(LogCursor::default(), 100).await.unwrap();
    while logs.stdout.is_empty() || logs.stderr.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
        logs = p.logs(LogCursor::default(), 100).await.unwrap();
    }
    assert_eq!(
        (&logs.stdout[..], &logs.stderr[..]),
        (&b"out\n"[..], &b"err\n"[..])
    );
    assert!(p.logs(logs.next, 100).await.unwrap().stdout.is_empty());
    let part = p.logs(LogCursor::default(), 2).await.unwrap();
    assert_eq!(&part.stdout[..], b"ou");
    p.kill().await.unwrap();
    assert_eq!(p.wait().await.unwrap(), Status::Signaled(9));
    p.kill().await.unwrap();

    let short = s
        .spawn(Command::shell("sleep 30").timeout(Duration::from_millis(50)))
        .await
        .unwrap();
    assert_eq!(short.wait().await.unwrap(), Status::TimedOut);
    let done = s.spawn("exit 4").await.unwrap();
    let again = s.process(done.id().clone());
    assert_eq!(again.wait().await.unwrap(), Status::Exited(4));
    let unknown = s.process(sandbox_core::ProcessId("p99".into()));
    assert_eq!(
        unknown.status().await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn a_snapshot_brings_files_back_with_their_modes() {
    let s = sandbox().await;
    s.execute("echo 1 >f; chmod 640 f; mkdir d; ln -s f l")
        .await
        .unwrap();
    let before = s.snapshot().await.unwrap();
    s.execute("echo 2 >f; chmod 600 f; rm -r d l; echo n >new")
        .await
        .unwrap();
    s.restore(&before).await.unwrap();
    let r = s.execute("cat f; stat -c %a f; ls").await.unwrap();
    assert_eq!(r.output(), "1\n640\nd\nf\nl\n");
    let unknown = sandbox_core::SnapshotId("none".into());
    assert_eq!(
        s.restore(&unknown).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn the_lifetime_ends_a_sandbox_and_renewing_moves_the_end() {
    let client = Client::new(MockProvider::new());
    let spec = || SandboxSpec::new().lifetime(Duration::from_millis(300));
    let (short, long) = (
        client.create(spec()).await.unwrap(),
        client.create(spec()).await.unwrap(),
    );
    long.renew(Duration::from_mins(1)).await.unwrap();
    let end = long.expires_at().await.unwrap().unwrap();
    assert!(end > SystemTime::now() + Duration::from_secs(50));
    let running = short.execute("sleep 60").await.unwrap();
    assert!(matches!(running.status, Status::Lost(_)), "{running:?}");
    assert_eq!(
        short.execute("true").await.unwrap_err().kind(),
        ErrorKind::SandboxGone
    );
    assert_eq!(
        client.connect(short.id()).await.unwrap_err().kind(),
        ErrorKind::SandboxGone
    );
    assert!(long.execute("true").await.unwrap().success());
    assert_eq!(
        long.pause().await.unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}

#[tokio::test]
async fn sandboxes_are_found_again_in_this_process() {
    let client = Client::new(MockProvider::new());
    let name = "families-found-again";
    let spec = || SandboxSpec::new().label("who", name);
    let (a, b) = tokio::join!(
        client.get_or_create(name, spec()),
        client.get_or_create(name, spec())
    );
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(a.id(), b.id());
    a.upload("/workspace/f", "x").await.unwrap();
    drop((a, b));
    let other = Client::new(MockProvider::new());
    let found = other
        .list(&sandbox_core::Filter::all().label("who", name))
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    let again = other.connect(&found[0].id).await.unwrap();
    assert_eq!(&again.download("/workspace/f").await.unwrap()[..], b"x");
    again.kill().await.unwrap();
    assert!(
        other
            .list(&sandbox_core::Filter::all().label("who", name))
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn hidden_families_are_refused() {
    let provider = MockProvider::with(MockConfig::new().hide_families());
    let s = Client::new(provider)
        .create(SandboxSpec::new())
        .await
        .unwrap();
    let caps = s.capabilities();
    assert!(
        !(caps.streaming || caps.processes || caps.native_files || caps.lease || caps.snapshots)
    );
    assert_eq!(
        s.stream("true").await.unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    assert_eq!(
        s.spawn("true").await.unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    assert_eq!(
        s.snapshot().await.unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}
