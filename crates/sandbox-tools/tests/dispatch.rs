//! The tools over a mock sandbox, as an agent's loop calls them.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::time::Duration;

use sandbox_core::{Client, ErrorKind, Sandbox, SandboxSpec};
use sandbox_mock::MockProvider;
use sandbox_tools::{NAMES, ToolOptions, ToolOutput, dispatch};
use serde_json::{Value, json};

async fn sandbox() -> Sandbox {
    Client::new(MockProvider::new())
        .create(SandboxSpec::new())
        .await
        .unwrap()
}

async fn ok(sandbox: &Sandbox, name: &str, args: Value) -> String {
    let answer = dispatch(sandbox, name, args).await;
    assert!(!answer.is_error, "{name}: {}", answer.text);
    answer.text
}

async fn fails(sandbox: &Sandbox, name: &str, args: Value) -> ToolOutput {
    let answer = dispatch(sandbox, name, args).await;
    assert!(answer.is_error, "{name}: {}", answer.text);
    assert!(answer.text.contains("Error: "), "{}", answer.text);
    answer
}

#[tokio::test]
async fn a_session_of_an_agent() {
    let s = sandbox().await;
    assert_eq!(
        ok(
            &s,
            "write_file",
            json!({"file_path": "/workspace/src/a.txt", "content": "one\ntwo\nthree\n"})
        )
        .await,
        "Updated file /workspace/src/a.txt"
    );
    assert_eq!(
        ok(&s, "ls", json!({"path": "/workspace"})).await,
        "/workspace/src/"
    );
    assert_eq!(
        ok(&s, "ls", json!({"path": "/workspace/src"})).await,
        "/workspace/src/a.txt (14 bytes)"
    );
    assert_eq!(
        ok(
            &s,
            "read_file",
            json!({"file_path": "/workspace/src/a.txt", "offset": 1, "limit": 1})
        )
        .await,
        "@@ lines 2-2 of 3 | next offset 2 @@\ntwo"
    );
    assert_eq!(
        ok(
            &s,
            "edit_file",
            json!({"file_path": "/workspace/src/a.txt", "old_string": "two", "new_string": "2"})
        )
        .await,
        "Successfully replaced 1 instance(s) of the string in '/workspace/src/a.txt'"
    );
    assert_eq!(
        ok(
            &s,
            "grep",
            json!({"pattern": "2", "output_mode": "content"})
        )
        .await,
        "/workspace/src/a.txt:\n  2: 2"
    );
    assert_eq!(
        ok(&s, "glob", json!({"pattern": "*.txt"})).await,
        "/workspace/src/a.txt"
    );
    assert_eq!(
        ok(
            &s,
            "execute",
            json!({"command": "cat src/a.txt; echo oops >&2; exit 3"})
        )
        .await,
        "one\n2\nthree\noops\n[Command failed with exit code 3]"
    );
    assert_eq!(
        ok(&s, "glob", json!({"pattern": "*.rs"})).await,
        "No files found"
    );
    assert_eq!(
        ok(&s, "grep", json!({"pattern": "nowhere"})).await,
        "No matches found"
    );
}

#[tokio::test]
async fn failures_say_what_to_do() {
    let s = sandbox().await;
    s.write("/workspace/a", "x x").await.unwrap();
    s.upload("/workspace/p.csv", &b"\x89PNG\r\n\x1a\n\0\0"[..])
        .await
        .unwrap();
    for (name, args, says) in [
        (
            "read_file",
            json!({"file_path": "/workspace/none"}),
            "Use ls or glob",
        ),
        ("read_file", json!({"file_path": "/workspace"}), "use ls"),
        ("read_file", json!({"file_path": "a"}), "absolute"),
        ("read_file", json!({"file_path": "/a/../b"}), "`..`"),
        (
            "read_file",
            json!({"file_path": "/workspace/p.csv"}),
            "a PNG image",
        ),
        (
            "read_file",
            json!({"file_path": "/workspace/a", "offset": 9}),
            "smaller offset",
        ),
        ("ls", json!({"path": "/workspace/a"}), "use read_file"),
        (
            "edit_file",
            json!({"file_path": "/workspace/a", "old_string": "y", "new_string": "z"}),
            "copy the text exactly",
        ),
        (
            "edit_file",
            json!({"file_path": "/workspace/a", "old_string": "x", "new_string": "z"}),
            "replace_all",
        ),
        (
            "edit_file",
            json!({"file_path": "/workspace/a", "old_string": "x", "new_string": "x"}),
            "the same",
        ),
        (
            "edit_file",
            json!({"file_path": "/workspace/a", "old_string": "", "new_string": "x"}),
            "empty",
        ),
        (
            "glob",
            json!({"pattern": "*", "path": "/none"}),
            "Use ls or glob",
        ),
        ("grep", json!({"pattern": "a\nb"}), "within one line"),
        ("grep", json!({"pattern": "x", "max_count": 0}), "1 or more"),
        (
            "execute",
            json!({"command": "true", "timeout": 0}),
            "1 second or more",
        ),
        ("execute", json!({"command": "a\u{0}b"}), "NUL"),
        ("bash", json!({}), "execute, ls"),
        ("execute", json!("ls"), "JSON object"),
    ] {
        let answer = fails(&s, name, args).await;
        assert!(answer.text.contains(says), "{name}: {}", answer.text);
    }
    // The file is as it was after all of that.
    assert_eq!(s.download("/workspace/a").await.unwrap(), "x x");
}

#[tokio::test]
async fn hostile_arguments_are_answered() {
    let s = sandbox().await;
    let options = ToolOptions::default();
    for name in NAMES {
        for args in [
            "",
            "null",
            "[]",
            "{",
            "{}",
            r#"{"a": "\ud800"}"#,
            "\u{0}",
            r#"{"path": {"path": "/"}}"#,
        ] {
            let answer = options.dispatch_json(&s, name, args).await;
            assert!(
                answer.is_error && answer.text.starts_with("Error: "),
                "{name} {args}"
            );
            assert!(answer.text.len() < 500);
        }
    }
}

#[tokio::test]
async fn output_is_bounded_and_honest() {
    let s = sandbox().await;
    let options = ToolOptions::default().output(1000);
    let answer = options
        .dispatch(
            &s,
            "execute",
            json!({"command": "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done"}),
        )
        .await;
    assert!(answer.text.len() < 1500, "{}", answer.text.len());
    assert!(answer.text.starts_with("line 0\n") && answer.text.contains("line 1999\n"));
    assert!(answer.text.contains("bytes in its middle are missing"));

    let many: Vec<(String, &str)> = (0..200)
        .map(|i| (format!("/workspace/{i:03}"), ""))
        .collect();
    for r in s.upload_files(many).await {
        r.unwrap();
    }
    let listed = options
        .dispatch(&s, "ls", json!({"path": "/workspace"}))
        .await;
    assert!(listed.text.len() < 1200 && listed.text.contains("more lines left out"));
    let found = dispatch(&s, "grep", json!({"pattern": "x"})).await;
    assert_eq!(found.text, "No matches found");
}

#[tokio::test]
async fn a_deadline_stops_the_command_and_keeps_its_output() {
    let s = sandbox().await;
    let options = ToolOptions::default().timeout(Duration::from_millis(300));
    let answer = options
        .dispatch(&s, "execute", json!({"command": "echo before; sleep 60"}))
        .await;
    assert!(!answer.is_error);
    assert!(
        answer.text.starts_with("before\n[Command timed out"),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn a_dead_sandbox_is_told_to_both() {
    let s = sandbox().await;
    s.kill().await.unwrap();
    for (name, args) in [
        ("execute", json!({"command": "true"})),
        ("ls", json!({"path": "/"})),
    ] {
        let answer = fails(&s, name, args).await;
        assert_eq!(answer.kind, Some(ErrorKind::SandboxGone));
        assert!(answer.text.contains("no tool will work"), "{}", answer.text);
    }
}
