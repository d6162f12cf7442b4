//! Snapshots of the files, and the lifetime.

use std::time::{Duration, SystemTime};

use sandbox_core::{Error, Lease, Operation, Result, SnapshotId, Snapshots, async_trait};

use crate::backend::MockSandbox;

#[async_trait]
impl Snapshots for MockSandbox {
    async fn snapshot(&self) -> Result<SnapshotId> {
        self.around(Operation::Snapshot, "", async |_| {
            self.machine.snapshot().map(SnapshotId)
        })
        .await
    }

    async fn restore(&self, id: &SnapshotId) -> Result<()> {
        self.around(Operation::Restore, &id.0, async |_| {
            self.machine.restore(&id.0)
        })
        .await
    }
}

#[async_trait]
impl Lease for MockSandbox {
    async fn expires_at(&self) -> Result<Option<SystemTime>> {
        self.machine.check_alive()?;
        Ok(self.machine.expires_at())
    }

    async fn renew(&self, lifetime: Duration) -> Result<()> {
        self.around(Operation::Renew, "", async |_| self.machine.renew(lifetime))
            .await
    }

    async fn pause(&self) -> Result<()> {
        Err(Error::unsupported("pausing: commands run in this process"))
    }

    async fn resume(&self) -> Result<()> {
        Err(Error::unsupported("pausing: commands run in this process"))
    }
}
