//! Replacing exact text in a file.

use std::time::Duration;

use futures_util::future::join_all;
use sandbox_core::ErrorKind;

use super::needs::{FIFOS, FILE_OWNERS, HARD_LINKS};
use super::{Random, lines, random_bytes};
use crate::check::refused;
use crate::{CaseResult, Cx, Failure};

cases! { "edit":
    unique_text_is_replaced_and_counted minimal;
    text_that_is_not_unique_is_refused_with_the_count minimal;
    replace_all_replaces_all_and_counts minimal;
    matches_do_not_overlap minimal;
    new_text_may_hold_the_old minimal;
    missing_text_is_an_error_and_the_file_stays minimal;
    empty_text_is_refused_and_the_file_stays minimal;
    a_missing_file_is_not_found minimal;
    a_directory_is_refused minimal;
    an_empty_file_has_no_match minimal;
    text_may_span_lines minimal;
    text_at_both_ends_is_found minimal;
    new_text_may_be_empty minimal;
    lf_matches_crlf_and_stays_crlf minimal;
    mixed_line_endings_stay minimal;
    a_missing_last_newline_stays_missing minimal;
    a_byte_order_mark_stays minimal;
    bytes_that_are_no_utf_8_stay minimal;
    nul_bytes_stay minimal;
    templates_in_new_text_are_literal minimal;
    patterns_in_old_text_are_literal minimal;
    no_character_is_folded_or_cut minimal;
    large_text_is_replaced minimal;
    a_change_in_a_large_file_leaves_the_rest;
    the_mode_stays minimal;
    a_link_stays_and_its_target_changes minimal;
    hard_links_stay_together needs(HARD_LINKS);
    a_directory_that_cannot_be_written_is_no_obstacle needs(FILE_OWNERS);
    rights_are_those_of_the_user needs(FILE_OWNERS);
    a_fifo_does_not_block needs(FIFOS);
    edits_at_once_lose_none;
    edits_at_once_from_two_handles_lose_none;
    a_reader_never_sees_half_a_file;
    nothing_else_is_left minimal;
    any_edit_is_what_a_model_says minimal;
}

/// Puts `before` into a file, edits it, and looks.
async fn edits(
    cx: &Cx,
    before: &[u8],
    old: &str,
    new: &str,
    all: bool,
    after: &[u8],
) -> CaseResult {
    cx.put([("f", before)]).await?;
    cx.sandbox.edit(cx.path("f"), old, new, all).await?;
    check_eq!(cx.get("f").await?, after.to_vec(), "{old:?} to {new:?}");
    Ok(())
}

/// Puts `before` into a file; the edit must be refused and change nothing.
async fn keeps(
    cx: &Cx,
    before: &[u8],
    old: &str,
    new: &str,
    kind: ErrorKind,
) -> Result<sandbox_core::Error, Failure> {
    cx.put([("f", before)]).await?;
    let e = refused(cx.sandbox.edit(cx.path("f"), old, new, false).await, kind)?;
    check_eq!(
        cx.get("f").await?,
        before.to_vec(),
        "a refused edit changed the file"
    );
    Ok(e)
}

async fn unique_text_is_replaced_and_counted(cx: Cx) -> CaseResult {
    cx.put([("f", b"one two three\n")]).await?;
    let report = cx.sandbox.edit(cx.path("f"), "two", "2", false).await?;
    check_eq!(
        (report.replaced, cx.get("f").await?),
        (1, b"one 2 three\n".to_vec())
    );
    Ok(())
}

async fn text_that_is_not_unique_is_refused_with_the_count(cx: Cx) -> CaseResult {
    let e = keeps(&cx, b"foo foo foo\n", "foo", "bar", ErrorKind::NotUnique).await?;
    check!(e.to_string().contains('3'), "the count is missing: {e}");
    keeps(&cx, b"foo\nfoo\n", "foo", "bar", ErrorKind::NotUnique).await?;
    Ok(())
}

async fn replace_all_replaces_all_and_counts(cx: Cx) -> CaseResult {
    cx.put([("f", b"foo foo\nfoo\n")]).await?;
    let report = cx.sandbox.edit(cx.path("f"), "foo", "bar", true).await?;
    check_eq!(
        (report.replaced, cx.get("f").await?),
        (3, b"bar bar\nbar\n".to_vec())
    );
    Ok(())
}

async fn matches_do_not_overlap(cx: Cx) -> CaseResult {
    cx.put([("f", b"aaaa")]).await?;
    let report = cx.sandbox.edit(cx.path("f"), "aa", "b", true).await?;
    check_eq!((report.replaced, cx.get("f").await?), (2, b"bb".to_vec()));
    edits(&cx, b"aaaaa", "aa", "b", true, b"bba").await
}

async fn new_text_may_hold_the_old(cx: Cx) -> CaseResult {
    edits(&cx, b"foo foo\n", "foo", "foofoo", true, b"foofoo foofoo\n").await?;
    edits(&cx, b"x\n", "x", "xx", false, b"xx\n").await?;
    edits(&cx, b"x\n", "x", "x", false, b"x\n").await
}

async fn missing_text_is_an_error_and_the_file_stays(cx: Cx) -> CaseResult {
    keeps(&cx, b"abc\n", "abd", "x", ErrorKind::NoMatch).await?;
    keeps(&cx, b"abc\n", "ABC", "x", ErrorKind::NoMatch).await?;
    keeps(&cx, b"abc", "abc\n", "x", ErrorKind::NoMatch).await?;
    Ok(())
}

async fn empty_text_is_refused_and_the_file_stays(cx: Cx) -> CaseResult {
    for all in [false, true] {
        cx.put([("f", b"abc")]).await?;
        refused(
            cx.sandbox.edit(cx.path("f"), "", "x", all).await,
            ErrorKind::InvalidArgument,
        )?;
        check_eq!(cx.get("f").await?, b"abc".to_vec());
    }
    Ok(())
}

async fn a_missing_file_is_not_found(cx: Cx) -> CaseResult {
    for name in ["none", "no/such/f"] {
        refused(
            cx.sandbox.edit(cx.path(name), "a", "b", false).await,
            ErrorKind::NotFound,
        )?;
        check!(!cx.exists(name).await?, "the edit made it");
    }
    Ok(())
}

async fn a_directory_is_refused(cx: Cx) -> CaseResult {
    cx.ok("mkdir d").await?;
    refused(
        cx.sandbox.edit(cx.path("d"), "a", "b", false).await,
        ErrorKind::IsADirectory,
    )?;
    Ok(())
}

async fn an_empty_file_has_no_match(cx: Cx) -> CaseResult {
    keeps(&cx, b"", "a", "b", ErrorKind::NoMatch).await?;
    Ok(())
}

async fn text_may_span_lines(cx: Cx) -> CaseResult {
    edits(&cx, b"a\nb\nc\n", "a\nb\n", "x\n", false, b"x\nc\n").await?;
    edits(&cx, b"a\n\n\nb\n", "\n\n\n", "\n", false, b"a\nb\n").await
}

async fn text_at_both_ends_is_found(cx: Cx) -> CaseResult {
    edits(&cx, b"abc", "a", "x", false, b"xbc").await?;
    edits(&cx, b"abc", "c", "x", false, b"abx").await?;
    edits(&cx, b"abc\n", "abc\n", "x", false, b"x").await
}

async fn new_text_may_be_empty(cx: Cx) -> CaseResult {
    edits(&cx, b"a\nb", "a", "", true, b"\nb").await?;
    edits(&cx, b"a", "a", "", false, b"").await
}

async fn lf_matches_crlf_and_stays_crlf(cx: Cx) -> CaseResult {
    edits(
        &cx,
        b"a\r\nb\r\nc\r\n",
        "a\nb",
        "x\ny",
        false,
        b"x\r\ny\r\nc\r\n",
    )
    .await?;
    edits(&cx, b"a\r\nb\r\n", "a\r\nb", "x", false, b"x\r\n").await
}

async fn mixed_line_endings_stay(cx: Cx) -> CaseResult {
    edits(&cx, b"a\nb\r\nc\n", "b", "B", false, b"a\nB\r\nc\n").await?;
    edits(&cx, b"a\rb\r\n\nc", "c", "C", false, b"a\rb\r\n\nC").await
}

async fn a_missing_last_newline_stays_missing(cx: Cx) -> CaseResult {
    edits(&cx, b"a\nb", "b", "c", false, b"a\nc").await?;
    edits(&cx, b"a\nb\n\n", "b", "c", false, b"a\nc\n\n").await
}

async fn a_byte_order_mark_stays(cx: Cx) -> CaseResult {
    edits(
        &cx,
        b"\xef\xbb\xbffirst\nsecond\n",
        "first",
        "FIRST",
        false,
        b"\xef\xbb\xbfFIRST\nsecond\n",
    )
    .await
}

async fn bytes_that_are_no_utf_8_stay(cx: Cx) -> CaseResult {
    cx.put([("f", b"caf\xe9\nx=1\n\xff")]).await?;
    cx.sandbox.edit(cx.path("f"), "x=1", "x=2", false).await?;
    check_eq!(cx.get("f").await?, b"caf\xe9\nx=2\n\xff".to_vec());
    Ok(())
}

async fn nul_bytes_stay(cx: Cx) -> CaseResult {
    edits(&cx, b"\0a\0x=1\0\0", "x=1", "x=2", false, b"\0a\0x=2\0\0").await
}

async fn templates_in_new_text_are_literal(cx: Cx) -> CaseResult {
    let new = "$& $1 $$ $` $' \\1 \\0 \\n & ${x} {0} %s `id` $(id) / | # '";
    edits(
        &cx,
        b"aXb\n",
        "X",
        new,
        false,
        format!("a{new}b\n").as_bytes(),
    )
    .await?;
    edits(&cx, b"X X\n", "X", "\\", true, b"\\ \\\n").await
}

async fn patterns_in_old_text_are_literal(cx: Cx) -> CaseResult {
    for old in [
        "a.*b",
        "c](d)?^$|\\",
        "^a",
        "a$",
        "[ab]",
        "a+",
        "*",
        "\\",
        "/",
        "&",
        "-n",
        "'",
        "$x",
    ] {
        let before = format!("axxb ab bc a\n{old}\n");
        let found = before.matches(old).count();
        if found == 1 {
            edits(
                &cx,
                before.as_bytes(),
                old,
                "NEW",
                false,
                before.replace(old, "NEW").as_bytes(),
            )
            .await?;
        }
    }
    keeps(&cx, b"axb\n", "a.b", "x", ErrorKind::NoMatch).await?;
    Ok(())
}

async fn no_character_is_folded_or_cut(cx: Cx) -> CaseResult {
    let before = "İıſß👩‍👩‍👧‍👦ﬁ e\u{301}\n";
    for (old, new) in [
        ("ß", "ss"),
        ("👩‍👩‍👧‍👦", "x"),
        ("\u{301}", ""),
        ("İ", "i"),
        ("ﬁ", "fi"),
    ] {
        edits(
            &cx,
            before.as_bytes(),
            old,
            new,
            false,
            before.replace(old, new).as_bytes(),
        )
        .await?;
    }
    Ok(())
}

async fn large_text_is_replaced(cx: Cx) -> CaseResult {
    let (old, new) = ("o".repeat(140_000), "n'\\".repeat(50_000));
    let (before, after) = (format!("a{old}b"), format!("a{new}b"));
    edits(&cx, before.as_bytes(), &old, &new, false, after.as_bytes()).await
}

async fn a_change_in_a_large_file_leaves_the_rest(cx: Cx) -> CaseResult {
    let (head, tail) = (random_bytes(21, 1_000_000), random_bytes(22, 1_000_000));
    let before = [&head[..], b"<the token>", &tail].concat();
    cx.put([("f", &before)]).await?;
    cx.sandbox
        .edit(cx.path("f"), "<the token>", "<another>", false)
        .await?;
    check!(
        cx.get("f").await? == [&head[..], b"<another>", &tail].concat(),
        "the rest changed"
    );
    Ok(())
}

async fn the_mode_stays(cx: Cx) -> CaseResult {
    for mode in ["755", "600", "711"] {
        cx.ok(&format!("echo old >f; chmod {mode} f")).await?;
        cx.sandbox.edit(cx.path("f"), "old", "new", false).await?;
        check_eq!(
            (cx.mode("f").await?.as_str(), cx.get("f").await?),
            (mode, b"new\n".to_vec())
        );
    }
    Ok(())
}

async fn a_link_stays_and_its_target_changes(cx: Cx) -> CaseResult {
    cx.ok("mkdir real; echo old >real/t; chmod 755 real/t; ln -s real/t f")
        .await?;
    cx.sandbox.edit(cx.path("f"), "old", "new", false).await?;
    check_eq!(
        cx.ok("readlink f; cat real/t; ls -A real").await?,
        "real/t\nnew\nt\n"
    );
    check_eq!(cx.mode("real/t").await?, "755");
    Ok(())
}

async fn hard_links_stay_together(cx: Cx) -> CaseResult {
    cx.ok("echo old >f; ln f g").await?;
    cx.sandbox.edit(cx.path("f"), "old", "new", false).await?;
    check_eq!(cx.ok("cat f g").await?, "new\nnew\n");
    Ok(())
}

async fn a_directory_that_cannot_be_written_is_no_obstacle(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; echo old >d/f; chmod 755 d/f; chmod 555 d")
        .await?;
    let edited = cx.sandbox.edit(cx.path("d/f"), "old", "new", false).await;
    check_eq!(
        cx.ok("chmod 755 d; ls -A d; cat d/f").await?,
        if edited.is_ok() {
            "f\nnew\n"
        } else {
            "f\nold\n"
        }
    );
    edited?;
    check_eq!(cx.mode("d/f").await?, "755");
    Ok(())
}

async fn rights_are_those_of_the_user(cx: Cx) -> CaseResult {
    cx.ok("echo keep >f; chmod 444 f; echo keep >g; chmod 000 g")
        .await?;
    for name in ["f", "g"] {
        let call = cx.sandbox.edit(cx.path(name), "keep", "x", false);
        refused(call.await, ErrorKind::PermissionDenied)?;
    }
    check_eq!(cx.ok("chmod 644 f g; cat f g").await?, "keep\nkeep\n");
    Ok(())
}

async fn a_fifo_does_not_block(cx: Cx) -> CaseResult {
    cx.ok("mkfifo p").await?;
    let call = cx.sandbox.edit(cx.path("p"), "a", "b", false);
    match tokio::time::timeout(Duration::from_secs(10), call).await {
        Ok(Err(_)) => Ok(()),
        other => Err(Failure::Wrong(format!("{other:?}"))),
    }
}

/// Edits `n` different tokens at once; each edit is there or was refused as a conflict.
async fn at_once(cx: &Cx, handles: &[sandbox_core::Sandbox], n: usize) -> CaseResult {
    let before = lines(n, |i| format!("<t{i}>"));
    cx.put([("f", before.as_bytes())]).await?;
    let path = cx.path("f");
    let edits = (0..n).map(|i| {
        let (handle, path) = (&handles[i % handles.len()], &path);
        async move {
            handle
                .edit(path, &format!("<t{i}>"), &format!("<T{i}>"), false)
                .await
        }
    });
    let results = join_all(edits).await;
    let text = String::from_utf8_lossy(&cx.get("f").await?).into_owned();
    check_eq!(text.lines().count(), n);
    let mut done = 0;
    for (i, result) in results.into_iter().enumerate() {
        match result {
            Ok(_) => {
                done += 1;
                check!(
                    text.contains(&format!("<T{i}>")),
                    "edit {i} is lost, with success"
                );
            }
            Err(e) if e.kind() == ErrorKind::Conflict => {
                check!(
                    text.contains(&format!("<t{i}>")),
                    "edit {i} is there, with a conflict"
                );
            }
            Err(e) => return Err(e.into()),
        }
    }
    check!(done > 0, "no edit went through");
    Ok(())
}

async fn edits_at_once_lose_none(cx: Cx) -> CaseResult {
    at_once(&cx, std::slice::from_ref(&cx.sandbox), 50).await
}

async fn edits_at_once_from_two_handles_lose_none(cx: Cx) -> CaseResult {
    let other = cx.client.connect(cx.sandbox.id()).await?;
    at_once(&cx, &[cx.sandbox.clone(), other], 20).await
}

async fn a_reader_never_sees_half_a_file(cx: Cx) -> CaseResult {
    let filler = "x".repeat(100_000);
    cx.put([("f", format!("<0>{filler}<end>").as_bytes())])
        .await?;
    let editor = async {
        for i in 0..10 {
            cx.sandbox
                .edit(
                    cx.path("f"),
                    &format!("<{i}>"),
                    &format!("<{}>", i + 1),
                    false,
                )
                .await?;
        }
        Ok::<_, Failure>(())
    };
    let reader = async {
        for _ in 0..20 {
            let bytes = cx.get("f").await?;
            check!(
                bytes.ends_with(b"x<end>") && bytes.len() >= 100_008,
                "{} bytes",
                bytes.len()
            );
        }
        Ok::<_, Failure>(())
    };
    let (edited, read) = tokio::join!(editor, reader);
    edited?;
    read
}

async fn nothing_else_is_left(cx: Cx) -> CaseResult {
    cx.put([("f", b"a b c")]).await?;
    cx.sandbox.edit(cx.path("f"), "a", "x", false).await?;
    let _ = cx.sandbox.edit(cx.path("f"), "none", "x", false).await;
    let _ = cx.sandbox.edit(cx.path("g"), "none", "x", false).await;
    check_eq!(cx.ok("ls -A").await?, "f\n");
    Ok(())
}

/// What an edit has to do, said once more: bytes, left to right, an LF of `old` matches a CRLF.
fn model(before: &[u8], old: &[u8], new: &[u8], all: bool) -> Result<Vec<u8>, ErrorKind> {
    fn replace(before: &[u8], old: &[u8], new: &[u8]) -> (Vec<u8>, usize) {
        let (mut out, mut n, mut i) = (Vec::new(), 0, 0);
        while i < before.len() {
            if before[i..].starts_with(old) {
                out.extend_from_slice(new);
                (n, i) = (n + 1, i + old.len());
            } else {
                out.push(before[i]);
                i += 1;
            }
        }
        (out, n)
    }
    match replace(before, old, new) {
        (_, 0) => Err(ErrorKind::NoMatch),
        (_, 2..) if !all => Err(ErrorKind::NotUnique),
        (after, _) => Ok(after),
    }
}

async fn any_edit_is_what_a_model_says(cx: Cx) -> CaseResult {
    let mut random = Random::new(31);
    // Few letters, so that matches, overlaps and repeats are frequent. No CR: line endings have
    // cases of their own.
    let letters = [b"a", b"b", b"\n", b"'", b"\\", b"&"];
    let mut word = |max: usize, min: usize| -> Vec<u8> {
        let n = min + random.below(max - min);
        (0..n)
            .flat_map(|_| letters[random.below(letters.len())].iter().copied())
            .collect()
    };
    let rounds: Vec<_> = (0..60)
        .map(|round| (word(40, 0), word(4, 1), word(5, 0), round % 2 == 0))
        .collect();
    let names: Vec<String> = (0..60).map(|round| format!("f{round}")).collect();
    let mut files = Vec::new();
    for (name, round) in names.iter().zip(&rounds) {
        files.push((cx.path(name), round.0.clone()));
    }
    for result in cx.sandbox.upload_files(files).await {
        result?;
    }
    let mut wanted = Vec::new();
    for (name, (before, old, new, all)) in names.iter().zip(rounds) {
        let (old, new) = (String::from_utf8_lossy(&old), String::from_utf8_lossy(&new));
        let got = cx.sandbox.edit(cx.path(name), &old, &new, all).await;
        let right = model(&before, old.as_bytes(), new.as_bytes(), all);
        let what = format!(
            "{:?}: {old:?} to {new:?}, all {all}",
            String::from_utf8_lossy(&before)
        );
        let got = got.err().map(|e| e.kind());
        check_eq!(got, right.as_ref().err().copied(), "{what}");
        wanted.push((right.unwrap_or(before), what));
    }
    let paths: Vec<String> = names.iter().map(|name| cx.path(name)).collect();
    let contents = cx.sandbox.download_files(&paths).await;
    for (content, (right, what)) in contents.into_iter().zip(wanted) {
        check_eq!(content?.to_vec(), right, "{what}");
    }
    Ok(())
}
