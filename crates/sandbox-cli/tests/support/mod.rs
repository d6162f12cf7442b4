//! What the test programs share: running the built command.
#![allow(dead_code, reason = "each test program uses a part")]

pub(crate) mod tasks;

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;

/// The key that the command finds in its environment.
pub(crate) static KEY: OnceLock<String> = OnceLock::new();

/// Nothing here takes that long.
const LIMIT: Duration = Duration::from_secs(100);

/// The built command with arguments and no input.
pub(crate) fn sandbox(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandbox"));
    command.args(args).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.envs(KEY.get().map(|key| ("OPEN_SANDBOX_API_KEY", key)));
    command
}

/// A test that panics if it fails.
pub(crate) fn test(name: &str, body: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        body();
        Ok(())
    })
}

/// Runs it to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    sandbox(args).output().unwrap()
}

/// Runs it to its end with input.
pub(crate) fn run_with(args: &[&str], input: &[u8]) -> Output {
    let mut child = sandbox(args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // It need not take it all.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// The exit code, which a run that ended by a signal has not.
pub(crate) fn code(output: &Output) -> i32 {
    let words = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    code.unwrap_or_else(|| panic!("ended by a signal: {:?}: {words}", output.status))
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Reads of its stdout until `text` is there.
pub(crate) fn wait_for(child: &mut Child, text: &str) {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&seen).contains(text) {
        let n = child.stdout.as_mut().unwrap().read(&mut byte).unwrap();
        assert!(n == 1, "it ended and had printed {seen:?}");
        seen.push(byte[0]);
    }
}

/// Sends a signal, as `INT`.
pub(crate) fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", name, &pid]).status();
    assert!(sent.unwrap().success());
}

/// Waits for the end, and says how long it took.
pub(crate) fn end(child: &mut Child) -> (ExitStatus, Duration) {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (status, start.elapsed());
        }
        if start.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
