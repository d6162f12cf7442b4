//! One command from its start to its end: who may stop it, and who is told.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sandbox_core::Status;
use tokio::sync::{Notify, watch};

use super::sink::Sink;

/// A command, shared by its caller, its worker, its deadline and its sandbox.
pub(crate) struct Run {
    pub(crate) sink: Sink,
    pub(crate) started: Instant,
    stop: Notify,
    ended: watch::Sender<Option<Ended>>,
    state: Mutex<State>,
}

struct State {
    /// What stops the engine at its next step.
    token: Option<Arc<AtomicBool>>,
    why: Option<Why>,
    /// The signal that the command sent itself, or died of.
    signal: Option<i32>,
    begun: bool,
    over: bool,
}

/// Why a command was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Its deadline came.
    Deadline,
    /// Its sandbox was killed.
    Killed(&'static str),
    /// It was sent a signal from outside that it can't survive.
    Signal(i32),
    /// Nobody waits for it any more.
    Dropped,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) status: Status,
    pub(crate) sandbox_killed: bool,
}

impl Run {
    pub(crate) fn new(sink: Sink) -> Arc<Self> {
        Arc::new(Self {
            sink,
            started: Instant::now(),
            stop: Notify::new(),
            ended: watch::Sender::new(None),
            state: Mutex::new(State {
                token: None,
                why: None,
                signal: None,
                begun: false,
                over: false,
            }),
        })
    }

    /// How the command ended; `None` before.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.ended.borrow().clone()
    }

    /// Waits until the command has ended. Dropping the future changes nothing.
    pub(crate) async fn wait(&self) -> Ended {
        let mut ended = self.ended.subscribe();
        let seen = ended.wait_for(Option::is_some).await;
        match seen.ok().and_then(|ended| ended.clone()) {
            Some(ended) => ended,
            // The sender is ours: it lives as long as this call.
            None => std::future::pending().await,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker begins. False if the command was stopped before.
    pub(super) fn begin(&self) -> bool {
        let mut state = self.lock();
        state.begun = state.why.is_none();
        state.begun
    }

    /// Gives the run what stops its engine.
    pub(super) fn attach(&self, token: Arc<AtomicBool>) {
        let mut state = self.lock();
        if state.why.is_some() {
            token.store(true, Ordering::SeqCst);
        }
        state.token = Some(token);
    }

    /// Stops the command. Its answer comes when its worker has stopped, or at once where nobody
    /// needs to know that.
    pub(crate) fn end(&self, why: Why) {
        let mut state = self.lock();
        if state.over || state.why.is_some() {
            return;
        }
        state.why = Some(why);
        let at_once = match why {
            Why::Deadline => (!state.begun).then_some(Status::TimedOut),
            Why::Signal(signal) => (!state.begun).then_some(Status::Signaled(signal)),
            Why::Killed(what) => Some(Status::Lost(what.to_owned())),
            Why::Dropped => None,
        };
        if let Some(status) = at_once {
            self.tell(status, false);
        }
        self.halt(&state);
        drop(state);
        self.sink.close();
    }

    /// Stops the engine from inside, as a signal would.
    pub(super) fn crash(&self, signal: i32) {
        let mut state = self.lock();
        state.signal = Some(signal);
        self.halt(&state);
    }

    fn halt(&self, state: &State) {
        if let Some(token) = &state.token {
            token.store(true, Ordering::SeqCst);
        }
        self.stop.notify_one();
    }

    /// The command sends itself a signal; whether it dies of it, its exit code tells.
    pub(super) fn signal_self(&self, signal: i32) {
        self.lock().signal = Some(signal);
    }

    /// The signal it crashed of.
    pub(super) fn signal(&self) -> Option<i32> {
        self.lock().signal
    }

    /// The status of an exit code.
    pub(super) fn status_of(&self, code: i32) -> Status {
        match self.lock().signal {
            Some(signal) if code == 128 + signal => Status::Signaled(signal),
            _ => Status::Exited(code),
        }
    }

    /// Waits until someone stops the command.
    pub(super) async fn stopped(&self) {
        self.stop.notified().await;
    }

    /// The leader ended: the caller is told, what is left of the command goes on unheard.
    pub(super) fn answer(&self, status: Status) {
        let state = self.lock();
        let status = final_status(&state, status);
        // First the end of the output, then the end of the command.
        self.sink.close();
        self.tell(status, false);
    }

    /// Nothing of the command runs any more.
    pub(super) fn finish(&self, status: Status) {
        self.answer(status);
        let mut state = self.lock();
        state.over = true;
        state.token = None;
    }

    /// The grace is over and the worker has not stopped. True if that was so: the caller is told
    /// that the sandbox goes with the command.
    pub(crate) fn give_up(&self) -> bool {
        let state = self.lock();
        if state.over || self.ended.borrow().is_some() {
            return false;
        }
        self.tell(Status::TimedOut, true);
        true
    }

    fn tell(&self, status: Status, sandbox_killed: bool) {
        self.ended.send_if_modified(|ended| {
            // The first ending is the one.
            let first = ended.is_none();
            ended.get_or_insert(Ended {
                status,
                sandbox_killed,
            });
            first
        });
    }
}

fn final_status(state: &State, status: Status) -> Status {
    match state.why {
        Some(Why::Deadline) => Status::TimedOut,
        Some(Why::Killed(what)) => Status::Lost(what.to_owned()),
        Some(Why::Signal(signal)) => Status::Signaled(signal),
        Some(Why::Dropped) | None => status,
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// Stops a command when dropped: the caller went away.
#[derive(Debug)]
pub(crate) struct StopOnDrop(pub(crate) Arc<Run>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        // What runs on after its leader's end was answered for is none of the caller's.
        if self.0.ended().is_none() {
            self.0.end(Why::Dropped);
        }
    }
}
