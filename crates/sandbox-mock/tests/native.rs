//! File operations on the tree itself: what only this way of doing them can get wrong.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use sandbox_core::files::Gap;
use sandbox_core::{Client, ErrorKind, GrepOptions, Sandbox, SandboxSpec};
use sandbox_mock::{MockConfig, MockProvider};

async fn sandbox() -> Sandbox {
    Client::new(MockProvider::with(MockConfig::new().user("1000")))
        .create(SandboxSpec::new())
        .await
        .unwrap()
}

#[tokio::test]
async fn glob_finds_what_the_pattern_says() {
    let s = sandbox().await;
    for path in ["t.py", "src/a.py", "src/x/b.py", "src/x/y/c.py", ".h/d.py"] {
        s.upload(format!("/workspace/{path}"), "").await.unwrap();
    }
    for (pattern, n) in [
        ("**/*.py", 4),
        ("src/**/*.py", 3),
        ("src/*.py", 1),
        ("*.py", 5),
    ] {
        let found = s.glob(pattern, "/workspace").await.unwrap();
        assert_eq!(found.paths.len(), n, "{pattern}: {found:?}");
        assert!(found.gaps.is_empty());
    }
    let refused = s.glob("../*", "/workspace").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidPattern);
    let file = s.glob("*", "/workspace/t.py").await.unwrap_err();
    assert_eq!(file.kind(), ErrorKind::NotADirectory);
    assert_eq!(
        s.glob("*", "/none").await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn grep_tells_hits_and_what_it_could_not_see() {
    let s = sandbox().await;
    for (name, text) in [
        ("a:12:b.txt", "needle\n"),
        (" lead.txt", "x\nneedle"),
        ("nl\nname", "a needle\r\nb\n"),
        ("binary", "needle\0"),
        (".hidden", "needle\n"),
        ("-v", "no\n"),
    ] {
        s.upload(format!("/workspace/{name}"), text).await.unwrap();
    }
    let long = format!("{}\n{}needle\n", "y".repeat(10_000), "z".repeat(9_000));
    s.upload("/workspace/long", long).await.unwrap();
    let told = s.execute("mkdir no; echo needle >no/x; chmod 000 no; ln -s nowhere dead; ln -s . up; mkfifo fifo").await.unwrap();
    assert!(told.success(), "{told:?}");
    let found = s
        .grep("needle", "/workspace", GrepOptions::default())
        .await
        .unwrap();
    let hits: Vec<_> = found
        .matches
        .iter()
        .map(|m| (m.path.file_name().unwrap(), m.line, m.text.len(), m.cut))
        .collect();
    assert_eq!(
        hits,
        [
            (" lead.txt", 2, 6, false),
            (".hidden", 1, 6, false),
            ("a:12:b.txt", 1, 6, false),
            ("long", 2, 8192, true),
            ("nl\nname", 1, 8, false),
        ]
    );
    assert_eq!(found.gaps, [Gap::Unreadable(1)]);
    let exact = GrepOptions::default().glob("*.txt").max_count(2);
    assert!(
        !s.grep("needle", "/workspace", exact)
            .await
            .unwrap()
            .gaps
            .contains(&Gap::MatchLimit(2))
    );
    let one_more = GrepOptions::default().glob("*.txt").max_count(1);
    let cut = s.grep("needle", "/workspace", one_more).await.unwrap();
    assert_eq!(
        (cut.matches.len(), cut.gaps.contains(&Gap::MatchLimit(1))),
        (1, true)
    );
    let missing = s
        .grep("x", "/none", GrepOptions::default())
        .await
        .unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn fifty_edits_at_once_are_all_there() {
    let s = sandbox().await;
    let lines: Vec<_> = (0..50).map(|n| format!("token{n}.\n")).collect();
    s.upload("/workspace/f", lines.concat()).await.unwrap();
    let edits = (0..50).map(|n| {
        let s = s.clone();
        tokio::spawn(async move {
            s.edit(
                "/workspace/f",
                &format!("token{n}."),
                &format!("done{n}."),
                false,
            )
            .await
        })
    });
    for edit in edits.collect::<Vec<_>>() {
        assert_eq!(edit.await.unwrap().unwrap().replaced, 1);
    }
    let all = s.download("/workspace/f").await.unwrap();
    let all = std::str::from_utf8(&all).unwrap();
    assert!((0..50).all(|n| all.contains(&format!("done{n}."))));
}
