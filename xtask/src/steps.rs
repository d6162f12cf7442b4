//! A list of steps that are all done, however many fail, with a summary at the end, which can be
//! found again in a task's output.

use std::time::{Duration, Instant};

use crate::Result;

/// What a summary begins with.
const SUMMARY: &str = "== summary";
/// What a line of it begins with that says what was not run.
const NOT_RUN: &str = "NOT RUN: ";

#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<(String, Duration, Result)>,
    not_run: Vec<String>,
}

impl Steps {
    /// Does a step. Gives its value, or `None` if it failed.
    pub(crate) fn step<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        eprintln!("\n== {name}");
        let begin = Instant::now();
        let (value, result) = match work() {
            Ok(value) => (Some(value), Ok(())),
            Err(e) => {
                eprintln!("{e}");
                (None, Err(e))
            }
        };
        self.done.push((name.to_owned(), begin.elapsed(), result));
        value
    }

    /// Notes what could not be run, and why. It is no failure, but it is said at the end.
    pub(crate) fn not_run(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.not_run.contains(&what) {
            self.not_run.push(what);
        }
    }

    /// Prints the summary. One failed step is a failure of all.
    pub(crate) fn finish(self) -> Result {
        eprintln!("\n{SUMMARY}");
        let mut failed = 0;
        for (name, time, result) in &self.done {
            let word = if result.is_ok() { "ok    " } else { "FAILED" };
            eprintln!("{word} {:>7.1} s  {name}", time.as_secs_f64());
            if let Err(e) = result {
                failed += 1;
                for line in e.to_string().lines() {
                    eprintln!("                    {line}");
                }
            }
        }
        for what in &self.not_run {
            eprintln!("{NOT_RUN}{what}");
        }
        match failed {
            0 => Ok(()),
            n => Err(format!("{n} of {} steps failed", self.done.len()).into()),
        }
    }
}

/// The summary at the end of a task's output.
pub(crate) fn summary(output: &str) -> Option<&str> {
    Some(output.rsplit_once(SUMMARY)?.1.trim_start())
}

/// What a task's summary says was not run.
pub(crate) fn said_not_run(output: &str) -> impl Iterator<Item = &str> {
    let lines = summary(output).unwrap_or_default().lines();
    lines.filter_map(|line| line.strip_prefix(NOT_RUN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_found_in_what_a_task_said() {
        let output = "NOT RUN: no\n== summary\nok  1.0 s  a\nNOT RUN: docker (why)\nNOT RUN: b\n";
        assert!(summary(output).unwrap().starts_with("ok  1.0 s  a\n"));
        assert!(said_not_run(output).eq(["docker (why)", "b"]));
        assert_eq!(summary("== a\n"), None);
        assert_eq!(said_not_run("NOT RUN: docker\n").count(), 0);
    }

    #[test]
    fn all_steps_run_and_one_failure_fails_all() {
        let mut steps = Steps::default();
        assert_eq!(steps.step::<()>("a", || Err("no".into())), None);
        assert_eq!(steps.step("b", || Ok(1)), Some(1));
        let failed = steps.finish().unwrap_err();
        assert_eq!(failed.to_string(), "1 of 2 steps failed");
    }
}
