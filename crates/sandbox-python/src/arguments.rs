//! Single values from Python.

use std::time::Duration;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use sandbox::{Bytes, Error, ErrorKind};

use crate::error;

/// A text. One with lone surrogates, which UTF-8 does not have, is an invalid argument.
pub(crate) struct Text(pub(crate) String);

impl FromPyObject<'_, '_> for Text {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        utf8(value, ErrorKind::InvalidArgument).map(Self)
    }
}

/// A path inside a sandbox: a text or what has `__fspath__`, as `PurePosixPath`.
pub(crate) struct SandboxPath(pub(crate) String);

impl FromPyObject<'_, '_> for SandboxPath {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if value.is_instance_of::<PyString>() {
            return utf8(value, ErrorKind::InvalidPath).map(Self);
        }
        let path = value.py().import("os")?.call_method1("fspath", (value,))?;
        utf8(path.as_borrowed(), ErrorKind::InvalidPath).map(Self)
    }
}

/// The path of one file of a batch. One that is no UTF-8 becomes the empty path, which core refuses
/// like any other that can't be used: for this file alone.
pub(crate) struct BatchPath(pub(crate) String);

impl FromPyObject<'_, '_> for BatchPath {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match SandboxPath::extract(value) {
            Ok(path) => Ok(Self(path.0)),
            Err(e) if error::is(value.py(), &e, ErrorKind::InvalidPath) => Ok(Self(String::new())),
            Err(e) => Err(e),
        }
    }
}

fn utf8(value: Borrowed<'_, '_, PyAny>, kind: ErrorKind) -> PyResult<String> {
    value.extract::<String>().map_err(|e| {
        if !e.is_instance_of::<PyUnicodeEncodeError>(value.py()) {
            return e;
        }
        let why = Error::new(
            kind,
            "the text holds lone surrogates, which UTF-8 does not have",
        );
        error::raise(value.py(), &why)
    })
}

/// The content of a file: bytes, or text as UTF-8.
pub(crate) struct Content(pub(crate) Bytes);

impl FromPyObject<'_, '_> for Content {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let bytes = if value.is_instance_of::<PyString>() {
            utf8(value, ErrorKind::InvalidArgument)?.into()
        } else if let Ok(bytes) = value.cast::<PyBytes>() {
            Bytes::copy_from_slice(bytes.as_bytes())
        } else {
            PyBuffer::<u8>::get(&value)?.to_vec(value.py())?.into()
        };
        Ok(Self(bytes))
    }
}

/// A time: seconds, or a `timedelta`. What is longer than can be said is the longest there is.
#[derive(Clone, Copy)]
pub(crate) struct Time(pub(crate) Duration);

impl FromPyObject<'_, '_> for Time {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let seconds: f64 = match value.extract() {
            Ok(seconds) => seconds,
            Err(e) => match value.call_method0("total_seconds") {
                Ok(seconds) => seconds.extract()?,
                Err(_) => return Err(e),
            },
        };
        if seconds.is_nan() || seconds < 0.0 {
            let why = Error::new(ErrorKind::InvalidArgument, "a time is 0 or more seconds")
                .with("seconds", seconds);
            return Err(error::raise(value.py(), &why));
        }
        Ok(Self(
            Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
        ))
    }
}
