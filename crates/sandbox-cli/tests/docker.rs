//! The built command in real containers.
//!
//! Needs a Docker engine and the images of `cargo xtask images busybox python`. Without them it
//! says `NOT RUN: docker (why)`, and fails where `SANDBOX_REQUIRE` names docker or `CI` is set.
#![allow(
    clippy::unwrap_used,
    reason = "a test program, with a harness of its own"
)]

mod support;

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use sandbox_testkit::engine;
use support::{code, end, run, run_with, sandbox, signal, stderr, stdout, wait_for};

const BUSYBOX: &str = "docker://sandbox-busybox:latest?pull=never";
const PYTHON: &str = "docker://sandbox-python:latest?pull=never";

fn main() -> ExitCode {
    let mut args = Arguments::from_args();
    // They wait more than they work.
    args.test_threads.get_or_insert(4);
    let images = ["sandbox-busybox:latest", "sandbox-python:latest"];
    let trials = engine::trials(&images, || {
        vec![
            test("python_prints_1", python_prints_1),
            test("bytes_and_exit_codes", bytes_and_exit_codes),
            test("a_signal_leaves_no_container", || {
                gone_after("INT", Some(130));
            }),
            test("being_killed_leaves_no_container", || {
                gone_after("KILL", None);
            }),
            test("a_sandbox_s_whole_life", whole_life),
            test("an_interrupted_exec_leaves_no_process", interrupted_exec),
            test("the_doctor_tries_the_image", doctor),
        ]
    });
    libtest_mimic::run(&args, trials).exit_code()
}

fn test(name: &str, body: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        body();
        Ok(())
    })
}

/// A label that no other run has.
fn label(what: &str) -> String {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    format!("cli-test={what}-{}-{}", std::process::id(), now.as_nanos())
}

/// Asks the engine itself for the containers with the label.
fn containers(label: &str) -> String {
    let filter = format!("label=rs.sandbox.label.{label}");
    engine::docker(&["ps", "-aq", "--filter", &filter]).unwrap()
}

fn ends(label: &str, limit: Duration) {
    let start = Instant::now();
    while !containers(label).is_empty() {
        assert!(start.elapsed() < limit, "a container lives on");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn python_prints_1() {
    let output = run(&[
        "run",
        "--backend",
        PYTHON,
        "--",
        "python3",
        "-c",
        "print(1)",
    ]);
    assert_eq!(
        (code(&output), stdout(&output)),
        (0, "1\n".to_owned()),
        "{}",
        stderr(&output)
    );
    assert_eq!(stderr(&output), "");
}

fn bytes_and_exit_codes() {
    let echoed = run_with(&["run", "--backend", BUSYBOX, "--", "cat"], b"\xff\x00x");
    assert_eq!(echoed.stdout, b"\xff\x00x", "{}", stderr(&echoed));
    for (script, timeout, expected) in [
        ("exit 3", "60", 3),
        ("kill -9 $$", "60", 137),
        ("sleep 60", "1", 124),
    ] {
        let args = [
            "run",
            "--backend",
            BUSYBOX,
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

fn gone_after(name: &str, expected: Option<i32>) {
    let label = label(name);
    let mut child = sandbox(&[
        "run",
        "--backend",
        BUSYBOX,
        "--label",
        &label,
        "--",
        "sh",
        "-c",
        "echo begun; sleep 600",
    ])
    .spawn()
    .unwrap();
    wait_for(&mut child, "begun\n");
    assert!(!containers(&label).is_empty());
    signal(&child, name);
    let (status, took) = end(&mut child);
    assert_eq!(status.code(), expected);
    assert!(took < Duration::from_secs(30), "{took:?}");
    if expected.is_some() {
        // It waited for that before it ended.
        assert_eq!(containers(&label), "");
    }
    ends(&label, Duration::from_secs(30));
}

fn whole_life() {
    let label = label("life");
    let made = run(&["create", "--json", "--backend", BUSYBOX, "--label", &label]);
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
    let all = stdout(&on(&["list", "--label", &label]));
    assert!(all.starts_with(id) && all.contains("running"), "{all}");
    // The sweep leaves the living alone.
    on(&["gc"]);
    on(&["exec", id, "--", "true"]);
    on(&["kill", id]);
    ends(&label, Duration::from_secs(30));
    let gone = run(&["exec", "--json", "--backend", url, id, "--", "true"]);
    assert_eq!(code(&gone), 125);
    let error: serde_json::Value = serde_json::from_slice(&gone.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "sandbox_gone");
}

fn interrupted_exec() {
    let label = label("exec");
    let made = run(&["create", "--backend", BUSYBOX, "--label", &label]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let id = stdout(&made).trim().to_owned();
    let script = "echo begun; sleep 4321";
    let mut child = sandbox(&[
        "exec",
        "--backend",
        "docker:",
        &id,
        "--",
        "sh",
        "-c",
        script,
    ])
    .spawn()
    .unwrap();
    wait_for(&mut child, "begun\n");
    signal(&child, "INT");
    assert_eq!(end(&mut child).0.code(), Some(130));
    let left = run(&[
        "exec",
        "--backend",
        "docker:",
        &id,
        "--",
        "ps",
        "-o",
        "args",
    ]);
    let killed = run(&["kill", "--backend", "docker:", &id]);
    assert_eq!((code(&left), code(&killed)), (0, 0), "{}", stderr(&left));
    assert!(!stdout(&left).contains("4321"), "{}", stdout(&left));
}

fn doctor() {
    let output = run(&["doctor", "--backend", BUSYBOX]);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    assert!(stdout(&output).contains("ok     docker container"));
    let missing = run(&["doctor", "--backend", "docker://sandbox-nosuch?pull=never"]);
    assert_eq!(code(&missing), 1);
    assert!(
        stdout(&missing).contains("cargo xtask images nosuch"),
        "{}",
        stdout(&missing)
    );
}
