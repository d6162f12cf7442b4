//! The library's errors as the package's exceptions.

use std::error::Error as _;

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use sandbox::{Error, Retry};

/// The exception of the error's kind.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error).map_or_else(|e| e, PyErr::from_value)
}

/// The exception as an object, for results that hold one.
pub(crate) fn exception<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("anysandbox.errors")?;
    let retry = match error.retry_advice() {
        Retry::Never => "never",
        Retry::Safe => "safe",
        Retry::Unsure => "unsure",
    };
    let kwargs = PyDict::new(py);
    kwargs.set_item("message", error.message())?;
    kwargs.set_item(
        "operation",
        error.operation().map(sandbox::Operation::as_str),
    )?;
    kwargs.set_item("facts", error.facts().into_py_dict(py)?)?;
    kwargs.set_item("retry", retry)?;
    module
        .call_method1("_class_of", (error.kind().as_str(),))?
        .call((with_causes(error),), Some(&kwargs))
}

/// One line with the causes, outermost first.
fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// Whether an exception is of this kind.
pub(crate) fn is(py: Python<'_>, exception: &PyErr, kind: sandbox::ErrorKind) -> bool {
    let given = exception.value(py).getattr("kind");
    given.is_ok_and(|k| k.eq(kind.as_str()).unwrap_or(false))
}
