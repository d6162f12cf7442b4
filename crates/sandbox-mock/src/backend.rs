//! A sandbox as core calls it.

use std::sync::Arc;

use sandbox_core::{
    Bytes, Capabilities, Command, Error, ExecuteResponse, FileDownload, FileUpload, KillTicket,
    Lease, NativeFiles, Operation, Processes, Program, Result, SandboxBackend, SandboxId,
    Snapshots, Status, Streaming, async_trait, call,
};

use crate::error;
use crate::faults::Verdict;
use crate::machine::Machine;
use crate::record::{Active, Control, Outcome};
use crate::shell::{Run, Sink, StopOnDrop, Why};
use crate::vfs::{Cred, FileKind, FsError, How, Last, Vfs};

/// Why the script of faults lost something.
pub(crate) const LOST: &str = "the script of faults says so";

/// A handle on a sandbox of this process.
#[derive(Clone, Debug)]
pub(crate) struct MockSandbox {
    pub(crate) machine: Arc<Machine>,
    pub(crate) control: Arc<Control>,
    pub(crate) hide_families: bool,
}

#[async_trait]
impl SandboxBackend for MockSandbox {
    fn id(&self) -> &SandboxId {
        &self.machine.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(|c| {
            c.execute_argv = true;
            c.execute_cwd = true;
            c.execute_env = true;
            c.execute_user = true;
            c.execute_stdin = true;
            c.execute_merge_stderr = true;
            c.separate_streams = true;
            c.output_order = true;
            c.reports_signals = true;
            c.file_owners = true;
            c.hard_links = true;
            c.fifos = true;
        })
    }

    async fn execute(&self, command: &Command) -> Result<ExecuteResponse> {
        let mut call = self.begin(Operation::Execute, &summary(command)).await?;
        let limit = command.effective_output_limit();
        let sink = Sink::collect(limit, command.merge_stderr, call.verdict.cut);
        let run = self.start(command, sink, call.verdict).inspect_err(|e| {
            call.end(Outcome::Failed(e.kind()));
        })?;
        let guard = StopOnDrop(run.clone());
        let mut ended = run.wait().await;
        drop(guard);
        if call.verdict.cut.is_some() {
            ended.status = Status::Lost(LOST.to_owned());
        }
        call.end(Outcome::Ended(ended.status.clone()));
        let mut response = run.sink.finish(ended.status, run.started.elapsed());
        response.sandbox_killed = ended.sandbox_killed;
        Ok(response)
    }

    async fn upload_files(&self, files: &[FileUpload]) -> Vec<Result<()>> {
        let paths = paths(files.iter().map(|f| f.path.as_str()));
        self.each(Operation::UploadFiles, &paths, files, |f| self.upload(f))
            .await
    }

    async fn download_files(&self, files: &[FileDownload]) -> Vec<Result<Bytes>> {
        let paths = paths(files.iter().map(|f| f.path.as_str()));
        self.each(Operation::DownloadFiles, &paths, files, |f| {
            self.download(f)
        })
        .await
    }

    async fn kill(&self) -> Result<()> {
        let mut call = self.begin(Operation::Kill, "").await?;
        self.machine.kill("the sandbox was killed");
        call.end(Outcome::Done);
        Ok(())
    }

    fn kill_ticket(&self) -> Option<KillTicket> {
        let machine = self.machine.clone();
        Some(KillTicket::new(machine.id.clone(), move || async move {
            machine.kill("the sandbox was dropped");
            Ok(())
        }))
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        (!self.hide_families).then_some(self)
    }

    fn processes(&self) -> Option<&dyn Processes> {
        (!self.hide_families).then_some(self)
    }

    fn native_files(&self) -> Option<&dyn NativeFiles> {
        (!self.hide_families).then_some(self)
    }

    fn lease(&self) -> Option<&dyn Lease> {
        (!self.hide_families).then_some(self)
    }

    fn snapshots(&self) -> Option<&dyn Snapshots> {
        (!self.hide_families).then_some(self)
    }
}

impl MockSandbox {
    /// Begins a call: see [`Control::begin`].
    pub(crate) async fn begin(&self, operation: Operation, summary: &str) -> Result<Active> {
        let id = Some(&self.machine.id);
        self.control.begin(operation, id, summary).await
    }

    /// A call that needs a living sandbox: see [`Control::around`].
    pub(crate) async fn around<T>(
        &self,
        operation: Operation,
        summary: &str,
        call: impl AsyncFnOnce(Verdict) -> Result<T>,
    ) -> Result<T> {
        let id = Some(&self.machine.id);
        self.control
            .around(operation, id, summary, async |verdict| {
                if verdict.lose {
                    self.machine.kill(LOST);
                }
                self.machine.check_alive()?;
                call(verdict).await
            })
            .await
    }

    /// Starts a command; if the script says so, its sandbox dies at once.
    pub(crate) fn start(
        &self,
        command: &Command,
        sink: Sink,
        verdict: Verdict,
    ) -> Result<Arc<Run>> {
        let run = self.machine.start(command, sink)?;
        if verdict.lose {
            self.machine.kill(LOST);
            run.end(Why::Killed(LOST));
        }
        Ok(run)
    }

    /// One call for many files.
    async fn each<F, T>(
        &self,
        operation: Operation,
        paths: &str,
        files: &[F],
        one: impl Fn(&F) -> Result<T>,
    ) -> Vec<Result<T>> {
        let mut call = match self.begin(operation, paths).await {
            Ok(call) => call,
            Err(e) => {
                let same = || Error::new(e.kind(), e.message().to_owned());
                return files.iter().map(|_| Err(same())).collect();
            }
        };
        if call.verdict.lose {
            self.machine.kill(LOST);
        }
        let results: Vec<Result<T>> = files
            .iter()
            .map(|file| self.machine.check_alive().and_then(|()| one(file)))
            .collect();
        let failed = results.iter().find_map(|r| r.as_ref().err());
        call.end(failed.map_or(Outcome::Done, |e| Outcome::Failed(e.kind())));
        results
    }

    fn upload(&self, file: &FileUpload) -> Result<()> {
        let (vfs, cred) = (&self.machine.vfs, self.machine.account.cred);
        let path = file.path.as_str();
        vfs.mkdir_parents(path, cred, 0o755)?;
        writable_kind(vfs, path, cred)?;
        Ok(vfs.write(path, cred, file.content.clone(), How::Truncate, 0o644)?)
    }

    fn download(&self, file: &FileDownload) -> Result<Bytes> {
        let (vfs, cred) = (&self.machine.vfs, self.machine.account.cred);
        let path = file.path.as_str();
        let stat = vfs.stat(path, cred, Last::Follow)?;
        readable_kind(stat.kind)?;
        if stat.size > file.limit && stat.kind == FileKind::File {
            return Err(call::too_large(stat.size, file.limit));
        }
        Ok(vfs.read(path, cred)?)
    }
}

/// Whether a file may be written there, as far as what is there has a say.
pub(crate) fn writable_kind(vfs: &Vfs, path: &str, cred: Cred) -> Result<()> {
    match vfs.stat(path, cred, Last::Follow) {
        Ok(stat) if matches!(stat.kind, FileKind::Fifo | FileKind::Device) => {
            Err(error::not_regular())
        }
        _ => Ok(()),
    }
}

/// What a thing is comes before whether it may be read.
pub(crate) fn readable_kind(kind: FileKind) -> Result<()> {
    match kind {
        FileKind::Dir => Err(FsError::IsADirectory.into()),
        FileKind::Fifo | FileKind::Device => Err(error::not_regular()),
        FileKind::File | FileKind::Symlink => Ok(()),
    }
}

/// A command for the record.
pub(crate) fn summary(command: &Command) -> String {
    match &command.program {
        Program::Shell(text) => text.clone(),
        Program::Argv(argv) => sandbox_core::shell::join(argv),
        _ => String::new(),
    }
}

fn paths<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    paths.take(10).collect::<Vec<_>>().join(" ")
}
