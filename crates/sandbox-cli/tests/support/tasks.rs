//! What the command does in the same way on every backend whose sandboxes last.

use std::fs;

use super::{code, run, run_with, stderr, stdout};

/// A label that no other run has.
pub(crate) fn label(what: &str) -> String {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    format!("cli-test={what}-{}-{}", std::process::id(), now.as_nanos())
}

/// Bytes pass as they are, and so do exit codes.
pub(crate) fn bytes_and_exit_codes(backend: &str) {
    let echoed = run_with(&["run", "--backend", backend, "--", "cat"], b"\xff\x00x");
    assert_eq!(echoed.stdout, b"\xff\x00x", "{}", stderr(&echoed));
    for (script, timeout, expected) in [
        ("exit 3", "60", 3),
        ("kill -9 $$", "60", 137),
        ("sleep 60", "1", 124),
    ] {
        let args = [
            "run",
            "--backend",
            backend,
            "--timeout",
            timeout,
            "--",
            "sh",
            "-c",
            script,
        ];
        let output = run(&args);
        assert_eq!(code(&output), expected, "{script}: {}", stderr(&output));
    }
}

/// Makes a sandbox with the label, uses it in every way and ends it.
pub(crate) fn whole_life(backend: &str, label: &str) {
    let made = run(&["create", "--json", "--backend", backend, "--label", label]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let reference: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let (url, id) = (
        reference["url"].as_str().unwrap(),
        reference["id"].as_str().unwrap(),
    );
    let on = |args: &[&str]| {
        let mut all = vec!["--backend", url];
        all.extend(args);
        let output = run(&all);
        assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
        output
    };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("in"), b"\xff\x00x").unwrap();
    on(&["cp", &at("in"), &format!("{id}:/workspace/f")]);
    on(&["exec", id, "--", "cp", "/workspace/f", "/workspace/g"]);
    assert_eq!(
        on(&["cat", id, "/workspace/g", "/workspace/f"]).stdout,
        b"\xff\x00x\xff\x00x"
    );
    on(&["cp", &format!("{id}:/workspace/g"), &at("out")]);
    assert_eq!(fs::read(at("out")).unwrap(), b"\xff\x00x");
    on(&["cp", &format!("{id}:/workspace"), &at("tree")]);
    assert_eq!(fs::read(at("tree/f")).unwrap(), b"\xff\x00x");
    let listed = stdout(&on(&["ls", id]));
    assert!(
        listed.contains("/workspace/f") && listed.contains("file"),
        "{listed}"
    );
    let all = stdout(&on(&["list", "--label", label]));
    assert!(all.starts_with(id) && all.contains("running"), "{all}");
    // The sweep leaves the living alone.
    on(&["gc"]);
    on(&["exec", id, "--", "true"]);
    on(&["kill", id]);
    let gone = run(&["exec", "--json", "--backend", url, id, "--", "true"]);
    assert_eq!(code(&gone), 125);
    let error: serde_json::Value = serde_json::from_slice(&gone.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "sandbox_gone");
}
