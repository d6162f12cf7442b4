//! One sandbox of a server.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use sandbox_core::derive::{ShellProcesses, download_by_script, upload_by_script};
use sandbox_core::{
    Capabilities, Command, ErrorKind, ExecuteResponse, ExecuteStream, FileDownload, FileUpload,
    KillTicket, Lease, LogCursor, ProcessId, ProcessLogs, Processes, Result, SandboxBackend,
    SandboxId, Status, Streaming,
};
use tokio::time::sleep;

use crate::launch::MAX_ARGUMENTS;
use crate::live::Live;
use crate::output::Recorder;
use crate::place::User;
use crate::running::{Ending, Running};
use crate::{stream, user};

/// How often the output of a command that takes long is fetched, at first and at last: gently, for
/// the way through the daemon's own proxy costs it two file descriptors for each request.
const LOOK: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(4)];

/// A sandbox of an OpenSandbox server.
#[derive(Debug)]
pub(crate) struct OpenSandboxSandbox {
    live: Live,
    network: bool,
    warnings: Vec<String>,
}

impl OpenSandboxSandbox {
    pub(crate) fn new(live: Live, network: bool, warnings: Vec<String>) -> Self {
        Self {
            live,
            network,
            warnings,
        }
    }

    fn background(&self) -> ShellProcesses<'_> {
        ShellProcesses::new(self, self.live.place.floor)
    }

    /// The command with its user found, and that user's home where nothing else is set.
    async fn resolved(&self, command: &Command) -> Result<(Command, Option<User>)> {
        let mut command = command.clone();
        let Some(name) = &command.user else {
            return Ok((command, self.live.place.user));
        };
        let (found, home) = user::find(&self.live.execd, &self.live.place, name).await?;
        if let Some(home) = home {
            command.env.entry("HOME".to_owned()).or_insert(home);
        }
        Ok((command, found))
    }
}

#[async_trait]
impl SandboxBackend for OpenSandboxSandbox {
    fn id(&self) -> &SandboxId {
        &self.live.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(|c| {
            c.execute_argv = true;
            c.execute_cwd = true;
            c.execute_env = true;
            c.execute_user = self.live.place.can_switch();
            c.execute_stdin = true;
            c.execute_merge_stderr = true;
            c.separate_streams = true;
            c.reports_signals = true;
            c.execute_max_text = Some(MAX_ARGUMENTS as u64 - (64 << 10));
            c.control_characters_in_commands = true;
            c.file_owners = true;
            c.hard_links = true;
            c.fifos = true;
            c.process_table = true;
            c.native_programs = true;
            c.network = self.network;
        })
    }

    async fn execute(&self, command: &Command) -> Result<ExecuteResponse> {
        let (command, user) = self.resolved(command).await?;
        let mut running = Running::start(&self.live, &command, user).await?;
        let mut recorder = running.recorder(command.effective_output_limit());
        let mut ending = record(&mut running, &mut recorder).await?;
        let elapsed = running.started().elapsed();
        match recorder.step().await {
            Ok(()) => running.forget(),
            Err(e) => ending = without_output(ending, &self.live.explain(e).await),
        }
        let mut response = recorder.into_output().finish(ending.status, elapsed);
        response.sandbox_killed = ending.sandbox_killed;
        Ok(response)
    }

    async fn upload_files(&self, files: &[FileUpload]) -> Vec<Result<()>> {
        upload_by_script(&self.live, files).await
    }

    async fn download_files(&self, files: &[FileDownload]) -> Vec<Result<Bytes>> {
        download_by_script(&self.live, files).await
    }

    async fn kill(&self) -> Result<()> {
        self.live.lifecycle.kill(&self.live.id).await
    }

    fn kill_ticket(&self) -> Option<KillTicket> {
        let live = self.live.clone();
        Some(KillTicket::new(live.id.clone(), move || async move {
            live.lifecycle.elsewhere()?.kill(&live.id).await
        }))
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        Some(self)
    }

    fn processes(&self) -> Option<&dyn Processes> {
        Some(self)
    }

    fn lease(&self) -> Option<&dyn Lease> {
        Some(self)
    }
}

/// Waits for the end. Of a command that takes long its output is fetched meanwhile, now and then:
/// should the sandbox die, it is not lost.
async fn record(running: &mut Running<'_>, recorder: &mut Recorder) -> Result<Ending> {
    let wait = running.wait();
    tokio::pin!(wait);
    let [mut pause, longest] = LOOK;
    loop {
        let look = async {
            sleep(pause).await;
            // What can't be fetched now may be at the end.
            if let Err(error) = recorder.step().await {
                tracing::trace!(%error, "no look at what a command wrote");
            }
        };
        tokio::select! {
            biased;
            ending = &mut wait => return ending,
            () = look => pause = (pause * 2).min(longest),
        }
    }
}

/// How a command ended whose output could not be fetched: what it printed is not known, and an
/// empty output would say that it is.
fn without_output(ending: Ending, why: &sandbox_core::Error) -> Ending {
    // A deadline may come before the command has opened its files, and kill the sandbox with them.
    if matches!(ending.status, Status::Lost(_) | Status::TimedOut) {
        return ending;
    }
    let why = match why.kind() {
        ErrorKind::SandboxGone => "the sandbox died before its output was fetched".to_owned(),
        _ => format!("{}; it ended with {}", why.message(), ending.status),
    };
    Ending::of(Status::Lost(why))
}

#[async_trait]
impl Streaming for OpenSandboxSandbox {
    async fn execute_streaming(&self, command: &Command) -> Result<ExecuteStream> {
        let (command, user) = self.resolved(command).await?;
        stream::start(self.live.clone(), command, user).await
    }
}

/// By scripts in the sandbox: the daemon's own background commands lose what they print on which
/// stream, and their children.
#[async_trait]
impl Processes for OpenSandboxSandbox {
    async fn start(&self, command: &Command) -> Result<ProcessId> {
        self.background().start(command).await
    }

    async fn status(&self, id: &ProcessId) -> Result<Option<Status>> {
        self.background().status(id).await
    }

    async fn logs(&self, id: &ProcessId, from: LogCursor, max: u64) -> Result<ProcessLogs> {
        self.background().logs(id, from, max).await
    }

    async fn wait(&self, id: &ProcessId) -> Result<Status> {
        self.background().wait(id).await
    }

    async fn kill(&self, id: &ProcessId) -> Result<()> {
        self.background().kill(id).await
    }
}

#[async_trait]
impl Lease for OpenSandboxSandbox {
    async fn expires_at(&self) -> Result<Option<SystemTime>> {
        self.live.lifecycle.expires_at(&self.live.id).await
    }

    async fn renew(&self, lifetime: Duration) -> Result<()> {
        self.live
            .lifecycle
            .renew(&self.live.id, lifetime)
            .await
            .map(drop)
    }

    async fn pause(&self) -> Result<()> {
        self.live.pause().await
    }

    async fn resume(&self) -> Result<()> {
        self.live.resume().await
    }
}
