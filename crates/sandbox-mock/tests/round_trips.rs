//! How many calls reach a backend for each derived operation. Far away, that is what they cost.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use sandbox_core::{Client, GrepOptions, ReadOptions, Sandbox, SandboxSpec};
use sandbox_mock::{MockConfig, MockProvider};

/// The calls that `operation` makes, in a sandbox with the four methods alone.
async fn calls(operation: impl AsyncFnOnce(&Sandbox)) -> u64 {
    let provider = MockProvider::with(MockConfig::new().hide_families());
    let client = Client::new(provider.clone());
    let sandbox = client.create(SandboxSpec::new()).await.unwrap();
    let files = (0..100).map(|n| (format!("/w/{}/{n}.txt", n % 7), format!("line {n}\n")));
    for result in sandbox.upload_files(files).await {
        result.unwrap();
    }
    let crlf = sandbox.upload("/w/crlf.txt", "a\r\nline b\r\n").await;
    crlf.unwrap();
    provider.record().clear();
    operation(&sandbox).await;
    provider.record().total()
}

#[tokio::test]
async fn reading_and_deleting_take_one() {
    let ls = calls(async |s| {
        assert_eq!(s.ls("/w").await.unwrap().entries.len(), 8);
    });
    let read = calls(async |s| {
        let page = s.read("/w/3/3.txt", ReadOptions::default()).await;
        assert_eq!(page.unwrap().text(), Some("line 3"));
    });
    let glob = calls(async |s| {
        assert_eq!(s.glob("**/*.txt", "/w").await.unwrap().paths.len(), 101);
    });
    let grep = calls(async |s| {
        let found = s.grep("line", "/w", GrepOptions::default()).await;
        assert_eq!(found.unwrap().matches.len(), 101);
    });
    let delete = calls(async |s| s.delete("/w").await.unwrap());
    let all = [ls.await, read.await, glob.await, grep.await, delete.await];
    assert_eq!(all, [1; 5]);
}

#[tokio::test]
async fn writing_takes_one_and_an_edit_that_needs_the_content_two() {
    let write = calls(async |s| s.write("/w/new/file", "content").await.unwrap());
    let edit = calls(async |s| {
        let report = s.edit("/w/3/3.txt", "line 3\n", "it's 3\n", false).await;
        assert_eq!(report.unwrap().replaced, 1);
    });
    // Line ends that only the content can tell.
    let crlf = calls(async |s| {
        let report = s.edit("/w/crlf.txt", "a\nline", "b\nline", false).await;
        assert_eq!(report.unwrap().replaced, 1);
    });
    let all = [write.await, edit.await, crlf.await];
    assert_eq!(all, [1, 1, 2]);
}

#[tokio::test]
async fn trees_take_two_whatever_they_hold() {
    let local = tempfile::tempdir().unwrap();
    for n in 0..300 {
        let dir = local.path().join(format!("{}", n % 9));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("{n}")), "x").unwrap();
    }
    let up = calls(async |s| {
        let report = s.upload_dir(local.path(), "/w/up").await.unwrap();
        assert_eq!(report.files, 300);
    });
    let target = tempfile::tempdir().unwrap();
    let down = calls(async |s| {
        let report = s.download_dir("/w", target.path()).await.unwrap();
        assert_eq!(report.files, 101);
    });
    let (up, down) = (up.await, down.await);
    assert!((1..=2).contains(&up), "{up}");
    assert!((1..=2).contains(&down), "{down}");
}
