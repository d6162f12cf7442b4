//! What people hold: a live sandbox with every operation.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::files::{
    EditReport, GlobMatches, GrepMatches, GrepOptions, Listing, ReadOptions, ReadPage, TreeReport,
    WriteMode,
};
use crate::{
    Capabilities, Command, Error, ErrorKind, ExecuteResponse, ExecuteStream, FileDownload,
    FileUpload, KillTicket, Lease, Operation, Process, ProcessId, Result, SandboxBackend,
    SandboxId, SandboxPath, SandboxRef, SnapshotId, Snapshots, call, cleanup, derive,
};

/// A live sandbox. Cloning shares it.
///
/// One that [`Client::create`](crate::Client::create) made is owned: the last drop kills it in the
/// background; [`kill`](Self::kill) is the way out that tells whether it worked. One that was
/// connected to is never killed by dropping.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    backend: Arc<dyn SandboxBackend>,
    backend_name: &'static str,
    url: String,
    owned: AtomicBool,
    killed: AtomicBool,
    warnings: Vec<String>,
}

impl Sandbox {
    pub(crate) fn new(
        backend: Arc<dyn SandboxBackend>,
        backend_name: &'static str,
        url: String,
        owned: bool,
        warnings: Vec<String>,
    ) -> Self {
        Self(Arc::new(Inner {
            backend,
            backend_name,
            url,
            owned: AtomicBool::new(owned),
            killed: AtomicBool::new(false),
            warnings,
        }))
    }

    /// The provider's name of this sandbox.
    pub fn id(&self) -> &SandboxId {
        self.0.backend.id()
    }

    /// The backend's one word, as `"docker"`.
    pub fn backend_name(&self) -> &'static str {
        self.0.backend_name
    }

    /// What picks this sandbox up again, in another process too.
    pub fn reference(&self) -> SandboxRef {
        SandboxRef {
            url: self.0.url.clone(),
            id: self.id().clone(),
        }
    }

    /// What this sandbox can do. No I/O.
    pub fn capabilities(&self) -> Capabilities {
        let backend = self.backend();
        backend.capabilities().with(|c| {
            c.streaming = backend.streaming().is_some();
            c.processes = backend.processes().is_some();
            c.native_files = backend.native_files().is_some();
            c.lease = backend.lease().is_some();
            c.snapshots = backend.snapshots().is_some();
        })
    }

    /// What you have to know about this sandbox: defaults that are not honoured, risks. Each is a
    /// WARN event too.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// The provider's own object, for what only it can do.
    pub fn backend(&self) -> &dyn SandboxBackend {
        &*self.0.backend
    }

    /// Every operation passes here: a killed sandbox is refused, errors get their context.
    pub(crate) async fn run<T>(
        &self,
        operation: Operation,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let result = if self.0.killed.load(Ordering::Acquire) {
            Err(Error::new(ErrorKind::SandboxGone, "the sandbox was killed"))
        } else {
            call.await
        };
        result.map_err(|e| self.context(operation, e))
    }

    fn context(&self, operation: Operation, error: Error) -> Error {
        error
            .at(operation)
            .with("backend", self.0.backend_name)
            .with("sandbox", self.id())
    }

    /// Ends the sandbox and all that runs in it. Killing one that is gone is a success.
    ///
    /// # Errors
    ///
    /// Those of the backend: the sandbox may live on, and the call may be repeated.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, an owned sandbox is killed on the last drop.
    pub async fn kill(&self) -> Result<()> {
        if self.0.killed.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.0.backend.kill().await {
            Ok(()) => {
                self.0.killed.store(true, Ordering::Release);
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::SandboxGone => {
                self.0.killed.store(true, Ordering::Release);
                Ok(())
            }
            Err(e) => Err(self.context(Operation::Kill, e)),
        }
    }

    /// Gives up ownership: the sandbox lives on until its lifetime ends or someone kills it.
    ///
    /// # Errors
    ///
    /// Those of the backend, where the sandbox ends with its owner and could not be told that it
    /// has none any more: it is still owned then.
    pub async fn detach(&self) -> Result<SandboxRef> {
        self.run(Operation::Detach, self.backend().detach()).await?;
        self.0.owned.store(false, Ordering::Release);
        Ok(self.reference())
    }

    /// Runs a command to its end and collects what it printed.
    ///
    /// A non-zero exit, a timeout and a lost connection are values of
    /// [`ExecuteResponse::status`]: see [`ExecuteResponse::into_result`] for errors instead. Of
    /// each output stream the first and the last half of the limit are kept.
    ///
    /// # Errors
    ///
    /// The command did not start: [`ErrorKind::InvalidArgument`] and [`ErrorKind::InvalidPath`]
    /// for what can't be run, [`ErrorKind::NotFound`] for a missing cwd or user,
    /// [`ErrorKind::Unsupported`] for what the backend can't do, [`ErrorKind::SandboxGone`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the command's process tree.
    pub async fn execute(&self, command: impl Into<Command>) -> Result<ExecuteResponse> {
        let command = command.into();
        self.run(Operation::Execute, call::execute(self.backend(), command))
            .await
    }

    /// Starts a command and hands out its output as it comes, without a limit.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute); [`ErrorKind::Unsupported`] without the capability
    /// `streaming`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future or the stream kills the command's process tree.
    pub async fn stream(&self, command: impl Into<Command>) -> Result<ExecuteStream> {
        let command = command.into();
        self.run(Operation::Stream, call::stream(self.backend(), command))
            .await
    }

    /// Starts a command in the background.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute); [`ErrorKind::Unsupported`] without the capability
    /// `processes`.
    pub async fn spawn(&self, command: impl Into<Command>) -> Result<Process> {
        let command = command.into();
        let id = self
            .run(Operation::Spawn, call::spawn(self.backend(), command))
            .await?;
        Ok(self.process(id))
    }

    /// Picks up a background command.
    pub fn process(&self, id: ProcessId) -> Process {
        Process::new(self.clone(), id)
    }

    /// Writes files with the rights of the sandbox's user, in one round trip. One result a file,
    /// in order: one file's failure is that file's alone.
    ///
    /// Parents are made. New files are 0644; existing ones keep mode, owner and links.
    pub async fn upload_files<P, B>(
        &self,
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Vec<Result<()>>
    where
        P: AsRef<str>,
        B: Into<Bytes>,
    {
        let files = files
            .into_iter()
            .map(|(p, b)| Ok(FileUpload::new(SandboxPath::new(p)?, b)));
        self.each(Operation::UploadFiles, files, async |good| {
            call::upload_files(self.backend(), good).await
        })
        .await
    }

    /// Writes one file, see [`upload_files`](Self::upload_files).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidPath`], [`ErrorKind::IsADirectory`], [`ErrorKind::PermissionDenied`],
    /// those of the backend.
    pub async fn upload(&self, path: impl AsRef<str>, content: impl Into<Bytes>) -> Result<()> {
        one(self.upload_files([(path, content)]).await)
    }

    /// Reads whole files with the rights of the sandbox's user, in one round trip. One result a
    /// file, in order. A file over [`crate::defaults::DOWNLOAD_LIMIT`] is [`ErrorKind::TooLarge`].
    pub async fn download_files<P: AsRef<str>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Vec<Result<Bytes>> {
        let files = paths
            .into_iter()
            .map(|p| Ok(FileDownload::new(SandboxPath::new(p)?)));
        self.each(Operation::DownloadFiles, files, async |good| {
            call::download_files(self.backend(), good).await
        })
        .await
    }

    /// Reads one file, see [`download_files`](Self::download_files).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], [`ErrorKind::IsADirectory`], [`ErrorKind::PermissionDenied`],
    /// [`ErrorKind::InvalidPath`], [`ErrorKind::TooLarge`], those of the backend.
    pub async fn download(&self, path: impl AsRef<str>) -> Result<Bytes> {
        one(self.download_files([path]).await)
    }

    /// Runs a batch: what is wrong already fails alone, the rest goes out in one call.
    async fn each<F, T>(
        &self,
        operation: Operation,
        items: impl Iterator<Item = Result<F>>,
        call: impl AsyncFnOnce(&[F]) -> Vec<Result<T>>,
    ) -> Vec<Result<T>> {
        let mut good = Vec::new();
        let order: Vec<Option<Error>> = items
            .map(|item| match item {
                Ok(item) => {
                    good.push(item);
                    None
                }
                Err(e) => Some(e),
            })
            .collect();
        let mut results = match self.run(operation, async { Ok(call(&good).await) }).await {
            Ok(results) => results,
            Err(gone) => good.iter().map(|_| Err(copy(&gone))).collect(),
        }
        .into_iter();
        order
            .into_iter()
            .map(|bad| match bad {
                Some(e) => Err(self.context(operation, e)),
                None => results
                    .next()
                    .unwrap_or_else(|| {
                        Err(Error::new(ErrorKind::Protocol, "no result for this file"))
                    })
                    .map_err(|e| self.context(operation, e)),
            })
            .collect()
    }

    /// Copies a local directory's content into the directory `path` of the sandbox, in at most two
    /// round trips whatever the number of files. Links that lead out of the tree and special files
    /// are left out and reported.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidPath`], [`ErrorKind::NotADirectory`], [`ErrorKind::TooLarge`] beyond
    /// [`crate::defaults::TREE_LIMIT`], those of the backend.
    pub async fn upload_dir(
        &self,
        local: impl AsRef<Path>,
        path: impl AsRef<str>,
    ) -> Result<TreeReport> {
        let (local, path) = (local.as_ref(), SandboxPath::new(path));
        self.run(Operation::UploadDir, async {
            let path = path?;
            match self.backend().native_files() {
                Some(native) => native.upload_dir(local, &path).await,
                None => derive::upload_dir(self.backend(), local, &path).await,
            }
            .map_err(|e| e.with("path", &path))
        })
        .await
    }

    /// Copies the content of the directory `path` of the sandbox into a local directory, which is
    /// made. What comes out is hostile: nothing is written outside `local`, links are left out and
    /// reported.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], [`ErrorKind::NotADirectory`], [`ErrorKind::TooLarge`] beyond
    /// [`crate::defaults::TREE_LIMIT`], [`ErrorKind::Protocol`] for a tree that does not add up,
    /// those of the backend.
    pub async fn download_dir(
        &self,
        path: impl AsRef<str>,
        local: impl AsRef<Path>,
    ) -> Result<TreeReport> {
        let (local, path) = (local.as_ref(), SandboxPath::new(path));
        self.run(Operation::DownloadDir, async {
            let path = path?;
            match self.backend().native_files() {
                Some(native) => native.download_dir(&path, local).await,
                None => derive::download_dir(self.backend(), &path, local).await,
            }
            .map_err(|e| e.with("path", &path))
        })
        .await
    }

    /// Writes a file of any size from `reader` with bounded memory. Gives the number of bytes. A
    /// reader of `path` sees the old file or the whole new one.
    ///
    /// # Errors
    ///
    /// As [`upload`](Self::upload); a failing `reader` leaves the old file.
    pub async fn upload_from(
        &self,
        path: impl AsRef<str>,
        reader: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<u64> {
        let path = SandboxPath::new(path);
        self.run(Operation::UploadFrom, async {
            let path = path?;
            derive::upload_from(self.backend(), &path, reader)
                .await
                .map_err(|e| e.with("path", &path))
        })
        .await
    }

    /// Reads a file of any size into `writer` with bounded memory. Gives the number of bytes.
    ///
    /// # Errors
    ///
    /// As [`download`](Self::download) but for the limit; [`ErrorKind::Conflict`] if the file
    /// changed meanwhile. `writer` may have got a part then.
    pub async fn download_to(
        &self,
        path: impl AsRef<str>,
        writer: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<u64> {
        let path = SandboxPath::new(path);
        self.run(Operation::DownloadTo, async {
            let path = path?;
            derive::download_to(self.backend(), &path, writer)
                .await
                .map_err(|e| e.with("path", &path))
        })
        .await
    }

    /// Lists the direct children of a directory, hidden ones too. Links are not followed, except
    /// that `path` itself may be one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], [`ErrorKind::NotADirectory`], [`ErrorKind::PermissionDenied`],
    /// [`ErrorKind::InvalidPath`], those of the backend.
    pub async fn ls(&self, path: impl AsRef<str>) -> Result<Listing> {
        let path = SandboxPath::new(path);
        self.run(Operation::Ls, async {
            let path = path?;
            match self.backend().native_files() {
                Some(native) => native.ls(&path).await,
                None => derive::ls(self.backend(), &path).await,
            }
            .map_err(|e| e.with("path", &path))
        })
        .await
    }

    /// Reads lines of a text file, or all of a binary one up to [`crate::defaults::READ_BYTES`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], [`ErrorKind::IsADirectory`], [`ErrorKind::PermissionDenied`],
    /// [`ErrorKind::OffsetPastEnd`] with the number of lines, [`ErrorKind::TooLarge`] for a large
    /// binary file, [`ErrorKind::InvalidPath`], those of the backend.
    pub async fn read(&self, path: impl AsRef<str>, options: ReadOptions) -> Result<ReadPage> {
        let path = SandboxPath::new(path);
        self.run(Operation::Read, async {
            let path = path?;
            if options.limit == 0 {
                return Ok(ReadPage::NothingAsked);
            }
            match self.backend().native_files() {
                Some(native) => native.read(&path, options).await,
                None => derive::read(self.backend(), &path, options).await,
            }
            .map_err(|e| e.with("path", &path))
        })
        .await
    }

    /// Creates or overwrites a file. Parents are made; mode and owner of an existing file are
    /// kept; a link is written through. A reader never sees half a file, except where replacing
    /// it would break something (more hard links, another's file): then it is written in place.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::IsADirectory`], [`ErrorKind::PermissionDenied`], [`ErrorKind::InvalidPath`],
    /// those of the backend.
    pub async fn write(&self, path: impl AsRef<str>, content: impl Into<Bytes>) -> Result<()> {
        self.write_mode(path.as_ref(), content.into(), WriteMode::Overwrite)
            .await
    }

    /// As [`write`](Self::write), but refuses a file that exists.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::AlreadyExists`], and those of [`write`](Self::write).
    pub async fn create_new(&self, path: impl AsRef<str>, content: impl Into<Bytes>) -> Result<()> {
        self.write_mode(path.as_ref(), content.into(), WriteMode::CreateNew)
            .await
    }

    async fn write_mode(&self, path: &str, content: Bytes, mode: WriteMode) -> Result<()> {
        self.run(Operation::Write, async {
            let path = SandboxPath::new(path)?;
            match self.backend().native_files() {
                Some(native) => native.write(&path, content, mode).await,
                None => derive::write(self.backend(), &path, content, mode).await,
            }
            .map_err(|e| e.with("path", &path))
        })
        .await
    }

    /// Replaces exact text in a file: once, or everywhere with `replace_all`. Works on bytes: what
    /// is not touched keeps its encoding and line endings; an LF in `old` matches a CRLF. Mode,
    /// owner and links are kept. Of two edits at once none is lost.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoMatch`], [`ErrorKind::NotUnique`] with the count,
    /// [`ErrorKind::InvalidArgument`] for an empty `old`, [`ErrorKind::Conflict`],
    /// [`ErrorKind::NotFound`], [`ErrorKind::IsADirectory`], [`ErrorKind::PermissionDenied`],
    /// those of the backend.
    pub async fn edit(
        &self,
        path: impl AsRef<str>,
        old: &str,
        new: &str,
        replace_all: bool,
    ) -> Result<EditReport> {
        let path = SandboxPath::new(path);
        self.run(Operation::Edit, async {
            let path = path?;
            if old.is_empty() {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    "the text to replace is empty",
                ));
            }
            match self.backend().native_files() {
                Some(native) => native.edit(&path, old, new, replace_all).await,
                None => derive::edit(self.backend(), &path, old, new, replace_all).await,
            }
            .map_err(|e| e.with("path", &path))
        })
        .await
    }

    /// Finds regular files below `path`. A pattern without `/` matches base names at any depth;
    /// one with `/` is relative to `path`. `* ? [a] [!a] [^a] {a,b}` and `**`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidPattern`], [`ErrorKind::NotFound`], [`ErrorKind::NotADirectory`],
    /// [`ErrorKind::PermissionDenied`], [`ErrorKind::InvalidPath`], those of the backend.
    pub async fn glob(&self, pattern: &str, path: impl AsRef<str>) -> Result<GlobMatches> {
        let path = SandboxPath::new(path);
        self.run(Operation::Glob, async {
            let path = path?;
            match self.backend().native_files() {
                Some(native) => native.glob(pattern, &path).await,
                None => derive::glob(self.backend(), pattern, &path).await,
            }
            .map_err(|e| e.with("path", &path))
        })
        .await
    }

    /// Finds the lines that hold `text`, literally, in the files below `path` or in the file
    /// `path`. Binary files are skipped, links are not followed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] for an empty text or one with a newline,
    /// [`ErrorKind::InvalidPattern`], [`ErrorKind::NotFound`], [`ErrorKind::PermissionDenied`],
    /// [`ErrorKind::InvalidPath`], those of the backend.
    pub async fn grep(
        &self,
        text: &str,
        path: impl AsRef<str>,
        options: GrepOptions,
    ) -> Result<GrepMatches> {
        let path = SandboxPath::new(path);
        self.run(Operation::Grep, async {
            let path = path?;
            if text.is_empty() || text.contains(['\n', '\0']) {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    "the text to search is empty or holds a newline or NUL: search one line's text",
                ));
            }
            match self.backend().native_files() {
                Some(native) => native.grep(text, &path, &options).await,
                None => derive::grep(self.backend(), text, &path, &options).await,
            }
            .map_err(|e| e.with("path", &path))
        })
        .await
    }

    /// Removes a file or a whole tree. Of a link the link is removed, never its target.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], [`ErrorKind::PermissionDenied`] (a part may be gone),
    /// [`ErrorKind::InvalidPath`] for `/` too, those of the backend.
    pub async fn delete(&self, path: impl AsRef<str>) -> Result<()> {
        let path = SandboxPath::new(path);
        self.run(Operation::Delete, async {
            let path = path?;
            if path.is_root() {
                return Err(Error::new(ErrorKind::InvalidPath, "`/` is never deleted"));
            }
            match self.backend().native_files() {
                Some(native) => native.delete(&path).await,
                None => derive::delete(self.backend(), &path).await,
            }
            .map_err(|e| e.with("path", &path))
        })
        .await
    }

    /// When the sandbox ends unless renewed; `None` for never.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] without the capability `lease`.
    pub async fn expires_at(&self) -> Result<Option<SystemTime>> {
        self.run(Operation::Renew, async { self.lease()?.expires_at().await })
            .await
    }

    /// Sets the remaining lifetime, counted from now.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] without the capability `lease`.
    pub async fn renew(&self, lifetime: Duration) -> Result<()> {
        self.run(Operation::Renew, async {
            if lifetime.is_zero() {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    "the lifetime is zero: use `kill`",
                ));
            }
            self.lease()?.renew(lifetime).await
        })
        .await
    }

    /// Freezes the sandbox.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] where the backend can't.
    pub async fn pause(&self) -> Result<()> {
        self.run(Operation::Pause, async { self.lease()?.pause().await })
            .await
    }

    /// Ends a pause.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] where the backend can't.
    pub async fn resume(&self) -> Result<()> {
        self.run(Operation::Resume, async { self.lease()?.resume().await })
            .await
    }

    fn lease(&self) -> Result<&dyn Lease> {
        self.backend()
            .lease()
            .ok_or_else(|| Error::unsupported("renewing and pausing"))
    }

    /// Keeps the files as they are now, until the sandbox dies.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] without the capability `snapshots`.
    pub async fn snapshot(&self) -> Result<SnapshotId> {
        self.run(Operation::Snapshot, async {
            self.family_snapshots()?.snapshot().await
        })
        .await
    }

    /// Puts the files back as they were.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] without the capability `snapshots`, [`ErrorKind::NotFound`] for
    /// an unknown snapshot.
    pub async fn restore(&self, id: &SnapshotId) -> Result<()> {
        self.run(Operation::Restore, async {
            self.family_snapshots()?.restore(id).await
        })
        .await
    }

    fn family_snapshots(&self) -> Result<&dyn Snapshots> {
        self.backend()
            .snapshots()
            .ok_or_else(|| Error::unsupported("snapshots"))
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("backend", &self.0.backend_name)
            .field("id", self.id())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.owned.load(Ordering::Acquire) || self.killed.load(Ordering::Acquire) {
            return;
        }
        let ticket = self.backend.kill_ticket().unwrap_or_else(|| {
            let backend = self.backend.clone();
            KillTicket::new(
                backend.id().clone(),
                move || async move { backend.kill().await },
            )
        });
        cleanup::redeem(ticket);
    }
}

/// The result of a batch of one.
fn one<T>(results: Vec<Result<T>>) -> Result<T> {
    results.into_iter().next().unwrap_or_else(|| {
        Err(Error::new(
            ErrorKind::Protocol,
            "the backend answered nothing",
        ))
    })
}

/// The same refusal for every file of a batch.
fn copy(e: &Error) -> Error {
    Error::new(e.kind(), e.message().to_owned())
}
