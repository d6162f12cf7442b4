//! Dropping the future of a call ends what it started.

use std::time::Duration;

use crate::{CaseResult, Cx};

cases! { "cancel":
    dropping_the_call_kills_the_command;
    dropping_the_call_kills_children_too;
    dropping_a_call_leaves_other_commands_alone;
    dropping_many_calls_leaves_a_working_sandbox;
}

async fn drop_after(cx: &Cx, text: &str, ms: u64) -> CaseResult {
    let call = cx.sandbox.execute(cx.command(text));
    let ended = tokio::time::timeout(Duration::from_millis(ms), call).await;
    check!(ended.is_err(), "`{text}` ended before: {ended:?}");
    Ok(())
}

async fn dropping_the_call_kills_the_command(cx: Cx) -> CaseResult {
    drop_after(&cx, "echo x >began; sleep 1.5; echo x >late", 600).await?;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    check!(
        cx.exists("began").await?,
        "it never ran: the case shows nothing"
    );
    check!(!cx.exists("late").await?, "the command lived on");
    Ok(())
}

async fn dropping_the_call_kills_children_too(cx: Cx) -> CaseResult {
    drop_after(
        &cx,
        "(while :; do echo x >>log; sleep 0.05; done) & wait",
        600,
    )
    .await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let size = cx.get("log").await?.len();
    tokio::time::sleep(Duration::from_millis(500)).await;
    check_eq!(cx.get("log").await?.len(), size, "the child writes on");
    Ok(())
}

async fn dropping_a_call_leaves_other_commands_alone(cx: Cx) -> CaseResult {
    let (dropped, other) = tokio::join!(
        drop_after(&cx, "sleep 30", 300),
        cx.sh("sleep 1; echo alive")
    );
    dropped?;
    check_eq!(other?.stdout, "alive\n");
    Ok(())
}

async fn dropping_many_calls_leaves_a_working_sandbox(cx: Cx) -> CaseResult {
    for i in 0..20 {
        drop_after(&cx, "sleep 30", i * 5).await?;
    }
    check_eq!(cx.sh("echo ok").await?.stdout, "ok\n");
    Ok(())
}
