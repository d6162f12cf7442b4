//! How shell text and programs run.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sandbox_core::{Command, ErrorKind, Status};

use super::needs::REPORTS_SIGNALS;
use crate::check::refused;
use crate::{CaseResult, Cx};

cases! { "execute":
    short_commands_cost_no_fixed_second;
    output_and_exit_code_come_back minimal;
    a_command_runs_once minimal;
    exit_codes_come_back_unchanged minimal;
    exit_256_wraps_to_zero minimal;
    the_last_command_decides minimal;
    a_missing_program_is_127_in_both_forms minimal;
    a_file_that_is_no_program_is_126_in_both_forms minimal;
    an_empty_command_ends_with_zero minimal;
    syntax_errors_are_the_shells_own minimal;
    a_here_document_may_end_at_the_last_byte minimal;
    an_open_here_document_ends_and_harms_no_later_command;
    a_final_comment_swallows_nothing minimal;
    a_final_backslash_is_a_backslash;
    exit_on_error_ends_the_command minimal;
    a_command_may_redirect_all_its_output minimal;
    a_command_may_close_its_output_and_go_on minimal;
    exit_traps_run minimal;
    text_is_passed_on_untouched minimal;
    text_is_never_an_option_of_the_shell minimal;
    no_positional_parameter_is_set minimal;
    text_beyond_the_argument_limit_works minimal;
    text_of_two_megabytes_works;
    arguments_arrive_word_by_word minimal;
    arguments_of_shell_text_are_positional minimal;
    an_argument_is_never_an_option_of_the_shell minimal;
    the_cwd_is_where_it_starts minimal;
    a_missing_cwd_is_an_error_and_nothing_runs minimal;
    a_file_as_cwd_is_an_error minimal;
    commands_start_in_the_workdir minimal;
    a_change_of_directory_does_not_last minimal;
    shell_state_does_not_last minimal;
    a_background_child_does_not_hold_the_call;
    a_background_child_lets_the_exit_code_through;
    a_background_child_with_its_output_redirected_lives_on;
    commands_at_once_get_their_own_output minimal;
    commands_at_once_get_their_own_exit_code;
    no_command_sees_a_terminal minimal;
    a_signal_counts_128_and_more minimal;
    a_signal_is_told_from_an_exit_code needs(REPORTS_SIGNALS);
    the_time_it_took_is_told;
    every_ending_but_zero_can_be_made_an_error;
    nul_in_text_or_arguments_is_refused minimal;
    an_empty_program_name_is_refused minimal;
    pipelines_and_substitutions_work minimal;
    commands_leave_no_file_behind minimal fresh;
}

async fn output_and_exit_code_come_back(cx: Cx) -> CaseResult {
    let r = cx.raw("echo hello").await?;
    check_eq!(r.stdout, "hello\n");
    check_eq!(r.stderr, "");
    check_eq!(r.status, Status::Exited(0));
    check!(r.success() && !r.truncated(), "{r:?}");
    Ok(())
}

async fn a_command_runs_once(cx: Cx) -> CaseResult {
    for text in [
        "echo x >>log",
        "echo x >>log; exit 1",
        "echo x >>log; kill -9 $$",
    ] {
        cx.sh(text).await?;
    }
    check_eq!(cx.get("log").await?, b"x\nx\nx\n".to_vec());
    Ok(())
}

async fn exit_codes_come_back_unchanged(cx: Cx) -> CaseResult {
    for code in [
        0, 1, 2, 3, 42, 100, 125, 126, 127, 128, 130, 143, 199, 254, 255,
    ] {
        let r = cx.raw(&format!("echo {code}; exit {code}")).await?;
        check_eq!(r.status, Status::Exited(code));
        check_eq!(r.stdout.to_text(), format!("{code}\n"));
    }
    Ok(())
}

async fn exit_256_wraps_to_zero(cx: Cx) -> CaseResult {
    check_eq!(cx.raw("exit 256").await?.status, Status::Exited(0));
    Ok(())
}

async fn the_last_command_decides(cx: Cx) -> CaseResult {
    for (text, code) in [
        ("false", 1),
        ("true && exit 3", 3),
        ("false; true", 0),
        ("true; false", 1),
        ("! true", 1),
    ] {
        check_eq!(cx.raw(text).await?.status, Status::Exited(code), "{text}");
    }
    Ok(())
}

async fn a_missing_program_is_127_in_both_forms(cx: Cx) -> CaseResult {
    let shell = cx.raw("nosuchcmd_zz").await?;
    check_eq!(shell.status, Status::Exited(127));
    check!(
        !shell.output().is_empty(),
        "nothing says which program is missing"
    );
    for program in ["nosuchcmd_zz", "/no/such/program"] {
        let argv = cx.sandbox.execute(Command::new(program).arg("x")).await?;
        check_eq!(argv.status, Status::Exited(127), "{program}");
    }
    Ok(())
}

async fn a_file_that_is_no_program_is_126_in_both_forms(cx: Cx) -> CaseResult {
    check_eq!(cx.raw("/etc/passwd").await?.status, Status::Exited(126));
    let argv = cx.sandbox.execute(Command::new("/etc/passwd")).await?;
    check_eq!(argv.status, Status::Exited(126));
    Ok(())
}

async fn an_empty_command_ends_with_zero(cx: Cx) -> CaseResult {
    for text in ["", " ", "\n", "# nothing"] {
        let r = cx.raw(text).await?;
        check_eq!(
            (r.status.clone(), r.output()),
            (Status::Exited(0), String::new()),
            "{text:?}"
        );
    }
    Ok(())
}

async fn syntax_errors_are_the_shells_own(cx: Cx) -> CaseResult {
    for text in [")", "if true; then", "echo 'unclosed", "}; echo x"] {
        let r = cx.raw(text).await?;
        check_eq!(r.status, Status::Exited(2), "{text}");
        let said = r.output();
        check!(!said.is_empty(), "{text:?}: the shell's message is lost");
        check!(
            !said.contains("x\n"),
            "{text:?}: a part of it ran: {said:?}"
        );
        check!(
            !said.to_lowercase().contains("sandbox") && !said.contains("eval"),
            "{text:?}: a wrapper shows: {said:?}"
        );
    }
    Ok(())
}

async fn a_here_document_may_end_at_the_last_byte(cx: Cx) -> CaseResult {
    for (text, right) in [
        ("cat <<EOF\nhi\nEOF", "hi\n"),
        ("cat <<'E'\nx $HOME\nE", "x $HOME\n"),
    ] {
        let r = cx.raw(text).await?;
        check_eq!(
            (r.stdout.to_text().as_str(), r.success()),
            (right, true),
            "{text}"
        );
    }
    Ok(())
}

async fn an_open_here_document_ends_and_harms_no_later_command(cx: Cx) -> CaseResult {
    let r = cx.raw("cat <<EOF\nhi\n").await?;
    check!(
        r.elapsed < Duration::from_secs(10),
        "it took {:?}",
        r.elapsed
    );
    check_eq!(cx.raw("echo next").await?.stdout, "next\n");
    Ok(())
}

async fn a_final_comment_swallows_nothing(cx: Cx) -> CaseResult {
    let r = cx.raw("echo hi # note").await?;
    check_eq!(
        (r.stdout.to_text().as_str(), r.status),
        ("hi\n", Status::Exited(0))
    );
    check_eq!(cx.raw("exit 7 # note").await?.status, Status::Exited(7));
    Ok(())
}

async fn a_final_backslash_is_a_backslash(cx: Cx) -> CaseResult {
    check_eq!(cx.raw("echo hi \\").await?.stdout, "hi \\\n");
    Ok(())
}

async fn exit_on_error_ends_the_command(cx: Cx) -> CaseResult {
    let r = cx.raw("set -e; false; echo no").await?;
    check_eq!(
        (r.status.clone(), r.output()),
        (Status::Exited(1), String::new())
    );
    Ok(())
}

async fn a_command_may_redirect_all_its_output(cx: Cx) -> CaseResult {
    let r = cx.raw("exec >/dev/null; echo hidden").await?;
    check_eq!(
        (r.status.clone(), r.output()),
        (Status::Exited(0), String::new())
    );
    Ok(())
}

async fn a_command_may_close_its_output_and_go_on(cx: Cx) -> CaseResult {
    for text in ["exec >&- 2>&-", "exec <&- >&- 2>&-", "exec >/dev/null 2>&1"] {
        let r = cx
            .sh(&format!("rm -f end; {text}; sleep 0.7; : >end; exit 4"))
            .await?;
        check_eq!(
            (r.output().as_str(), r.status),
            ("", Status::Exited(4)),
            "{text}"
        );
        check!(cx.exists("end").await?, "`{text}`: the call ended before");
    }
    Ok(())
}

async fn exit_traps_run(cx: Cx) -> CaseResult {
    let r = cx.raw("trap 'echo bye' EXIT; true").await?;
    check_eq!(
        (r.stdout.to_text().as_str(), r.status),
        ("bye\n", Status::Exited(0))
    );
    Ok(())
}

async fn text_is_passed_on_untouched(cx: Cx) -> CaseResult {
    let text = "printf '%s\\n' '&lt; &amp;' '{0} %s' \"it's\" '${x}' 'a  b' '\u{e9}'";
    let right = "&lt; &amp;\n{0} %s\nit's\n${x}\na  b\n\u{e9}\n";
    check_eq!(cx.raw(text).await?.stdout, right);
    Ok(())
}

async fn text_is_never_an_option_of_the_shell(cx: Cx) -> CaseResult {
    for text in [
        "-x",
        "-c",
        "-i; echo x",
        "--help",
        "--",
        "-",
        "+x",
        "-v 'a b'",
    ] {
        let plain = cx.raw(text).await?;
        let elsewhere = cx.sh(text).await?;
        let with_argument = cx.sandbox.execute(Command::shell(text).arg("a")).await?;
        for r in [plain, elsewhere, with_argument] {
            let right = match text {
                "-i; echo x" => ("x\n".to_owned(), Status::Exited(0)),
                _ => (String::new(), Status::Exited(127)),
            };
            check_eq!((r.stdout.to_text(), r.status), right, "{text:?}");
        }
    }
    Ok(())
}

async fn no_positional_parameter_is_set(cx: Cx) -> CaseResult {
    check_eq!(cx.raw("echo \"$#[$*]\"").await?.stdout, "0[]\n");
    Ok(())
}

async fn text_beyond_the_argument_limit_works(cx: Cx) -> CaseResult {
    for n in [131_000, 131_072, 140_000] {
        let r = cx
            .raw(&format!("x='{}'; echo ${{#x}} end; exit 3", "a".repeat(n)))
            .await?;
        check_eq!(r.stdout.to_text(), format!("{n} end\n"));
        check_eq!(r.status, Status::Exited(3));
    }
    Ok(())
}

async fn text_of_two_megabytes_works(cx: Cx) -> CaseResult {
    let r = cx
        .raw(&format!(": '{}'; echo end; exit 4", "a".repeat(2_100_000)))
        .await?;
    check_eq!(
        (r.stdout.to_text().as_str(), r.status),
        ("end\n", Status::Exited(4))
    );
    Ok(())
}

async fn arguments_arrive_word_by_word(cx: Cx) -> CaseResult {
    let words = [
        "a b", "", "c'd", "$HOME", "*", "\n", "`id`", "\\", "\"", "-n", "é", "~",
    ];
    let r = cx
        .sandbox
        .execute(Command::new("printf").arg("%s|").args(words))
        .await?;
    check_eq!(r.stdout.to_text(), format!("{}|", words.join("|")));
    Ok(())
}

async fn arguments_of_shell_text_are_positional(cx: Cx) -> CaseResult {
    let command = Command::shell("printf '%s|' \"$#\" \"$1\" \"$2\"").args(["a b", "'; echo x"]);
    check_eq!(
        cx.sandbox.execute(command).await?.stdout,
        "2|a b|'; echo x|"
    );
    Ok(())
}

async fn an_argument_is_never_an_option_of_the_shell(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(Command::new("echo").args(["-x", "-e", "--"]))
        .await?;
    // `echo -e` differs between shells; `-x` never traces.
    check!(r.stdout.to_text().contains("-x"), "{r:?}");
    check_eq!(r.stderr, "");
    Ok(())
}

async fn the_cwd_is_where_it_starts(cx: Cx) -> CaseResult {
    check_eq!(
        cx.sh("pwd").await?.stdout.to_text(),
        format!("{}\n", cx.dir)
    );
    let r = cx.sandbox.execute(Command::new("pwd").cwd("/")).await?;
    check_eq!(r.stdout, "/\n");
    cx.ok("mkdir -p \"a b'\\$x\"").await?;
    let odd = cx.path("a b'$x");
    let r = cx.sandbox.execute(Command::shell("pwd").cwd(&odd)).await?;
    check_eq!(r.stdout.to_text(), format!("{odd}\n"));
    Ok(())
}

async fn a_missing_cwd_is_an_error_and_nothing_runs(cx: Cx) -> CaseResult {
    let text = format!("echo ran >{}", cx.path("ran"));
    let call = cx
        .sandbox
        .execute(Command::shell(text).cwd(cx.path("none")));
    refused(call.await, ErrorKind::NotFound)?;
    check!(!cx.exists("ran").await?, "the command ran elsewhere");
    Ok(())
}

async fn a_file_as_cwd_is_an_error(cx: Cx) -> CaseResult {
    cx.put([("f", b"x")]).await?;
    match cx
        .sandbox
        .execute(Command::shell("echo ran").cwd(cx.path("f")))
        .await
    {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
        other => Err(crate::Failure::Wrong(format!("a file as cwd: {other:?}"))),
    }
}

async fn commands_start_in_the_workdir(cx: Cx) -> CaseResult {
    if cx
        .sandbox
        .warnings()
        .iter()
        .any(|w| w.starts_with("workdir:"))
    {
        // Told, so that nobody relies on it; there is one all the same.
        check!(
            cx.raw("pwd").await?.stdout.to_text().starts_with('/'),
            "no cwd"
        );
        return Ok(());
    }
    let workdir = cx.spec.effective_workdir();
    check_eq!(
        cx.raw("pwd").await?.stdout.to_text(),
        format!("{workdir}\n")
    );
    let r = cx
        .raw("echo x >kit-probe && cat kit-probe && rm kit-probe")
        .await?;
    check_eq!(r.output(), "x\n", "the command's user may write there");
    Ok(())
}

async fn a_change_of_directory_does_not_last(cx: Cx) -> CaseResult {
    let before = cx.raw("pwd").await?.stdout;
    cx.raw("cd /; pwd").await?;
    check_eq!(cx.raw("pwd").await?.stdout, before);
    Ok(())
}

async fn shell_state_does_not_last(cx: Cx) -> CaseResult {
    cx.raw("kit_v=1; export kit_e=2; kit_f() { echo f; }; set -f; umask 077")
        .await?;
    let r = cx
        .sh("echo \"[$kit_v$kit_e]\"; kit_f; : >new; stat -c %a new; echo *")
        .await?;
    check_eq!(r.stdout, "[]\n644\nnew\n");
    Ok(())
}

/// A plain Docker exec takes up to 5 s to notice the end of a leader, and a busy machine more; a call
/// that is held takes the 20 s of the child.
const SLACK: Duration = Duration::from_secs(15);

async fn a_background_child_does_not_hold_the_call(cx: Cx) -> CaseResult {
    let start = Instant::now();
    let r = cx
        .sandbox
        .execute(cx.command("(sleep 20 &); echo started"))
        .await?;
    check_eq!(
        (r.stdout.to_text().as_str(), r.status),
        ("started\n", Status::Exited(0))
    );
    check!(
        start.elapsed() < SLACK,
        "the call took {:?}",
        start.elapsed()
    );
    Ok(())
}

async fn a_background_child_lets_the_exit_code_through(cx: Cx) -> CaseResult {
    let start = Instant::now();
    let r = cx.sandbox.execute(cx.command("sleep 20 & exit 5")).await?;
    check_eq!(r.status, Status::Exited(5));
    check!(
        start.elapsed() < SLACK,
        "the call took {:?}",
        start.elapsed()
    );
    Ok(())
}

async fn a_background_child_with_its_output_redirected_lives_on(cx: Cx) -> CaseResult {
    // It waits for a file that comes only after the call is back.
    let child =
        "n=0; until [ -e go ] || [ $n -gt 200 ]; do sleep 0.1; n=$((n+1)); done; echo late >late";
    cx.ok(&format!("({child}) >/dev/null 2>&1 </dev/null & echo now"))
        .await?;
    check!(!cx.exists("late").await?, "the call waited for the child");
    cx.ok(": >go").await?;
    for _ in 0..100 {
        if cx.exists("late").await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(crate::Failure::Wrong(
        "the child died with the command".to_owned(),
    ))
}

async fn commands_at_once_get_their_own_output(cx: Cx) -> CaseResult {
    let runs = (0..50).map(|i| {
        let cx = &cx;
        async move { (i, cx.raw(&format!("echo running-{i}; echo e{i} >&2")).await) }
    });
    for (i, r) in join_all(runs).await {
        let r = r?;
        check!(r.output().contains(&format!("running-{i}\n")), "{i}: {r:?}");
        check!(r.output().contains(&format!("e{i}\n")), "{i}: {r:?}");
        check_eq!(r.output().lines().count(), 2, "run {i}");
    }
    Ok(())
}

async fn commands_at_once_get_their_own_exit_code(cx: Cx) -> CaseResult {
    let runs = (0..40).map(|i| {
        let cx = &cx;
        async move {
            (
                i,
                cx.raw(&format!("head -c 20000 /dev/zero; exit {i}")).await,
            )
        }
    });
    for (i, r) in join_all(runs).await {
        let r = r?;
        check_eq!(
            (r.status, r.stdout.bytes().len()),
            (Status::Exited(i), 20_000)
        );
    }
    Ok(())
}

async fn no_command_sees_a_terminal(cx: Cx) -> CaseResult {
    for fd in [0, 1, 2] {
        let text = format!("if test -t {fd}; then echo tty; else echo notty; fi");
        check_eq!(cx.raw(&text).await?.stdout, "notty\n", "descriptor {fd}");
    }
    Ok(())
}

async fn a_signal_counts_128_and_more(cx: Cx) -> CaseResult {
    check_eq!(cx.raw("kill -9 $$").await?.exit_code(), Some(137));
    check_eq!(cx.raw("kill -SEGV $$").await?.exit_code(), Some(139));
    check_eq!(cx.raw("sh -c 'kill -9 $$'; echo $?").await?.stdout, "137\n");
    Ok(())
}

async fn a_signal_is_told_from_an_exit_code(cx: Cx) -> CaseResult {
    check_eq!(cx.raw("kill -9 $$").await?.status, Status::Signaled(9));
    check_eq!(cx.raw("exit 137").await?.status, Status::Exited(137));
    Ok(())
}

async fn the_time_it_took_is_told(cx: Cx) -> CaseResult {
    let start = Instant::now();
    let r = cx.raw("sleep 0.4").await?;
    check!(r.elapsed >= Duration::from_millis(350), "{:?}", r.elapsed);
    check!(
        r.elapsed <= start.elapsed(),
        "{:?} of {:?}",
        r.elapsed,
        start.elapsed()
    );
    Ok(())
}

async fn short_commands_cost_no_fixed_second(cx: Cx) -> CaseResult {
    // What is always waited for is in the fastest too, however busy the machine is.
    let mut fastest = Duration::MAX;
    for i in 0..30 {
        let start = Instant::now();
        check_eq!(
            cx.raw(&format!("printf tail{i}")).await?.stdout.to_text(),
            format!("tail{i}")
        );
        fastest = fastest.min(start.elapsed());
        if fastest < Duration::from_secs(1) {
            return Ok(());
        }
    }
    Err(crate::Failure::Wrong(format!(
        "the fastest of 30 took {fastest:?}"
    )))
}

async fn every_ending_but_zero_can_be_made_an_error(cx: Cx) -> CaseResult {
    cx.raw("true").await?.into_result()?;
    let r = cx.raw("echo why >&2; exit 3").await?.into_result();
    let e = refused(r, ErrorKind::CommandFailed)?;
    check!(
        e.to_string().contains('3') && e.to_string().contains("why"),
        "{e}"
    );
    Ok(())
}

async fn nul_in_text_or_arguments_is_refused(cx: Cx) -> CaseResult {
    refused(cx.raw("echo a\0b").await, ErrorKind::InvalidArgument)?;
    let argv = Command::new("echo").arg("a\0b");
    refused(cx.sandbox.execute(argv).await, ErrorKind::InvalidArgument)?;
    Ok(())
}

async fn an_empty_program_name_is_refused(cx: Cx) -> CaseResult {
    refused(
        cx.sandbox.execute(Command::new("")).await,
        ErrorKind::InvalidArgument,
    )?;
    Ok(())
}

async fn pipelines_and_substitutions_work(cx: Cx) -> CaseResult {
    let text = "printf 'b\\na\\nb\\n' | sort | uniq | while read x; do echo \"<$x>\"; done; \
                echo \"$(echo $((6*7)))\"";
    check_eq!(cx.raw(text).await?.stdout, "<a>\n<b>\n42\n");
    Ok(())
}

async fn commands_leave_no_file_behind(cx: Cx) -> CaseResult {
    let look = "ls -A /tmp; ls -A";
    let before = cx.raw(look).await?.stdout;
    let long = format!(": '{}'; exit 3", "x".repeat(140_000));
    cx.sandbox
        .execute(cx.command("cat >/dev/null").stdin("input").env("A", "1"))
        .await?;
    cx.sandbox
        .execute(cx.command("true").stdin("unread"))
        .await?;
    cx.sandbox.execute(cx.command(&long)).await?;
    cx.sandbox
        .execute(cx.command("kill -9 $$").stdin("x").merge_stderr())
        .await?;
    check_eq!(cx.raw(look).await?.stdout, before);
    Ok(())
}
