//! The threads that scripts run on: few, with big stacks, ended when idle.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// The stack of a worker. Only what is used takes memory.
pub(crate) const STACK: usize = 64 << 20;

/// Commands at once in the process. More wait their turn; leftovers of ended commands do not
/// count.
const WORKERS: usize = 256;

/// How long an idle worker waits for the next command.
const IDLE: Duration = Duration::from_secs(5);

/// A worker that used more of its stack than this ends, to give the memory back.
const STACK_KEPT: usize = 1 << 20;

type Job = Box<dyn FnOnce(&Runtime) + Send>;

struct Pool {
    state: Mutex<State>,
    work: Condvar,
}

struct State {
    queue: VecDeque<Job>,
    idle: usize,
    /// Workers that are idle or run a command whose leader has not ended.
    counted: usize,
}

static POOL: Pool = Pool {
    state: Mutex::new(State {
        queue: VecDeque::new(),
        idle: 0,
        counted: 0,
    }),
    work: Condvar::new(),
};

thread_local! {
    /// Where this worker's stack begins; 0 on any other thread.
    static BASE: Cell<usize> = const { Cell::new(0) };
    /// The most of the stack that the job used.
    static DEEPEST: Cell<usize> = const { Cell::new(0) };
    static DETACHED: Cell<bool> = const { Cell::new(false) };
}

fn lock() -> MutexGuard<'static, State> {
    POOL.state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `job` on a worker, as soon as one is free.
///
/// # Errors
///
/// The system gives no thread, and there is no worker that could take the job later.
pub(crate) fn submit(job: impl FnOnce(&Runtime) + Send + 'static) -> io::Result<()> {
    let mut state = lock();
    state.queue.push_back(Box::new(job));
    let result = grow(&mut state);
    if result.is_err() && state.counted == 0 {
        state.queue.pop_back();
        return result;
    }
    POOL.work.notify_one();
    Ok(())
}

/// Starts a worker if there is work for one.
fn grow(state: &mut State) -> io::Result<()> {
    if state.queue.len() <= state.idle || state.counted >= WORKERS {
        return Ok(());
    }
    std::thread::Builder::new()
        .name("sandbox-mock".into())
        .stack_size(STACK)
        .spawn(work)?;
    state.counted += 1;
    Ok(())
}

/// Called by a job whose command has ended while something of it still runs: the worker does not
/// count any more, and ends with the job.
pub(crate) fn detach() {
    if BASE.get() == 0 || DETACHED.replace(true) {
        return;
    }
    let mut state = lock();
    state.counted -= 1;
    if let Err(error) = grow(&mut state) {
        tracing::warn!(%error, "no thread for waiting commands");
    }
}

/// How much of this worker's stack is in use; 0 on any other thread.
pub(crate) fn stack_used() -> usize {
    let base = BASE.get();
    if base == 0 {
        return 0;
    }
    let used = base.saturating_sub(here());
    DEEPEST.set(DEEPEST.get().max(used));
    used
}

#[inline(never)]
fn here() -> usize {
    let marker = 0u8;
    std::ptr::from_ref(std::hint::black_box(&marker)).addr()
}

fn work() {
    BASE.set(here());
    // Its own: a script that blocks holds up nobody else's timers.
    let runtime = match Builder::new_current_thread()
        .enable_time()
        .thread_stack_size(STACK)
        .max_blocking_threads(8)
        .thread_keep_alive(IDLE)
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "no runtime for commands");
            lock().counted -= 1;
            return;
        }
    };
    while let Some(job) = next() {
        DEEPEST.set(0);
        job(&runtime);
        if DETACHED.get() {
            return;
        }
        if DEEPEST.get() > STACK_KEPT {
            let mut state = lock();
            state.counted -= 1;
            if let Err(error) = grow(&mut state) {
                tracing::warn!(%error, "no thread for waiting commands");
            }
            return;
        }
    }
}

/// The next job, or `None` when there was none for a while.
fn next() -> Option<Job> {
    let mut state = lock();
    loop {
        if let Some(job) = state.queue.pop_front() {
            return Some(job);
        }
        state.idle += 1;
        let (guard, timeout) = POOL
            .work
            .wait_timeout(state, IDLE)
            .unwrap_or_else(PoisonError::into_inner);
        state = guard;
        state.idle -= 1;
        if timeout.timed_out() && state.queue.is_empty() {
            state.counted -= 1;
            return None;
        }
    }
}
