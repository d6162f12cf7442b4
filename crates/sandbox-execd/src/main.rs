//! The program; see the library of the same package.

use std::process::ExitCode;

fn main() -> ExitCode {
    sandbox_execd::run(std::env::args_os())
}
