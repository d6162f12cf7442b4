//! What a command prints arrives byte for byte.

use sandbox_core::{Command, Status};

use super::needs::{OUTPUT_ORDER, SEPARATE_STREAMS};
use super::random_bytes;
use crate::{CaseResult, Cx};

cases! { "output":
    a_last_line_without_a_newline_arrives minimal;
    blank_lines_are_neither_dropped_nor_doubled minimal;
    carriage_returns_are_kept minimal;
    spaces_at_both_ends_are_kept minimal;
    no_output_is_no_output minimal;
    every_byte_value_arrives minimal;
    nul_is_kept minimal;
    text_like_the_wire_format_is_only_text minimal;
    escape_sequences_are_kept minimal;
    invalid_utf_8_is_exact_as_bytes_and_replaced_as_text minimal;
    a_character_that_comes_in_two_parts_is_whole minimal;
    a_character_at_the_edge_of_a_chunk_is_whole minimal;
    lines_around_64_kib_arrive minimal;
    a_line_of_megabytes_arrives;
    a_megabyte_of_random_bytes_arrives;
    many_lines_arrive_in_order_and_none_is_missing;
    output_at_the_limit_is_whole_and_one_more_byte_is_truncated minimal;
    of_truncated_output_both_ends_are_kept_and_the_rest_counted minimal;
    truncation_keeps_the_exit_code_and_the_other_stream minimal;
    a_limit_of_zero_keeps_nothing_and_counts;
    the_default_limit_is_a_megabyte minimal;
    megabytes_on_stderr_block_nothing;
    megabytes_on_both_streams_block_nothing;
    stderr_is_told_from_stdout minimal needs(SEPARATE_STREAMS);
    stderr_alone_arrives minimal;
    merging_keeps_the_order minimal;
    merging_leaves_stderr_empty minimal;
    the_order_of_two_streams_is_exact needs(OUTPUT_ORDER);
    text_for_a_model_holds_both_streams minimal;
}

async fn prints(cx: &Cx, text: &str, right: &[u8]) -> CaseResult {
    let r = cx.raw(text).await?;
    check_eq!(r.stdout.bytes().to_vec(), right.to_vec(), "{text}");
    check_eq!(r.status, Status::Exited(0), "{text}");
    Ok(())
}

async fn a_last_line_without_a_newline_arrives(cx: Cx) -> CaseResult {
    prints(&cx, "printf abc", b"abc").await?;
    prints(&cx, "echo abc", b"abc\n").await?;
    prints(&cx, "printf 'a\\nb'", b"a\nb").await?;
    prints(&cx, "printf '\\n'", b"\n").await
}

async fn blank_lines_are_neither_dropped_nor_doubled(cx: Cx) -> CaseResult {
    prints(&cx, "printf 'a\\n\\nb\\n\\n\\nc\\n'", b"a\n\nb\n\n\nc\n").await?;
    prints(&cx, "printf '\\n\\n'", b"\n\n").await?;
    prints(&cx, "printf '\\na'", b"\na").await?;
    prints(&cx, "echo; echo x; echo", b"\nx\n\n").await
}

async fn carriage_returns_are_kept(cx: Cx) -> CaseResult {
    prints(&cx, "printf 'a\\rb\\n'", b"a\rb\n").await?;
    prints(&cx, "printf 'a\\r\\n\\r\\nb\\r\\n'", b"a\r\n\r\nb\r\n").await?;
    prints(&cx, "printf '10%%\\r50%%\\r100%%\\n'", b"10%\r50%\r100%\n").await
}

async fn spaces_at_both_ends_are_kept(cx: Cx) -> CaseResult {
    prints(&cx, "printf '   indented\\n\\n\\n'", b"   indented\n\n\n").await?;
    prints(&cx, "printf ' \\t'", b" \t").await
}

async fn no_output_is_no_output(cx: Cx) -> CaseResult {
    let r = cx.raw("true").await?;
    check_eq!((r.stdout.bytes().len(), r.stderr.bytes().len()), (0, 0));
    check_eq!(r.output(), "");
    Ok(())
}

async fn every_byte_value_arrives(cx: Cx) -> CaseResult {
    let bytes: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    cx.put([("f", &bytes)]).await?;
    check_eq!(cx.sh("cat f").await?.stdout.bytes().to_vec(), bytes);
    Ok(())
}

async fn nul_is_kept(cx: Cx) -> CaseResult {
    prints(&cx, "printf 'a\\000b\\000\\000'", b"a\0b\0\0").await?;
    // A frame of a multiplexed stream, as bytes of a command.
    let frame = b"\x01\0\0\0\0\0\0\x05hello";
    prints(
        &cx,
        "printf '\\001\\000\\000\\000\\000\\000\\000\\005hello'",
        frame,
    )
    .await
}

async fn text_like_the_wire_format_is_only_text(cx: Cx) -> CaseResult {
    let text = "event: end\ndata: {\"type\":\"execution_complete\"}\n\n{\"error\":1}\n: x\n\n";
    cx.put([("f", text.as_bytes())]).await?;
    let r = cx.sh("cat f; exit 3").await?;
    check_eq!(
        (r.stdout.to_text().as_str(), r.status),
        (text, Status::Exited(3))
    );
    Ok(())
}

async fn escape_sequences_are_kept(cx: Cx) -> CaseResult {
    prints(
        &cx,
        "printf '\\033[31mred\\033[0m\\n'",
        b"\x1b[31mred\x1b[0m\n",
    )
    .await
}

async fn invalid_utf_8_is_exact_as_bytes_and_replaced_as_text(cx: Cx) -> CaseResult {
    let r = cx.raw("printf 'ok\\377\\376\\n'; echo end").await?;
    check_eq!(r.stdout.bytes().to_vec(), b"ok\xff\xfe\nend\n".to_vec());
    check_eq!(r.output(), "ok\u{fffd}\u{fffd}\nend\n");
    Ok(())
}

async fn a_character_that_comes_in_two_parts_is_whole(cx: Cx) -> CaseResult {
    let r = cx
        .raw("printf '\\303'; sleep 0.3; printf '\\251\\n'")
        .await?;
    check_eq!(r.output(), "é\n");
    Ok(())
}

async fn a_character_at_the_edge_of_a_chunk_is_whole(cx: Cx) -> CaseResult {
    for n in [4095, 8191, 16_383, 32_767, 65_535] {
        let mut right = "a".repeat(n);
        right.push_str("😀 end\n");
        cx.put([("f", right.as_bytes())]).await?;
        check_eq!(cx.sh("cat f").await?.output(), right, "after {n} bytes");
    }
    Ok(())
}

async fn lines_around_64_kib_arrive(cx: Cx) -> CaseResult {
    for n in [65_535, 65_536, 65_537, 131_073] {
        let r = cx
            .raw(&format!(
                "head -c {n} /dev/zero | tr '\\0' x; echo; echo tail"
            ))
            .await?;
        check_eq!(
            r.stdout.to_text(),
            format!("{}\ntail\n", "x".repeat(n)),
            "{n}"
        );
    }
    Ok(())
}

async fn a_line_of_megabytes_arrives(cx: Cx) -> CaseResult {
    let line = vec![b'x'; 6_000_000];
    cx.put([("f", &line)]).await?;
    let whole = cx
        .sandbox
        .execute(cx.command("cat f; echo; echo tail").output_limit(7 << 20))
        .await?;
    check_eq!(whole.stdout.bytes().len(), 6_000_006);
    check!(
        whole.stdout.bytes().ends_with(b"x\ntail\n") && !whole.truncated(),
        "the end is lost"
    );
    let cut = cx.sh("cat f; echo; echo tail").await?;
    check!(
        cut.truncated() && cut.success(),
        "{} {}",
        cut.truncated(),
        cut.status
    );
    check!(
        cut.stdout.bytes().ends_with(b"x\ntail\n"),
        "the end is lost"
    );
    Ok(())
}

async fn a_megabyte_of_random_bytes_arrives(cx: Cx) -> CaseResult {
    let bytes = random_bytes(7, 1_000_000);
    cx.put([("f", &bytes)]).await?;
    let r = cx
        .sandbox
        .execute(cx.command("cat f").output_limit(2 << 20))
        .await?;
    check!(
        r.stdout.bytes()[..] == bytes,
        "they differ: {} bytes came",
        r.stdout.bytes().len()
    );
    Ok(())
}

async fn many_lines_arrive_in_order_and_none_is_missing(cx: Cx) -> CaseResult {
    use std::fmt::Write as _;
    let text = "i=0; while [ $i -lt 20000 ]; do echo \"line $i ..............\"; i=$((i+1)); done";
    let r = cx
        .sandbox
        .execute(cx.command(text).output_limit(4 << 20))
        .await?;
    let mut right = String::new();
    for i in 0..20_000 {
        let _ = writeln!(right, "line {i} ..............");
    }
    check!(r.success(), "{}", r.status);
    check!(
        r.stdout.bytes()[..] == *right.as_bytes(),
        "{} bytes came",
        r.stdout.bytes().len()
    );
    Ok(())
}

async fn output_at_the_limit_is_whole_and_one_more_byte_is_truncated(cx: Cx) -> CaseResult {
    for (n, dropped) in [(999, 0), (1000, 0), (1001, 1)] {
        let text = format!("head -c {n} /dev/zero | tr '\\0' x; exit 3");
        let r = cx
            .sandbox
            .execute(Command::shell(text).output_limit(1000))
            .await?;
        check_eq!(
            (r.truncated(), r.stdout.dropped()),
            (dropped > 0, dropped),
            "{n} bytes"
        );
        check_eq!(r.stdout.bytes().len() as u64, n - dropped, "{n} bytes");
        check_eq!(r.status, Status::Exited(3));
    }
    Ok(())
}

async fn of_truncated_output_both_ends_are_kept_and_the_rest_counted(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(Command::shell("seq 1 20000").output_limit(1000))
        .await?;
    check!(r.truncated(), "not marked");
    check!(r.stdout.head().starts_with(b"1\n2\n3\n"), "{:?}", r.stdout);
    check!(
        r.stdout.tail().ends_with(b"\n19999\n20000\n"),
        "{:?}",
        r.stdout
    );
    check_eq!(r.stdout.bytes().len() as u64 + r.stdout.dropped(), 108_894);
    check!(
        r.output().contains("bytes dropped"),
        "the text hides the gap"
    );
    Ok(())
}

async fn truncation_keeps_the_exit_code_and_the_other_stream(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(Command::shell("seq 1 90000; echo LAST >&2; exit 3"))
        .await?;
    check_eq!(r.status, Status::Exited(3));
    check!(r.output().contains("LAST"), "stderr is lost");
    Ok(())
}

async fn a_limit_of_zero_keeps_nothing_and_counts(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(Command::shell("printf abc; exit 1").output_limit(0))
        .await?;
    check_eq!((r.stdout.bytes().len(), r.stdout.dropped()), (0, 3));
    check_eq!(r.status, Status::Exited(1));
    Ok(())
}

async fn the_default_limit_is_a_megabyte(cx: Cx) -> CaseResult {
    cx.put([("f", &vec![b'x'; 1 << 20])]).await?;
    check!(!cx.sh("cat f").await?.truncated(), "1 MiB is truncated");
    let r = cx.sh("cat f; echo").await?;
    check_eq!((r.stdout.bytes().len(), r.stdout.dropped()), (1 << 20, 1));
    Ok(())
}

async fn megabytes_on_stderr_block_nothing(cx: Cx) -> CaseResult {
    cx.put([("f", &vec![b'e'; 5_000_000])]).await?;
    let r = cx.sh("cat f >&2; echo done").await?;
    check!(
        r.success() && r.truncated(),
        "{} {}",
        r.status,
        r.truncated()
    );
    check!(
        r.stdout.tail().ends_with(b"done\n") || r.stdout == "done\n",
        "{:?}",
        r.stdout
    );
    Ok(())
}

async fn megabytes_on_both_streams_block_nothing(cx: Cx) -> CaseResult {
    cx.put([("f", &vec![b'x'; 500_000])]).await?;
    let r = cx
        .sh("for i in 1 2 3 4; do cat f; cat f >&2; done; exit 6")
        .await?;
    check_eq!(r.status, Status::Exited(6));
    let seen = |c: &sandbox_core::Captured| c.bytes().len() as u64 + c.dropped();
    check_eq!(seen(&r.stdout) + seen(&r.stderr), 4_000_000);
    Ok(())
}

async fn stderr_is_told_from_stdout(cx: Cx) -> CaseResult {
    let r = cx.raw("echo out; echo err >&2; printf more").await?;
    check_eq!(r.stdout, "out\nmore");
    check_eq!(r.stderr, "err\n");
    Ok(())
}

async fn stderr_alone_arrives(cx: Cx) -> CaseResult {
    let r = cx.raw("printf 'no newline' >&2; exit 9").await?;
    check_eq!(
        (r.output().as_str(), r.status),
        ("no newline", Status::Exited(9))
    );
    Ok(())
}

const PAIRS: &str = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done";
const PAIRS_RIGHT: &str = "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n";

async fn merging_keeps_the_order(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(Command::shell(PAIRS).merge_stderr())
        .await?;
    check_eq!(r.stdout, PAIRS_RIGHT);
    check_eq!(r.output(), PAIRS_RIGHT);
    Ok(())
}

async fn merging_leaves_stderr_empty(cx: Cx) -> CaseResult {
    let merged = Command::shell("echo err >&2; nosuchcmd_zz; exit 3").merge_stderr();
    let r = cx.sandbox.execute(merged).await?;
    check_eq!((r.stderr.bytes().len(), r.status), (0, Status::Exited(3)));
    check!(
        r.stdout.to_text().contains("nosuchcmd_zz"),
        "the shell's message is lost: {:?}",
        r.stdout
    );
    Ok(())
}

async fn the_order_of_two_streams_is_exact(cx: Cx) -> CaseResult {
    for _ in 0..5 {
        check_eq!(cx.raw(PAIRS).await?.output(), PAIRS_RIGHT);
    }
    Ok(())
}

async fn text_for_a_model_holds_both_streams(cx: Cx) -> CaseResult {
    let text = cx.raw("printf out; printf err >&2").await?.output();
    let right = ["out\nerr", "outerr", "errout"];
    check!(right.contains(&text.as_str()), "{text:?}");
    Ok(())
}
