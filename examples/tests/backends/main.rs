//! The data-analysis agent in real sandboxes: its report is the one that it writes on the mock.
//!
//! Needs a Docker engine and the images of `cargo xtask images`. Without them it says
//! `NOT RUN: docker (why)`, and fails where `SANDBOX_REQUIRE` names docker or `CI` is set.

mod png;
mod report;

use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use sandbox_testkit::engine::{self, ExecdProfile, OpenSandbox};

const IMAGE: &str = "sandbox-data:latest";

/// Names the backend where this program is started again, for the key in its environment.
const ROLE: &str = "SANDBOX_TEST_BACKEND";

fn main() -> ExitCode {
    if let Ok(url) = std::env::var(ROLE) {
        return match report::is_that_of_the_mock(&url) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        };
    }
    let mut trials = engine::trials(&[IMAGE], || {
        let name = "docker_gives_the_report_of_the_mock_with_png_charts";
        vec![Trial::test(name, || {
            let url = format!("docker://{IMAGE}?pull=never");
            report::is_that_of_the_mock(&url).map_err(Into::into)
        })]
    });
    trials.extend(engine::opensandbox_trials(&[IMAGE], || {
        let name = "opensandbox_gives_the_report_of_the_mock_with_png_charts";
        vec![Trial::test(name, opensandbox)]
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// In a process of its own: the key is no part of a URL.
fn opensandbox() -> Result<(), Failed> {
    let server = OpenSandbox::start(ExecdProfile::Stock)?;
    let output = Command::new(std::env::current_exe()?)
        .env(ROLE, format!("opensandbox://{}/{IMAGE}", server.address()))
        .env("OPEN_SANDBOX_API_KEY", server.key())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
}
