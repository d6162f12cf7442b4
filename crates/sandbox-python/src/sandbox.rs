//! The class `Sandbox`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFrozenSet, PyList, PyTuple};
use sandbox::{Filter, GrepOptions, ProcessId, ReadOptions, SandboxId, SnapshotId, defaults};

use crate::access::Access;
use crate::arguments::{BatchPath, Content, SandboxPath, Text, Time};
use crate::command::command;
use crate::events::Events;
use crate::exit::Held;
use crate::process::Process;
use crate::spec::{Options, texts};
use crate::wait::run;
use crate::{error, results};

/// A live sandbox: see `_native.pyi` for what each method takes, gives and raises.
#[pyclass(frozen, weakref, module = "anysandbox")]
pub(crate) struct Sandbox {
    held: Arc<Held>,
    /// The deadline of commands that name none.
    timeout: Option<Duration>,
}

/// What is made or found by a URL.
impl Sandbox {
    fn found(sandbox: sandbox::Sandbox, owned: bool, timeout: Option<Duration>) -> Self {
        Self {
            held: Held::new(sandbox, owned),
            timeout,
        }
    }

    /// Tells the user what core warns of.
    fn warned(self, py: Python<'_>) -> PyResult<Self> {
        let warn = py.import("anysandbox._warnings")?.getattr("warn")?;
        for warning in self.held.sandbox.warnings() {
            warn.call1((warning,))?;
        }
        Ok(self)
    }
}

/// Runs a call that borrows its sandbox.
macro_rules! call {
    ($self:ident, $py:ident, |$sandbox:ident| $call:expr) => {{
        let $sandbox = $self.held.sandbox.clone();
        run($py, async move { $call.await })
    }};
}

#[pymethods]
impl Sandbox {
    #[classmethod]
    #[pyo3(
        signature = (url, **options),
        text_signature = "($cls, url, *, timeout=None, api_key=None, use_server_proxy=None, \
                          image=None, entrypoint=None, env=None, \
                          workdir=None, user=None, memory=None, milli_cpus=None, pids=None, \
                          disk=None, network=None, lifetime=None, labels=None, mounts=None, \
                          hardening=None)"
    )]
    fn create(
        _class: &Bound<'_, pyo3::types::PyType>,
        py: Python<'_>,
        url: Text,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let Options {
            access,
            spec,
            timeout,
        } = Options::new(url, options)?;
        let made = run(py, async move { access.client().await?.create(spec).await })?;
        Self::found(made, true, timeout).warned(py)
    }

    #[classmethod]
    #[pyo3(
        signature = (url, id, *, timeout = None, api_key = None, use_server_proxy = None)
    )]
    fn connect(
        _class: &Bound<'_, pyo3::types::PyType>,
        py: Python<'_>,
        url: Text,
        id: Text,
        timeout: Option<Time>,
        api_key: Option<Text>,
        use_server_proxy: Option<bool>,
    ) -> PyResult<Self> {
        let access = Access {
            url: url.0,
            api_key,
            use_server_proxy,
        };
        let found = run(py, async move {
            let client = access.client().await?;
            client.connect(&SandboxId::new(id.0)).await
        })?;
        Self::found(found, false, timeout.map(|t| t.0)).warned(py)
    }

    #[classmethod]
    #[pyo3(
        signature = (url, name, **options),
        text_signature = "($cls, url, name, *, timeout=None, api_key=None, \
                          use_server_proxy=None, image=None, entrypoint=None, \
                          env=None, workdir=None, user=None, memory=None, milli_cpus=None, \
                          pids=None, disk=None, network=None, lifetime=None, labels=None, \
                          mounts=None, hardening=None)"
    )]
    fn get_or_create(
        _class: &Bound<'_, pyo3::types::PyType>,
        py: Python<'_>,
        url: Text,
        name: Text,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let Options {
            access,
            spec,
            timeout,
        } = Options::new(url, options)?;
        let found = run(py, async move {
            let client = access.client().await?;
            client.get_or_create(&name.0, spec).await
        })?;
        Self::found(found, false, timeout).warned(py)
    }

    #[staticmethod]
    #[pyo3(signature = (url, *, labels = None, api_key = None))]
    fn list<'py>(
        py: Python<'py>,
        url: Text,
        labels: Option<&Bound<'py, PyAny>>,
        api_key: Option<Text>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut filter = Filter::all();
        filter.labels = labels.map(texts).transpose()?.unwrap_or_default();
        let mut access = Access::new(url);
        access.api_key = api_key;
        let found = run(
            py,
            async move { access.client().await?.list(&filter).await },
        )?;
        let infos: Vec<_> = found
            .iter()
            .map(|info| results::info(py, info))
            .collect::<PyResult<_>>()?;
        PyList::new(py, infos)
    }

    #[staticmethod]
    fn gc(py: Python<'_>, url: Text) -> PyResult<Vec<String>> {
        let gone = run(
            py,
            async move { sandbox::connect(&url.0).await?.gc().await },
        )?;
        Ok(gone.iter().map(ToString::to_string).collect())
    }

    #[getter]
    fn id(&self) -> &str {
        self.held.sandbox.id().as_str()
    }

    #[getter]
    fn backend_name(&self) -> &'static str {
        self.held.sandbox.backend_name()
    }

    #[getter]
    fn reference<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        results::reference(py, &self.held.sandbox.reference())
    }

    #[getter]
    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        PyFrozenSet::new(py, self.held.sandbox.capabilities().claimed())
    }

    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.held.sandbox.warnings())
    }

    fn kill(&self, py: Python<'_>) -> PyResult<()> {
        call!(self, py, |s| s.kill())
    }

    fn detach<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let reference = call!(self, py, |s| s.detach())?;
        self.held.disown();
        results::reference(py, &reference)
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Kills what is owned. A failure to do so never hides the body's own exception.
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        raised: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !self.held.is_owned() {
            return Ok(());
        }
        match self.kill(py) {
            Err(e) if !raised.is_none() => {
                let note = format!("the sandbox {} may live on: {e}", self.id());
                raised.call_method1("add_note", (note,))?;
                Ok(())
            }
            killed => killed,
        }
    }

    #[pyo3(
        signature = (command, **options),
        text_signature = "($self, command, *, timeout=None, cwd=None, env=None, user=None, \
                          stdin=None, output_limit=None, merge_stderr=False)"
    )]
    fn execute<'py>(
        &self,
        py: Python<'py>,
        command: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let command = self::command(command, options, self.timeout)?;
        let response = call!(self, py, |s| s.execute(command))?;
        results::response(py, &response)
    }

    #[pyo3(
        signature = (command, **options),
        text_signature = "($self, command, *, timeout=None, cwd=None, env=None, user=None, \
                          stdin=None, merge_stderr=False)"
    )]
    fn stream(
        &self,
        py: Python<'_>,
        command: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Events> {
        let command = self::command(command, options, self.timeout)?;
        call!(self, py, |s| s.stream(command)).map(Events::new)
    }

    #[pyo3(
        signature = (command, **options),
        text_signature = "($self, command, *, timeout=None, cwd=None, env=None, user=None, \
                          stdin=None, merge_stderr=False)"
    )]
    fn spawn(
        &self,
        py: Python<'_>,
        command: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Process> {
        let command = self::command(command, options, self.timeout)?;
        call!(self, py, |s| s.spawn(command)).map(Process)
    }

    fn process(&self, id: Text) -> Process {
        Process(self.held.sandbox.process(ProcessId(id.0)))
    }

    fn upload_files<'py>(
        &self,
        py: Python<'py>,
        files: Vec<(BatchPath, Content)>,
    ) -> PyResult<Bound<'py, PyList>> {
        let files: Vec<_> = files.into_iter().map(|(p, c)| (p.0, c.0)).collect();
        let results = call!(self, py, |s| async { Ok(s.upload_files(files).await) })?;
        each(py, results, |py, ()| Ok(py.None().into_bound(py)))
    }

    fn upload(&self, py: Python<'_>, path: SandboxPath, content: Content) -> PyResult<()> {
        call!(self, py, |s| s.upload(path.0, content.0))
    }

    fn download_files<'py>(
        &self,
        py: Python<'py>,
        paths: Vec<BatchPath>,
    ) -> PyResult<Bound<'py, PyList>> {
        let paths: Vec<String> = paths.into_iter().map(|p| p.0).collect();
        let results = call!(self, py, |s| async { Ok(s.download_files(paths).await) })?;
        each(py, results, |py, bytes| {
            Ok(PyBytes::new(py, &bytes).into_any())
        })
    }

    fn download<'py>(&self, py: Python<'py>, path: SandboxPath) -> PyResult<Bound<'py, PyBytes>> {
        let content = call!(self, py, |s| s.download(path.0))?;
        Ok(PyBytes::new(py, &content))
    }

    fn upload_dir<'py>(
        &self,
        py: Python<'py>,
        local: PathBuf,
        path: SandboxPath,
    ) -> PyResult<Bound<'py, PyAny>> {
        let report = call!(self, py, |s| s.upload_dir(local, path.0))?;
        results::tree(py, &report)
    }

    fn download_dir<'py>(
        &self,
        py: Python<'py>,
        path: SandboxPath,
        local: PathBuf,
    ) -> PyResult<Bound<'py, PyAny>> {
        let report = call!(self, py, |s| s.download_dir(path.0, local))?;
        results::tree(py, &report)
    }

    fn upload_from(&self, py: Python<'_>, path: SandboxPath, local: PathBuf) -> PyResult<u64> {
        call!(self, py, |s| async {
            Ok(match tokio::fs::File::open(&local).await {
                Ok(mut file) => Ok(s.upload_from(path.0, &mut file).await?),
                Err(e) => Err((e, local)),
            })
        })?
        .map_err(|(e, local)| local_error(&e, local))
    }

    fn download_to(&self, py: Python<'_>, path: SandboxPath, local: PathBuf) -> PyResult<u64> {
        call!(self, py, |s| async {
            Ok(match tokio::fs::File::create(&local).await {
                Ok(mut file) => {
                    let bytes = s.download_to(path.0, &mut file).await?;
                    let written = tokio::io::AsyncWriteExt::flush(&mut file).await;
                    written.map(|()| bytes).map_err(|e| (e, local))
                }
                Err(e) => Err((e, local)),
            })
        })?
        .map_err(|(e, local)| local_error(&e, local))
    }

    fn ls<'py>(&self, py: Python<'py>, path: SandboxPath) -> PyResult<Bound<'py, PyAny>> {
        let listing = call!(self, py, |s| s.ls(path.0))?;
        results::listing(py, &listing)
    }

    #[pyo3(
        signature = (path, offset = 0, limit = defaults::READ_LINES),
        text_signature = "($self, path, offset=0, limit=2000)"
    )]
    fn read<'py>(
        &self,
        py: Python<'py>,
        path: SandboxPath,
        offset: u64,
        limit: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let page = call!(self, py, |s| s
            .read(path.0, ReadOptions::new(offset, limit)))?;
        results::page(py, &page)
    }

    fn write(&self, py: Python<'_>, path: SandboxPath, content: Content) -> PyResult<()> {
        call!(self, py, |s| s.write(path.0, content.0))
    }

    fn create_new(&self, py: Python<'_>, path: SandboxPath, content: Content) -> PyResult<()> {
        call!(self, py, |s| s.create_new(path.0, content.0))
    }

    #[pyo3(signature = (path, old, new, *, replace_all = false))]
    fn edit(
        &self,
        py: Python<'_>,
        path: SandboxPath,
        old: Text,
        new: Text,
        replace_all: bool,
    ) -> PyResult<u64> {
        let report = call!(self, py, |s| s.edit(path.0, &old.0, &new.0, replace_all))?;
        Ok(report.replaced)
    }

    fn glob<'py>(
        &self,
        py: Python<'py>,
        pattern: Text,
        path: SandboxPath,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = call!(self, py, |s| s.glob(&pattern.0, path.0))?;
        results::paths(py, &found)
    }

    #[pyo3(signature = (text, path, *, glob = None, max_count = None))]
    fn grep<'py>(
        &self,
        py: Python<'py>,
        text: Text,
        path: SandboxPath,
        glob: Option<Text>,
        max_count: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut options = GrepOptions::default();
        options.glob = glob.map(|g| g.0);
        options.max_count = max_count.unwrap_or(options.max_count);
        let found = call!(self, py, |s| s.grep(&text.0, path.0, options))?;
        results::hits(py, &found)
    }

    fn delete(&self, py: Python<'_>, path: SandboxPath) -> PyResult<()> {
        call!(self, py, |s| s.delete(path.0))
    }

    fn expires_at(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let end = call!(self, py, |s| s.expires_at())?;
        Ok(end.map(results::time))
    }

    fn renew(&self, py: Python<'_>, lifetime: Time) -> PyResult<()> {
        call!(self, py, |s| s.renew(lifetime.0))
    }

    fn pause(&self, py: Python<'_>) -> PyResult<()> {
        call!(self, py, |s| s.pause())
    }

    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        call!(self, py, |s| s.resume())
    }

    fn snapshot(&self, py: Python<'_>) -> PyResult<String> {
        let id = call!(self, py, |s| s.snapshot())?;
        Ok(id.0)
    }

    fn restore(&self, py: Python<'_>, snapshot: Text) -> PyResult<()> {
        let id = SnapshotId(snapshot.0);
        call!(self, py, |s| s.restore(&id))
    }

    fn __repr__(&self) -> String {
        let reference = self.held.sandbox.reference();
        format!("Sandbox(url={:?}, id={:?})", reference.url, self.id())
    }
}

/// One object a file, in order: what it gave, or its exception.
fn each<'py, T>(
    py: Python<'py>,
    results: Vec<sandbox::Result<T>>,
    good: impl Fn(Python<'py>, T) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let objects: Vec<_> = results
        .into_iter()
        .map(|result| match result {
            Ok(value) => good(py, value),
            Err(e) => error::exception(py, &e),
        })
        .collect::<PyResult<_>>()?;
    PyList::new(py, objects)
}

/// What the host's own file system says, as Python's own exception: of a missing file
/// `FileNotFoundError`, and so on.
fn local_error(error: &std::io::Error, local: PathBuf) -> PyErr {
    match error.raw_os_error() {
        Some(code) => PyOSError::new_err((code, error.to_string(), local)),
        None => PyOSError::new_err(error.to_string()),
    }
}
