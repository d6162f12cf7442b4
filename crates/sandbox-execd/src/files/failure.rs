//! What went wrong with a file, in the words the real daemon has for it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use hyper::StatusCode;

use crate::names::error_text;
use crate::respond::{ApiError, Code};

/// A message, as bytes for it names files, and whether it is about one that isn't there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    message: Vec<u8>,
    not_found: bool,
}

impl Failure {
    pub(super) fn said(message: impl Into<Vec<u8>>) -> Self {
        Self {
            message: message.into(),
            not_found: false,
        }
    }

    /// `message` and a path after it.
    pub(super) fn named(message: &str, path: &OsStr) -> Self {
        Self::said([message.as_bytes(), path.as_bytes()].concat())
    }

    /// `open /path: permission denied`.
    pub(super) fn io(operation: &str, path: &Path, error: &io::Error) -> Self {
        Self {
            message: [
                operation.as_bytes(),
                b" ",
                path.as_os_str().as_bytes(),
                b": ",
                error_text(error).as_bytes(),
            ]
            .concat(),
            not_found: error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// `rename /a /b: invalid cross-device link`.
    pub(super) fn io_between(
        operation: &str,
        source: &Path,
        target: &Path,
        error: &io::Error,
    ) -> Self {
        let first = [operation.as_bytes(), b" ", source.as_os_str().as_bytes()].concat();
        let rest = Self::io("", target, error);
        Self {
            message: [first, rest.message].concat(),
            not_found: rest.not_found,
        }
    }

    /// `what: ` before the message.
    pub(super) fn within(self, what: &str) -> Self {
        self.within_named(what, OsStr::new(""))
    }

    /// `what`, the path and `: ` before the message.
    pub(super) fn within_named(self, what: &str, path: &OsStr) -> Self {
        let message = [what.as_bytes(), path.as_bytes(), b": ", &self.message].concat();
        Self { message, ..self }
    }

    /// 404 for what isn't there, 500 for the rest.
    pub(super) fn into_api(self) -> ApiError {
        if self.not_found {
            let message = [&b"file not found. "[..], &self.message].concat();
            ApiError::new(StatusCode::NOT_FOUND, Code::FileNotFound, message)
        } else {
            ApiError::runtime([&b"error accessing file: "[..], &self.message].concat())
        }
    }

    /// 500 with `what`, the path and the message.
    pub(super) fn runtime(self, what: &str, path: &OsStr) -> ApiError {
        ApiError::runtime([what.as_bytes(), path.as_bytes(), b". ", &self.message].concat())
    }

    /// As [`Self::runtime`] where no path is named.
    pub(super) fn runtime_plain(self, what: &str) -> ApiError {
        self.runtime(what, OsStr::new(""))
    }
}
