//! The built command in real containers.
//!
//! Needs a Docker engine and the images of `cargo xtask images busybox python`. Without them it
//! says `NOT RUN: docker (why)`, and fails where `SANDBOX_REQUIRE` names docker or `CI` is set.
#![allow(
    clippy::unwrap_used,
    reason = "a test program, with a harness of its own"
)]

mod support;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use libtest_mimic::Arguments;
use sandbox_testkit::engine;
use support::tasks::{self, label};
use support::{code, end, run, sandbox, signal, stderr, stdout, test, wait_for};

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
            test("bytes_and_exit_codes", || {
                tasks::bytes_and_exit_codes(BUSYBOX);
            }),
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
    tasks::whole_life(BUSYBOX, &label);
    ends(&label, Duration::from_secs(30));
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
