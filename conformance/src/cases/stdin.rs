//! What a command reads.

use sandbox_core::{Command, Status};

use super::random_bytes;
use crate::{CaseResult, Cx};

cases! { "stdin":
    without_input_a_reader_sees_the_end_at_once minimal;
    input_arrives_byte_for_byte minimal;
    input_ends_after_its_last_byte minimal;
    input_without_a_newline_arrives minimal;
    empty_input_is_the_end_at_once minimal;
    a_megabyte_of_input_arrives;
    unread_input_holds_nothing_up;
    megabytes_go_in_and_come_out_at_once;
    a_program_reads_input_too minimal;
    input_is_never_run minimal;
    input_does_not_reach_the_next_command minimal;
    a_command_may_read_line_by_line minimal;
    what_one_reader_leaves_the_next_one_gets;
    input_goes_with_cwd_and_variables minimal;
}

async fn without_input_a_reader_sees_the_end_at_once(cx: Cx) -> CaseResult {
    let r = cx.raw("cat").await?;
    check_eq!((r.output().as_str(), r.status), ("", Status::Exited(0)));
    check_eq!(cx.raw("read x; echo rc=$?").await?.stdout, "rc=1\n");
    let r = cx.sandbox.execute(Command::new("cat")).await?;
    check_eq!((r.output().as_str(), r.status), ("", Status::Exited(0)));
    Ok(())
}

async fn input_arrives_byte_for_byte(cx: Cx) -> CaseResult {
    let bytes: Vec<u8> = (0..=255).cycle().take(4096).collect();
    let r = cx
        .sandbox
        .execute(Command::shell("cat").stdin(bytes.clone()))
        .await?;
    check_eq!(r.stdout.bytes().to_vec(), bytes);
    Ok(())
}

async fn input_ends_after_its_last_byte(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(cx.command("wc -c; echo end").stdin("12345"))
        .await?;
    let text = r.stdout.to_text();
    check_eq!(text.split_whitespace().collect::<Vec<_>>(), ["5", "end"]);
    Ok(())
}

async fn input_without_a_newline_arrives(cx: Cx) -> CaseResult {
    for text in ["abc", "a\nb", "\n", "\r\n", " ", "'", "$HOME"] {
        let r = cx
            .sandbox
            .execute(Command::shell("cat").stdin(text))
            .await?;
        check_eq!(r.stdout.to_text(), text);
    }
    Ok(())
}

async fn empty_input_is_the_end_at_once(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(cx.command("cat; echo end").stdin(""))
        .await?;
    check_eq!(r.stdout, "end\n");
    Ok(())
}

async fn a_megabyte_of_input_arrives(cx: Cx) -> CaseResult {
    let bytes = random_bytes(3, 1_200_000);
    let command = cx.command("cat >f").stdin(bytes.clone());
    check!(cx.sandbox.execute(command).await?.success(), "cat failed");
    check!(cx.get("f").await? == bytes, "they differ");
    Ok(())
}

async fn unread_input_holds_nothing_up(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(cx.command("echo done").stdin(vec![b'x'; 1 << 20]))
        .await?;
    check_eq!(
        (r.stdout.to_text().as_str(), r.status),
        ("done\n", Status::Exited(0))
    );
    Ok(())
}

async fn megabytes_go_in_and_come_out_at_once(cx: Cx) -> CaseResult {
    let bytes = random_bytes(5, 4 << 20);
    let command = Command::shell("cat").stdin(bytes.clone());
    let r = cx.sandbox.execute(command.output_limit(8 << 20)).await?;
    check!(r.stdout.bytes()[..] == bytes, "they differ");
    // None of it is kept, and nothing waits for room.
    let r = cx
        .sandbox
        .execute(Command::shell("cat >&2; echo end").stdin(bytes))
        .await?;
    check!(r.stdout.to_text().ends_with("end\n"), "{}", r.status);
    Ok(())
}

async fn a_program_reads_input_too(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(Command::new("sort").stdin("b\na\n"))
        .await?;
    check_eq!(r.stdout, "a\nb\n");
    Ok(())
}

async fn input_is_never_run(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(Command::shell("echo a").stdin("echo pwned\n"))
        .await?;
    check_eq!(r.output(), "a\n");
    Ok(())
}

async fn input_does_not_reach_the_next_command(cx: Cx) -> CaseResult {
    cx.sandbox
        .execute(Command::shell("true").stdin("left over\n"))
        .await?;
    check_eq!(cx.raw("cat").await?.output(), "");
    Ok(())
}

async fn a_command_may_read_line_by_line(cx: Cx) -> CaseResult {
    let text = "while IFS= read -r x; do printf '<%s>\\n' \"$x\"; done";
    let r = cx
        .sandbox
        .execute(Command::shell(text).stdin("a b\n\\n\n  c\n"))
        .await?;
    check_eq!(r.stdout, "<a b>\n<\\n>\n<  c>\n");
    Ok(())
}

async fn what_one_reader_leaves_the_next_one_gets(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(Command::shell("read a; cat").stdin("one\ntwo\nthree\n"))
        .await?;
    check_eq!(r.stdout, "two\nthree\n");
    Ok(())
}

async fn input_goes_with_cwd_and_variables(cx: Cx) -> CaseResult {
    let command = cx
        .command("pwd; echo \"$A\"; cat; echo e >&2")
        .stdin("in\n")
        .env("A", "b c");
    let r = cx.sandbox.execute(command.merge_stderr()).await?;
    check_eq!(r.stdout.to_text(), format!("{}\nb c\nin\ne\n", cx.dir));
    Ok(())
}
