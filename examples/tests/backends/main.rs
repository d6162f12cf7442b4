//! The data-analysis agent in real sandboxes: its report is the one that it writes on the mock.
//!
//! Needs a Docker engine and the image of `cargo xtask images data`. Without them it says
//! `NOT RUN: docker (why)`, and fails where `SANDBOX_REQUIRE` names docker or `CI` is set.

mod png;
mod report;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use sandbox_testkit::engine;

const IMAGE: &str = "sandbox-data:latest";

fn main() -> ExitCode {
    let trials = engine::trials(&[IMAGE], || {
        let name = "docker_gives_the_report_of_the_mock_with_png_charts";
        vec![Trial::test(name, || {
            let url = format!("docker://{IMAGE}?pull=never");
            report::is_that_of_the_mock(&url).map_err(Into::into)
        })]
    });
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
