//! Output while a command runs.

use std::time::Duration;

use sandbox_core::{Command, ExecuteEvent, Status, Stream};

use super::needs::STREAMING;
use super::random_bytes;
use crate::{CaseResult, Cx, Failure};

cases! { "stream":
    output_comes_while_the_command_runs needs(STREAMING);
    the_end_comes_once_and_last needs(STREAMING);
    the_exit_code_comes_at_the_end needs(STREAMING);
    the_bytes_are_exact needs(STREAMING);
    stderr_is_marked_as_such needs(STREAMING);
    megabytes_come_without_a_limit needs(STREAMING);
    a_slow_reader_loses_nothing needs(STREAMING);
    a_deadline_ends_the_stream needs(STREAMING);
    dropping_the_stream_kills_the_command needs(STREAMING);
    input_cwd_and_variables_reach_the_command needs(STREAMING);
    collecting_a_stream_gives_a_response needs(STREAMING);
}

/// All events of a stream, the bytes of each output stream put together.
async fn drain(cx: &Cx, command: Command) -> Result<(Vec<u8>, Vec<u8>, Status), Failure> {
    let mut stream = cx.sandbox.stream(command).await?;
    let (mut out, mut err, mut end) = (Vec::new(), Vec::new(), None);
    while let Some(event) = stream.next().await {
        check!(end.is_none(), "something comes after the end: {event:?}");
        match event {
            ExecuteEvent::Output(Stream::Stdout, bytes) => out.extend_from_slice(&bytes),
            ExecuteEvent::Output(Stream::Stderr, bytes) => err.extend_from_slice(&bytes),
            ExecuteEvent::Ended { status, .. } => end = Some(status),
            other => return Err(Failure::Wrong(format!("an unknown event: {other:?}"))),
        }
    }
    let end = end.ok_or_else(|| Failure::Wrong("no end came".to_owned()))?;
    Ok((out, err, end))
}

async fn output_comes_while_the_command_runs(cx: Cx) -> CaseResult {
    // It ends once it is told to, which happens after its output has come; by itself much later.
    let text = "echo a; i=0; while [ ! -e go ] && [ $i -lt 200 ]; do sleep 0.1; i=$((i+1)); done; \
                [ -e go ]";
    let mut stream = cx.sandbox.stream(cx.command(text)).await?;
    let first = stream.next().await;
    check!(
        matches!(&first, Some(ExecuteEvent::Output(Stream::Stdout, bytes)) if bytes.starts_with(b"a")),
        "{first:?}"
    );
    cx.put([("go", b"")]).await?;
    let rest = stream.collect(1000, false).await;
    check_eq!(rest.status, Status::Exited(0), "its output came at its end");
    Ok(())
}

async fn the_end_comes_once_and_last(cx: Cx) -> CaseResult {
    let mut stream = cx.sandbox.stream(cx.command("echo a")).await?;
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event);
    }
    check_eq!(last, Some(ExecuteEvent::ended(Status::Exited(0))));
    check_eq!(stream.next().await, None);
    Ok(())
}

async fn the_exit_code_comes_at_the_end(cx: Cx) -> CaseResult {
    for (text, status) in [("exit 7", 7), ("nosuchcmd_zz", 127), ("true", 0), (")", 2)] {
        check_eq!(
            drain(&cx, cx.command(text)).await?.2,
            Status::Exited(status),
            "{text}"
        );
    }
    Ok(())
}

async fn the_bytes_are_exact(cx: Cx) -> CaseResult {
    let bytes = random_bytes(5, 300_000);
    cx.put([("f", &bytes)]).await?;
    check!(
        drain(&cx, cx.command("cat f")).await?.0 == bytes,
        "they differ"
    );
    check_eq!(
        drain(&cx, cx.command("printf 'a\\n\\nb\\r\\n\\nc'"))
            .await?
            .0,
        b"a\n\nb\r\n\nc".to_vec()
    );
    Ok(())
}

async fn stderr_is_marked_as_such(cx: Cx) -> CaseResult {
    let (out, err, _) = drain(&cx, cx.command("echo o; echo e >&2")).await?;
    if cx.caps().separate_streams {
        check_eq!((out, err), (b"o\n".to_vec(), b"e\n".to_vec()));
    } else {
        check_eq!((out, err), (b"o\ne\n".to_vec(), Vec::new()));
    }
    Ok(())
}

async fn megabytes_come_without_a_limit(cx: Cx) -> CaseResult {
    cx.put([("f", &vec![b'x'; 3_000_000])]).await?;
    let (out, _, end) = drain(&cx, cx.command("cat f; exit 3").output_limit(10)).await?;
    check_eq!((out.len(), end), (3_000_000, Status::Exited(3)));
    Ok(())
}

async fn a_slow_reader_loses_nothing(cx: Cx) -> CaseResult {
    cx.put([("f", &random_bytes(6, 400_000))]).await?;
    let mut stream = cx
        .sandbox
        .stream(cx.command("for i in 1 2 3 4 5 6; do cat f; done"))
        .await?;
    let (mut bytes, mut events) = (0, 0);
    while let Some(event) = stream.next().await {
        if let ExecuteEvent::Output(_, b) = &event {
            bytes += b.len();
        }
        events += 1;
        if events < 30 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    check_eq!(bytes, 2_400_000);
    Ok(())
}

async fn a_deadline_ends_the_stream(cx: Cx) -> CaseResult {
    let command = cx.command("echo before; : >printed; sleep 60");
    // A machine that has much to do may not let it come that far in half a second.
    for deadline in [500, 10_000] {
        let deadline = Duration::from_millis(deadline);
        let (out, _, end) = drain(&cx, command.clone().timeout(deadline)).await?;
        check_eq!(end, Status::TimedOut);
        if cx.exists("printed").await? {
            check_eq!(out, b"before\n".to_vec());
            return Ok(());
        }
    }
    Err(Failure::Wrong("it has not begun in 10 s".to_owned()))
}

async fn dropping_the_stream_kills_the_command(cx: Cx) -> CaseResult {
    let text = "echo x >>log; echo began; while :; do echo x >>log; sleep 0.05; done";
    let mut stream = cx.sandbox.stream(cx.command(text)).await?;
    check!(stream.next().await.is_some(), "no event");
    drop(stream);
    cx.falls_silent("log").await
}

async fn input_cwd_and_variables_reach_the_command(cx: Cx) -> CaseResult {
    let command = cx
        .command("pwd; echo \"$A\"; cat")
        .stdin("in")
        .env("A", "1 2");
    let (out, _, _) = drain(&cx, command).await?;
    check_eq!(
        String::from_utf8_lossy(&out),
        format!("{}\n1 2\nin", cx.dir)
    );
    Ok(())
}

async fn collecting_a_stream_gives_a_response(cx: Cx) -> CaseResult {
    let stream = cx.sandbox.stream(cx.command("seq 1 20000; exit 5")).await?;
    let r = stream.collect(1000, false).await;
    check_eq!((r.status.clone(), r.truncated()), (Status::Exited(5), true));
    check!(r.stdout.tail().ends_with(b"20000\n"), "{:?}", r.stdout);
    Ok(())
}
