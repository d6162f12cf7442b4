//! An engine that stops, dies, hangs or has no room, in the middle of all. Each on one of its own.

use std::time::{Duration, Instant};

use sandbox_core::{
    Client, Command, Error, ErrorKind, ExecuteResponse, Filter, ReadOptions, Sandbox, SandboxSpec,
    Status, flush,
};
use tokio::time::sleep;

use crate::own_engine::OwnEngine;

/// What no call may take, the deadlines of an engine that answers nothing included.
const SETTLES: Duration = Duration::from_secs(90);

pub(crate) async fn an_engine_that_is_restarted_loses_what_ran_and_serves_on() {
    goes_and_comes("TERM").await;
}

pub(crate) async fn an_engine_that_is_killed_loses_what_ran_and_serves_on() {
    goes_and_comes("KILL").await;
}

async fn goes_and_comes(signal: &str) {
    let mut engine = OwnEngine::start();
    let client = engine.client().await;
    let sandbox = client.create(SandboxSpec::new()).await.unwrap();
    let (run, engine_back) = tokio::join!(sandbox.execute("echo before; sleep 600"), async {
        wait_for_output(&sandbox).await;
        let signal = signal.to_owned();
        // Waiting for the engine's end blocks.
        tokio::task::spawn_blocking(move || {
            engine.signal(&signal);
            engine
        })
        .await
    });
    engine = engine_back.unwrap();
    assert_lost(&run.unwrap());

    for error in all_calls(&client, &sandbox).await {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }

    engine.up();
    let gone = sandbox.execute("echo hi").await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::SandboxGone, "{gone}");
    drop(sandbox);
    let next = client.create(SandboxSpec::new()).await.unwrap();
    assert_eq!(next.execute("echo ok").await.unwrap().stdout, "ok\n");
    next.kill().await.unwrap();
    leaves_nothing(&engine).await;
}

pub(crate) async fn an_engine_that_hangs_is_given_up_and_serves_on_when_it_wakes() {
    let mut engine = OwnEngine::start();
    let client = engine.client().await;
    let sandbox = client.create(SandboxSpec::new()).await.unwrap();
    engine.signal("STOP");
    let start = Instant::now();
    let late = Command::shell("echo hi").timeout(Duration::from_secs(1));
    let late = sandbox.execute(late).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout, "{late}");
    let calls = all_calls(&client, &sandbox);
    for error in tokio::time::timeout(SETTLES, calls).await.unwrap() {
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    }
    assert!(start.elapsed() < 2 * SETTLES);
    engine.signal("CONT");
    assert_eq!(sandbox.execute("echo ok").await.unwrap().stdout, "ok\n");
    drop(sandbox);
    leaves_nothing(&engine).await;
}

pub(crate) async fn a_full_disk_is_told_and_harms_nothing_that_is_there() {
    let engine = OwnEngine::start();
    let client = engine.client().await;
    let sandbox = client.create(SandboxSpec::new()).await.unwrap();
    sandbox
        .write("/workspace/old", "as it was\n")
        .await
        .unwrap();
    let fill = "dd if=/dev/zero of=fill bs=1M; i=0; while echo x >>last; do :; done 2>/dev/null";
    let fill = sandbox.execute(fill).await.unwrap();
    assert!(fill.stderr.to_text().contains("No space left"), "{fill:?}");

    let content = "y".repeat(1 << 20);
    let refused = [
        sandbox.upload("/workspace/new", content.clone()).await,
        sandbox.write("/workspace/old", content.clone()).await,
        sandbox
            .edit("/workspace/old", "was", &content, false)
            .await
            .map(drop),
    ];
    for error in refused.map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
    }
    let old = sandbox.read("/workspace/old", ReadOptions::default()).await;
    assert_eq!(old.unwrap().text(), Some("as it was"));
    assert_eq!(sandbox.execute("echo hi").await.unwrap().stdout, "hi\n");
    let no_room = client.create(SandboxSpec::new()).await.map(drop);
    assert_eq!(no_room.unwrap_err().kind(), ErrorKind::LimitExceeded);

    sandbox.delete("/workspace/fill").await.unwrap();
    sandbox.write("/workspace/old", "new\n").await.unwrap();
    sandbox.kill().await.unwrap();
    leaves_nothing(&engine).await;
}

/// A moment at which the command surely runs and has printed.
async fn wait_for_output(sandbox: &Sandbox) {
    let runs = "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done | grep '^sleep 600'";
    while !sandbox.execute(runs).await.unwrap().success() {
        sleep(Duration::from_millis(50)).await;
    }
}

fn assert_lost(run: &ExecuteResponse) {
    assert!(matches!(run.status, Status::Lost(_)), "{:?}", run.status);
    assert_eq!(run.stdout, "before\n");
}

/// What each kind of call says to an engine that does nothing.
async fn all_calls(client: &Client, sandbox: &Sandbox) -> Vec<Error> {
    let all = Filter::all();
    let (execute, upload, download, create, list, renew) = tokio::join!(
        sandbox.execute("echo hi"),
        sandbox.upload("/workspace/x", "x"),
        sandbox.download("/etc/passwd"),
        client.create(SandboxSpec::new()),
        client.list(&all),
        sandbox.renew(Duration::from_mins(1)),
    );
    vec![
        execute.unwrap_err(),
        upload.unwrap_err(),
        download.unwrap_err(),
        create.map(drop).unwrap_err(),
        list.unwrap_err(),
        renew.unwrap_err(),
    ]
}

/// The engine has no container and no volume, at the latest in a while.
async fn leaves_nothing(engine: &OwnEngine) {
    assert!(flush(SETTLES));
    let start = Instant::now();
    loop {
        let listed = engine.docker(&["ps", "-aq"]);
        // One that was killed may list what it has removed: Docker 20.10 keeps the entry.
        let mut left: Vec<&str> = listed.lines().filter(|id| engine.has(id)).collect();
        let volumes = engine.docker(&["volume", "ls", "-q"]);
        left.extend(volumes.lines());
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed() < SETTLES, "{left:?}");
        sleep(Duration::from_millis(100)).await;
    }
}
