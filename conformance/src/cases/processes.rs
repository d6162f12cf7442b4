//! Commands in the background.

use std::time::{Duration, Instant};

use sandbox_core::{ErrorKind, LogCursor, Process, ProcessId, Status};

use super::lines;
use super::needs::PROCESSES;
use crate::check::refused;
use crate::{CaseResult, Cx, Failure};

cases! { "processes":
    starting_does_not_wait_for_the_end needs(PROCESSES);
    waiting_gives_the_status needs(PROCESSES);
    the_status_is_known_after_the_end needs(PROCESSES);
    logs_continue_at_the_cursor needs(PROCESSES);
    logs_are_exact_and_split_by_stream needs(PROCESSES);
    logs_come_in_pieces_of_the_size_asked needs(PROCESSES);
    logs_are_there_after_the_end needs(PROCESSES);
    killing_ends_the_whole_tree needs(PROCESSES);
    killing_at_once_leaves_nothing needs(PROCESSES);
    killing_twice_is_a_success needs(PROCESSES);
    killing_one_that_has_ended_is_a_success needs(PROCESSES);
    a_dropped_handle_leaves_it_running needs(PROCESSES);
    a_dropped_wait_leaves_it_running needs(PROCESSES);
    an_id_picks_it_up_again needs(PROCESSES);
    an_unknown_id_is_not_found needs(PROCESSES);
    a_deadline_holds_in_the_background_too needs(PROCESSES);
    input_cwd_and_variables_reach_it needs(PROCESSES);
    several_run_side_by_side needs(PROCESSES);
}

const PATIENCE: Duration = Duration::from_secs(20);

async fn ended(process: &Process) -> Result<Status, Failure> {
    match tokio::time::timeout(PATIENCE, process.wait()).await {
        Ok(status) => Ok(status?),
        Err(_) => Err(Failure::Wrong("it does not end".to_owned())),
    }
}

/// All logs from the beginning, in pieces of `max`.
async fn logs(process: &Process, max: u64) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    let (mut out, mut err, mut cursor) = (Vec::new(), Vec::new(), LogCursor::default());
    loop {
        let piece = process.logs(cursor, max).await?;
        check!(
            piece.stdout.len() as u64 <= max && piece.stderr.len() as u64 <= max,
            "more than asked came"
        );
        if piece.stdout.is_empty() && piece.stderr.is_empty() {
            return Ok((out, err));
        }
        out.extend_from_slice(&piece.stdout);
        err.extend_from_slice(&piece.stderr);
        check_eq!(
            (piece.next.stdout, piece.next.stderr),
            (out.len() as u64, err.len() as u64)
        );
        cursor = piece.next;
    }
}

async fn starting_does_not_wait_for_the_end(cx: Cx) -> CaseResult {
    let start = Instant::now();
    let process = cx.sandbox.spawn(cx.command("sleep 20")).await?;
    check!(
        start.elapsed() < Duration::from_secs(8),
        "it took {:?}",
        start.elapsed()
    );
    check_eq!(process.status().await?, None);
    process.kill().await?;
    Ok(())
}

async fn waiting_gives_the_status(cx: Cx) -> CaseResult {
    let process = cx.sandbox.spawn(cx.command("sleep 0.3; exit 7")).await?;
    check_eq!(ended(&process).await?, Status::Exited(7));
    Ok(())
}

async fn the_status_is_known_after_the_end(cx: Cx) -> CaseResult {
    let process = cx.sandbox.spawn(cx.command("exit 3")).await?;
    ended(&process).await?;
    check_eq!(process.status().await?, Some(Status::Exited(3)));
    check_eq!(ended(&process).await?, Status::Exited(3));
    Ok(())
}

async fn logs_continue_at_the_cursor(cx: Cx) -> CaseResult {
    let text = "echo one; until [ -e go ]; do sleep 0.05; done; echo two";
    let process = cx.sandbox.spawn(cx.command(text)).await?;
    let mut first = process.logs(LogCursor::default(), 1000).await?;
    let start = Instant::now();
    while first.stdout.is_empty() && start.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(50)).await;
        first = process.logs(LogCursor::default(), 1000).await?;
    }
    check_eq!(first.stdout.to_vec(), b"one\n".to_vec());
    cx.put([("go", b"")]).await?;
    ended(&process).await?;
    check_eq!(
        process.logs(first.next, 1000).await?.stdout.to_vec(),
        b"two\n".to_vec()
    );
    Ok(())
}

async fn logs_are_exact_and_split_by_stream(cx: Cx) -> CaseResult {
    let process = cx
        .sandbox
        .spawn(cx.command("printf 'a\\n\\n\\377b'; printf e >&2"))
        .await?;
    ended(&process).await?;
    let (out, err) = logs(&process, 1000).await?;
    if cx.caps().separate_streams {
        check_eq!((out, err), (b"a\n\n\xffb".to_vec(), b"e".to_vec()));
    } else {
        check_eq!(out.len() + err.len(), 6);
    }
    Ok(())
}

async fn logs_come_in_pieces_of_the_size_asked(cx: Cx) -> CaseResult {
    let process = cx.sandbox.spawn(cx.command("seq 1 200")).await?;
    ended(&process).await?;
    let right = lines(200, |i| (i + 1).to_string());
    check_eq!(
        String::from_utf8_lossy(&logs(&process, 100).await?.0),
        right
    );
    Ok(())
}

async fn logs_are_there_after_the_end(cx: Cx) -> CaseResult {
    let process = cx.sandbox.spawn(cx.command("printf tail; exit 1")).await?;
    ended(&process).await?;
    for _ in 0..2 {
        check_eq!(logs(&process, 1000).await?.0, b"tail".to_vec());
    }
    Ok(())
}

/// Waits until a background command has made a file.
async fn appears(cx: &Cx, file: &str) -> CaseResult {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if cx.exists(file).await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(Failure::Wrong(format!("{file:?} was not made")))
}

async fn killing_ends_the_whole_tree(cx: Cx) -> CaseResult {
    let text = "(while :; do echo x >>log; sleep 0.05; done) & sleep 60";
    let process = cx.sandbox.spawn(cx.command(text)).await?;
    appears(&cx, "log").await?;
    process.kill().await?;
    let status = ended(&process).await?;
    check!(
        status != Status::Exited(0) && status != Status::TimedOut,
        "{status}"
    );
    let size = cx.get("log").await?.len();
    tokio::time::sleep(Duration::from_millis(500)).await;
    check_eq!(cx.get("log").await?.len(), size, "a child writes on");
    Ok(())
}

/// It may not even have begun.
async fn killing_at_once_leaves_nothing(cx: Cx) -> CaseResult {
    cx.put([("log", b"")]).await?;
    for _ in 0..4 {
        let text = "while :; do echo x >>log; sleep 0.05; done";
        cx.sandbox.spawn(cx.command(text)).await?.kill().await?;
    }
    let size = cx.get("log").await?.len();
    tokio::time::sleep(Duration::from_secs(1)).await;
    check_eq!(cx.get("log").await?.len(), size, "one goes on");
    Ok(())
}

async fn killing_twice_is_a_success(cx: Cx) -> CaseResult {
    let process = cx.sandbox.spawn(cx.command("sleep 60")).await?;
    process.kill().await?;
    process.kill().await?;
    Ok(())
}

async fn killing_one_that_has_ended_is_a_success(cx: Cx) -> CaseResult {
    let process = cx.sandbox.spawn(cx.command("exit 4")).await?;
    ended(&process).await?;
    process.kill().await?;
    check_eq!(
        process.status().await?,
        Some(Status::Exited(4)),
        "killing it changed its status"
    );
    Ok(())
}

async fn a_dropped_handle_leaves_it_running(cx: Cx) -> CaseResult {
    drop(
        cx.sandbox
            .spawn(cx.command("sleep 0.5; echo x >late"))
            .await?,
    );
    appears(&cx, "late").await
}

async fn a_dropped_wait_leaves_it_running(cx: Cx) -> CaseResult {
    let text = "until [ -e go ]; do sleep 0.05; done; exit 6";
    let process = cx.sandbox.spawn(cx.command(text)).await?;
    let waited = tokio::time::timeout(Duration::from_millis(200), process.wait()).await;
    check!(waited.is_err(), "{waited:?}");
    cx.put([("go", b"")]).await?;
    check_eq!(ended(&process).await?, Status::Exited(6));
    Ok(())
}

async fn an_id_picks_it_up_again(cx: Cx) -> CaseResult {
    let process = cx.sandbox.spawn(cx.command("echo out; exit 9")).await?;
    let id = process.id().clone();
    drop(process);
    let again = cx.sandbox.process(id);
    check_eq!(ended(&again).await?, Status::Exited(9));
    check_eq!(logs(&again, 100).await?.0, b"out\n".to_vec());
    Ok(())
}

async fn an_unknown_id_is_not_found(cx: Cx) -> CaseResult {
    cx.sandbox.spawn("true").await?;
    let none = cx.sandbox.process(ProcessId("no-such-process".to_owned()));
    refused(none.status().await, ErrorKind::NotFound)?;
    refused(
        none.logs(LogCursor::default(), 10).await,
        ErrorKind::NotFound,
    )?;
    refused(none.wait().await, ErrorKind::NotFound)?;
    refused(none.kill().await, ErrorKind::NotFound)?;
    Ok(())
}

async fn a_deadline_holds_in_the_background_too(cx: Cx) -> CaseResult {
    let command = cx.command("echo a; : >printed; sleep 60");
    // A machine that has much to do may not let it come that far in half a second.
    for deadline in [500, 10_000] {
        let deadline = Duration::from_millis(deadline);
        let process = cx.sandbox.spawn(command.clone().timeout(deadline)).await?;
        check_eq!(ended(&process).await?, Status::TimedOut);
        if cx.exists("printed").await? {
            check_eq!(logs(&process, 100).await?.0, b"a\n".to_vec());
            return Ok(());
        }
    }
    Err(Failure::Wrong("it has not begun in 10 s".to_owned()))
}

async fn input_cwd_and_variables_reach_it(cx: Cx) -> CaseResult {
    let command = cx
        .command("pwd; echo \"$A\"; cat")
        .stdin("in")
        .env("A", "1 2");
    let process = cx.sandbox.spawn(command).await?;
    ended(&process).await?;
    let out = logs(&process, 1000).await?.0;
    check_eq!(
        String::from_utf8_lossy(&out),
        format!("{}\n1 2\nin", cx.dir)
    );
    Ok(())
}

async fn several_run_side_by_side(cx: Cx) -> CaseResult {
    let mut all = Vec::new();
    for i in 0..8 {
        all.push(
            cx.sandbox
                .spawn(cx.command(&format!("sleep 0.2; echo {i}; exit {i}")))
                .await?,
        );
    }
    for (i, process) in (0..).zip(&all) {
        check_eq!(ended(process).await?, Status::Exited(i));
        check_eq!(logs(process, 100).await?.0, format!("{i}\n").into_bytes());
    }
    Ok(())
}
