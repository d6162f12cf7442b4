//! Deadlines end the call and the command.

use std::time::{Duration, Instant};

use sandbox_core::{Command, ErrorKind, Status, defaults};

use super::needs::PROCESS_TABLE;
use crate::check::refused;
use crate::{CaseResult, Cx, Failure};

cases! { "timeout":
    what_was_printed_before_the_deadline_is_there minimal;
    output_up_to_the_deadline_is_there minimal;
    the_call_ends_soon_after_the_deadline minimal;
    a_timeout_is_no_exit_code minimal;
    a_command_in_time_is_left_alone minimal;
    exit_124_and_137_are_no_timeouts minimal;
    the_program_timeout_is_no_timeout_of_ours;
    after_the_deadline_nothing_more_happens minimal;
    children_die_with_the_command;
    a_pipeline_dies_as_a_whole;
    ignoring_sigterm_does_not_help;
    an_emptied_environment_hides_no_child;
    a_session_of_its_own_hides_no_child needs(PROCESS_TABLE);
    a_daemon_dies_too needs(PROCESS_TABLE);
    a_stopped_process_dies_too needs(PROCESS_TABLE);
    closed_output_hides_no_command minimal;
    unread_input_delays_no_deadline;
    endless_output_delays_no_deadline needs(PROCESS_TABLE);
    a_busy_loop_ends minimal;
    a_program_has_a_deadline_too minimal;
    other_commands_live_on;
    the_sandbox_works_afterwards minimal;
    a_millisecond_is_a_deadline minimal;
    fractions_of_a_second_count minimal;
    the_longest_deadline_is_none minimal;
    a_deadline_of_zero_is_refused minimal;
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Runs a command that must time out, and in time.
async fn times_out(cx: &Cx, command: Command) -> Result<sandbox_core::ExecuteResponse, Failure> {
    let deadline = command.timeout.unwrap_or_default();
    let start = Instant::now();
    let r = cx.sandbox.execute(command).await?;
    let took = start.elapsed();
    check_eq!(r.status, Status::TimedOut);
    let most = deadline + defaults::KILL_GRACE + Duration::from_secs(2);
    check!(
        took >= deadline && took < most,
        "it took {took:?} of {deadline:?}"
    );
    check!(!r.sandbox_killed, "the whole sandbox had to be killed");
    Ok(r)
}

/// As [`times_out`], for a command without a deadline that makes `file` once it has done what the
/// case is about. A machine that has much to do may not let it come that far in half a second.
async fn times_out_after(
    cx: &Cx,
    command: Command,
    file: &str,
) -> Result<sandbox_core::ExecuteResponse, Failure> {
    for deadline in [500, 3_000, 20_000] {
        let r = times_out(cx, command.clone().timeout(ms(deadline))).await?;
        if cx.exists(file).await? {
            return Ok(r);
        }
    }
    Err(Failure::Wrong(format!("{file:?} was not made in 20 s")))
}

/// Writes as long as it lives.
const TICKS: &str = "while :; do echo x >>log; sleep 0.05; done";

/// Runs text, with `TICKS` for what writes as long as it lives, past a deadline. No part lives on.
async fn dies(cx: &Cx, text: &str) -> CaseResult {
    let command = cx.command(&format!("rm -f log\n{}", text.replace("TICKS", TICKS)));
    times_out_after(cx, command, "log").await?;
    let size = cx.get("log").await?.len();
    tokio::time::sleep(ms(1000)).await;
    check!(
        cx.get("log").await?.len() == size,
        "a part of `{text}` lived on"
    );
    Ok(())
}

async fn what_was_printed_before_the_deadline_is_there(cx: Cx) -> CaseResult {
    let text = "echo before; printf half; echo err >&2; : >printed; sleep 60";
    let r = times_out_after(&cx, cx.command(text), "printed").await?;
    check!(r.output().contains("before\nhalf"), "{:?}", r.output());
    check!(r.output().contains("err"), "{:?}", r.output());
    Ok(())
}

async fn output_up_to_the_deadline_is_there(cx: Cx) -> CaseResult {
    let text = "while :; do echo tick; echo x >>ticks; sleep 0.1; done";
    let r = times_out_after(&cx, cx.command(text), "ticks").await?;
    let ticks = r.stdout.to_text().lines().filter(|l| *l == "tick").count();
    let noted = cx.get("ticks").await?.len() / 2;
    // It may have ended between the two.
    check!(
        ticks == noted || ticks == noted + 1,
        "{ticks} of {noted} ticks"
    );
    Ok(())
}

async fn the_call_ends_soon_after_the_deadline(cx: Cx) -> CaseResult {
    times_out(&cx, Command::shell("sleep 60").timeout(ms(500))).await?;
    Ok(())
}

async fn a_timeout_is_no_exit_code(cx: Cx) -> CaseResult {
    let r = times_out(&cx, Command::shell("sleep 60; exit 3").timeout(ms(300))).await?;
    check_eq!((r.exit_code(), r.success()), (Some(124), false));
    Ok(())
}

async fn a_command_in_time_is_left_alone(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(Command::shell("sleep 0.5; echo ok; exit 3").timeout(ms(20_000)))
        .await?;
    check_eq!(
        (r.stdout.to_text().as_str(), r.status),
        ("ok\n", Status::Exited(3))
    );
    Ok(())
}

async fn exit_124_and_137_are_no_timeouts(cx: Cx) -> CaseResult {
    for code in [124, 137, 143] {
        let r = cx
            .sandbox
            .execute(Command::shell(format!("exit {code}")).timeout(ms(20_000)))
            .await?;
        check_eq!(r.status, Status::Exited(code));
    }
    Ok(())
}

async fn the_program_timeout_is_no_timeout_of_ours(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(Command::shell("timeout 1 sleep 20").timeout(ms(15_000)))
        .await?;
    check!(
        matches!(r.status, Status::Exited(124 | 143) | Status::Signaled(15)),
        "{}",
        r.status
    );
    Ok(())
}

async fn after_the_deadline_nothing_more_happens(cx: Cx) -> CaseResult {
    dies(&cx, "TICKS").await
}

async fn children_die_with_the_command(cx: Cx) -> CaseResult {
    dies(&cx, "(TICKS) & (TICKS) & wait").await?;
    dies(&cx, "sh -c 'sh -c \"TICKS\"; echo'; echo").await
}

async fn a_pipeline_dies_as_a_whole(cx: Cx) -> CaseResult {
    dies(&cx, "(TICKS) | (TICKS)").await
}

async fn ignoring_sigterm_does_not_help(cx: Cx) -> CaseResult {
    dies(&cx, "trap '' TERM INT HUP; TICKS").await
}

async fn an_emptied_environment_hides_no_child(cx: Cx) -> CaseResult {
    dies(&cx, "env -i PATH=\"$PATH\" sh -c 'TICKS' & wait").await
}

async fn a_session_of_its_own_hides_no_child(cx: Cx) -> CaseResult {
    dies(&cx, "setsid sh -c 'TICKS' & wait; sleep 60").await?;
    dies(
        &cx,
        "env -i PATH=\"$PATH\" setsid sh -c 'TICKS' & wait; sleep 60",
    )
    .await
}

async fn a_daemon_dies_too(cx: Cx) -> CaseResult {
    // Its parent is gone, its session and its environment are its own, and it holds nothing.
    dies(
        &cx,
        "(env -i PATH=\"$PATH\" setsid sh -c 'exec <&- >&- 2>&-; TICKS' &); sleep 60",
    )
    .await?;
    dies(
        &cx,
        "n=$(command -v nohup); ($n sh -c 'trap \"\" HUP TERM; TICKS' >/dev/null 2>&1 &); sleep 60",
    )
    .await
}

async fn a_stopped_process_dies_too(cx: Cx) -> CaseResult {
    let text = "echo a; sh -c ': >a; kill -STOP $$; : kit-stopped-child' & sleep 60";
    let r = times_out_after(&cx, cx.command(text), "a").await?;
    check_eq!(r.stdout, "a\n");
    let r = times_out_after(&cx, cx.command("echo b; : >b; kill -STOP $$"), "b").await?;
    check_eq!(r.stdout, "b\n");
    let look = "cat /proc/[0-9]*/cmdline 2>/dev/null | grep -c 'kit-stopped-chil[d]'";
    check_eq!(cx.raw(look).await?.stdout, "0\n");
    Ok(())
}

async fn closed_output_hides_no_command(cx: Cx) -> CaseResult {
    dies(&cx, "exec <&- >&- 2>&-; TICKS").await
}

async fn unread_input_delays_no_deadline(cx: Cx) -> CaseResult {
    let command = cx.command("echo a; : >printed; sleep 60");
    let command = command.stdin(vec![b'x'; 4 << 20]);
    let r = times_out_after(&cx, command, "printed").await?;
    check_eq!(r.stdout, "a\n");
    Ok(())
}

async fn endless_output_delays_no_deadline(cx: Cx) -> CaseResult {
    for text in ["yes", "yes >&2", "yes & yes >&2"] {
        let r = times_out(&cx, Command::shell(text).timeout(ms(800))).await?;
        check!(
            r.stdout.bytes().len() + r.stderr.bytes().len() <= 2 << 20,
            "more is kept than the limit"
        );
    }
    Ok(())
}

async fn a_busy_loop_ends(cx: Cx) -> CaseResult {
    let text = "echo a; : >printed; while :; do :; done";
    let r = times_out_after(&cx, cx.command(text), "printed").await?;
    check_eq!(r.stdout, "a\n");
    Ok(())
}

async fn a_program_has_a_deadline_too(cx: Cx) -> CaseResult {
    times_out(
        &cx,
        Command::new("sleep").arg("60").cwd("/").timeout(ms(500)),
    )
    .await?;
    Ok(())
}

async fn other_commands_live_on(cx: Cx) -> CaseResult {
    let other = cx.command("echo marker-xyz; sleep 1.5; echo alive");
    let (ended, other) = tokio::join!(
        times_out(&cx, cx.command("sleep 60 # marker-xyz").timeout(ms(500))),
        cx.sandbox.execute(other),
    );
    ended?;
    check_eq!(other?.stdout, "marker-xyz\nalive\n");
    Ok(())
}

async fn the_sandbox_works_afterwards(cx: Cx) -> CaseResult {
    cx.put([("f", b"kept")]).await?;
    times_out(&cx, cx.command("sleep 60").timeout(ms(300))).await?;
    check_eq!(cx.sh("cat f").await?.stdout, "kept");
    Ok(())
}

async fn a_millisecond_is_a_deadline(cx: Cx) -> CaseResult {
    times_out(&cx, Command::shell("sleep 60").timeout(ms(1))).await?;
    Ok(())
}

async fn fractions_of_a_second_count(cx: Cx) -> CaseResult {
    let text = "sleep 1.2; echo ok";
    let r = cx
        .sandbox
        .execute(Command::shell(text).timeout(ms(9_900)))
        .await?;
    check_eq!(r.stdout, "ok\n");
    times_out(&cx, Command::shell("sleep 60").timeout(ms(1_400))).await?;
    Ok(())
}

async fn the_longest_deadline_is_none(cx: Cx) -> CaseResult {
    for timeout in [Duration::MAX, Duration::from_secs(1 << 40)] {
        let r = cx
            .sandbox
            .execute(Command::shell("echo ok").timeout(timeout))
            .await?;
        check_eq!(
            (r.stdout.to_text().as_str(), r.status),
            ("ok\n", Status::Exited(0))
        );
    }
    Ok(())
}

async fn a_deadline_of_zero_is_refused(cx: Cx) -> CaseResult {
    let text = format!("echo x >{}", cx.path("ran"));
    let call = cx
        .sandbox
        .execute(Command::shell(text).timeout(Duration::ZERO));
    refused(call.await, ErrorKind::InvalidArgument)?;
    check!(!cx.exists("ran").await?, "it ran");
    Ok(())
}
