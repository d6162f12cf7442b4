//! How a case says that something is wrong.

use std::fmt;

use sandbox_core::{Error, ErrorKind, Result};

/// What a case gives.
pub type CaseResult = Result<(), Failure>;

/// Why a case failed.
#[derive(Debug)]
pub enum Failure {
    /// A call gave an error that the case does not want. [`ErrorKind::Unsupported`] is the right
    /// answer where the capability is not claimed.
    Error(Error),
    /// An answer is not the promised one.
    Wrong(String),
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}

impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Self {
        Self::Wrong(format!("on this side: {e}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(e) => write!(f, "{e:?}"),
            Self::Wrong(what) => f.write_str(what),
        }
    }
}

/// `value` for people, cut to a length that a test's output bears.
pub(crate) fn shown(value: &impl fmt::Debug) -> String {
    const MAX: usize = 400;
    let text = format!("{value:?}");
    match text.char_indices().nth(MAX) {
        None => text,
        Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], text.len()),
    }
}

/// The error of a call that must be refused with `kind`.
pub(crate) fn refused<T: fmt::Debug>(result: Result<T>, kind: ErrorKind) -> Result<Error, Failure> {
    match result {
        Err(e) if e.kind() == kind => Ok(e),
        Err(e) => Err(Failure::Wrong(format!(
            "must be refused with `{kind}`, not with {e:?}"
        ))),
        Ok(value) => Err(Failure::Wrong(format!(
            "must be refused with `{kind}`, but it gave {}",
            shown(&value)
        ))),
    }
}

/// Fails the case with a message unless the condition holds.
macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Failure::Wrong(format!($($message)+)));
        }
    };
}

/// Fails the case unless both sides are equal: first what came, then what is right.
macro_rules! check_eq {
    ($got:expr, $right:expr) => { check_eq!($got, $right, "{}", stringify!($got)) };
    ($got:expr, $right:expr, $($what:tt)+) => {
        match (&$got, &$right) {
            (got, right) => {
                if !(*got == *right) {
                    return Err($crate::Failure::Wrong(format!(
                        "{}: got {}, right is {}",
                        format_args!($($what)+),
                        $crate::check::shown(got),
                        $crate::check::shown(right),
                    )));
                }
            }
        }
    };
}
