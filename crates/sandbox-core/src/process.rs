//! A handle on a background command.

use crate::{
    Error, LogCursor, Operation, ProcessId, ProcessLogs, Processes, Result, Sandbox, Status,
};

/// A background command of a sandbox. Dropping the handle leaves it running; it ends with the
/// sandbox at the latest.
#[derive(Clone, Debug)]
pub struct Process {
    sandbox: Sandbox,
    id: ProcessId,
}

impl Process {
    pub(crate) fn new(sandbox: Sandbox, id: ProcessId) -> Self {
        Self { sandbox, id }
    }

    /// The backend's name of it; [`Sandbox::process`] picks it up again.
    pub fn id(&self) -> &ProcessId {
        &self.id
    }

    /// How it ended, or `None` while it runs.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::NotFound`] if the sandbox has no such command.
    pub async fn status(&self) -> Result<Option<Status>> {
        self.sandbox
            .run(Operation::ProcessStatus, async {
                self.family()?.status(&self.id).await
            })
            .await
    }

    /// What it printed since `from`, at most `max` bytes a stream.
    ///
    /// # Errors
    ///
    /// As [`status`](Self::status).
    pub async fn logs(&self, from: LogCursor, max: u64) -> Result<ProcessLogs> {
        self.sandbox
            .run(Operation::ProcessLogs, async {
                self.family()?.logs(&self.id, from, max).await
            })
            .await
    }

    /// Waits for its end. Dropping the future leaves it running.
    ///
    /// # Errors
    ///
    /// As [`status`](Self::status).
    pub async fn wait(&self) -> Result<Status> {
        self.sandbox
            .run(Operation::ProcessWait, async {
                self.family()?.wait(&self.id).await
            })
            .await
    }

    /// Kills its process tree. One that has ended already is a success.
    ///
    /// # Errors
    ///
    /// As [`status`](Self::status).
    pub async fn kill(&self) -> Result<()> {
        self.sandbox
            .run(Operation::ProcessKill, async {
                self.family()?.kill(&self.id).await
            })
            .await
    }

    fn family(&self) -> Result<&dyn Processes> {
        self.sandbox
            .backend()
            .processes()
            .ok_or_else(|| Error::unsupported("background commands"))
    }
}
