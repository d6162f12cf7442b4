//! The project's own tasks: `cargo xtask`.

use std::process::ExitCode;

mod ci;
mod command;
mod conformance;
mod engine;
mod examples;
mod images;
mod opensandbox;
mod prepare;
mod programs;
mod python;
mod report;
mod steps;
mod test;
mod tidy;
mod wheel;
mod workspace;

/// One line for people.
type Error = Box<dyn std::error::Error>;
type Result<T = (), E = Error> = std::result::Result<T, E>;

const USAGE: &str = "\
cargo xtask TASK

  test                       everything: unit tests, doctests, conformance, teeth, examples,
                             each set of features, the Python package; does all the set-up itself
  conformance [--target T] [--report FILE.json]
                             the conformance kit; T is a backend's name and selects all its targets
  python [ARGUMENT...]       the Python package on a fresh wheel: suites, types, examples; with
                             arguments of pytest the tests that they choose
  report [[--python] FILE.json]
                             writes docs/conformance.md from a report and docs/errors.md from the
                             source; without a file, runs the kit and the Python suites first
  images [NAME]...           the images that tests and examples use: busybox, python, data; execd,
                             our daemon; opensandbox-server, the real one
  opensandbox up|down        a real OpenSandbox server on this machine's loopback, to try one
  tidy                       what no compiler checks: documents, layers, dependencies, files
  ci [--without-tests]       what must hold before a merge: format, clippy, rustdoc, tidy, test
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["test"] => test::run(),
        ["conformance", rest @ ..] => conformance::run(rest),
        ["python", rest @ ..] => wheel::run(rest),
        ["report", rest @ ..] => report::run(rest),
        ["images", names @ ..] => images::run(names),
        ["opensandbox", rest @ ..] => opensandbox::run(rest),
        ["tidy"] => tidy::run(),
        ["ci", rest @ ..] => ci::run(rest),
        ["help" | "--help" | "-h"] => {
            eprint!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("no such task\n\n{USAGE}").into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("xtask: {e}");
            ExitCode::FAILURE
        }
    }
}
