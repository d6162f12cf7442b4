//! What a tool reads from and writes to: operands, standard streams, files.
//!
//! A tool is a function over [`Io`]. Bytes pass through unchanged, output is
//! handed on in pieces, and every piece is a point where a deadline can stop
//! the tool. Whatever a tool keeps in memory it keeps through [`Io::hold`], so
//! that it counts against the command's memory budget.

use std::collections::HashMap;
use std::fmt::Display;
use std::future::Future;
use std::io::ErrorKind;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use bashkit::{
    BuiltinContext, CommandContext, CommandInput, CommandOutput, CommandStatus, Error, ExecResult,
    ExecutionBudget, ExecutionBudgetLease, FileSystem,
};
use bytes::Bytes;

use crate::vfs::{Cred, FileKind, FsError, FsResult, How, Last, Stat, Vfs, View};

/// Bytes moved at a time.
pub(super) const CHUNK: usize = 32 * 1024;

/// The most a tool prints that hands its output on at its end. Under what the engine holds of one
/// command.
const GATHERED: usize = 40 << 20;

/// The most that is made of what has no end: some readers, the engine's own among them, keep all
/// of it before they begin.
pub(super) const ENDLESS: usize = 8 << 20;

/// The most it complains.
const COMPLAINTS: usize = 1 << 20;

static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// The most one tool keeps in memory; beyond it the tool ends with
/// "Cannot allocate memory". Under the engine's own limit, which ends the
/// whole command.
pub(super) const MEMORY: usize = 32 << 20;

/// What a tool says when it would keep more than [`MEMORY`].
pub(super) const NO_MEMORY: &str = "Cannot allocate memory";

/// Why a tool ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// With this status; what there was to say has been said.
    Exit(i32),
    /// The command as a whole is at its end: cancelled, or over a limit.
    Engine(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// The result of a step of a tool.
pub(super) type Run<T = ()> = Result<T, Stop>;

/// A tool: reads its operands from [`Io`], gives its exit status.
pub(super) type Entry =
    for<'a> fn(&'a mut Io) -> Pin<Box<dyn Future<Output = Run<i32>> + Send + 'a>>;

/// Makes a [`Tool`] of an async function over [`Io`].
macro_rules! tool {
    ($run:path) => {
        |io| Box::pin($run(io))
    };
}
pub(super) use tool;

/// An [`Entry`] as a command of the engine, on the files as one user sees them.
///
/// Its input is there before it begins, and its output is handed on when it has
/// ended. A live command would be given the pipe of a loop around it (`… | while
/// read f; do wc -l "$f"; done`), and the loop would end after its first turn.
pub(super) struct Tool {
    pub(super) entry: Entry,
    pub(super) name: &'static str,
    pub(super) view: Arc<View>,
}

#[async_trait::async_trait]
impl bashkit::Builtin for Tool {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let mut io = Io {
            name: self.name.to_owned(),
            args: ctx.args.to_vec(),
            env: ctx.env.clone(),
            cwd: ctx.cwd.to_string_lossy().into_owned(),
            view: Arc::clone(&self.view),
            fs: Arc::clone(&ctx.fs),
            stdin: Input::Whole(Bytes::copy_from_slice(
                ctx.stdin_bytes().unwrap_or_default(),
            )),
            output: Output::Gathered(Vec::new(), Vec::new()),
            budget: ctx.execution_budget(),
            held: Vec::new(),
            held_bytes: 0,
            pending: Vec::new(),
            status: 0,
        };
        let exit_code = io.run(self.entry).await?;
        let (stdout, stderr) = match io.output {
            Output::Gathered(stdout, stderr) => (stdout, stderr),
            Output::Live(..) => (Vec::new(), Vec::new()),
        };
        Ok(ExecResult {
            stdout: stdout.into(),
            stderr: stderr.into(),
            exit_code,
            ..ExecResult::default()
        })
    }
}

/// An [`Entry`] whose input and output go on as they come.
pub(super) struct Live {
    pub(super) entry: Entry,
    pub(super) view: Arc<View>,
}

#[async_trait::async_trait]
impl bashkit::Command for Live {
    async fn execute(&self, ctx: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let mut io = Io {
            name: ctx.name.to_owned(),
            args: ctx.args.to_vec(),
            env: ctx.env.clone(),
            cwd: ctx.cwd.to_string_lossy().into_owned(),
            view: Arc::clone(&self.view),
            fs: Arc::clone(&ctx.fs),
            stdin: Input::Live(ctx.stdin.clone()),
            output: Output::Live(ctx.stdout.clone(), ctx.stderr.clone()),
            budget: ctx.execution_extension::<ExecutionBudget>(),
            held: Vec::new(),
            held_bytes: 0,
            pending: Vec::new(),
            status: 0,
        };
        Ok(CommandStatus::with_code(io.run(self.entry).await?))
    }
}

/// Standard input: there, or still coming.
#[derive(Clone)]
enum Input {
    Whole(Bytes),
    Live(CommandInput),
}

impl Input {
    fn source(&self) -> Source {
        match self {
            Self::Whole(bytes) => Source::bytes(bytes.clone()),
            Self::Live(input) => Source::Stdin(input.clone()),
        }
    }
}

/// Standard output and error.
enum Output {
    Gathered(Vec<u8>, Vec<u8>),
    Live(CommandOutput, CommandOutput),
}

/// One run of a tool.
pub(super) struct Io {
    /// The name it was called by.
    pub(super) name: String,
    /// Its arguments, without the name.
    pub(super) args: Vec<String>,
    /// The exported environment.
    pub(super) env: HashMap<String, String>,
    /// The working directory.
    pub(super) cwd: String,
    /// The files, with the user's rights.
    pub(super) view: Arc<View>,
    /// The files as the engine sees them: the only way to `<(list)`.
    fs: Arc<dyn FileSystem>,
    stdin: Input,
    output: Output,
    budget: Option<bashkit::ExecutionCapability<ExecutionBudget>>,
    held: Vec<ExecutionBudgetLease>,
    held_bytes: usize,
    pending: Vec<u8>,
    status: i32,
}

impl Io {
    /// Runs a tool to its end; gives its status.
    async fn run(&mut self, entry: Entry) -> bashkit::Result<i32> {
        let ended = match entry(self).await {
            Ok(status) => self.flush().await.map(|()| status.max(self.status)),
            Err(Stop::Exit(status)) => match self.flush().await {
                Err(Stop::Engine(error)) => Err(Stop::Engine(error)),
                _ => Ok(status),
            },
            stop => stop,
        };
        match ended {
            Ok(status) | Err(Stop::Exit(status)) => Ok(status),
            Err(Stop::Engine(error)) => Err(error),
        }
    }

    /// `operand` as an absolute path. `..` is left to the file system, which
    /// goes up from where links lead.
    pub(super) fn path(&self, operand: &str) -> String {
        absolute(&self.cwd, operand)
    }

    /// The files without the rights: every call names [`cred`](Self::cred).
    pub(super) fn vfs(&self) -> &Vfs {
        self.view.vfs()
    }

    /// Whose rights the tool has.
    pub(super) fn cred(&self) -> Cred {
        self.view.cred()
    }

    /// What is at an operand.
    pub(super) fn stat(&self, operand: &str, last: Last) -> FsResult<Stat> {
        if operand.is_empty() {
            return Err(FsError::NotFound);
        }
        self.vfs().stat(&self.path(operand), self.cred(), last)
    }

    /// An operand as a path without links, as far as it exists.
    pub(super) fn real(&self, operand: &str) -> String {
        real_path(self.vfs(), self.cred(), &self.path(operand))
    }

    /// Writes a file whole.
    pub(super) fn write_file(&self, operand: &str, content: Bytes, how: How) -> FsResult<()> {
        if operand.is_empty() {
            return Err(FsError::NotFound);
        }
        let mode = 0o666 & !self.view.umask();
        self.vfs()
            .write(&self.path(operand), self.cred(), content, how, mode)
    }

    /// Writes to standard output.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Run {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= CHUNK {
            self.flush().await?;
        }
        Ok(())
    }

    /// Hands on what [`write`](Self::write) has gathered. A reader that is gone
    /// ends the tool as SIGPIPE would.
    pub(super) async fn flush(&mut self) -> Run {
        if self.pending.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.pending);
        tokio::task::yield_now().await;
        let written = match &mut self.output {
            Output::Live(stdout, _) => stdout.write_all(&bytes).await,
            Output::Gathered(stdout, _) => gather(stdout, &bytes),
        };
        self.written(written).await
    }

    /// Writes bytes to standard error, after what stands on standard output.
    pub(super) async fn write_error(&mut self, bytes: &[u8]) -> Run {
        self.flush().await?;
        let written = match &mut self.output {
            Output::Live(_, stderr) => stderr.write_all(bytes).await,
            Output::Gathered(_, stderr) => gather(stderr, bytes),
        };
        self.written(written).await
    }

    /// What a failed write to a standard stream means.
    async fn written(&mut self, written: bashkit::Result<()>) -> Run {
        match written {
            Ok(()) => Ok(()),
            Err(Error::Io(e)) if e.kind() == ErrorKind::BrokenPipe => Err(Stop::Exit(141)),
            Err(error @ Error::Io(_)) => {
                let why = format!("{}: write error: {}\n", self.name, reason(&error));
                self.report(&why).await?;
                Err(Stop::Exit(1))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A turn for others, and the end where the command is at its own.
    pub(super) async fn turn(&mut self) -> Run {
        tokio::task::yield_now().await;
        if let Some(budget) = &self.budget {
            let alive = budget
                .try_with(ExecutionBudget::check)
                .map_err(|_| Error::Cancelled)?;
            alive.map_err(Error::from)?;
        }
        Ok(())
    }

    /// Writes to standard error as it is, after what stands on standard output.
    pub(super) async fn report(&mut self, text: &str) -> Run {
        let written = match &mut self.output {
            Output::Live(_, stderr) => stderr.write_all(text.as_bytes()).await,
            Output::Gathered(_, stderr) => {
                // Nobody reads a million complaints.
                if stderr.len() < COMPLAINTS {
                    stderr.extend_from_slice(text.as_bytes());
                }
                Ok(())
            }
        };
        match written {
            // Nobody reads the complaint: not a reason to stop.
            Ok(()) | Err(Error::Io(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// `name: message` on standard error; the tool's status will be at least 1.
    pub(super) async fn complain(&mut self, message: impl Display) -> Run {
        self.complain_with(message, 1).await
    }

    /// [`complain`](Self::complain) with another status.
    pub(super) async fn complain_with(&mut self, message: impl Display, status: i32) -> Run {
        self.flush().await?;
        self.status = self.status.max(status);
        let text = format!("{}: {message}\n", self.name);
        self.report(&text).await
    }

    /// Whether something was complained about.
    pub(super) fn failed(&self) -> bool {
        self.status > 0
    }

    /// The tool's status will be at least 1; nothing is said.
    pub(super) fn fail_silently(&mut self) {
        self.status = self.status.max(1);
    }

    /// `name: message` on standard error, and the tool ends with `status`.
    pub(super) async fn fail<T>(&mut self, message: impl Display, status: i32) -> Run<T> {
        self.complain_with(message, status).await?;
        Err(Stop::Exit(status))
    }

    /// Counts `bytes` of memory kept until the tool ends.
    pub(super) async fn hold(&mut self, bytes: usize) -> Run {
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        if self.held_bytes > MEMORY {
            return self.fail(NO_MEMORY, 1).await;
        }
        let lease = match &self.budget {
            Some(budget) => budget
                .try_with(|b| b.lease_bytes(bytes))
                .map_err(|_| Error::Cancelled)?,
            None => return Ok(()),
        };
        self.held.push(lease.map_err(Error::from)?);
        Ok(())
    }

    /// Gives back everything held so far.
    pub(super) fn release(&mut self) {
        self.held.clear();
        self.held_bytes = 0;
    }

    /// Opens an operand to read: `-` is standard input, devices are streams.
    /// The error is the reason in the system's words.
    pub(super) async fn open(&mut self, operand: &str) -> Run<Result<Source, String>> {
        if operand == "-" {
            return Ok(Ok(self.stdin.source()));
        }
        self.open_path(operand).await
    }

    /// Opens a file to read; `-` is a name like any other.
    pub(super) async fn open_path(&mut self, operand: &str) -> Run<Result<Source, String>> {
        let path = self.path(operand);
        if let Some(fd) = descriptor(&path) {
            return match fd {
                "0" => Ok(Ok(self.stdin.source())),
                _ => match self.fs.read_file(Path::new(&path)).await {
                    Ok(bytes) => Ok(Ok(Source::bytes(bytes))),
                    Err(error @ (Error::ResourceLimit(_) | Error::Cancelled)) => Err(error.into()),
                    Err(error) => Ok(Err(reason(&error))),
                },
            };
        }
        let stat = match self.stat(operand, Last::Follow) {
            Ok(stat) => stat,
            Err(error) => return Ok(Err(error.strerror().to_owned())),
        };
        if stat.kind == FileKind::Device {
            match base_name(&real_path(self.vfs(), self.cred(), &path)) {
                "zero" | "full" => return Ok(Ok(Source::Zero)),
                "random" | "urandom" => return Ok(Ok(Source::Random(Arc::clone(&self.view)))),
                _ => {}
            }
        }
        match self.vfs().read(&path, self.cred()) {
            Ok(bytes) => Ok(Ok(Source::bytes(bytes))),
            Err(error) => Ok(Err(error.strerror().to_owned())),
        }
    }

    /// The whole of an operand.
    pub(super) async fn slurp(&mut self, operand: &str) -> Run<Result<Bytes, String>> {
        match self.open(operand).await? {
            Ok(source) => Ok(Ok(self.drain(source).await?)),
            Err(why) => Ok(Err(why)),
        }
    }

    /// The whole of a source.
    pub(super) async fn drain(&mut self, mut source: Source) -> Run<Bytes> {
        if let Source::Bytes { data, at: 0 } = source {
            return Ok(data);
        }
        let mut all = Vec::new();
        while let Some(chunk) = source.next().await? {
            self.hold(chunk.len()).await?;
            all.extend_from_slice(&chunk);
        }
        Ok(all.into())
    }
}

/// Where a tool reads bytes from.
pub(super) enum Source {
    /// `/dev/zero`.
    Zero,
    /// `/dev/urandom`.
    Random(Arc<View>),
    /// A file's content.
    Bytes {
        /// All of it, shared with the file.
        data: Bytes,
        /// How much of it has been handed out.
        at: usize,
    },
    /// Standard input.
    Stdin(CommandInput),
}

impl Source {
    pub(super) fn bytes(data: impl Into<Bytes>) -> Self {
        Self::Bytes {
            data: data.into(),
            at: 0,
        }
    }

    /// Whether it is a device that never ends.
    pub(super) fn is_endless(&self) -> bool {
        matches!(self, Self::Zero | Self::Random(_))
    }

    /// The next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> Run<Option<Bytes>> {
        tokio::task::yield_now().await;
        Ok(match self {
            Self::Zero => Some(Bytes::from_static(&ZEROS)),
            Self::Random(view) => Some(view.vfs().random(CHUNK).into()),
            Self::Bytes { data, at } => {
                let end = (*at + CHUNK).min(data.len());
                let piece = data.slice(*at..end);
                *at = end;
                (!piece.is_empty()).then_some(piece)
            }
            Self::Stdin(input) => input.read_chunk().await?.map(Bytes::from),
        })
    }
}

/// Records of a source, each with the delimiter that ends it.
pub(super) struct Records {
    source: Source,
    delimiter: u8,
    buffer: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Records {
    pub(super) fn new(source: Source, delimiter: u8) -> Self {
        Self {
            source,
            delimiter,
            buffer: Vec::new(),
            at: 0,
            ended: false,
        }
    }

    /// The next record; `None` at the end. The last one may lack its delimiter.
    pub(super) async fn next(&mut self, io: &mut Io) -> Run<Option<Vec<u8>>> {
        let mut searched = self.at;
        loop {
            if let Some(found) = memchr::memchr(self.delimiter, &self.buffer[searched..]) {
                let end = searched + found + 1;
                let record = self.buffer[self.at..end].to_vec();
                self.at = end;
                return Ok(Some(record));
            }
            if self.ended {
                let record = self.buffer.split_off(self.at);
                self.buffer.clear();
                self.at = 0;
                return Ok((!record.is_empty()).then_some(record));
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            searched = self.buffer.len();
            match self.source.next().await? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => self.ended = true,
            }
            if self.buffer.len() > MEMORY {
                return io.fail(NO_MEMORY, 1).await;
            }
        }
    }
}

/// `operand` seen from `cwd`.
pub(super) fn absolute(cwd: &str, operand: &str) -> String {
    if operand.starts_with('/') {
        operand.to_owned()
    } else {
        format!("{}/{operand}", cwd.trim_end_matches('/'))
    }
}

/// Keeps output until the tool ends.
fn gather(stream: &mut Vec<u8>, bytes: &[u8]) -> bashkit::Result<()> {
    if stream.len() + bytes.len() > GATHERED {
        return Err(std::io::Error::new(ErrorKind::OutOfMemory, NO_MEMORY).into());
    }
    stream.extend_from_slice(bytes);
    Ok(())
}

/// The number in `/dev/fd/N` and its other spellings.
pub(super) fn descriptor(path: &str) -> Option<&str> {
    match path {
        "/dev/stdin" => Some("0"),
        "/dev/stdout" => Some("1"),
        "/dev/stderr" => Some("2"),
        _ => path
            .strip_prefix("/dev/fd/")
            .or_else(|| path.strip_prefix("/proc/self/fd/")),
    }
}

/// `path` with all links followed as far as it exists; what is left is kept.
pub(super) fn real_path(vfs: &Vfs, cred: Cred, path: &str) -> String {
    let mut pending: Vec<String> = components(path);
    let mut done: Vec<String> = Vec::new();
    let mut hops = 0;
    while let Some(name) = pending.pop() {
        if name == ".." {
            done.pop();
            continue;
        }
        done.push(name);
        let here = format!("/{}", done.join("/"));
        if hops < 40
            && let Ok(target) = vfs.read_link(&here, cred)
        {
            hops += 1;
            done.pop();
            if target.starts_with('/') {
                done.clear();
            }
            pending.extend(components(&target));
        }
    }
    format!("/{}", done.join("/"))
}

/// The components of a path, last first.
fn components(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|c| !c.is_empty() && *c != ".")
        .rev()
        .map(str::to_owned)
        .collect()
}

/// The system's words for an error of the engine's file system.
fn reason(error: &Error) -> String {
    let Error::Io(io) = error else {
        return error.to_string();
    };
    match io.kind() {
        ErrorKind::NotFound => "No such file or directory".to_owned(),
        ErrorKind::PermissionDenied => "Permission denied".to_owned(),
        _ => io.to_string(),
    }
}

/// The last component of a path; `/` for the root.
pub(super) fn base_name(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return if path.is_empty() { "" } else { "/" };
    }
    trimmed.rsplit('/').next().unwrap_or(trimmed)
}

/// A path without its last component, as `dirname` gives it.
pub(super) fn parent(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    match trimmed.rfind('/') {
        None if path.starts_with('/') => "/",
        None => ".",
        Some(0) => "/",
        Some(at) => trimmed[..at].trim_end_matches('/'),
    }
}
