//! Finding files by name.

use std::time::{Duration, Instant};

use sandbox_core::ErrorKind;
use sandbox_core::defaults::GLOB_MATCHES;
use sandbox_core::files::Gap;

use super::needs::{CONTROL_CHARACTERS, FIFOS, FILE_OWNERS};
use crate::check::refused;
use crate::{CaseResult, Cx, Failure};

cases! { "glob":
    two_stars_cross_directories minimal;
    a_base_name_matches_at_any_depth minimal;
    a_star_never_crosses_a_slash minimal;
    a_question_mark_and_a_class_are_one_character minimal;
    braces_are_alternatives minimal;
    hidden_names_need_a_dot minimal;
    hidden_directories_are_searched_for_base_names minimal;
    two_stars_do_not_enter_hidden_directories minimal;
    a_leading_slash_anchors_at_the_root_of_the_search minimal;
    only_regular_files_come minimal;
    links_are_not_followed minimal;
    a_loop_of_links_ends minimal;
    paths_are_absolute_and_sorted minimal;
    characters_beyond_ascii_count_as_one minimal;
    the_root_of_the_search_is_literal minimal;
    nothing_found_is_empty_and_complete minimal;
    dot_dot_is_refused minimal;
    a_pattern_that_cannot_be_used_is_refused minimal;
    a_missing_root_is_not_found minimal;
    a_file_as_root_is_refused minimal;
    an_unreadable_root_is_refused needs(FILE_OWNERS);
    an_unreadable_directory_is_told needs(FILE_OWNERS);
    special_files_are_left_out needs(FIFOS);
    names_with_control_characters_are_whole needs(CONTROL_CHARACTERS);
    more_than_the_budget_is_told;
    the_whole_file_system_can_be_searched;
}

/// Paths relative to the case's directory, of files that must be all that is found.
async fn found(cx: &Cx, pattern: &str, root: &str) -> Result<Vec<String>, Failure> {
    let root = if root.is_empty() {
        cx.dir.clone()
    } else {
        cx.path(root)
    };
    let matches = cx.sandbox.glob(pattern, &root).await?;
    check_eq!(matches.gaps, vec![], "{pattern}");
    let prefix = format!("{}/", cx.dir);
    let mut paths = Vec::new();
    for path in &matches.paths {
        match path.as_str().strip_prefix(&prefix) {
            Some(path) => paths.push(path.to_owned()),
            None => return Err(Failure::Wrong(format!("{pattern}: {path} is outside"))),
        }
    }
    Ok(paths)
}

/// A table of patterns and what they find, separated by spaces.
async fn table(cx: &Cx, rows: &[(&str, &str)]) -> CaseResult {
    for (pattern, right) in rows {
        check_eq!(found(cx, pattern, "").await?.join(" "), *right, "{pattern}");
    }
    Ok(())
}

/// The tree that most cases search.
async fn plant(cx: &Cx) -> CaseResult {
    cx.put([
        ("t.py", b""),
        ("src/a.py", b""),
        ("src/x/b.py", b""),
        ("src/x/y/c.py", b""),
    ])
    .await
}

async fn two_stars_cross_directories(cx: Cx) -> CaseResult {
    plant(&cx).await?;
    table(
        &cx,
        &[
            ("**/*.py", "src/a.py src/x/b.py src/x/y/c.py t.py"),
            ("src/**/*.py", "src/a.py src/x/b.py src/x/y/c.py"),
            ("src/**", "src/a.py src/x/b.py src/x/y/c.py"),
            ("**/x/**", "src/x/b.py src/x/y/c.py"),
            ("src/**/a.py", "src/a.py"),
            ("**/a.py", "src/a.py"),
            ("src/**/y/*.py", "src/x/y/c.py"),
        ],
    )
    .await
}

async fn a_base_name_matches_at_any_depth(cx: Cx) -> CaseResult {
    plant(&cx).await?;
    table(
        &cx,
        &[
            ("*.py", "src/a.py src/x/b.py src/x/y/c.py t.py"),
            ("c.py", "src/x/y/c.py"),
            ("?.py", "src/a.py src/x/b.py src/x/y/c.py t.py"),
            ("src", ""),
        ],
    )
    .await
}

async fn a_star_never_crosses_a_slash(cx: Cx) -> CaseResult {
    plant(&cx).await?;
    table(
        &cx,
        &[
            ("src/*.py", "src/a.py"),
            ("s*c/a.py", "src/a.py"),
            ("src?a.py", ""),
            ("[!x]/b.py", ""),
            ("src/*/*.py", "src/x/b.py"),
            ("*/a.py", "src/a.py"),
        ],
    )
    .await
}

async fn a_question_mark_and_a_class_are_one_character(cx: Cx) -> CaseResult {
    cx.put([
        ("a1", b""),
        ("b1", b""),
        ("b22", b""),
        ("-1", b""),
        ("]1", b""),
        ("A1", b""),
    ])
    .await?;
    table(
        &cx,
        &[
            ("[ab]1", "a1 b1"),
            ("[a-b]1", "a1 b1"),
            ("[!a]1", "-1 A1 ]1 b1"),
            ("[^a]1", "-1 A1 ]1 b1"),
            ("[]]1", "]1"),
            ("[a-]1", "-1 a1"),
            ("?1", "-1 A1 ]1 a1 b1"),
            ("b??", "b22"),
        ],
    )
    .await
}

async fn braces_are_alternatives(cx: Cx) -> CaseResult {
    cx.put([
        ("a.rs", b""),
        ("a.py", b""),
        ("b.py", b""),
        ("a.pyc", b""),
        ("d/a.rs", b""),
    ])
    .await?;
    table(
        &cx,
        &[
            ("*.{rs,py}", "a.py a.rs b.py d/a.rs"),
            ("{a,b}.py", "a.py b.py"),
            ("a.{rs,py{,c}}", "a.py a.pyc a.rs d/a.rs"),
            ("{d,e}/*.{rs,py}", "d/a.rs"),
        ],
    )
    .await
}

async fn hidden_names_need_a_dot(cx: Cx) -> CaseResult {
    cx.put([(".env", b""), ("d/.h.py", b""), ("d/v.py", b""), ("v", b"")])
        .await?;
    table(
        &cx,
        &[
            ("*", "d/v.py v"),
            (".*", ".env d/.h.py"),
            ("*.py", "d/v.py"),
            (".*.py", "d/.h.py"),
            ("?env", ""),
            ("d/*", "d/v.py"),
            ("d/.*", "d/.h.py"),
        ],
    )
    .await
}

async fn hidden_directories_are_searched_for_base_names(cx: Cx) -> CaseResult {
    cx.put([(".github/w/x.yml", b""), ("y.yml", b"")]).await?;
    table(
        &cx,
        &[
            ("*.yml", ".github/w/x.yml y.yml"),
            (".github/**", ".github/w/x.yml"),
        ],
    )
    .await
}

async fn two_stars_do_not_enter_hidden_directories(cx: Cx) -> CaseResult {
    cx.put([
        (".github/w/x.yml", b""),
        ("d/.git/z.yml", b""),
        ("y.yml", b""),
    ])
    .await?;
    table(
        &cx,
        &[
            ("**/*.yml", "y.yml"),
            (".github/**/*.yml", ".github/w/x.yml"),
        ],
    )
    .await
}

async fn a_leading_slash_anchors_at_the_root_of_the_search(cx: Cx) -> CaseResult {
    plant(&cx).await?;
    table(
        &cx,
        &[
            ("/t.py", "t.py"),
            ("/*.py", "t.py"),
            ("/src/*.py", "src/a.py"),
            ("/a.py", ""),
        ],
    )
    .await?;
    check_eq!(found(&cx, "/*.py", "src").await?, ["src/a.py"]);
    check_eq!(found(&cx, "x/*.py", "src").await?, ["src/x/b.py"]);
    check_eq!(
        found(&cx, "*.py", "src/x/").await?,
        ["src/x/b.py", "src/x/y/c.py"]
    );
    Ok(())
}

async fn only_regular_files_come(cx: Cx) -> CaseResult {
    cx.ok("mkdir -p d/e.py; : >d/f.py; ln -s d/f.py l.py")
        .await?;
    check_eq!(found(&cx, "*.py", "").await?, ["d/f.py"]);
    Ok(())
}

async fn links_are_not_followed(cx: Cx) -> CaseResult {
    cx.ok("mkdir -p out root/d; : >out/secret; : >root/d/in; ln -s ../out root/l; ln -s ../../out/secret root/d/s").await?;
    check_eq!(found(&cx, "*", "root").await?, ["root/d/in"]);
    check_eq!(found(&cx, "**", "root").await?, ["root/d/in"]);
    check_eq!(found(&cx, "l/*", "root").await?, Vec::<String>::new());
    Ok(())
}

async fn a_loop_of_links_ends(cx: Cx) -> CaseResult {
    cx.ok("mkdir -p a; : >a/f; ln -s .. a/loop; ln -s self self; ln -s c b; ln -s b c")
        .await?;
    check_eq!(found(&cx, "**/*", "").await?, ["a/f"]);
    Ok(())
}

async fn paths_are_absolute_and_sorted(cx: Cx) -> CaseResult {
    cx.put([
        ("b", b""),
        ("B", b""),
        ("a/z", b""),
        ("a-", b""),
        ("é", b""),
        ("a b", b""),
    ])
    .await?;
    check_eq!(
        found(&cx, "*", "").await?,
        ["B", "a b", "a-", "a/z", "b", "é"]
    );
    Ok(())
}

async fn characters_beyond_ascii_count_as_one(cx: Cx) -> CaseResult {
    cx.put([("naïve-漢.txt", b""), ("😀", b"")]).await?;
    table(
        &cx,
        &[
            ("na?ve-?.txt", "naïve-漢.txt"),
            ("?", "😀"),
            ("[ï-😀]", "😀"),
        ],
    )
    .await
}

async fn the_root_of_the_search_is_literal(cx: Cx) -> CaseResult {
    cx.put([
        ("[ab]{c}*/f", b""),
        ("a/f", b""),
        ("-d/f", b""),
        ("sp ace/$x/f", b""),
    ])
    .await?;
    for root in ["[ab]{c}*", "-d", "sp ace/$x"] {
        check_eq!(found(&cx, "f", root).await?, [format!("{root}/f")]);
    }
    Ok(())
}

async fn nothing_found_is_empty_and_complete(cx: Cx) -> CaseResult {
    check_eq!(found(&cx, "*.none", "").await?, Vec::<String>::new());
    check_eq!(found(&cx, "none/**", "").await?, Vec::<String>::new());
    Ok(())
}

async fn dot_dot_is_refused(cx: Cx) -> CaseResult {
    for pattern in ["../*", "a/../b", "..", "/.."] {
        refused(
            cx.sandbox.glob(pattern, &cx.dir).await,
            ErrorKind::InvalidPattern,
        )?;
    }
    Ok(())
}

async fn a_pattern_that_cannot_be_used_is_refused(cx: Cx) -> CaseResult {
    for pattern in ["", "a\0b", &"x".repeat(5000), &"{a,b}".repeat(20)] {
        refused(
            cx.sandbox.glob(pattern, &cx.dir).await,
            ErrorKind::InvalidPattern,
        )?;
    }
    Ok(())
}

async fn a_missing_root_is_not_found(cx: Cx) -> CaseResult {
    for name in ["none", "none/deeper"] {
        refused(
            cx.sandbox.glob("*", cx.path(name)).await,
            ErrorKind::NotFound,
        )?;
    }
    Ok(())
}

async fn a_file_as_root_is_refused(cx: Cx) -> CaseResult {
    cx.put([("f", b"")]).await?;
    refused(
        cx.sandbox.glob("*", cx.path("f")).await,
        ErrorKind::NotADirectory,
    )?;
    Ok(())
}

async fn an_unreadable_root_is_refused(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; : >d/f; chmod 000 d").await?;
    let call = cx.sandbox.glob("*", cx.path("d")).await;
    cx.ok("chmod 755 d").await?;
    refused(call, ErrorKind::PermissionDenied)?;
    Ok(())
}

async fn an_unreadable_directory_is_told(cx: Cx) -> CaseResult {
    cx.ok("mkdir d e; : >d/f; : >e/f; : >f; chmod 000 d")
        .await?;
    let matches = cx.sandbox.glob("f", &cx.dir).await;
    cx.ok("chmod 755 d").await?;
    let matches = matches?;
    let paths: Vec<&str> = matches.paths.iter().map(AsRef::as_ref).collect();
    check_eq!(paths, [cx.path("e/f"), cx.path("f")]);
    check!(
        matches.gaps.iter().any(|g| matches!(g, Gap::Unreadable(_))),
        "not told: {:?}",
        matches.gaps
    );
    Ok(())
}

async fn special_files_are_left_out(cx: Cx) -> CaseResult {
    cx.ok("mkfifo p; : >f").await?;
    check_eq!(found(&cx, "*", "").await?, ["f"]);
    Ok(())
}

async fn names_with_control_characters_are_whole(cx: Cx) -> CaseResult {
    cx.ok("touch \"$(printf 'new\\nline')\" \"$(printf 'tab\\tx')\"")
        .await?;
    check_eq!(found(&cx, "*", "").await?, ["new\nline", "tab\tx"]);
    Ok(())
}

async fn more_than_the_budget_is_told(cx: Cx) -> CaseResult {
    cx.ok(&format!(
        "i=0; while [ $i -lt {} ]; do [ $i -ge 50 ] || mkdir $i; : >$((i % 50))/f$i; i=$((i + 1)); done",
        GLOB_MATCHES + 5
    ))
    .await?;
    let matches = cx.sandbox.glob("f*", &cx.dir).await?;
    check!(
        matches.paths.len() as u64 <= GLOB_MATCHES,
        "{} matches",
        matches.paths.len()
    );
    check!(!matches.gaps.is_empty(), "it says that nothing is missing");
    Ok(())
}

async fn the_whole_file_system_can_be_searched(cx: Cx) -> CaseResult {
    cx.put([("kit-needle.cfg", b"")]).await?;
    let start = Instant::now();
    let matches = cx.sandbox.glob("kit-needle.cfg", "/").await?;
    check!(
        start.elapsed() < Duration::from_secs(20),
        "it took {:?}",
        start.elapsed()
    );
    let found = matches
        .paths
        .iter()
        .any(|p| p.as_str() == cx.path("kit-needle.cfg"));
    check!(
        found || !matches.gaps.is_empty(),
        "not found, and nothing is said to be missing"
    );
    Ok(())
}
