//! A Docker engine's containers for tests: whether they can be had, what a test needs running, and
//! its end.
//!
//! What is started here is gone afterwards: when it is dropped, after a panic too, and when SIGINT
//! or SIGTERM ends the program. What a program left that was killed is removed by the next one.

use std::process::{Command, Stdio};

use libtest_mimic::Trial;

mod container;
mod guard;
mod opensandbox;

pub use container::{Container, image};
pub use opensandbox::{ExecdProfile, OpenSandbox, execd_image};
pub use testcontainers;

/// The tests that `all` gives where an engine has the images; else one test that says what is
/// missing, and that fails where the engine is required.
pub fn trials(images: &[&str], all: impl FnOnce() -> Vec<Trial>) -> Vec<Trial> {
    unless_missing(&["docker"], missing(images), all)
}

/// As [`trials`], for tests that start an [`OpenSandbox`] too.
pub fn opensandbox_trials(images: &[&str], all: impl FnOnce() -> Vec<Trial>) -> Vec<Trial> {
    let names = ["opensandbox", "docker"];
    unless_missing(&names, OpenSandbox::missing(images), all)
}

/// The tests that `all` gives where nothing is missing; else one test that says what is, and that
/// fails where one of `names` is required. The first of them names the test.
pub fn unless_missing(
    names: &[&str],
    missing: Option<String>,
    all: impl FnOnce() -> Vec<Trial>,
) -> Vec<Trial> {
    let Some(why) = missing else {
        return all();
    };
    eprintln!("NOT RUN: {} ({why})", names[0]);
    vec![sandbox_conformance::unavailable(names, &why)]
}

/// What of an engine and these images is missing here.
pub fn missing(images: &[&str]) -> Option<String> {
    if let Err(why) = docker(&["version", "--format", "{{.Server.Version}}"]) {
        return Some(format!("no Docker engine answers: {why}"));
    }
    let missing = images
        .iter()
        .find(|image| docker(&["image", "inspect", "--format", "{{.Id}}", image]).is_err())?;
    Some(format!("no image {missing}: run `cargo xtask images`"))
}

/// Runs `docker` and gives what it printed, without white space around it.
///
/// # Errors
///
/// What it said on standard error, if it ended with another code than 0, or could not be started.
pub fn docker(args: &[&str]) -> Result<String, String> {
    let output = Command::new("docker")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("docker: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("docker {args:?}: {}", text(&output.stderr)))
    }
}

/// The lines that `docker` printed; none if it failed.
fn lines(args: &[&str]) -> Vec<String> {
    let printed = docker(args).unwrap_or_default();
    printed.lines().map(str::to_owned).collect()
}
