//! The same without `async`: every call is a message to this library's one background thread and
//! a wait, so it works on any thread, inside a runtime too, and dropping never blocks.

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::cleanup::block_on;
pub use crate::cleanup::{Call, start};
use crate::files::{
    EditReport, GlobMatches, GrepMatches, GrepOptions, Listing, ReadOptions, ReadPage, TreeReport,
};
use crate::{
    Bytes, Capabilities, Command, ExecuteEvent, ExecuteResponse, ExecuteStream, Filter, LogCursor,
    ProcessId, ProcessLogs, Result, SandboxId, SandboxInfo, SandboxRef, SandboxSpec, SnapshotId,
    Status,
};

/// [`crate::Client`] without `async`.
#[derive(Clone, Debug)]
pub struct Client(crate::Client);

/// [`crate::Sandbox`] without `async`.
#[derive(Clone, Debug)]
pub struct Sandbox(crate::Sandbox);

/// [`crate::Process`] without `async`.
#[derive(Clone, Debug)]
pub struct Process(crate::Process);

/// [`ExecuteStream`] as an iterator. Dropping it kills the command.
#[derive(Debug)]
pub struct Events(Option<ExecuteStream>);

impl Iterator for Events {
    type Item = ExecuteEvent;

    fn next(&mut self) -> Option<ExecuteEvent> {
        let mut stream = self.0.take()?;
        let (event, stream) = block_on(async move { (stream.next().await, stream) }).ok()?;
        self.0 = event.is_some().then_some(stream);
        event
    }
}

/// Runs a call that borrows its sandbox on the background thread.
macro_rules! call {
    ($self:ident, |$inner:ident| $call:expr) => {{
        let $inner = $self.0.clone();
        block_on(async move { $call.await })?
    }};
}

impl Client {
    /// A client of what `connect` makes on the background thread: a client belongs to the runtime
    /// that made it.
    ///
    /// # Errors
    ///
    /// Those of `connect`.
    pub fn new<F>(connect: impl FnOnce() -> F + Send + 'static) -> Result<Self>
    where
        F: Future<Output = Result<crate::Client>> + Send + 'static,
    {
        Ok(Self(block_on(async move { connect().await })??))
    }

    /// See [`crate::Client::url`].
    pub fn url(&self) -> String {
        self.0.url()
    }

    /// See [`crate::Client::create`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn create(&self, spec: SandboxSpec) -> Result<Sandbox> {
        call!(self, |c| c.create(spec)).map(Sandbox)
    }

    /// See [`crate::Client::connect`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn connect(&self, id: &SandboxId) -> Result<Sandbox> {
        let id = id.clone();
        call!(self, |c| c.connect(&id)).map(Sandbox)
    }

    /// See [`crate::Client::connect_ref`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn connect_ref(&self, reference: &SandboxRef) -> Result<Sandbox> {
        let reference = reference.clone();
        call!(self, |c| c.connect_ref(&reference)).map(Sandbox)
    }

    /// See [`crate::Client::get_or_create`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn get_or_create(&self, name: &str, spec: SandboxSpec) -> Result<Sandbox> {
        let name = name.to_owned();
        call!(self, |c| c.get_or_create(&name, spec)).map(Sandbox)
    }

    /// See [`crate::Client::list`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn list(&self, filter: &Filter) -> Result<Vec<SandboxInfo>> {
        let filter = filter.clone();
        call!(self, |c| c.list(&filter))
    }

    /// See [`crate::Client::gc`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn gc(&self) -> Result<Vec<SandboxId>> {
        call!(self, |c| c.gc())
    }
}

impl Sandbox {
    /// The async sandbox inside; its calls belong to the background thread's runtime.
    pub fn as_async(&self) -> &crate::Sandbox {
        &self.0
    }

    /// See [`crate::Sandbox::id`].
    pub fn id(&self) -> &SandboxId {
        self.0.id()
    }

    /// See [`crate::Sandbox::reference`].
    pub fn reference(&self) -> SandboxRef {
        self.0.reference()
    }

    /// See [`crate::Sandbox::capabilities`].
    pub fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    /// See [`crate::Sandbox::warnings`].
    pub fn warnings(&self) -> &[String] {
        self.0.warnings()
    }

    /// See [`crate::Sandbox::detach`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn detach(&self) -> Result<SandboxRef> {
        call!(self, |s| s.detach())
    }

    /// See [`crate::Sandbox::kill`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn kill(&self) -> Result<()> {
        call!(self, |s| s.kill())
    }

    /// See [`crate::Sandbox::execute`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn execute(&self, command: impl Into<Command>) -> Result<ExecuteResponse> {
        let command = command.into();
        call!(self, |s| s.execute(command))
    }

    /// See [`crate::Sandbox::stream`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn stream(&self, command: impl Into<Command>) -> Result<Events> {
        let command = command.into();
        call!(self, |s| s.stream(command)).map(|stream| Events(Some(stream)))
    }

    /// See [`crate::Sandbox::spawn`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn spawn(&self, command: impl Into<Command>) -> Result<Process> {
        let command = command.into();
        call!(self, |s| s.spawn(command)).map(Process)
    }

    /// See [`crate::Sandbox::process`].
    pub fn process(&self, id: ProcessId) -> Process {
        Process(self.0.process(id))
    }

    /// See [`crate::Sandbox::upload_files`].
    ///
    /// # Errors
    ///
    /// Only when the background thread is not there; what concerns a file is its own result.
    pub fn upload_files<P, B>(
        &self,
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Result<Vec<Result<()>>>
    where
        P: AsRef<str>,
        B: Into<Bytes>,
    {
        let files: Vec<(String, Bytes)> = files
            .into_iter()
            .map(|(p, b)| (p.as_ref().to_owned(), b.into()))
            .collect();
        let s = self.0.clone();
        block_on(async move { s.upload_files(files).await })
    }

    /// See [`crate::Sandbox::upload`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn upload(&self, path: impl AsRef<str>, content: impl Into<Bytes>) -> Result<()> {
        let (path, content) = (path.as_ref().to_owned(), content.into());
        call!(self, |s| s.upload(path, content))
    }

    /// See [`crate::Sandbox::download_files`].
    ///
    /// # Errors
    ///
    /// Only when the background thread is not there; what concerns a file is its own result.
    pub fn download_files<P: AsRef<str>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Vec<Result<Bytes>>> {
        let paths: Vec<String> = paths.into_iter().map(|p| p.as_ref().to_owned()).collect();
        let s = self.0.clone();
        block_on(async move { s.download_files(paths).await })
    }

    /// See [`crate::Sandbox::download`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn download(&self, path: impl AsRef<str>) -> Result<Bytes> {
        let path = path.as_ref().to_owned();
        call!(self, |s| s.download(path))
    }

    /// See [`crate::Sandbox::upload_dir`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn upload_dir(&self, local: impl AsRef<Path>, path: impl AsRef<str>) -> Result<TreeReport> {
        let (local, path) = (local.as_ref().to_owned(), path.as_ref().to_owned());
        call!(self, |s| s.upload_dir(local, path))
    }

    /// See [`crate::Sandbox::download_dir`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn download_dir(
        &self,
        path: impl AsRef<str>,
        local: impl AsRef<Path>,
    ) -> Result<TreeReport> {
        let (path, local) = (path.as_ref().to_owned(), local.as_ref().to_owned());
        call!(self, |s| s.download_dir(path, local))
    }

    /// See [`crate::Sandbox::ls`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn ls(&self, path: impl AsRef<str>) -> Result<Listing> {
        let path = path.as_ref().to_owned();
        call!(self, |s| s.ls(path))
    }

    /// See [`crate::Sandbox::read`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn read(&self, path: impl AsRef<str>, options: ReadOptions) -> Result<ReadPage> {
        let path = path.as_ref().to_owned();
        call!(self, |s| s.read(path, options))
    }

    /// See [`crate::Sandbox::write`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn write(&self, path: impl AsRef<str>, content: impl Into<Bytes>) -> Result<()> {
        let (path, content) = (path.as_ref().to_owned(), content.into());
        call!(self, |s| s.write(path, content))
    }

    /// See [`crate::Sandbox::create_new`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn create_new(&self, path: impl AsRef<str>, content: impl Into<Bytes>) -> Result<()> {
        let (path, content) = (path.as_ref().to_owned(), content.into());
        call!(self, |s| s.create_new(path, content))
    }

    /// See [`crate::Sandbox::edit`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn edit(
        &self,
        path: impl AsRef<str>,
        old: &str,
        new: &str,
        replace_all: bool,
    ) -> Result<EditReport> {
        let (path, old, new) = (path.as_ref().to_owned(), old.to_owned(), new.to_owned());
        call!(self, |s| s.edit(path, &old, &new, replace_all))
    }

    /// See [`crate::Sandbox::glob`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn glob(&self, pattern: &str, path: impl AsRef<str>) -> Result<GlobMatches> {
        let (pattern, path) = (pattern.to_owned(), path.as_ref().to_owned());
        call!(self, |s| s.glob(&pattern, path))
    }

    /// See [`crate::Sandbox::grep`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn grep(
        &self,
        text: &str,
        path: impl AsRef<str>,
        options: GrepOptions,
    ) -> Result<GrepMatches> {
        let (text, path) = (text.to_owned(), path.as_ref().to_owned());
        call!(self, |s| s.grep(&text, path, options))
    }

    /// See [`crate::Sandbox::delete`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn delete(&self, path: impl AsRef<str>) -> Result<()> {
        let path = path.as_ref().to_owned();
        call!(self, |s| s.delete(path))
    }

    /// See [`crate::Sandbox::expires_at`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn expires_at(&self) -> Result<Option<SystemTime>> {
        call!(self, |s| s.expires_at())
    }

    /// See [`crate::Sandbox::renew`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn renew(&self, lifetime: Duration) -> Result<()> {
        call!(self, |s| s.renew(lifetime))
    }

    /// See [`crate::Sandbox::pause`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn pause(&self) -> Result<()> {
        call!(self, |s| s.pause())
    }

    /// See [`crate::Sandbox::resume`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn resume(&self) -> Result<()> {
        call!(self, |s| s.resume())
    }

    /// See [`crate::Sandbox::snapshot`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn snapshot(&self) -> Result<SnapshotId> {
        call!(self, |s| s.snapshot())
    }

    /// See [`crate::Sandbox::restore`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn restore(&self, id: &SnapshotId) -> Result<()> {
        let id = id.clone();
        call!(self, |s| s.restore(&id))
    }
}

impl Process {
    /// See [`crate::Process::id`].
    pub fn id(&self) -> &ProcessId {
        self.0.id()
    }

    /// See [`crate::Process::status`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn status(&self) -> Result<Option<Status>> {
        call!(self, |p| p.status())
    }

    /// See [`crate::Process::logs`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn logs(&self, from: LogCursor, max: u64) -> Result<ProcessLogs> {
        call!(self, |p| p.logs(from, max))
    }

    /// See [`crate::Process::wait`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn wait(&self) -> Result<Status> {
        call!(self, |p| p.wait())
    }

    /// See [`crate::Process::kill`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn kill(&self) -> Result<()> {
        call!(self, |p| p.kill())
    }
}
