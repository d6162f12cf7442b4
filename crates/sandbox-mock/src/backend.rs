//! A sandbox as core calls it.

use std::sync::Arc;

use sandbox_core::{
    Bytes, Capabilities, Command, Error, ErrorKind, ExecuteResponse, FileDownload, FileUpload,
    KillTicket, Result, SandboxBackend, SandboxId, Status, async_trait, call,
};

use crate::machine::Machine;
use crate::shell::{Sink, StopOnDrop};
use crate::vfs::{FileKind, How, Last};

/// A handle on a sandbox of this process.
#[derive(Clone, Debug)]
pub(crate) struct MockSandbox {
    pub(crate) machine: Arc<Machine>,
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
        })
    }

    async fn execute(&self, command: &Command) -> Result<ExecuteResponse> {
        let sink = Sink::collect(command.effective_output_limit(), command.merge_stderr);
        let (run, ended) = self.machine.start(command, sink)?;
        let guard = StopOnDrop(run.clone());
        let ended = ended.await.ok();
        drop(guard);
        let (status, sandbox_killed) = match ended {
            Some(ended) => (ended.status, ended.sandbox_killed),
            None => (Status::Lost("the command's thread is gone".into()), false),
        };
        let mut response = run.sink.finish(status, run.started.elapsed());
        response.sandbox_killed = sandbox_killed;
        Ok(response)
    }

    async fn upload_files(&self, files: &[FileUpload]) -> Vec<Result<()>> {
        files.iter().map(|file| self.upload(file)).collect()
    }

    async fn download_files(&self, files: &[FileDownload]) -> Vec<Result<Bytes>> {
        files.iter().map(|file| self.download(file)).collect()
    }

    async fn kill(&self) -> Result<()> {
        self.machine.kill("the sandbox was killed");
        Ok(())
    }

    fn kill_ticket(&self) -> Option<KillTicket> {
        let machine = self.machine.clone();
        Some(KillTicket::new(machine.id.clone(), move || async move {
            machine.kill("the sandbox was dropped");
            Ok(())
        }))
    }
}

impl MockSandbox {
    fn upload(&self, file: &FileUpload) -> Result<()> {
        self.machine.check_alive()?;
        let (vfs, cred) = (&self.machine.vfs, self.machine.account.cred);
        let path = file.path.as_str();
        vfs.mkdir_parents(path, cred, 0o755)?;
        Ok(vfs.write(path, cred, file.content.clone(), How::Truncate, 0o644)?)
    }

    fn download(&self, file: &FileDownload) -> Result<Bytes> {
        self.machine.check_alive()?;
        let (vfs, cred) = (&self.machine.vfs, self.machine.account.cred);
        let path = file.path.as_str();
        let stat = vfs.stat(path, cred, Last::Follow)?;
        if matches!(stat.kind, FileKind::Fifo | FileKind::Device) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "a FIFO or a device is not downloaded: it has no end",
            ));
        }
        if stat.size > file.limit && stat.kind == FileKind::File {
            return Err(call::too_large(stat.size, file.limit));
        }
        Ok(vfs.read(path, cred)?)
    }
}
