//! The official client of `OpenSandbox`, in Python, on a real server whose sandboxes have this
//! daemon: both of its flavours, directly and through the server.
//!
//! Needs a Docker engine, the images of `cargo xtask images`, and in `SANDBOX_OPENSANDBOX_PYTHON` a
//! Python that has the client. `cargo xtask test` makes all of it.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test")]

use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Failed, Trial};
use sandbox_testkit::engine::{self, ExecdProfile, OpenSandbox};

const PYTHON: &str = "SANDBOX_OPENSANDBOX_PYTHON";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/official/client.py");

/// What the sandboxes are made of.
const IMAGE: &str = "sandbox-python:latest";

/// Started by the first test, removed with the last owner.
type Server = Arc<OnceLock<Result<OpenSandbox, String>>>;

fn main() -> ExitCode {
    let args = Arguments::from_args();
    let server = Server::default();
    let python = std::env::var_os(PYTHON);
    let missing = python
        .is_none()
        .then(|| format!("{PYTHON} names no Python that has it"));
    let trials = engine::unless_missing(&["opensandbox-client"], missing, || {
        engine::opensandbox_trials(&[IMAGE], || trials(&python.unwrap_or_default(), &server))
    });
    libtest_mimic::run(&args, trials).exit_code()
}

fn trials(python: &OsString, server: &Server) -> Vec<Trial> {
    let mut all = Vec::new();
    for flavour in ["sync", "async"] {
        for route in ["direct", "proxy"] {
            let (python, server) = (python.clone(), server.clone());
            let name = format!("{flavour}::{route}");
            all.push(Trial::test(name, move || {
                run(&python, &server, [flavour, route])
            }));
        }
    }
    all
}

fn run(python: &OsString, server: &Server, how: [&str; 2]) -> Result<(), Failed> {
    let server = server
        .get_or_init(|| OpenSandbox::start(ExecdProfile::Default))
        .as_ref()?;
    let output = Command::new(python)
        .arg(SCRIPT)
        .args(how)
        .args([&server.address().to_string(), IMAGE])
        .env("OPEN_SANDBOX_API_KEY", server.key())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
}
