//! Finding text in files.

use std::time::{Duration, Instant};

use sandbox_core::files::{Gap, GrepMatches};
use sandbox_core::{ErrorKind, GrepOptions, SandboxPath, defaults};

use super::lines;
use super::needs::{CONTROL_CHARACTERS, FIFOS, FILE_OWNERS};
use crate::check::refused;
use crate::{CaseResult, Cx, Failure};

cases! { "grep":
    a_hit_has_path_number_and_line minimal;
    the_text_is_literal minimal;
    case_matters minimal;
    a_line_with_several_hits_comes_once minimal;
    files_at_any_depth_and_hidden_ones_are_searched minimal;
    no_ignore_rule_hides_a_file minimal;
    the_last_line_without_a_newline_counts minimal;
    crlf_is_no_part_of_a_line minimal;
    a_glob_chooses_the_files minimal;
    a_glob_chooses_as_the_operation_glob_does minimal;
    one_file_can_be_searched minimal;
    hits_are_sorted minimal;
    exactly_the_number_asked_is_complete minimal;
    one_more_than_asked_is_told minimal;
    nothing_found_is_empty_and_complete minimal;
    binary_files_are_skipped minimal;
    a_nul_far_in_makes_no_binary_file minimal;
    bytes_that_are_no_utf_8_are_replaced minimal;
    text_beyond_ascii_is_found minimal;
    odd_file_names_come_whole minimal;
    names_with_control_characters_come_whole needs(CONTROL_CHARACTERS);
    file_names_are_never_options minimal;
    a_long_line_is_cut_and_marked minimal;
    long_text_is_searched_or_refused;
    empty_text_is_refused minimal;
    text_with_a_newline_is_refused minimal;
    a_bad_glob_is_refused minimal;
    a_missing_root_is_not_found minimal;
    an_unreadable_root_is_refused needs(FILE_OWNERS);
    what_cannot_be_read_is_told needs(FILE_OWNERS);
    links_are_not_followed minimal;
    special_files_are_skipped needs(FIFOS);
    files_that_come_and_go_hide_no_other;
    thousands_of_hits_all_come;
    many_files_are_searched;
    the_whole_file_system_can_be_searched;
}

/// Hits as `path:line:text` with paths relative to the case's directory.
fn brief(cx: &Cx, matches: &GrepMatches) -> Vec<String> {
    let prefix = format!("{}/", cx.dir);
    matches
        .matches
        .iter()
        .map(|m| {
            let path = m.path.as_str();
            format!(
                "{}:{}:{}",
                path.strip_prefix(&prefix).unwrap_or(path),
                m.line,
                m.text
            )
        })
        .collect()
}

/// All hits of a complete search of the case's directory.
async fn hits(cx: &Cx, text: &str) -> Result<Vec<String>, Failure> {
    hits_in(cx, text, &cx.dir, GrepOptions::default()).await
}

async fn hits_in(
    cx: &Cx,
    text: &str,
    root: &str,
    options: GrepOptions,
) -> Result<Vec<String>, Failure> {
    let matches = cx.sandbox.grep(text, root, options).await?;
    check_eq!(matches.gaps, vec![], "{text:?}");
    Ok(brief(cx, &matches))
}

async fn a_hit_has_path_number_and_line(cx: Cx) -> CaseResult {
    cx.put([("f", b"one\n  needle here  \nthree\n"), ("g", b"nothing\n")])
        .await?;
    let matches = cx
        .sandbox
        .grep("needle", &cx.dir, GrepOptions::default())
        .await?;
    check_eq!(brief(&cx, &matches), ["f:2:  needle here  "]);
    check!(
        !matches.matches[0].cut && matches.gaps.is_empty(),
        "{matches:?}"
    );
    Ok(())
}

async fn the_text_is_literal(cx: Cx) -> CaseResult {
    let lines = [
        "a.b", "axb", "foo(bar", "[x]", "c*", "^d$", "\\w", "$HOME", "it's", "\"q\"", "--pre=sh",
        "-v", "a|b", "{e}", "%s", "`id`", "\\",
    ];
    cx.put([("f", lines.join("\n").as_bytes())]).await?;
    for (i, line) in lines.iter().enumerate() {
        if lines.iter().filter(|l| l.contains(line)).count() == 1 {
            check_eq!(
                hits(&cx, line).await?,
                [format!("f:{}:{line}", i + 1)],
                "{line}"
            );
        }
    }
    check_eq!(hits(&cx, "-e").await?, Vec::<String>::new());
    check_eq!(hits(&cx, ".").await?, ["f:1:a.b"]);
    Ok(())
}

async fn case_matters(cx: Cx) -> CaseResult {
    cx.put([("f", b"Needle\nneedle\nNEEDLE\n")]).await?;
    check_eq!(hits(&cx, "needle").await?, ["f:2:needle"]);
    Ok(())
}

async fn a_line_with_several_hits_comes_once(cx: Cx) -> CaseResult {
    cx.put([("f", b"aa aa aa\n\naa\n")]).await?;
    check_eq!(hits(&cx, "aa").await?, ["f:1:aa aa aa", "f:3:aa"]);
    Ok(())
}

async fn files_at_any_depth_and_hidden_ones_are_searched(cx: Cx) -> CaseResult {
    cx.put([
        (".env", b"needle"),
        (".github/w/x.yml", b"needle"),
        ("d/.h.py", b"needle"),
        ("d/v.py", b"needle"),
    ])
    .await?;
    check_eq!(
        hits(&cx, "needle").await?,
        [
            ".env:1:needle",
            ".github/w/x.yml:1:needle",
            "d/.h.py:1:needle",
            "d/v.py:1:needle"
        ]
    );
    Ok(())
}

async fn no_ignore_rule_hides_a_file(cx: Cx) -> CaseResult {
    cx.put([
        (".gitignore", b"out/\n*.log\n"),
        (".ignore", b"*\n"),
        ("out/a", b"needle"),
        ("x.log", b"needle"),
        (".git/config", b"needle"),
        ("node_modules/m", b"needle"),
    ])
    .await?;
    check_eq!(hits(&cx, "needle").await?.len(), 4);
    Ok(())
}

async fn the_last_line_without_a_newline_counts(cx: Cx) -> CaseResult {
    cx.put([("f", b"x\nneedle"), ("g", b"needle"), ("e", b"")])
        .await?;
    check_eq!(hits(&cx, "needle").await?, ["f:2:needle", "g:1:needle"]);
    Ok(())
}

async fn crlf_is_no_part_of_a_line(cx: Cx) -> CaseResult {
    cx.put([("f", b"x\r\nneedle\r\n")]).await?;
    check_eq!(hits(&cx, "needle").await?, ["f:2:needle"]);
    Ok(())
}

async fn a_glob_chooses_the_files(cx: Cx) -> CaseResult {
    cx.put([
        ("a.txt", b"needle"),
        ("a.md", b"needle"),
        ("d/b.txt", b"needle"),
        ("-n.txt", b"needle"),
    ])
    .await?;
    let only = |glob: &str| GrepOptions::default().glob(glob);
    check_eq!(
        hits_in(&cx, "needle", &cx.dir, only("*.txt")).await?,
        ["-n.txt:1:needle", "a.txt:1:needle", "d/b.txt:1:needle"]
    );
    check_eq!(
        hits_in(&cx, "needle", &cx.dir, only("d/*.txt")).await?,
        ["d/b.txt:1:needle"]
    );
    check_eq!(
        hits_in(&cx, "needle", &cx.dir, only("*.{md,rs}")).await?,
        ["a.md:1:needle"]
    );
    check_eq!(
        hits_in(&cx, "needle", &cx.dir, only("*.none")).await?,
        Vec::<String>::new()
    );
    Ok(())
}

async fn a_glob_chooses_as_the_operation_glob_does(cx: Cx) -> CaseResult {
    cx.put([
        ("t.py", b"x1"),
        ("src/a.py", b"x2"),
        ("src/x/b.py", b"x3"),
        (".h/c.py", b"x4"),
        ("src/.d.py", b"x5"),
    ])
    .await?;
    for pattern in [
        "*.py",
        "**/*.py",
        "src/*.py",
        "src/**",
        "/*.py",
        ".*.py",
        "?.py",
        "{src,.h}/*.py",
    ] {
        let options = GrepOptions::default().glob(pattern);
        let matches = cx.sandbox.grep("x", &cx.dir, options).await?;
        let got: Vec<&str> = matches.matches.iter().map(|m| m.path.as_str()).collect();
        let glob = cx.sandbox.glob(pattern, &cx.dir).await?;
        let right: Vec<&str> = glob.paths.iter().map(SandboxPath::as_str).collect();
        check_eq!(got, right, "{pattern}");
    }
    Ok(())
}

async fn one_file_can_be_searched(cx: Cx) -> CaseResult {
    cx.put([("a.py", b"x\nneedle\n"), ("b.py", b"needle\n")])
        .await?;
    let path = cx.path("a.py");
    check_eq!(
        hits_in(&cx, "needle", &path, GrepOptions::default()).await?,
        ["a.py:2:needle"]
    );
    Ok(())
}

async fn hits_are_sorted(cx: Cx) -> CaseResult {
    cx.put([
        ("b", b"n\nn\n"),
        ("B", b"n"),
        ("a/z", b"n"),
        ("a-", b"n"),
        ("é", b"n"),
        ("c", b"\n\n\n\n\n\n\n\n\nn\nn\n"),
    ])
    .await?;
    check_eq!(
        hits(&cx, "n").await?,
        [
            "B:1:n", "a-:1:n", "a/z:1:n", "b:1:n", "b:2:n", "c:10:n", "c:11:n", "é:1:n"
        ]
    );
    Ok(())
}

async fn exactly_the_number_asked_is_complete(cx: Cx) -> CaseResult {
    cx.put([("f", b"n\nn\n"), ("g", b"n\n")]).await?;
    let options = GrepOptions::default().max_count(3);
    check_eq!(hits_in(&cx, "n", &cx.dir, options).await?.len(), 3);
    Ok(())
}

async fn one_more_than_asked_is_told(cx: Cx) -> CaseResult {
    cx.put([("f", b"n\nn\n"), ("g", b"n\n"), ("h", b"n\n")])
        .await?;
    for max in [1, 2, 3] {
        let matches = cx
            .sandbox
            .grep("n", &cx.dir, GrepOptions::default().max_count(max))
            .await?;
        check_eq!(matches.matches.len() as u64, max);
        check_eq!(matches.gaps, vec![Gap::MatchLimit(max)]);
    }
    Ok(())
}

async fn nothing_found_is_empty_and_complete(cx: Cx) -> CaseResult {
    check_eq!(hits(&cx, "needle").await?, Vec::<String>::new());
    cx.put([("f", b"hay\n")]).await?;
    check_eq!(hits(&cx, "needle").await?, Vec::<String>::new());
    Ok(())
}

async fn binary_files_are_skipped(cx: Cx) -> CaseResult {
    cx.put([
        ("n.bin", b"needle\0x\nneedle two\n"),
        ("u16", b"n\0e\0e\0d\0l\0e\0"),
        ("t", b"needle\n"),
    ])
    .await?;
    let matches = cx
        .sandbox
        .grep("needle", &cx.dir, GrepOptions::default())
        .await?;
    check_eq!(brief(&cx, &matches), ["t:1:needle"]);
    Ok(())
}

/// The first 8 KiB tell. Tools that look further give such a file in part, or as binary.
async fn a_nul_far_in_makes_no_binary_file(cx: Cx) -> CaseResult {
    let text = |lines: usize| format!("needle\n{}\0\nneedle\n", "hay\n".repeat(lines));
    cx.put([
        ("far", text(2100).as_bytes()),
        ("further", text(60_000).as_bytes()),
        ("near", text(2000).as_bytes()),
        ("t", b"needle\n"),
    ])
    .await?;
    check_eq!(
        hits(&cx, "needle").await?,
        [
            "far:1:needle",
            "far:2103:needle",
            "further:1:needle",
            "further:60003:needle",
            "t:1:needle"
        ]
    );
    Ok(())
}

async fn bytes_that_are_no_utf_8_are_replaced(cx: Cx) -> CaseResult {
    cx.put([("latin", b"n\xe9e needle\n")]).await?;
    check_eq!(hits(&cx, "needle").await?, ["latin:1:n\u{fffd}e needle"]);
    Ok(())
}

async fn text_beyond_ascii_is_found(cx: Cx) -> CaseResult {
    cx.put([("naïve-漢.txt", "x\nsüß 漢字 😀\n".as_bytes())])
        .await?;
    for text in ["ü", "ß 漢", "😀"] {
        check_eq!(
            hits(&cx, text).await?,
            ["naïve-漢.txt:2:süß 漢字 😀"],
            "{text}"
        );
    }
    Ok(())
}

async fn odd_file_names_come_whole(cx: Cx) -> CaseResult {
    let names = [
        "a:12:b.txt",
        " lead.txt",
        "trail ",
        "$HOME",
        "it's",
        "a\\b",
        "*",
        "q\"q",
    ];
    for name in names {
        cx.sandbox.upload(cx.path(name), "x\nneedle:1:x\n").await?;
    }
    let mut right: Vec<String> = names.iter().map(|n| format!("{n}:2:needle:1:x")).collect();
    right.sort_unstable();
    check_eq!(hits(&cx, "needle").await?, right);
    Ok(())
}

async fn names_with_control_characters_come_whole(cx: Cx) -> CaseResult {
    cx.put([
        ("nl\nname", b"needle\n"),
        ("tab\tx", b"needle\n"),
        ("nl", b"hay\n"),
    ])
    .await?;
    check_eq!(
        hits(&cx, "needle").await?,
        ["nl\nname:1:needle", "tab\tx:1:needle"]
    );
    Ok(())
}

async fn file_names_are_never_options(cx: Cx) -> CaseResult {
    cx.put([
        ("-n", b"needle"),
        ("--help", b"needle"),
        ("-rf", b"needle"),
        ("-", b"needle"),
    ])
    .await?;
    check_eq!(
        hits(&cx, "needle").await?,
        [
            "-:1:needle",
            "--help:1:needle",
            "-n:1:needle",
            "-rf:1:needle"
        ]
    );
    check_eq!(
        hits_in(&cx, "needle", &cx.path("-n"), GrepOptions::default()).await?,
        ["-n:1:needle"]
    );
    Ok(())
}

async fn a_long_line_is_cut_and_marked(cx: Cx) -> CaseResult {
    let long = format!("{}needle{}\n", "x".repeat(1_500_000), "y".repeat(1_500_000));
    let edge = "z".repeat(8186) + "needle";
    cx.put([
        ("long", long.as_bytes()),
        ("edge", edge.as_bytes()),
        ("b.txt", b"needle\n"),
    ])
    .await?;
    let matches = cx
        .sandbox
        .grep("needle", &cx.dir, GrepOptions::default())
        .await?;
    let seen: Vec<(usize, bool)> = matches
        .matches
        .iter()
        .map(|m| (m.text.len(), m.cut))
        .collect();
    check_eq!(seen.len(), 3);
    check_eq!((seen[0], seen[1]), ((6, false), (8192, false)));
    check!(
        seen[2].1 && seen[2].0 as u64 <= defaults::GREP_LINE && seen[2].0 > 4000,
        "{seen:?}"
    );
    Ok(())
}

async fn long_text_is_searched_or_refused(cx: Cx) -> CaseResult {
    // Nothing that repeats: GNU's `grep` takes seconds for such a text.
    let numbers: String = (0..40_000)
        .flat_map(|n: u32| [n.to_string(), ",".to_owned()])
        .collect();
    for n in [10_000, 60_000, 131_071, 131_072, 200_000] {
        let long = &numbers[..n];
        cx.put([
            ("f", format!("x\n{long}\n").as_bytes()),
            ("g", &long.as_bytes()[1..]),
        ])
        .await?;
        match cx.sandbox.grep(long, &cx.dir, GrepOptions::default()).await {
            Ok(matches) => check_eq!(matches.matches.len(), 1, "{n} bytes"),
            Err(e) => check!(
                e.kind() == ErrorKind::TooLarge && n > 10_000,
                "{n} bytes: {e:?}"
            ),
        }
    }
    Ok(())
}

async fn empty_text_is_refused(cx: Cx) -> CaseResult {
    cx.put([("f", b"x\n")]).await?;
    let call = cx.sandbox.grep("", &cx.dir, GrepOptions::default());
    refused(call.await, ErrorKind::InvalidArgument)?;
    Ok(())
}

async fn text_with_a_newline_is_refused(cx: Cx) -> CaseResult {
    cx.put([("f", b"ab\ncd\nzz\n")]).await?;
    for text in ["ab\ncd", "\n", "a\0b"] {
        let call = cx.sandbox.grep(text, &cx.dir, GrepOptions::default());
        refused(call.await, ErrorKind::InvalidArgument)?;
    }
    check_eq!(hits(&cx, "ab\r").await?, Vec::<String>::new());
    Ok(())
}

async fn a_bad_glob_is_refused(cx: Cx) -> CaseResult {
    for glob in ["../*", "a\0b", ""] {
        let call = cx
            .sandbox
            .grep("x", &cx.dir, GrepOptions::default().glob(glob));
        refused(call.await, ErrorKind::InvalidPattern)?;
    }
    Ok(())
}

async fn a_missing_root_is_not_found(cx: Cx) -> CaseResult {
    for name in ["none", "none/deeper"] {
        let call = cx.sandbox.grep("x", cx.path(name), GrepOptions::default());
        refused(call.await, ErrorKind::NotFound)?;
    }
    Ok(())
}

async fn an_unreadable_root_is_refused(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; echo x >d/f; echo x >f; chmod 000 d f")
        .await?;
    let mut calls = Vec::new();
    for name in ["d", "f"] {
        calls.push(
            cx.sandbox
                .grep("x", cx.path(name), GrepOptions::default())
                .await,
        );
    }
    cx.ok("chmod 755 d f").await?;
    for call in calls {
        refused(call, ErrorKind::PermissionDenied)?;
    }
    Ok(())
}

async fn what_cannot_be_read_is_told(cx: Cx) -> CaseResult {
    cx.ok("mkdir d e; echo needle >d/f; echo needle >e/f; echo needle >g; chmod 000 d g; ln -s none l").await?;
    let matches = cx
        .sandbox
        .grep("needle", &cx.dir, GrepOptions::default())
        .await;
    cx.ok("chmod 755 d g").await?;
    let matches = matches?;
    check_eq!(brief(&cx, &matches), ["e/f:1:needle"]);
    check_eq!(matches.gaps, vec![Gap::Unreadable(2)]);
    Ok(())
}

async fn links_are_not_followed(cx: Cx) -> CaseResult {
    cx.ok("mkdir out root; echo needle >out/secret; echo needle >root/f; ln -s ../out root/l; ln -s ../out/secret root/s; ln -s . root/loop").await?;
    check_eq!(
        hits_in(&cx, "needle", &cx.path("root"), GrepOptions::default()).await?,
        ["root/f:1:needle"]
    );
    Ok(())
}

async fn special_files_are_skipped(cx: Cx) -> CaseResult {
    cx.ok("mkfifo p; echo needle >f").await?;
    let start = Instant::now();
    check_eq!(hits(&cx, "needle").await?, ["f:1:needle"]);
    check!(
        start.elapsed() < Duration::from_secs(10),
        "it took {:?}",
        start.elapsed()
    );
    Ok(())
}

async fn files_that_come_and_go_hide_no_other(cx: Cx) -> CaseResult {
    let steady: Vec<String> = (0..40).map(|i| format!("steady/{i:02}:1:needle")).collect();
    cx.ok("mkdir steady; for i in 0 1 2 3; do for j in 0 1 2 3 4 5 6 7 8 9; do echo needle >steady/$i$j; done; done")
        .await?;
    // Some are there for a moment, one grows and shrinks, until it is told to stop.
    let churn = "i=0; while ! [ -e stop ] && [ $i -lt 100000 ]; do echo needle >v$i; mkdir d$i; \
                 echo needle >d$i/f; echo needle >>grows; [ $((i%50)) != 0 ] || : >grows; \
                 rm -rf v$((i-20)) d$((i-20)); i=$((i+1)); done";
    let looking = async {
        for _ in 0..4 {
            let found = cx
                .sandbox
                .grep("needle", &cx.dir, GrepOptions::default())
                .await?;
            check_eq!(found.gaps, vec![]);
            let found: Vec<String> = brief(&cx, &found)
                .into_iter()
                .filter(|hit| hit.starts_with("steady/"))
                .collect();
            check_eq!(found, steady);
            let found = cx.sandbox.glob("[0-9][0-9]", &cx.dir).await?;
            check_eq!((found.paths.len(), found.gaps), (40, vec![]));
            cx.sandbox.ls(&cx.dir).await?;
        }
        Ok(())
    };
    let both = async {
        let looked: CaseResult = looking.await;
        cx.put([("stop", b"")]).await?;
        looked
    };
    let (churned, looked) = tokio::join!(cx.sh(churn), both);
    churned?;
    looked
}

async fn thousands_of_hits_all_come(cx: Cx) -> CaseResult {
    let text = lines(6000, |i| format!("needle {}", i + 1));
    cx.put([("f", text.as_bytes())]).await?;
    let found = hits(&cx, "needle").await?;
    check_eq!(
        (found.len(), found.last().map(String::as_str)),
        (6000, Some("f:6000:needle 6000"))
    );
    Ok(())
}

async fn many_files_are_searched(cx: Cx) -> CaseResult {
    let files = (0..1000).map(|i| {
        let content = if i % 100 == 0 {
            "x\nneedle\n"
        } else {
            "x\nhay\n"
        };
        (cx.path(&format!("d{}/f{i}", i % 10)), content)
    });
    for result in cx.sandbox.upload_files(files).await {
        result?;
    }
    check_eq!(hits(&cx, "needle").await?.len(), 10);
    Ok(())
}

async fn the_whole_file_system_can_be_searched(cx: Cx) -> CaseResult {
    cx.put([("f", b"kit-needle-everywhere\n")]).await?;
    let start = Instant::now();
    let matches = cx
        .sandbox
        .grep("kit-needle-everywhere", "/", GrepOptions::default())
        .await?;
    check!(
        start.elapsed() < Duration::from_secs(50),
        "it took {:?}",
        start.elapsed()
    );
    let found = matches
        .matches
        .iter()
        .any(|m| m.path.as_str() == cx.path("f"));
    check!(
        found || !matches.gaps.is_empty(),
        "not found, and nothing is said to be missing"
    );
    Ok(())
}
