//! The one error type of every backend and operation.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

/// `Result` with [`struct@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, for programs. Match with a wildcard arm: kinds may be added.
///
/// Each kind says what it means, then what to do; `docs/errors.md` is made from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such file or directory in the sandbox.
    ///
    /// Look with `ls` or `glob`; a missing cwd or user of a command is this kind too.
    NotFound,
    /// The sandbox's user may not do this.
    ///
    /// Run as another user ([`crate::SandboxSpec::user`]), or use a path that user may write.
    PermissionDenied,
    /// A file was needed, a directory is there.
    ///
    /// Name a file in it, or use `ls`, `upload_dir` or `download_dir`.
    IsADirectory,
    /// A directory was needed, something else is there.
    ///
    /// Name the directory, or use `read` for the file.
    NotADirectory,
    /// The path can't be used: relative, empty, with NUL or `..`.
    ///
    /// Give an absolute path, as `/workspace/a.txt`.
    InvalidPath,
    /// The file exists and the call asked for a new one.
    ///
    /// Use `write` to replace it, or choose another name.
    AlreadyExists,
    /// An argument other than a path can't be used.
    ///
    /// The message says which, and what it takes.
    InvalidArgument,
    /// A glob pattern can't be used.
    ///
    /// The message says what is wrong; a literal `*`, `?` or `{` stands in brackets, as in `a[*]b`.
    InvalidPattern,
    /// The backend does not have this capability.
    ///
    /// Ask [`crate::Sandbox::capabilities`] first, or choose a backend that has it.
    Unsupported,
    /// The text to replace is not in the file.
    ///
    /// Read the file again: it must stand there to the byte, spaces included.
    NoMatch,
    /// The text to replace is in the file more than once.
    ///
    /// Take more of the surrounding text, or replace all.
    NotUnique,
    /// Someone else changed the file meanwhile; nothing was written.
    ///
    /// Read again and repeat.
    Conflict,
    /// Larger than the limit the call has.
    ///
    /// Take it in parts, or use the streaming call (`download_to`, `upload_from`).
    TooLarge,
    /// The file holds no text where text was asked for.
    ///
    /// Use `download` for the bytes.
    NotText,
    /// The read begins after the last line.
    ///
    /// Begin before the end; the message has the number of lines.
    OffsetPastEnd,
    /// A resource limit of the sandbox was hit: memory, disk, processes.
    ///
    /// Ask for less, or give the sandbox more in its [`crate::SandboxSpec`].
    LimitExceeded,
    /// There is no such sandbox (any more).
    ///
    /// Make a new one; its lifetime may have ended, or someone killed it.
    SandboxGone,
    /// The sandbox is paused.
    ///
    /// Call `resume`.
    SandboxPaused,
    /// The backend did not answer in time.
    ///
    /// Give it more time, or look at why the backend is slow.
    Timeout,
    /// The backend can't be reached.
    ///
    /// Check that it runs and that the URL is right.
    Unavailable,
    /// Credentials are missing or wrong.
    ///
    /// Set the backend's key, or correct it.
    Unauthorized,
    /// The backend asks to send less.
    ///
    /// Wait, then repeat.
    RateLimited,
    /// The image that the sandbox should be made from is not there.
    ///
    /// Pull or build it, or name another.
    ImageNotFound,
    /// A program that the operation needs is not in the image.
    ///
    /// Take an image that has the tool; the message names it.
    MissingTool,
    /// The backend answered something that its protocol does not allow.
    ///
    /// Report it, with the error's source: the backend or this library is wrong.
    Protocol,
    /// A command ended otherwise than with exit code 0 ([`crate::ExecuteResponse::into_result`]).
    ///
    /// Read the status and the output that it printed.
    CommandFailed,
    /// The configuration or the backend URL can't be used.
    ///
    /// The message says what is wrong and what there is.
    Config,
    /// A failure that no other kind names.
    ///
    /// Read the source of the error; report it if it should have a kind of its own.
    Unexpected,
}

impl ErrorKind {
    /// The kind in `snake_case`, stable across releases: for logs, reports and bindings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::PermissionDenied => "permission_denied",
            Self::IsADirectory => "is_a_directory",
            Self::NotADirectory => "not_a_directory",
            Self::InvalidPath => "invalid_path",
            Self::AlreadyExists => "already_exists",
            Self::InvalidArgument => "invalid_argument",
            Self::InvalidPattern => "invalid_pattern",
            Self::Unsupported => "unsupported",
            Self::NoMatch => "no_match",
            Self::NotUnique => "not_unique",
            Self::Conflict => "conflict",
            Self::TooLarge => "too_large",
            Self::NotText => "not_text",
            Self::OffsetPastEnd => "offset_past_end",
            Self::LimitExceeded => "limit_exceeded",
            Self::SandboxGone => "sandbox_gone",
            Self::SandboxPaused => "sandbox_paused",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Unauthorized => "unauthorized",
            Self::RateLimited => "rate_limited",
            Self::ImageNotFound => "image_not_found",
            Self::MissingTool => "missing_tool",
            Self::Protocol => "protocol",
            Self::CommandFailed => "command_failed",
            Self::Config => "config",
            Self::Unexpected => "unexpected",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether the call that failed may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The answer will not change.
    Never,
    /// The call is known to have had no effect.
    Safe,
    /// The call may have had its effect: only what is idempotent may be repeated.
    Unsure,
}

/// The operation of [`crate::Sandbox`] or [`crate::Client`] that an error or a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is the method of the same name")]
pub enum Operation {
    Create,
    Connect,
    List,
    GetOrCreate,
    Kill,
    Detach,
    Gc,
    Execute,
    Stream,
    Spawn,
    UploadFiles,
    DownloadFiles,
    UploadDir,
    DownloadDir,
    UploadFrom,
    DownloadTo,
    Ls,
    Read,
    Write,
    Edit,
    Glob,
    Grep,
    Delete,
    ProcessStatus,
    ProcessLogs,
    ProcessWait,
    ProcessKill,
    Renew,
    Pause,
    Resume,
    Snapshot,
    Restore,
}

impl Operation {
    /// The name of the method.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Connect => "connect",
            Self::List => "list",
            Self::GetOrCreate => "get_or_create",
            Self::Kill => "kill",
            Self::Detach => "detach",
            Self::Gc => "gc",
            Self::Execute => "execute",
            Self::Stream => "stream",
            Self::Spawn => "spawn",
            Self::UploadFiles => "upload_files",
            Self::DownloadFiles => "download_files",
            Self::UploadDir => "upload_dir",
            Self::DownloadDir => "download_dir",
            Self::UploadFrom => "upload_from",
            Self::DownloadTo => "download_to",
            Self::Ls => "ls",
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Glob => "glob",
            Self::Grep => "grep",
            Self::Delete => "delete",
            Self::ProcessStatus => "process_status",
            Self::ProcessLogs => "process_logs",
            Self::ProcessWait => "process_wait",
            Self::ProcessKill => "process_kill",
            Self::Renew => "renew",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Snapshot => "snapshot",
            Self::Restore => "restore",
        }
    }

    /// Whether doing it twice leaves what doing it once leaves.
    pub fn is_idempotent(self) -> bool {
        !matches!(
            self,
            Self::Create
                | Self::GetOrCreate
                | Self::Execute
                | Self::Stream
                | Self::Spawn
                | Self::Edit
                | Self::Snapshot
        )
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What went wrong: a [kind](ErrorKind) for programs, one line for people, the cause in
/// [`source`](StdError::source). Boxed, so that a `Result` stays small.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    operation: Option<Operation>,
    message: Cow<'static, str>,
    context: Vec<(&'static str, String)>,
    source: Option<Box<dyn StdError + Send + Sync>>,
    retry: Retry,
}

impl Error {
    /// An error with a message in lower case, without a final dot, that says what to do where
    /// something can be done. Never put a secret in it.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        let retry = match kind {
            ErrorKind::Timeout | ErrorKind::Unavailable | ErrorKind::Protocol => Retry::Unsure,
            ErrorKind::RateLimited | ErrorKind::Conflict | ErrorKind::SandboxPaused => Retry::Safe,
            _ => Retry::Never,
        };
        Self(Box::new(Inner {
            kind,
            operation: None,
            message: message.into(),
            context: Vec::new(),
            source: None,
            retry,
        }))
    }

    /// [`ErrorKind::Unsupported`], naming what the backend lacks.
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::Unsupported,
            format!("this backend does not support {what}"),
        )
    }

    /// Adds a fact for people, as `key="value"`. A key that is there already keeps its value.
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        if !self.0.context.iter().any(|(k, _)| *k == key) {
            self.0.context.push((key, value.to_string()));
        }
        self
    }

    /// Names the operation, unless one is named already: the innermost wins.
    pub fn at(mut self, operation: Operation) -> Self {
        self.0.operation.get_or_insert(operation);
        self
    }

    /// Sets the cause.
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Overrides the retry advice that follows from the kind.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    /// What went wrong, for programs.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed, once known.
    pub fn operation(&self) -> Option<Operation> {
        self.0.operation
    }

    /// The message without operation and context.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// A fact added by [`with`](Self::with).
    pub fn context(&self, key: &str) -> Option<&str> {
        self.0
            .context
            .iter()
            .find(|(k, _)| *k == key)
            .map(|(_, v)| v.as_str())
    }

    /// All facts added by [`with`](Self::with), in that order.
    pub fn facts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.context.iter().map(|(k, v)| (*k, v.as_str()))
    }

    /// Whether the call may be sent again.
    pub fn retry_advice(&self) -> Retry {
        self.0.retry
    }

    /// True when repeating `operation` can't do anything twice.
    pub fn may_retry(&self, operation: Operation) -> bool {
        match self.0.retry {
            Retry::Never => false,
            Retry::Safe => true,
            Retry::Unsure => operation.is_idempotent(),
        }
    }
}

/// One line, without the source: reporters walk [`source`](StdError::source) themselves.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.0.operation {
            write!(f, "{operation}: ")?;
        }
        f.write_str(&self.0.message)?;
        for (i, (key, value)) in self.0.context.iter().enumerate() {
            write!(f, "{}{key}={value:?}", if i == 0 { " (" } else { ", " })?;
        }
        f.write_str(if self.0.context.is_empty() { "" } else { ")" })
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self}", self.0.kind)?;
        if let Some(source) = &self.0.source {
            write!(f, ": {source:?}")?;
        }
        f.write_str(")")
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|s| s as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_pointer_and_one_line() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        let e = Error::new(ErrorKind::NotFound, "no such file")
            .with("path", "/a\nb")
            .at(Operation::Read);
        assert_eq!(
            e.at(Operation::Ls).to_string(),
            r#"read: no such file (path="/a\nb")"#
        );
    }

    #[test]
    fn what_may_have_run_is_not_repeated() {
        let lost = Error::new(ErrorKind::Unavailable, "connection lost");
        assert!(!lost.may_retry(Operation::Execute));
        assert!(lost.may_retry(Operation::Ls));
        assert!(lost.retry(Retry::Safe).may_retry(Operation::Execute));
    }
}
