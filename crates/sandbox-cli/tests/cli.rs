//! The built command on the mock: exit codes, bytes, files, signals, bad input.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use support::{code, end, run, run_with, sandbox, signal, stderr, stdout, wait_for};

fn json(text: &[u8]) -> serde_json::Value {
    serde_json::from_slice(text).unwrap()
}

#[test]
fn the_exit_code_is_the_command_s() {
    for (script, expected) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 124", 124),
        ("exit 255", 255),
        ("no-such-program", 127),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ] {
        let output = run(&["run", "--", "sh", "-c", script]);
        assert_eq!(code(&output), expected, "{script}: {}", stderr(&output));
    }
    assert_eq!(code(&run(&["run", "--", "no-such-program"])), 127);
}

#[test]
fn bytes_pass_as_they_are() {
    let all: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for input in [&b"\xff\x00x"[..], b"", &all] {
        let output = run_with(&["run", "--", "cat"], input);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert!(output.stdout == input, "{} bytes came", output.stdout.len());
    }
    // A backend that only has the four methods.
    let plain = ["run", "--backend", "mock:?native=off", "--", "cat"];
    assert_eq!(run_with(&plain, b"\xff\x00x").stdout, b"\xff\x00x");
}

#[test]
fn the_two_streams_stay_apart_and_nothing_is_added() {
    let output = run(&["run", "--", "sh", "-c", "printf out; printf err >&2"]);
    assert_eq!(
        (stdout(&output), stderr(&output)),
        ("out".into(), "err".into())
    );
}

#[test]
fn a_timeout_is_124_and_keeps_what_was_printed() {
    let start = Instant::now();
    let output = run(&[
        "run",
        "--timeout",
        "500ms",
        "--",
        "sh",
        "-c",
        "echo begun; sleep 60",
    ]);
    assert_eq!(
        (code(&output), stdout(&output)),
        (124, "begun\n".to_owned())
    );
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn output_comes_while_the_command_runs() {
    let mut child = sandbox(&["run", "--", "sh", "-c", "echo begun; sleep 60"])
        .spawn()
        .unwrap();
    wait_for(&mut child, "begun\n");
    assert!(child.try_wait().unwrap().is_none());
    signal(&child, "KILL");
    end(&mut child);
}

#[test]
fn signals_end_it_quickly() {
    for (name, expected) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let script = ["run", "--", "sh", "-c", "echo begun; sleep 60"];
        let mut child = sandbox(&script).spawn().unwrap();
        wait_for(&mut child, "begun\n");
        signal(&child, name);
        let (status, took) = end(&mut child);
        assert_eq!(status.code(), Some(expected), "{name}");
        assert!(took < Duration::from_secs(5), "{name}: {took:?}");
    }
}

#[test]
fn waiting_for_input_can_be_interrupted() {
    let mut child = sandbox(&["run", "--", "cat"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // Signals are caught from the beginning of the task on, which nothing tells from outside.
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, "INT");
    let (status, took) = end(&mut child);
    assert_eq!(status.code(), Some(130));
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn input_that_never_ends_is_not_waited_for_with_n() {
    let mut child = sandbox(&["run", "-n", "--", "cat"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(end(&mut child).0.code(), Some(0));
}

#[test]
fn too_much_input_is_refused() {
    let output = run_with(&["run", "--", "wc", "-c"], &vec![b'x'; (64 << 20) + 1]);
    assert_eq!(code(&output), 125);
    assert!(stderr(&output).contains("--upload"), "{}", stderr(&output));
}

#[test]
fn a_reader_that_goes_away_ends_it() {
    let script = "echo begun; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done";
    let mut child = sandbox(&["run", "--", "sh", "-c", script]).spawn().unwrap();
    wait_for(&mut child, "begun\n");
    drop(child.stdout.take());
    assert_eq!(end(&mut child).0.code(), Some(141));
}

#[test]
fn files_and_directories_go_in_and_out() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("a:b"), b"\xff\x00x").unwrap();
    fs::create_dir_all(at("tree/sub")).unwrap();
    fs::write(at("tree/sub/f"), "deep").unwrap();
    fs::create_dir(at("there")).unwrap();
    let script = "cp /in/file /out; cp -r /in/tree /tree; exit 3";
    let output = run(&[
        "run",
        "--upload",
        &format!("{}:/in/file", at("a:b")),
        "--upload",
        &format!("{}:/in/tree", at("tree")),
        "--download",
        &format!("/out:{}", at("out")),
        "--download",
        &format!("/out:{}", at("there")),
        "--download",
        &format!("/tree:{}", at("back")),
        "--",
        "sh",
        "-c",
        script,
    ]);
    // What a command that failed has left is taken all the same.
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    for file in ["out", "there/out"] {
        assert_eq!(fs::read(at(file)).unwrap(), b"\xff\x00x", "{file}");
    }
    assert_eq!(fs::read(at("back/sub/f")).unwrap(), b"deep");
}

#[test]
fn a_download_that_fails_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let local = dir.path().join("kept");
    fs::write(&local, "kept").unwrap();
    let copy = format!("/missing:{}", local.display());
    let output = run(&["run", "--download", &copy, "--", "true"]);
    assert_eq!(code(&output), 125);
    assert!(stderr(&output).contains("/missing"), "{}", stderr(&output));
    assert_eq!(fs::read(&local).unwrap(), b"kept");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    // The command's own failure says more than the file that it did not make.
    assert_eq!(code(&run(&["run", "--download", &copy, "--", "false"])), 1);
}

#[test]
fn a_missing_local_file_is_said_to_be_local() {
    let output = run(&["run", "--upload", "/no/such/file:/x", "--", "true"]);
    assert_eq!(code(&output), 125);
    let words = stderr(&output);
    assert!(
        words.starts_with("sandbox: on this machine: /no/such/file"),
        "{words}"
    );
}

#[test]
fn the_surroundings_of_the_command_are_set() {
    let output = run(&[
        "run",
        "--user",
        "1000",
        "-e",
        "A=x=y",
        "-w",
        "/tmp",
        "--",
        "sh",
        "-c",
        "id -u; echo \"$A\"; pwd",
    ]);
    assert_eq!(stdout(&output), "1000\nx=y\n/tmp\n", "{}", stderr(&output));
}

#[test]
fn json_holds_the_ending_and_the_exit_code_stays() {
    let output = run(&[
        "run",
        "--json",
        "--",
        "sh",
        "-c",
        "printf '\\377'; echo e >&2; exit 3",
    ]);
    assert_eq!(code(&output), 3);
    let said = json(&output.stdout);
    assert_eq!(
        (said["status"].as_str(), said["exit_code"].as_i64()),
        (Some("exited"), Some(3))
    );
    assert_eq!(said["stdout"]["exact"], false);
    assert_eq!(
        (
            said["stderr"]["text"].as_str(),
            said["stderr"]["exact"].as_bool()
        ),
        (Some("e\n"), Some(true))
    );
    let late = run(&["run", "--json", "--timeout", "0.3", "--", "sleep", "60"]);
    assert_eq!(
        (code(&late), json(&late.stdout)["status"].as_str()),
        (124, Some("timed_out"))
    );
}

#[test]
fn an_error_has_a_kind_in_json() {
    let output = run(&["run", "--json", "--backend", "nothing:", "--", "true"]);
    assert_eq!(code(&output), 125);
    assert_eq!(json(&output.stderr)["error"]["kind"], "config");
    assert!(output.stdout.is_empty());
}

#[test]
fn bad_arguments_are_2_and_what_the_backend_refuses_is_125() {
    for args in [
        &[][..],
        &["run"],
        &["run", "--"],
        &["run", "true"],
        &["run", "--timeout", "soon", "--", "true"],
        &["run", "--timeout", "0", "--", "true"],
        &["run", "--upload", "a", "--", "true"],
        &["run", "-e", "A", "--", "true"],
        &["nonsense"],
        &["completions", "cobol"],
    ] {
        assert_eq!(code(&run(args)), 2, "{args:?}");
    }
    for (args, word) in [
        (&["run", "--network", "--", "true"][..], "network"),
        (
            &["run", "--backend", "mock:?memroy=1", "--", "true"],
            "memroy",
        ),
        (&["run", "--backend", "x", "--", "true"], "x"),
        (&["run", "-e", "A-B=1", "--", "true"], "A-B"),
        (&["run", "-w", "relative", "--", "true"], "relative"),
        (&["run", "-w", "/missing", "--", "true"], "missing"),
        (
            &["run", "--user", "nobody-of-that-name", "--", "true"],
            "nobody-of-that-name",
        ),
        (&["run", "--", ""], "empty"),
    ] {
        let output = run(args);
        let words = stderr(&output);
        assert_eq!(code(&output), 125, "{args:?}: {words}");
        assert!(
            words.starts_with("sandbox: ") && words.contains(word),
            "{words}"
        );
        assert_eq!(words.lines().count(), 1, "{words}");
    }
}

#[test]
fn a_sandbox_of_the_mock_does_not_outlive_the_process_and_it_says_so() {
    for args in [
        &["create"][..],
        &["exec", "x", "--", "true"],
        &["ls", "x"],
        &["cat", "x", "/a"],
        &["cp", "x:/a", "a"],
        &["kill", "x"],
    ] {
        let output = run(args);
        assert_eq!(code(&output), 125, "{args:?}");
        let words = stderr(&output);
        assert!(
            words.contains("sandbox run") && words.contains("docker://"),
            "{words}"
        );
    }
    let listed = run(&["list", "--json"]);
    assert_eq!(
        (code(&listed), json(&listed.stdout)),
        (0, serde_json::json!([]))
    );
    assert_eq!(code(&run(&["gc"])), 125);
}

#[test]
fn the_doctor_says_why_and_what_to_do() {
    // The mock always works, so what is asked for works.
    let output = sandbox(&["doctor"])
        .env("DOCKER_HOST", "unix:///no/such.sock")
        .output()
        .unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("ok     mock"), "{said}");
    assert!(
        said.contains("FAILED docker engine") && said.contains("DOCKER_HOST"),
        "{said}"
    );
    let asked = [
        "doctor",
        "--json",
        "--backend",
        "docker://x?host=unix:///no/such.sock",
    ];
    let output = run(&asked);
    assert_eq!(code(&output), 1);
    let said = json(&output.stdout);
    assert_eq!(
        (said[0]["works"].as_bool(), said[1]["works"].as_bool()),
        (Some(true), Some(false))
    );
    assert_eq!(said[1]["kind"], "unavailable");
    assert!(
        said[1]["advice"].as_str().unwrap().contains("start"),
        "{said}"
    );
}

#[test]
fn completions_name_the_tasks() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        assert_eq!(code(&output), 0);
        assert!(stdout(&output).contains("doctor"), "{shell}");
    }
}

#[test]
fn nothing_is_coloured_where_there_is_no_terminal() {
    for args in [
        &["--help"][..],
        &["nonsense"],
        &["run", "--backend", "x", "--", "true"],
    ] {
        let output = run(args);
        assert!(
            !output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b),
            "{args:?}"
        );
    }
}
