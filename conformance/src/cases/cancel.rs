//! Dropping the future of a call ends what it started.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};

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

/// Drops the call once `log` is there.
async fn drop_once_it_writes(cx: &Cx, text: &str) -> CaseResult {
    let mut call = pin!(cx.sandbox.execute(cx.command(text)));
    loop {
        match select(call.as_mut(), pin!(cx.exists("log"))).await {
            Either::Left((ended, _)) => check!(false, "`{text}` ended before: {ended:?}"),
            Either::Right((Ok(false), _)) => {}
            Either::Right((wrote, _)) => return wrote.map(drop),
        }
    }
}

async fn dropping_the_call_kills_the_command(cx: Cx) -> CaseResult {
    drop_once_it_writes(&cx, "while :; do echo x >>log; sleep 0.05; done").await?;
    cx.falls_silent("log").await
}

async fn dropping_the_call_kills_children_too(cx: Cx) -> CaseResult {
    let text = "(while :; do echo x >>log; sleep 0.05; done) & wait";
    drop_once_it_writes(&cx, text).await?;
    cx.falls_silent("log").await
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
