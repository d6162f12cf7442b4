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
use sandbox_testkit::engine;

fn main() -> std::process::ExitCode {
    let mut arguments = Arguments::from_args();
    // They wait more than they work.
    arguments.test_threads.get_or_insert(8);
    let trials = engine::trials(&["sandbox-python", "sandbox-busybox"], || {
        // The first recording has all of them sent; the others wait for it.
        let mut all = recordings::trials();
        let waiting = all.split_off(1);
        all.extend(faults::trials());
        all.push(compare::trial());
        all.extend(waiting);
        all
    });
    libtest_mimic::run(&arguments, trials).exit_code()
}
