//! What commands leave behind, and its removal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::execd::Execd;
use crate::launch::Files;

/// How long what is left lies: what many commands leave is removed by one request, for each costs a
/// server in between as much as a command.
const LIES: Duration = Duration::from_secs(1);

/// How long a removal may take.
const REMOVAL: Duration = Duration::from_secs(10);

/// Files that one request removes: their names are its query.
const AT_ONCE: usize = 60;

/// What lies around and is about to be removed. What is not removed, because the runtime ends first
/// or the daemon does not answer, stays until the sandbox ends; nobody finds it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Litter(Arc<Mutex<Vec<String>>>);

impl Litter {
    /// Has the files of a command removed, and those that the stock daemon keeps of each execution.
    pub(crate) fn add(&self, execd: &Execd, files: &Files, execution: Option<&str>) {
        let daemons = execution
            .filter(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric()))
            .map(|id| [format!("/tmp/{id}.stdout"), format!("/tmp/{id}.stderr")]);
        let mut lying = self.lying();
        let somebody_comes = !lying.is_empty();
        lying.extend(files.all());
        lying.extend(daemons.into_iter().flatten());
        drop(lying);
        if !somebody_comes {
            let (litter, execd) = (self.clone(), execd.clone());
            tokio::spawn(async move {
                sleep(LIES).await;
                let all = std::mem::take(&mut *litter.lying());
                for some in all.chunks(AT_ONCE) {
                    remove(&execd, some).await;
                }
            });
        }
    }

    fn lying(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes files; those that are missing are no failure.
pub(crate) async fn remove(execd: &Execd, files: &[String]) {
    let paths: Vec<&str> = files.iter().map(String::as_str).collect();
    match timeout(REMOVAL, execd.delete(&paths)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "what commands left could not be removed"),
        Err(_) => tracing::debug!("removing what commands left takes too long"),
    }
}
