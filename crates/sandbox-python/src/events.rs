//! Output while a command runs.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use sandbox::ExecuteStream;

use crate::{results, wait};

/// The events of a running command. Closing it, or dropping it before the end, kills the command.
#[pyclass(frozen, module = "anysandbox")]
pub(crate) struct Events(Mutex<Option<ExecuteStream>>);

impl Events {
    pub(crate) fn new(stream: ExecuteStream) -> Self {
        Self(Mutex::new(Some(stream)))
    }

    fn put(&self, stream: Option<ExecuteStream>) -> Option<ExecuteStream> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut place, stream)
    }
}

#[pymethods]
impl Events {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        // While one thread waits for an event there is none for another.
        let Some(mut stream) = self.put(None) else {
            return Ok(None);
        };
        let call = async move { Ok((stream.next().await, stream)) };
        let (event, stream) = wait::run(py, call)?;
        let Some(event) = event else { return Ok(None) };
        self.put(Some(stream));
        results::event(py, &event).map(Some)
    }

    fn close(&self) {
        self.put(None);
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }
}
