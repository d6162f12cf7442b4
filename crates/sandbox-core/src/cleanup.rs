//! The one background thread of this library: it ends sandboxes whose owner is gone, and runs the
//! calls of the blocking facade.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self as std_mpsc, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

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

/// A call that runs on the background thread. Dropping it drops the future there, with what that
/// means for the operation: a dropped `execute` kills its command.
#[derive(Debug)]
#[must_use = "dropping a call cancels it"]
pub struct Call<T> {
    answer: std_mpsc::Receiver<T>,
    /// Its end tells the background thread that nobody waits any more.
    _caller: oneshot::Sender<()>,
}

impl<T> Call<T> {
    /// Waits for the answer, without entering any runtime, so it works inside one too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unexpected`] if the call ended without an answer: it panicked.
    pub fn wait(self) -> Result<T> {
        self.answer.recv().map_err(|_| Self::gone())
    }

    /// Waits at most so long; `None` while there is no answer yet. For who has to look after
    /// something else meanwhile.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn wait_for(&mut self, limit: Duration) -> Result<Option<T>> {
        match self.answer.recv_timeout(limit) {
            Ok(answer) => Ok(Some(answer)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Self::gone()),
        }
    }

    fn gone() -> Error {
        Error::new(ErrorKind::Unexpected, "the call ended without an answer")
    }
}

/// Starts a call on the background thread.
///
/// # Errors
///
/// [`ErrorKind::Unexpected`] if there is no such thread: it could not be started, or this process
/// was forked from one that had it.
pub fn start<T, F>(call: F) -> Result<Call<T>>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let (tx, answer) = std_mpsc::sync_channel(1);
    let (caller, nobody_waits) = oneshot::channel();
    send(Message::Run(Box::pin(async move {
        tokio::select! {
            // Who does not want the answer any more is told by the other arm.
            answer = call => drop(tx.send(answer)),
            _ = nobody_waits => {}
        }
    })))?;
    Ok(Call {
        answer,
        _caller: caller,
    })
}

/// Runs a future on the background thread and waits for it.
pub(crate) fn block_on<T, F>(future: F) -> Result<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    start(future)?.wait()
}

enum Message {
    Kill(BoxFuture<()>),
    Run(BoxFuture<()>),
    Flush(std_mpsc::SyncSender<()>),
}

static WORKER: Mutex<Option<mpsc::UnboundedSender<Message>>> = Mutex::new(None);

/// The process that started the thread, 0 before: after a fork the thread is not there. Looked at
/// before the lock, which a thread of the parent may have held at the fork.
static PROCESS: AtomicU32 = AtomicU32::new(0);

fn forked() -> bool {
    let started = PROCESS.load(Ordering::Acquire);
    started != 0 && started != std::process::id()
}

fn running() -> Option<mpsc::UnboundedSender<Message>> {
    if forked() {
        return None;
    }
    let worker = WORKER.lock().unwrap_or_else(PoisonError::into_inner);
    worker.clone()
}

fn send(message: Message) -> Result<()> {
    let unexpected = |why: &'static str| Error::new(ErrorKind::Unexpected, why);
    if forked() {
        return Err(unexpected(
            "this process was forked from one that had used sandboxes, and can use none: fork \
             before the first use, or start the process anew",
        ));
    }
    let mut worker = WORKER.lock().unwrap_or_else(PoisonError::into_inner);
    let tx = if let Some(tx) = &*worker {
        tx
    } else {
        // Before the thread is there, so that no fork sees the one without the other.
        PROCESS.store(std::process::id(), Ordering::Release);
        let tx = start_worker().map_err(|e| unexpected("no background thread").because(e))?;
        worker.insert(tx)
    };
    tx.send(message)
        .map_err(|_| unexpected("the background thread has ended"))
}

fn start_worker() -> std::io::Result<mpsc::UnboundedSender<Message>> {
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
    fn a_dropped_call_drops_its_future() {
        let (dropped, rx) = std_mpsc::sync_channel::<()>(0);
        let mut call = start(async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        })
        .unwrap();
        assert_eq!(call.wait_for(Duration::from_millis(1)).unwrap(), None);
        drop(call);
        let seen = rx.recv_timeout(Duration::from_mins(1));
        assert_eq!(seen, Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_call_that_panics_is_an_error() {
        let call = start(async { panic!("on purpose") }).unwrap();
        let error = call.wait().map(|(): ()| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unexpected);
    }

    #[test]
    fn blocks_inside_a_runtime_too() {
        let rt = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        assert_eq!(rt.block_on(async { block_on(async { 7 }) }).unwrap(), 7);
    }
}
