//! One sandbox: a container.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::poll_fn;
use sandbox_core::derive::{ShellProcesses, download_by_script, upload_by_script};
use sandbox_core::{
    Capabilities, Command, Error, ErrorKind, ExecuteEvent, ExecuteResponse, ExecuteStream,
    FileDownload, FileUpload, KillTicket, Lease, LogCursor, OutputCollector, ProcessId,
    ProcessLogs, Processes, Result, SandboxBackend, SandboxId, Status, Stream, Streaming, defaults,
};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::container::Container;
use crate::error;
use crate::exec::MAX_ARGUMENTS;
use crate::keeper::{self, Tether};
use crate::running::{Ending, Guard, Running, Sink};

/// How long asking the keeper may take.
const ASK: Duration = Duration::from_secs(20);

/// How many parts of output wait for a slow reader.
const WAITING: usize = 16;

/// A Docker container as a sandbox.
#[derive(Debug)]
pub(crate) struct DockerSandbox {
    container: Container,
    id: SandboxId,
    /// Held by the owner. Closed by dropping.
    tether: Option<Tether>,
    /// Whether the keeper is ours.
    kept: bool,
    network: bool,
    warnings: Vec<String>,
}

impl DockerSandbox {
    pub(crate) fn new(
        container: Container,
        tether: Option<Tether>,
        kept: bool,
        network: bool,
        warnings: Vec<String>,
    ) -> Self {
        Self {
            id: SandboxId::new(&container.id),
            container,
            tether,
            kept,
            network,
            warnings,
        }
    }

    /// Starts a command, within its deadline too.
    async fn start(&self, command: &Command) -> Result<Running<'_>> {
        let (launch, id) = self.container.launch(command)?;
        let input = command.stdin.iter().cloned().collect();
        let start = Running::start(&self.container, &launch, id, input, Guard::new());
        match command.timeout {
            None => start.await,
            Some(limit) => match timeout(limit + defaults::KILL_GRACE, start).await {
                Ok(started) => started,
                Err(_) => Err(error::timed_out("start a command")),
            },
        }
    }

    fn background(&self) -> ShellProcesses<'_> {
        ShellProcesses::new(self, self.container.floor)
    }

    /// Runs one of the keeper's scripts as root.
    async fn ask_keeper(&self, script: Command) -> Result<String> {
        let (code, printed) = self.container.program(&script, ASK).await?;
        if code == 0 {
            Ok(printed.to_text())
        } else {
            Err(Error::new(
                ErrorKind::Unexpected,
                "the sandbox's keeper can't be asked: code that ran as root may have damaged it",
            ))
        }
    }
}

#[async_trait]
impl SandboxBackend for DockerSandbox {
    fn id(&self) -> &SandboxId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(|c| {
            c.execute_argv = true;
            c.execute_cwd = true;
            c.execute_env = true;
            c.execute_user = true;
            c.execute_stdin = true;
            c.separate_streams = true;
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
        let mut running = self.start(command).await?;
        let mut sink = Collected(OutputCollector::new(
            command.effective_output_limit(),
            false,
        ));
        let started = running.started();
        let ending = running.drive(command.timeout, &mut sink).await?;
        let mut response = sink.0.finish(ending.status, started.elapsed());
        response.sandbox_killed = ending.sandbox_killed;
        Ok(response)
    }

    async fn upload_files(&self, files: &[FileUpload]) -> Vec<Result<()>> {
        upload_by_script(&self.container, files).await
    }

    async fn download_files(&self, files: &[FileDownload]) -> Vec<Result<Bytes>> {
        download_by_script(&self.container, files).await
    }

    async fn kill(&self) -> Result<()> {
        self.container.engine.remove(&self.container.id).await
    }

    fn kill_ticket(&self) -> Option<KillTicket> {
        let elsewhere = self.container.elsewhere();
        Some(KillTicket::new(self.id.clone(), move || async move {
            let container = elsewhere.open()?;
            container.engine.remove(&container.id).await
        }))
    }

    async fn detach(&self) -> Result<()> {
        match &self.tether {
            Some(tether) => tether.let_go().await,
            None => Ok(()),
        }
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
        self.kept.then_some(self as &dyn Lease)
    }
}

#[async_trait]
impl Streaming for DockerSandbox {
    async fn execute_streaming(&self, command: &Command) -> Result<ExecuteStream> {
        let container = self.container.clone();
        let (launch, id) = container.launch(command)?;
        let input: Vec<Bytes> = command.stdin.iter().cloned().collect();
        let deadline = command.timeout;
        let (started_tx, started) = tokio::sync::oneshot::channel();
        // Dropped with this future and then with the stream, so that the kill is under way at once
        // and `flush` waits for it: the task may see it only when the process is about to end.
        let guard = Guard::new();
        let in_task = guard.clone();
        let (tx, mut rx) = mpsc::channel(WAITING);
        // A task, so that the deadline holds while nobody reads. It ends when the stream is dropped.
        tokio::spawn(async move {
            let start = async {
                let mut running = Running::start(&container, &launch, id, input, in_task).await?;
                running.confirm().await?;
                Ok(running)
            };
            let mut sink = Sent { tx, room: None };
            let closed = sink.tx.clone();
            let run = async move {
                let mut running = match start.await {
                    Ok(running) => running,
                    Err(e) => {
                        let _ = started_tx.send(Err(e));
                        return;
                    }
                };
                if started_tx.send(Ok(())).is_err() {
                    return;
                }
                let ending = running.drive(deadline, &mut sink).await;
                let ending = ending.unwrap_or_else(|e| Ending {
                    status: Status::Lost(e.to_string()),
                    sandbox_killed: false,
                });
                sink.end(ending).await;
            };
            tokio::select! {
                () = run => {}
                // Dropping what runs kills the command.
                () = closed.closed() => {}
            }
        });
        let started = match deadline {
            None => started.await,
            Some(limit) => match timeout(limit + defaults::KILL_GRACE, started).await {
                Ok(started) => started,
                Err(_) => return Err(error::timed_out("start a command")),
            },
        };
        started.unwrap_or_else(|_| Err(error::timed_out("start a command")))?;
        Ok(ExecuteStream::new(poll_fn(move |cx| {
            let _with_the_stream = &guard;
            rx.poll_recv(cx)
        })))
    }
}

/// By scripts in the container: the engine forgets what its commands printed.
#[async_trait]
impl Processes for DockerSandbox {
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
impl Lease for DockerSandbox {
    async fn expires_at(&self) -> Result<Option<SystemTime>> {
        let left = self.ask_keeper(keeper::script(keeper::REMAINING)).await?;
        let left: i64 = left
            .trim()
            .parse()
            .map_err(|_| error::garbled("read the lifetime"))?;
        // The sandbox's clock need not be this machine's: what is left is the same on both.
        let left = Duration::from_secs(u64::try_from(left).unwrap_or(0));
        Ok(SystemTime::now().checked_add(left))
    }

    async fn renew(&self, lifetime: Duration) -> Result<()> {
        let seconds = keeper::seconds(lifetime).to_string();
        let renew = keeper::script(keeper::RENEW).arg(seconds);
        self.ask_keeper(renew).await.map(drop)
    }

    async fn pause(&self) -> Result<()> {
        // A paused container's lifetime would not end.
        Err(Error::unsupported("pausing"))
    }

    async fn resume(&self) -> Result<()> {
        Err(Error::unsupported("pausing"))
    }
}

/// Output into memory.
struct Collected(OutputCollector);

impl Sink for Collected {
    async fn ready(&mut self) -> bool {
        true
    }

    fn put(&mut self, stream: Stream, bytes: Bytes) {
        self.0.push(stream, &bytes);
    }
}

/// Output to who reads the stream.
struct Sent {
    tx: mpsc::Sender<ExecuteEvent>,
    room: Option<mpsc::OwnedPermit<ExecuteEvent>>,
}

impl Sent {
    async fn end(self, ending: Ending) {
        let Ending {
            status,
            sandbox_killed,
        } = ending;
        let end = ExecuteEvent::Ended {
            status,
            sandbox_killed,
        };
        // Whoever dropped the stream does not want to know.
        let _ = self.tx.send(end).await;
    }
}

impl Sink for Sent {
    async fn ready(&mut self) -> bool {
        if self.room.is_none() {
            self.room = self.tx.clone().reserve_owned().await.ok();
        }
        self.room.is_some()
    }

    fn put(&mut self, stream: Stream, bytes: Bytes) {
        if let Some(room) = self.room.take() {
            room.send(ExecuteEvent::Output(stream, bytes));
        }
    }
}
