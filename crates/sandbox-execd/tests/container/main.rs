//! The daemon in a throwaway container, for what must not run on this machine: a real daemon's
//! recorded requests, and commands that mean harm.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test")]

mod client;
mod compare;
mod container;
mod differences;
mod faults;
mod http;
mod recordings;
mod replay;

use libtest_mimic::Arguments;

fn main() -> std::process::ExitCode {
    let mut arguments = Arguments::from_args();
    // They wait more than they work.
    arguments.test_threads.get_or_insert(8);
    if let Some(why) = container::missing() {
        eprintln!("NOT RUN: docker ({why})");
        let required = std::env::var("SANDBOX_REQUIRE").unwrap_or_default();
        let required =
            required.split(',').any(|it| it.trim() == "docker") || std::env::var_os("CI").is_some();
        return if required && !arguments.list {
            std::process::ExitCode::FAILURE
        } else {
            std::process::ExitCode::SUCCESS
        };
    }
    let trials = recordings::trials()
        .into_iter()
        .chain(faults::trials())
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
