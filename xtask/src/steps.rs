//! A list of steps that are all done, however many fail, with a summary at the end.

use std::time::{Duration, Instant};

use crate::Result;

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
        self.not_run.push(what.into());
    }

    /// Prints the summary. One failed step is a failure of all.
    pub(crate) fn finish(self) -> Result {
        eprintln!("\n== summary");
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
            eprintln!("NOT RUN: {what}");
        }
        match failed {
            0 => Ok(()),
            n => Err(format!("{n} of {} steps failed", self.done.len()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_steps_run_and_one_failure_fails_all() {
        let mut steps = Steps::default();
        assert_eq!(steps.step::<()>("a", || Err("no".into())), None);
        assert_eq!(steps.step("b", || Ok(1)), Some(1));
        let failed = steps.finish().unwrap_err();
        assert_eq!(failed.to_string(), "1 of 2 steps failed");
    }
}
