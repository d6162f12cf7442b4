//! Commands in the background.

use std::sync::Arc;

use sandbox_core::{
    Command, Error, ErrorKind, LogCursor, Operation, ProcessId, ProcessLogs, Processes, Result,
    Status, async_trait,
};

use crate::backend::{MockSandbox, summary};
use crate::shell::{Run, Sink, Why};

/// `SIGKILL`.
const KILL: i32 = 9;

impl MockSandbox {
    fn process(&self, id: &ProcessId) -> Result<Arc<Run>> {
        self.machine.process(&id.0).ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                "the sandbox has no such background command",
            )
            .with("process", id)
        })
    }
}

#[async_trait]
impl Processes for MockSandbox {
    async fn start(&self, command: &Command) -> Result<ProcessId> {
        self.around(Operation::Spawn, &summary(command), async |verdict| {
            let sink = Sink::log(self.machine.log_limit(), command.merge_stderr);
            let run = MockSandbox::start(self, command, sink, verdict)?;
            self.machine.add_process(run).map(ProcessId)
        })
        .await
    }

    async fn status(&self, id: &ProcessId) -> Result<Option<Status>> {
        self.around(Operation::ProcessStatus, &id.0, async |_| {
            Ok(self.process(id)?.ended().map(|ended| ended.status))
        })
        .await
    }

    async fn logs(&self, id: &ProcessId, from: LogCursor, max: u64) -> Result<ProcessLogs> {
        self.around(Operation::ProcessLogs, &id.0, async |_| {
            Ok(self.process(id)?.sink.logs(from, max))
        })
        .await
    }

    async fn wait(&self, id: &ProcessId) -> Result<Status> {
        self.around(Operation::ProcessWait, &id.0, async |_| {
            Ok(self.process(id)?.wait().await.status)
        })
        .await
    }

    async fn kill(&self, id: &ProcessId) -> Result<()> {
        self.around(Operation::ProcessKill, &id.0, async |_| {
            let run = self.process(id)?;
            run.end(Why::Signal(KILL));
            self.machine.confirm(&run).await;
            Ok(())
        })
        .await
    }
}
