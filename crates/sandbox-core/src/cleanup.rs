//! The one background thread of this library: it ends sandboxes whose owner is gone, and runs the
//! calls of the blocking facade.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc as std_mpsc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::{Error, ErrorKind, Result, SandboxId};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// How long one kill may take before it is given up.
const KILL_LIMIT: Duration = Duration::from_mins(1);

/// A way to end one sandbox, with a client of its own, on whatever runtime runs it.
pub struct KillTicket {
    id: SandboxId,
    kill: Box<dyn FnOnce() -> BoxFuture<Result<()>> + Send + Sync>,
}

impl KillTicket {
    /// A ticket for the sandbox `id`. `kill` must not need the runtime that makes the ticket.
    pub fn new<F, T>(id: SandboxId, kill: F) -> Self
    where
        F: FnOnce() -> T + Send + Sync + 'static,
        T: Future<Output = Result<()>> + Send + 'static,
    {
        Self {
            id,
            kill: Box::new(move || Box::pin(kill())),
        }
    }
}

impl fmt::Debug for KillTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KillTicket").field(&self.id).finish()
    }
}

/// Ends a sandbox when dropped. Arm it from the moment the id is known, before the next `await`.
#[derive(Debug)]
#[must_use = "dropping the guard ends the sandbox"]
pub struct KillGuard(Option<KillTicket>);

impl KillGuard {
    /// Takes the duty.
    pub fn arm(ticket: KillTicket) -> Self {
        Self(Some(ticket))
    }

    /// The sandbox was handed to someone else.
    pub fn disarm(mut self) {
        self.0.take();
    }
}

impl Drop for KillGuard {
    fn drop(&mut self) {
        if let Some(ticket) = self.0.take() {
            redeem(ticket);
        }
    }
}

/// Hands the ticket to the background thread. Never blocks, never panics.
pub(crate) fn redeem(ticket: KillTicket) {
    let KillTicket { id, kill } = ticket;
    let what = async move {
        match tokio::time::timeout(KILL_LIMIT, kill()).await {
            Ok(Ok(())) => tracing::debug!(sandbox.id = %id, "killed on drop"),
            Ok(Err(error)) => {
                tracing::error!(sandbox.id = %id, %error, "could not be killed on drop");
            }
            Err(_) => tracing::error!(sandbox.id = %id, "killing on drop takes too long: given up"),
        }
    };
    if let Err(error) = send(Message::Kill(Box::pin(what))) {
        tracing::error!(%error, "a sandbox could not be killed on drop");
    }
}

/// Waits until all sandboxes dropped so far are ended, at most `limit`: for the end of `main` and
/// of a test. Blocks the thread. `false` when the limit came first.
#[must_use = "`false` means that sandboxes may live on"]
pub fn flush(limit: Duration) -> bool {
    let (tx, rx) = std_mpsc::sync_channel(1);
    match running() {
        // Nothing was ever dropped.
        None => true,
        Some(worker) => worker.send(Message::Flush(tx)).is_ok() && rx.recv_timeout(limit).is_ok(),
    }
}

/// Runs a future on the background thread and waits for it without entering any runtime, so it
/// works inside one too.
pub(crate) fn block_on<T, F>(future: F) -> Result<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let gone = || Error::new(ErrorKind::Unexpected, "the call ended without an answer");
    let (tx, rx) = std_mpsc::sync_channel(1);
    send(Message::Run(Box::pin(async move {
        // The caller waits as long as this runs, so the answer is always taken.
        let _ = tx.send(future.await);
    })))?;
    rx.recv().map_err(|_| gone())
}

enum Message {
    Kill(BoxFuture<()>),
    Run(BoxFuture<()>),
    Flush(std_mpsc::SyncSender<()>),
}

/// The thread and the process that started it: after a fork the thread is not there.
static WORKER: Mutex<Option<(u32, mpsc::UnboundedSender<Message>)>> = Mutex::new(None);

fn running() -> Option<mpsc::UnboundedSender<Message>> {
    let worker = WORKER.lock().unwrap_or_else(PoisonError::into_inner);
    worker
        .as_ref()
        .filter(|(pid, _)| *pid == std::process::id())
        .map(|(_, tx)| tx.clone())
}

fn send(message: Message) -> Result<()> {
    let unexpected = |why: &'static str| Error::new(ErrorKind::Unexpected, why);
    let mut worker = WORKER.lock().unwrap_or_else(PoisonError::into_inner);
    let tx = match &*worker {
        Some((pid, tx)) if *pid == std::process::id() => tx,
        Some(_) => {
            return Err(unexpected(
                "this process was forked after sandboxes were used: make clients after the fork",
            ));
        }
        None => {
            let tx = start().map_err(|e| unexpected("no background thread").because(e))?;
            &worker.insert((std::process::id(), tx)).1
        }
    };
    tx.send(message)
        .map_err(|_| unexpected("the background thread has ended"))
}

fn start() -> std::io::Result<mpsc::UnboundedSender<Message>> {
    let (tx, rx) = mpsc::unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name("sandbox".into())
        .spawn(move || runtime.block_on(work(rx)))?;
    Ok(tx)
}

async fn work(mut rx: mpsc::UnboundedReceiver<Message>) {
    let running = watch::Sender::new(0_usize);
    while let Some(message) = rx.recv().await {
        match message {
            // A task each: neither a slow nor a panicking one stops the rest.
            Message::Kill(kill) => {
                let counted = Counted::new(&running);
                tokio::spawn(async move {
                    kill.await;
                    drop(counted);
                });
            }
            Message::Run(call) => {
                tokio::spawn(call);
            }
            Message::Flush(done) => {
                let mut running = running.subscribe();
                tokio::spawn(async move {
                    // The sender lives as long as this runtime, and whoever stopped waiting does
                    // not want to know.
                    let _ = running.wait_for(|n| *n == 0).await;
                    let _ = done.send(());
                });
            }
        }
    }
}

/// One kill that is under way, also when it panics.
struct Counted(watch::Sender<usize>);

impl Counted {
    fn new(running: &watch::Sender<usize>) -> Self {
        running.send_modify(|n| *n += 1);
        Self(running.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn ticket(killed: &Arc<AtomicU32>) -> KillTicket {
        let killed = killed.clone();
        KillTicket::new(SandboxId::new("t"), move || async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            killed.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    }

    #[test]
    fn a_dropped_guard_kills_and_a_disarmed_one_does_not() {
        let killed = Arc::new(AtomicU32::new(0));
        drop(KillGuard::arm(ticket(&killed)));
        KillGuard::arm(ticket(&killed)).disarm();
        let panicking = KillTicket::new(SandboxId::new("p"), || async { panic!("on purpose") });
        drop(KillGuard::arm(panicking));
        let unwinding = killed.clone();
        let _ = std::thread::spawn(move || {
            let _guard = KillGuard::arm(ticket(&unwinding));
            panic!("on purpose");
        })
        .join();
        assert!(flush(Duration::from_secs(5)));
        assert_eq!(killed.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn blocks_inside_a_runtime_too() {
        let rt = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        assert_eq!(rt.block_on(async { block_on(async { 7 }) }).unwrap(), 7);
    }
}
