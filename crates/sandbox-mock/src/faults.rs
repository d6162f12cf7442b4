//! Faults on a script: which call fails, comes late, loses its output or its sandbox.

use std::ops::{RangeFrom, RangeInclusive};
use std::time::Duration;

use sandbox_core::{ErrorKind, Operation};

/// What goes wrong, and at which call.
///
/// Calls are those that reach the backend, counted from 1 for each [`Operation`] of a provider and
/// all its sandboxes together. With native families hidden a derived operation is an
/// [`Operation::Execute`].
///
/// ```
/// use std::time::Duration;
/// use sandbox_core::{ErrorKind, Operation};
/// use sandbox_mock::Faults;
///
/// let faults = Faults::new()
///     .fail(Operation::Create, 1, ErrorKind::Unavailable)
///     .delay(Operation::Execute, 2..=4, Duration::from_millis(50))
///     .cut_output(Operation::Execute, 5, 10)
///     .lose_sandbox(Operation::DownloadFiles, 3..);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    operation: Operation,
    calls: Calls,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Fail(ErrorKind),
    Delay(Duration),
    Cut(u64),
    Lose,
}

/// Calls by number: `3` is the third, `2..=4` three of them, `5..` all from the fifth on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    first: u64,
    last: u64,
}

impl From<u64> for Calls {
    fn from(n: u64) -> Self {
        Self { first: n, last: n }
    }
}

impl From<RangeInclusive<u64>> for Calls {
    fn from(range: RangeInclusive<u64>) -> Self {
        Self {
            first: *range.start(),
            last: *range.end(),
        }
    }
}

impl From<RangeFrom<u64>> for Calls {
    fn from(range: RangeFrom<u64>) -> Self {
        Self {
            first: range.start,
            last: u64::MAX,
        }
    }
}

/// What the script says about one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) delay: Duration,
    pub(crate) fail: Option<ErrorKind>,
    pub(crate) cut: Option<u64>,
    pub(crate) lose: bool,
}

impl Faults {
    /// No faults.
    pub fn new() -> Self {
        Self::default()
    }

    fn with(mut self, operation: Operation, calls: impl Into<Calls>, what: What) -> Self {
        self.0.push(Fault {
            operation,
            calls: calls.into(),
            what,
        });
        self
    }

    /// These calls fail with that kind, without effect.
    pub fn fail(self, operation: Operation, calls: impl Into<Calls>, kind: ErrorKind) -> Self {
        self.with(operation, calls, What::Fail(kind))
    }

    /// These calls begin only after `delay`.
    pub fn delay(self, operation: Operation, calls: impl Into<Calls>, delay: Duration) -> Self {
        self.with(operation, calls, What::Delay(delay))
    }

    /// The output of these commands ([`Operation::Execute`], [`Operation::Stream`]) breaks off
    /// after `bytes` of both streams together: [`sandbox_core::Status::Lost`].
    pub fn cut_output(self, operation: Operation, calls: impl Into<Calls>, bytes: u64) -> Self {
        self.with(operation, calls, What::Cut(bytes))
    }

    /// The sandbox dies at these calls and stays dead: a command is
    /// [`sandbox_core::Status::Lost`], everything else [`ErrorKind::SandboxGone`].
    pub fn lose_sandbox(self, operation: Operation, calls: impl Into<Calls>) -> Self {
        self.with(operation, calls, What::Lose)
    }

    /// The verdict on the `n`th call of an operation.
    pub(crate) fn verdict(&self, operation: Operation, n: u64) -> Verdict {
        let mut verdict = Verdict::default();
        let applies =
            |f: &&Fault| f.operation == operation && (f.calls.first..=f.calls.last).contains(&n);
        for fault in self.0.iter().filter(applies) {
            match fault.what {
                What::Fail(kind) => verdict.fail = Some(kind),
                What::Delay(delay) => verdict.delay += delay,
                What::Cut(bytes) => verdict.cut = Some(bytes),
                What::Lose => verdict.lose = true,
            }
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_gets_what_is_meant_for_it() {
        let faults = Faults::new()
            .fail(Operation::Ls, 2, ErrorKind::Timeout)
            .delay(Operation::Ls, 2.., Duration::from_secs(1))
            .lose_sandbox(Operation::Kill, 1..=1);
        assert_eq!(faults.verdict(Operation::Ls, 1), Verdict::default());
        let second = faults.verdict(Operation::Ls, 2);
        assert_eq!(
            (second.fail, second.delay),
            (Some(ErrorKind::Timeout), Duration::from_secs(1))
        );
        assert_eq!(faults.verdict(Operation::Ls, 3).fail, None);
        assert!(faults.verdict(Operation::Kill, 1).lose);
        assert!(!faults.verdict(Operation::Kill, 2).lose);
    }
}
