//! The end of the interpreter: no sandbox is left behind, and no thread is inside this library when
//! the interpreter takes its threads' ground away.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use sandbox::{Error, ErrorKind, Result, blocking};

use crate::arguments::Time;

/// A sandbox, and whether its end is this process's duty.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) sandbox: sandbox::Sandbox,
    owned: AtomicBool,
}

impl Held {
    /// Holds a sandbox; one that is `owned` is killed when the interpreter ends.
    pub(crate) fn new(sandbox: sandbox::Sandbox, owned: bool) -> Arc<Self> {
        let held = Arc::new(Self {
            sandbox,
            owned: AtomicBool::new(owned),
        });
        if owned {
            let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
            live.retain(|other| other.strong_count() > 0);
            live.push(Arc::downgrade(&held));
        }
        held
    }

    /// Whether killing it is this process's duty.
    pub(crate) fn is_owned(&self) -> bool {
        self.owned.load(Ordering::Acquire)
    }

    /// It was given up.
    pub(crate) fn disown(&self) {
        self.owned.store(false, Ordering::Release);
    }
}

/// What stands for a limit beyond what a clock can say.
const LONGEST: Duration = Duration::from_hours(1);

static LIVE: Mutex<Vec<Weak<Held>>> = Mutex::new(Vec::new());
static CLOSING: AtomicBool = AtomicBool::new(false);
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Fails once the interpreter ends.
pub(crate) fn check() -> Result<()> {
    if CLOSING.load(Ordering::Acquire) {
        let why = "the interpreter ends: its sandboxes are killed";
        return Err(Error::new(ErrorKind::SandboxGone, why));
    }
    Ok(())
}

/// A thread that waits for a call.
pub(crate) struct Waiting;

impl Waiting {
    /// Fails once the interpreter ends.
    pub(crate) fn begin() -> Result<Self> {
        WAITING.fetch_add(1, Ordering::AcqRel);
        let waiting = Self;
        check()?;
        Ok(waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Waits until all sandboxes dropped so far are ended, at most `limit` seconds. `False` when the
/// limit came first.
#[pyfunction]
pub(crate) fn flush(py: Python<'_>, limit: Time) -> bool {
    py.detach(|| sandbox::flush(limit.0))
}

/// For the end of the interpreter: kills what this process owns, at most `limit` seconds, and has
/// all waiting threads return.
#[pyfunction]
pub(crate) fn close(py: Python<'_>, limit: Time) -> PyResult<()> {
    let end = Instant::now()
        .checked_add(limit.0)
        .unwrap_or_else(|| Instant::now() + LONGEST);
    CLOSING.store(true, Ordering::Release);
    // A fork may have taken the lock along with a thread that is not there any more; what the
    // parent owns is not this process's to kill either.
    let owned: Vec<Arc<Held>> = match LIVE.try_lock() {
        Ok(live) => live.iter().filter_map(Weak::upgrade).collect(),
        Err(_) => Vec::new(),
    };
    let kills: Vec<_> = owned
        .iter()
        .filter(|held| held.is_owned())
        .filter_map(|held| {
            let sandbox = held.sandbox.clone();
            // Without a background thread nothing was made here.
            blocking::start(async move { sandbox.kill().await }).ok()
        })
        .collect();
    for mut kill in kills {
        until(py, end, move || !matches!(kill.wait_for(STEP), Ok(None)))?;
    }
    until(py, end, || {
        std::thread::sleep(Duration::from_millis(1));
        WAITING.load(Ordering::Acquire) == 0
    })?;
    until(py, end, || sandbox::flush(STEP))
}

/// How long one step of waiting takes before signals are looked for.
const STEP: Duration = Duration::from_millis(50);

/// Waits step by step until `done` or the end of the time.
fn until(py: Python<'_>, end: Instant, mut done: impl FnMut() -> bool + Send) -> PyResult<()> {
    while !py.detach(&mut done) && Instant::now() < end {
        py.check_signals()?;
    }
    Ok(())
}
