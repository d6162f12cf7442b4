//! Background commands.

use pyo3::prelude::*;
use sandbox::LogCursor;

use crate::{results, wait};

/// A background command. It lives on when this object is dropped, as long as its sandbox does.
#[pyclass(frozen, module = "anysandbox")]
pub(crate) struct Process(pub(crate) sandbox::Process);

#[pymethods]
impl Process {
    #[getter]
    fn id(&self) -> &str {
        &self.0.id().0
    }

    fn status<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let process = self.0.clone();
        let status = wait::run(py, async move { process.status().await })?;
        status.map(|s| results::status(py, &s)).transpose()
    }

    #[pyo3(
        signature = (since = (0, 0), *, max_bytes = 1 << 20),
        text_signature = "($self, since=(0, 0), *, max_bytes=1048576)"
    )]
    fn logs<'py>(
        &self,
        py: Python<'py>,
        since: (u64, u64),
        max_bytes: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let process = self.0.clone();
        let from = LogCursor {
            stdout: since.0,
            stderr: since.1,
        };
        let logs = wait::run(py, async move { process.logs(from, max_bytes).await })?;
        results::logs(py, &logs)
    }

    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let process = self.0.clone();
        let status = wait::run(py, async move { process.wait().await })?;
        results::status(py, &status)
    }

    fn kill(&self, py: Python<'_>) -> PyResult<()> {
        let process = self.0.clone();
        wait::run(py, async move { process.kill().await })
    }

    fn __repr__(&self) -> String {
        format!("Process(id={:?})", self.id())
    }
}
