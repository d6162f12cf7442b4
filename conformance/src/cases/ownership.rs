//! Who ends a sandbox, and when.

use std::time::{Duration, Instant};

use sandbox_core::{ErrorKind, Filter, SandboxId};

use crate::{CaseResult, Cx, Failure};

cases! { "ownership":
    the_last_drop_ends_an_owned_sandbox;
    a_clone_keeps_it_alive;
    a_connected_handle_never_ends_it minimal;
    a_detached_sandbox_lives_on;
    dropping_is_fast;
    dropping_the_call_that_makes_it_leaves_nothing;
    killing_and_dropping_is_no_error;
}

/// Waits until the sandbox is gone.
async fn ends(cx: &Cx, id: &SandboxId) -> CaseResult {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        match cx.client.connect(id).await {
            Err(e) if e.kind() == ErrorKind::SandboxGone => return Ok(()),
            Err(e) => return Err(e.into()),
            Ok(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    Err(Failure::Wrong(format!("{id} lives on")))
}

async fn the_last_drop_ends_an_owned_sandbox(cx: Cx) -> CaseResult {
    let sandbox = cx.another().await?;
    let id = sandbox.id().clone();
    drop(sandbox);
    ends(&cx, &id).await
}

async fn a_clone_keeps_it_alive(cx: Cx) -> CaseResult {
    let sandbox = cx.another().await?;
    let clone = sandbox.clone();
    drop(sandbox);
    tokio::time::sleep(Duration::from_millis(300)).await;
    check_eq!(clone.execute("echo ok").await?.stdout, "ok\n");
    let id = clone.id().clone();
    drop(clone);
    ends(&cx, &id).await
}

async fn a_connected_handle_never_ends_it(cx: Cx) -> CaseResult {
    for _ in 0..3 {
        drop(cx.client.connect(cx.sandbox.id()).await?);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    check_eq!(cx.sandbox.execute("echo ok").await?.stdout, "ok\n");
    Ok(())
}

async fn a_detached_sandbox_lives_on(cx: Cx) -> CaseResult {
    let sandbox = cx.another().await?;
    let reference = sandbox.detach().await?;
    drop(sandbox);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let again = cx.client.connect_ref(&reference).await?;
    check_eq!(again.execute("echo ok").await?.stdout, "ok\n");
    again.kill().await?;
    Ok(())
}

async fn dropping_is_fast(cx: Cx) -> CaseResult {
    // A thread can be held up for that long now and then, but not each time.
    let mut fastest = Duration::MAX;
    for _ in 0..3 {
        let sandbox = cx.another().await?;
        let id = sandbox.id().clone();
        let start = Instant::now();
        drop(sandbox);
        fastest = fastest.min(start.elapsed());
        ends(&cx, &id).await?;
    }
    check!(fastest < Duration::from_millis(100), "it took {fastest:?}");
    Ok(())
}

async fn dropping_the_call_that_makes_it_leaves_nothing(cx: Cx) -> CaseResult {
    let tag = format!("drop{}", cx.sandbox.id());
    for wait in [0, 1, 5, 20, 60] {
        let call = cx.client.create(cx.spec.clone().label("kit", &tag));
        // One that was made in time is dropped here too.
        let _ = tokio::time::timeout(Duration::from_millis(wait), call).await;
    }
    let start = Instant::now();
    loop {
        let left = cx.client.list(&Filter::all().label("kit", &tag)).await?;
        if left.is_empty() {
            return Ok(());
        }
        check!(
            start.elapsed() < Duration::from_secs(20),
            "{} live on",
            left.len()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn killing_and_dropping_is_no_error(cx: Cx) -> CaseResult {
    let sandbox = cx.another().await?;
    let id = sandbox.id().clone();
    sandbox.kill().await?;
    drop(sandbox);
    ends(&cx, &id).await
}
