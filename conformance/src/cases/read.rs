//! Reading lines of a file.

use std::time::Duration;

use sandbox_core::files::TextPage;
use sandbox_core::{ErrorKind, ReadOptions, ReadPage, defaults};

use super::needs::{FIFOS, FILE_OWNERS, PROCESS_TABLE};
use super::{lines, random_bytes};
use crate::check::{refused, shown};
use crate::{CaseResult, Cx, Failure};

cases! { "read":
    a_small_file_comes_whole minimal;
    a_page_says_where_it_is_and_what_follows minimal;
    pages_put_together_are_the_file minimal;
    two_thousand_lines_come_unless_asked_otherwise minimal;
    crlf_ends_a_line_and_is_joined_with_lf minimal;
    nothing_but_lf_and_crlf_ends_a_line minimal;
    the_last_newline_begins_no_line minimal;
    blank_lines_count minimal;
    spaces_and_line_numbers_in_the_file_stay minimal;
    an_empty_file_says_so minimal;
    a_limit_of_zero_asks_for_nothing minimal;
    an_offset_past_the_end_is_an_error_with_the_count minimal;
    huge_offsets_and_limits_overflow_nothing minimal;
    a_page_is_capped_and_loses_no_line minimal;
    a_line_beyond_the_cap_is_cut_and_marked minimal;
    deep_in_a_large_file_the_numbers_are_right;
    bytes_that_are_no_text_come_as_bytes minimal;
    a_large_binary_file_is_too_large_and_the_size_is_named minimal;
    a_character_at_the_edge_of_a_block_is_text minimal;
    other_encodings_are_no_text minimal;
    a_byte_order_mark_hides_no_line minimal;
    a_link_is_followed minimal;
    a_missing_file_is_not_found minimal;
    a_directory_is_refused minimal;
    rights_are_those_of_the_user needs(FILE_OWNERS);
    a_fifo_does_not_block needs(FIFOS);
    a_file_whose_size_reads_zero_has_its_content needs(PROCESS_TABLE);
}

async fn page(cx: &Cx, name: &str, offset: u64, limit: u64) -> Result<TextPage, Failure> {
    match cx
        .sandbox
        .read(cx.path(name), ReadOptions::new(offset, limit))
        .await?
    {
        ReadPage::Text(page) => Ok(page),
        other => Err(Failure::Wrong(format!(
            "{name:?} is no text: {}",
            shown(&other)
        ))),
    }
}

async fn text(cx: &Cx, bytes: &[u8]) -> Result<TextPage, Failure> {
    cx.put([("f", bytes)]).await?;
    page(cx, "f", 0, defaults::READ_LINES).await
}

fn numbered(n: usize) -> String {
    lines(n, |i| format!("line {i}"))
}

async fn a_small_file_comes_whole(cx: Cx) -> CaseResult {
    let p = text(&cx, b"one\ntwo\nthree\n").await?;
    check_eq!(p.text, "one\ntwo\nthree");
    check_eq!(
        (p.start_line, p.end_line, p.total_lines, p.next_offset),
        (1, 3, 3, None)
    );
    check!(!p.capped && !p.line_cut, "{p:?}");
    Ok(())
}

async fn a_page_says_where_it_is_and_what_follows(cx: Cx) -> CaseResult {
    cx.put([("f", b"0\n1\n2\n3\n4\n")]).await?;
    let p = page(&cx, "f", 1, 2).await?;
    check_eq!(p.text, "1\n2");
    check_eq!(
        (p.start_line, p.end_line, p.total_lines, p.next_offset),
        (2, 3, 5, Some(3))
    );
    let last = page(&cx, "f", 3, 100).await?;
    check_eq!((last.text.as_str(), last.next_offset), ("3\n4", None));
    Ok(())
}

async fn pages_put_together_are_the_file(cx: Cx) -> CaseResult {
    let all = numbered(100);
    cx.put([("f", all.as_bytes())]).await?;
    let (mut offset, mut got) = (Some(0), String::new());
    while let Some(from) = offset {
        let p = page(&cx, "f", from, 7).await?;
        got.push_str(&p.text);
        got.push('\n');
        check!(
            p.next_offset.is_none_or(|next| next > from),
            "it does not go on: {p:?}"
        );
        offset = p.next_offset;
    }
    check_eq!(got, all);
    Ok(())
}

async fn two_thousand_lines_come_unless_asked_otherwise(cx: Cx) -> CaseResult {
    cx.put([("f", numbered(2500).as_bytes())]).await?;
    let p = match cx
        .sandbox
        .read(cx.path("f"), ReadOptions::default())
        .await?
    {
        ReadPage::Text(p) => p,
        other => return Err(Failure::Wrong(shown(&other))),
    };
    check_eq!(
        (p.start_line, p.end_line, p.total_lines, p.next_offset),
        (1, 2000, 2500, Some(2000))
    );
    check!(p.text.ends_with("\nline 1999"), "the last line is wrong");
    Ok(())
}

async fn crlf_ends_a_line_and_is_joined_with_lf(cx: Cx) -> CaseResult {
    let p = text(&cx, b"a\r\nb\nc\r\n\r\nd").await?;
    check_eq!((p.text.as_str(), p.total_lines), ("a\nb\nc\n\nd", 5));
    Ok(())
}

async fn nothing_but_lf_and_crlf_ends_a_line(cx: Cx) -> CaseResult {
    let line = "a\rb\u{b}c\u{c}d\u{85}e\u{2028}f\u{1e}g";
    let p = text(&cx, format!("{line}\nnext\n").as_bytes()).await?;
    check_eq!(
        (p.text.as_str(), p.total_lines),
        (format!("{line}\nnext").as_str(), 2)
    );
    Ok(())
}

async fn the_last_newline_begins_no_line(cx: Cx) -> CaseResult {
    for (bytes, lines, right) in [
        (&b"a\nb"[..], 2, "a\nb"),
        (b"a\nb\n", 2, "a\nb"),
        (b"a\nb\n\n", 3, "a\nb\n"),
        (b"\n", 1, ""),
        (b"x", 1, "x"),
    ] {
        let p = text(&cx, bytes).await?;
        check_eq!(
            (p.total_lines, p.end_line, p.text.as_str()),
            (lines, lines, right),
            "{bytes:?}"
        );
    }
    Ok(())
}

async fn blank_lines_count(cx: Cx) -> CaseResult {
    let p = text(&cx, b"\n\n\nfour\n\n").await?;
    check_eq!((p.text.as_str(), p.total_lines), ("\n\n\nfour\n", 5));
    check_eq!(page(&cx, "f", 3, 1).await?.text, "four");
    Ok(())
}

async fn spaces_and_line_numbers_in_the_file_stay(cx: Cx) -> CaseResult {
    let lines = "     1\tfoo\n  two  \n\tthree\t";
    check_eq!(text(&cx, lines.as_bytes()).await?.text, lines);
    Ok(())
}

async fn an_empty_file_says_so(cx: Cx) -> CaseResult {
    cx.put([("e", b"")]).await?;
    check_eq!(
        cx.sandbox
            .read(cx.path("e"), ReadOptions::default())
            .await?,
        ReadPage::Empty
    );
    Ok(())
}

async fn a_limit_of_zero_asks_for_nothing(cx: Cx) -> CaseResult {
    cx.put([("f", b"a\n")]).await?;
    check_eq!(
        cx.sandbox
            .read(cx.path("f"), ReadOptions::new(0, 0))
            .await?,
        ReadPage::NothingAsked
    );
    Ok(())
}

async fn an_offset_past_the_end_is_an_error_with_the_count(cx: Cx) -> CaseResult {
    cx.put([("f", b"a\nb\nc\n")]).await?;
    for offset in [3, 4, 1000] {
        let call = cx.sandbox.read(cx.path("f"), ReadOptions::new(offset, 10));
        let e = refused(call.await, ErrorKind::OffsetPastEnd)?;
        check!(
            e.to_string().contains('3'),
            "the number of lines is missing: {e}"
        );
    }
    check_eq!(page(&cx, "f", 2, 10).await?.text, "c");
    Ok(())
}

async fn huge_offsets_and_limits_overflow_nothing(cx: Cx) -> CaseResult {
    cx.put([("f", b"a\nb\nc\n")]).await?;
    for limit in [1 << 31, 1 << 32, 1 << 53, 1 << 63, u64::MAX] {
        check_eq!(
            page(&cx, "f", 1, limit).await?.text,
            "b\nc",
            "limit {limit}"
        );
    }
    for offset in [1 << 31, 1 << 53, 1 << 63, u64::MAX] {
        let call = cx
            .sandbox
            .read(cx.path("f"), ReadOptions::new(offset, u64::MAX));
        refused(call.await, ErrorKind::OffsetPastEnd)?;
    }
    Ok(())
}

async fn a_page_is_capped_and_loses_no_line(cx: Cx) -> CaseResult {
    let all = lines(3000, |i| format!("{i:0>499}"));
    cx.put([("f", all.as_bytes())]).await?;
    let (mut offset, mut got, mut pages) = (Some(0), String::new(), 0);
    while let Some(from) = offset {
        let p = page(&cx, "f", from, 2000).await?;
        check!(
            p.text.len() as u64 <= defaults::READ_BYTES,
            "{} bytes",
            p.text.len()
        );
        check_eq!(p.capped, p.next_offset.is_some(), "the cut is marked");
        check!(
            p.next_offset.is_none_or(|next| next > from),
            "it does not go on"
        );
        got.push_str(&p.text);
        got.push('\n');
        offset = p.next_offset;
        pages += 1;
    }
    check!(
        got == all,
        "{} bytes came, {} are right",
        got.len(),
        all.len()
    );
    check!(pages >= 3, "{pages} pages");
    Ok(())
}

async fn a_line_beyond_the_cap_is_cut_and_marked(cx: Cx) -> CaseResult {
    let all = format!("before\n{}\nafter\n", "é".repeat(400_000));
    cx.put([("f", all.as_bytes())]).await?;
    let p = page(&cx, "f", 1, 10).await?;
    check!(
        p.capped && p.line_cut,
        "not marked: {} {}",
        p.capped,
        p.line_cut
    );
    check!(
        p.text.len() as u64 <= defaults::READ_BYTES && p.text.len() > 400_000,
        "{}",
        p.text.len()
    );
    check!(p.text.chars().all(|c| c == 'é'), "a character was cut");
    check_eq!(
        (p.start_line, p.end_line, p.next_offset, p.total_lines),
        (2, 2, Some(2), 3)
    );
    check_eq!(page(&cx, "f", 2, 10).await?.text, "after");
    Ok(())
}

async fn deep_in_a_large_file_the_numbers_are_right(cx: Cx) -> CaseResult {
    cx.put([("f", numbered(30_000).as_bytes())]).await?;
    let p = page(&cx, "f", 25_000, 2).await?;
    check_eq!(p.text, "line 25000\nline 25001");
    check_eq!(
        (p.start_line, p.total_lines, p.next_offset),
        (25_001, 30_000, Some(25_002))
    );
    Ok(())
}

async fn bytes_that_are_no_text_come_as_bytes(cx: Cx) -> CaseResult {
    let png = [
        &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..],
        &random_bytes(12, 5000),
    ]
    .concat();
    for bytes in [
        &png[..],
        &random_bytes(13, 400_000),
        b"\xff\xfe",
        b"ok\xff\n",
    ] {
        cx.put([("f", bytes)]).await?;
        match cx
            .sandbox
            .read(cx.path("f"), ReadOptions::default())
            .await?
        {
            ReadPage::Binary(got) => check!(got == bytes, "they differ: {} bytes", got.len()),
            other => {
                return Err(Failure::Wrong(format!(
                    "{}: {}",
                    shown(&bytes),
                    shown(&other)
                )));
            }
        }
    }
    Ok(())
}

async fn a_large_binary_file_is_too_large_and_the_size_is_named(cx: Cx) -> CaseResult {
    cx.put([("f", &random_bytes(14, 600_000))]).await?;
    let call = cx.sandbox.read(cx.path("f"), ReadOptions::default());
    let e = refused(call.await, ErrorKind::TooLarge)?;
    check!(e.to_string().contains("600000"), "the size is missing: {e}");
    Ok(())
}

async fn a_character_at_the_edge_of_a_block_is_text(cx: Cx) -> CaseResult {
    for n in [511, 1023, 4095, 8190, 8191, 16_383, 65_535] {
        let line = format!("{}😀é end", "a".repeat(n));
        check!(
            text(&cx, line.as_bytes()).await?.text == line,
            "after {n} bytes"
        );
    }
    Ok(())
}

async fn other_encodings_are_no_text(cx: Cx) -> CaseResult {
    for bytes in [&b"\xff\xfea\0\n\0"[..], b"caf\xe9\n"] {
        cx.put([("f", bytes)]).await?;
        let read = cx
            .sandbox
            .read(cx.path("f"), ReadOptions::default())
            .await?;
        check_eq!(read, ReadPage::Binary(bytes.to_vec().into()));
    }
    Ok(())
}

async fn a_byte_order_mark_hides_no_line(cx: Cx) -> CaseResult {
    let p = text(&cx, b"\xef\xbb\xbffirst\nsecond\n").await?;
    check_eq!(
        (p.text.trim_start_matches('\u{feff}'), p.total_lines),
        ("first\nsecond", 2)
    );
    Ok(())
}

async fn a_link_is_followed(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; echo x >d/t; ln -s d/t f; ln -s d l")
        .await?;
    check_eq!(page(&cx, "f", 0, 9).await?.text, "x");
    check_eq!(page(&cx, "l/t", 0, 9).await?.text, "x");
    Ok(())
}

async fn a_missing_file_is_not_found(cx: Cx) -> CaseResult {
    cx.ok("ln -s none dangling").await?;
    for name in ["none", "none/f", "dangling"] {
        let call = cx.sandbox.read(cx.path(name), ReadOptions::default());
        refused(call.await, ErrorKind::NotFound)?;
    }
    Ok(())
}

async fn a_directory_is_refused(cx: Cx) -> CaseResult {
    cx.ok("mkdir d").await?;
    for path in [cx.path("d"), cx.path("d/"), "/".to_owned()] {
        refused(
            cx.sandbox.read(&path, ReadOptions::default()).await,
            ErrorKind::IsADirectory,
        )?;
    }
    Ok(())
}

async fn rights_are_those_of_the_user(cx: Cx) -> CaseResult {
    cx.ok("echo x >f; chmod 000 f; mkdir d; echo y >d/g; chmod 000 d")
        .await?;
    for name in ["f", "d/g"] {
        let call = cx.sandbox.read(cx.path(name), ReadOptions::default());
        refused(call.await, ErrorKind::PermissionDenied)?;
    }
    cx.ok("chmod 755 d").await?;
    Ok(())
}

async fn a_fifo_does_not_block(cx: Cx) -> CaseResult {
    cx.ok("mkfifo p").await?;
    let call = cx.sandbox.read(cx.path("p"), ReadOptions::default());
    match tokio::time::timeout(Duration::from_secs(10), call).await {
        Ok(Err(_)) => Ok(()),
        Ok(Ok(page)) => Err(Failure::Wrong(format!("a FIFO is no file: {page:?}"))),
        Err(_) => Err(Failure::Wrong("it blocks".to_owned())),
    }
}

async fn a_file_whose_size_reads_zero_has_its_content(cx: Cx) -> CaseResult {
    let read = cx
        .sandbox
        .read("/proc/1/status", ReadOptions::default())
        .await?;
    check!(
        read.text().is_some_and(|t| t.contains("Name:")),
        "{}",
        shown(&read)
    );
    Ok(())
}
