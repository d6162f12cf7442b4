//! What a provider implements.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;

use crate::files::{
    EditReport, GlobMatches, GrepMatches, GrepOptions, Listing, ReadOptions, ReadPage, TreeReport,
    WriteMode,
};
use crate::{
    BackendUrl, Capabilities, Command, Error, ExecuteResponse, ExecuteStream, Filter, KillTicket,
    Operation, Result, SandboxId, SandboxInfo, SandboxPath, SandboxSpec, SpecSupport, Status,
};

/// Makes sandboxes. [`crate::Client`] is what people hold.
#[async_trait]
pub trait SandboxProvider: fmt::Debug + Send + Sync + 'static {
    /// The backend's one word: crate suffix, feature, URL scheme, conformance target.
    fn name(&self) -> &'static str;

    /// The URL that makes an equal provider, without secrets.
    fn url(&self) -> BackendUrl;

    /// Which fields of a spec `create` honours. Core refuses the rest before the call.
    fn spec_support(&self) -> SpecSupport;

    /// Makes a sandbox and returns when it takes commands.
    ///
    /// Dropping the future must leave nothing behind: arm a [`crate::KillGuard`] as soon as the
    /// id is known.
    async fn create(&self, spec: &SandboxSpec) -> Result<Arc<dyn SandboxBackend>>;

    /// Picks up a living sandbox.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::SandboxGone`] if there is none with this id.
    async fn connect(&self, id: &SandboxId) -> Result<Arc<dyn SandboxBackend>>;

    /// The living sandboxes that this provider can see.
    async fn list(&self, filter: &Filter) -> Result<Vec<SandboxInfo>>;

    /// Picks up the sandbox of that name or makes it, at most once however many ask at a time.
    /// The flag says whether it was made.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Unsupported`] unless the provider can.
    async fn get_or_create(
        &self,
        name: &str,
        spec: &SandboxSpec,
    ) -> Result<(Arc<dyn SandboxBackend>, bool)> {
        let _ = (name, spec);
        Err(Error::unsupported(Operation::GetOrCreate))
    }

    /// Removes what is left of sandboxes that have ended, and those whose owner has ended without
    /// them. Never a living one that was detached, renewed or belongs to another machine. Gives
    /// what was removed.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Unsupported`] unless the provider can.
    async fn gc(&self) -> Result<Vec<SandboxId>> {
        Err(Error::unsupported(Operation::Gc))
    }
}

/// One live sandbox: the four methods of the contract, `kill`, and what it can do. Everything
/// else is derived from them, or an optional family.
///
/// Core calls these with checked arguments only, and only with what [`capabilities`] claims.
///
/// [`capabilities`]: Self::capabilities
#[async_trait]
pub trait SandboxBackend: fmt::Debug + Send + Sync + 'static {
    /// The provider's name of this sandbox.
    fn id(&self) -> &SandboxId;

    /// What this sandbox can do. No I/O.
    fn capabilities(&self) -> Capabilities;

    /// Runs a command to its end.
    ///
    /// A non-zero exit, a timeout and a lost connection are values, so that no output is thrown
    /// away; an error means that the command did not start. On timeout the whole process tree is
    /// killed. Dropping the future kills the command.
    async fn execute(&self, command: &Command) -> Result<ExecuteResponse>;

    /// Writes files with the rights of the sandbox's user: parents are made, new files are 0644,
    /// existing ones keep mode, owner and links. One result a file, in order.
    async fn upload_files(&self, files: &[FileUpload]) -> Vec<Result<()>>;

    /// Reads whole files with the rights of the sandbox's user. One result a file, in order.
    async fn download_files(&self, files: &[FileDownload]) -> Vec<Result<Bytes>>;

    /// Ends the sandbox. One that is gone already is a success.
    async fn kill(&self) -> Result<()>;

    /// A way to end the sandbox without this object and the runtime that made it. Without one,
    /// core calls [`kill`](Self::kill) on its own runtime.
    fn kill_ticket(&self) -> Option<KillTicket> {
        None
    }

    /// Unties the sandbox from this process, where it would end with it: it lives on until its
    /// lifetime ends or someone kills it. Nothing to do where sandboxes are not tied.
    async fn detach(&self) -> Result<()> {
        Ok(())
    }

    /// What the user has to know about this sandbox, one sentence each.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Output while a command runs.
    fn streaming(&self) -> Option<&dyn Streaming> {
        None
    }

    /// Commands that run in the background.
    fn processes(&self) -> Option<&dyn Processes> {
        None
    }

    /// File operations that this backend does itself.
    fn native_files(&self) -> Option<&dyn NativeFiles> {
        None
    }

    /// Lifetime and pausing.
    fn lease(&self) -> Option<&dyn Lease> {
        None
    }

    /// Snapshots of the files.
    fn snapshots(&self) -> Option<&dyn Snapshots> {
        None
    }
}

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileUpload {
    /// Where it goes.
    pub path: SandboxPath,
    /// All of it.
    pub content: Bytes,
}

impl FileUpload {
    /// A file to write.
    pub fn new(path: SandboxPath, content: impl Into<Bytes>) -> Self {
        Self {
            path,
            content: content.into(),
        }
    }
}

/// A file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileDownload {
    /// Where it is.
    pub path: SandboxPath,
    /// A larger file is [`crate::ErrorKind::TooLarge`].
    pub limit: u64,
}

impl FileDownload {
    /// A file to read, of at most [`crate::defaults::DOWNLOAD_LIMIT`] bytes.
    pub fn new(path: SandboxPath) -> Self {
        Self {
            path,
            limit: crate::defaults::DOWNLOAD_LIMIT,
        }
    }
}

/// Output while a command runs, and input while it runs.
#[async_trait]
pub trait Streaming: Send + Sync {
    /// Starts a command. The stream ends with exactly one [`crate::ExecuteEvent::Ended`]; dropping
    /// it kills the command. Output is not limited: who reads slowly slows the command down.
    async fn execute_streaming(&self, command: &Command) -> Result<ExecuteStream>;
}

/// A background command of a sandbox, by the backend's own name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ProcessId(pub String);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a background command printed, from a cursor on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessLogs {
    /// The next bytes of standard output.
    pub stdout: Bytes,
    /// The next bytes of standard error.
    pub stderr: Bytes,
    /// What to ask next.
    pub next: LogCursor,
}

impl ProcessLogs {
    /// Logs and the cursor after them.
    pub fn new(stdout: impl Into<Bytes>, stderr: impl Into<Bytes>, next: LogCursor) -> Self {
        Self {
            stdout: stdout.into(),
            stderr: stderr.into(),
            next,
        }
    }
}

/// How many bytes of each stream have been seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCursor {
    /// Of standard output.
    pub stdout: u64,
    /// Of standard error.
    pub stderr: u64,
}

/// Commands that run in the background: they live until they end, are killed, or the sandbox dies.
#[async_trait]
pub trait Processes: Send + Sync {
    /// Starts a command. Its timeout holds; `output_limit` is not used: logs are kept by the
    /// sandbox.
    async fn start(&self, command: &Command) -> Result<ProcessId>;

    /// How it ended, or `None` while it runs.
    async fn status(&self, id: &ProcessId) -> Result<Option<Status>>;

    /// What it printed since `from`, at most `max` bytes a stream.
    async fn logs(&self, id: &ProcessId, from: LogCursor, max: u64) -> Result<ProcessLogs>;

    /// Waits for its end. Dropping the future leaves it running.
    async fn wait(&self, id: &ProcessId) -> Result<Status>;

    /// Kills its process tree. One that has ended already is a success.
    async fn kill(&self, id: &ProcessId) -> Result<()>;
}

/// The derived operations, done by the backend itself with the same promises.
///
/// A backend that does only some calls the functions of [`crate::derive`] in the others.
#[async_trait]
pub trait NativeFiles: Send + Sync {
    /// See [`crate::Sandbox::ls`].
    async fn ls(&self, path: &SandboxPath) -> Result<Listing>;
    /// See [`crate::Sandbox::read`].
    async fn read(&self, path: &SandboxPath, options: ReadOptions) -> Result<ReadPage>;
    /// See [`crate::Sandbox::write`].
    async fn write(&self, path: &SandboxPath, content: Bytes, mode: WriteMode) -> Result<()>;
    /// See [`crate::Sandbox::edit`].
    async fn edit(
        &self,
        path: &SandboxPath,
        old: &str,
        new: &str,
        replace_all: bool,
    ) -> Result<EditReport>;
    /// See [`crate::Sandbox::glob`].
    async fn glob(&self, pattern: &str, path: &SandboxPath) -> Result<GlobMatches>;
    /// See [`crate::Sandbox::grep`].
    async fn grep(
        &self,
        text: &str,
        path: &SandboxPath,
        options: &GrepOptions,
    ) -> Result<GrepMatches>;
    /// See [`crate::Sandbox::delete`].
    async fn delete(&self, path: &SandboxPath) -> Result<()>;
    /// See [`crate::Sandbox::upload_dir`].
    async fn upload_dir(&self, local: &Path, path: &SandboxPath) -> Result<TreeReport>;
    /// See [`crate::Sandbox::download_dir`].
    async fn download_dir(&self, path: &SandboxPath, local: &Path) -> Result<TreeReport>;
}

/// Sandboxes whose lifetime can be moved, and that may be able to pause.
#[async_trait]
pub trait Lease: Send + Sync {
    /// When the sandbox ends unless renewed; `None` for never.
    async fn expires_at(&self) -> Result<Option<SystemTime>>;
    /// Sets the remaining lifetime, counted from now.
    async fn renew(&self, lifetime: Duration) -> Result<()>;
    /// Freezes the sandbox: commands are refused with [`crate::ErrorKind::SandboxPaused`].
    async fn pause(&self) -> Result<()>;
    /// Ends a pause.
    async fn resume(&self) -> Result<()>;
}

/// The backend's own name of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct SnapshotId(pub String);

/// Snapshots of a sandbox's files.
#[async_trait]
pub trait Snapshots: Send + Sync {
    /// Keeps the files as they are now, until the sandbox dies.
    async fn snapshot(&self) -> Result<SnapshotId>;
    /// Puts the files back as they were.
    async fn restore(&self, id: &SnapshotId) -> Result<()>;
}
