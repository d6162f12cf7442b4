//! One thread for everything that has a time: deadlines of commands, ends of sandboxes, delays of
//! scripted faults. It runs only while something waits, and needs no runtime of the caller.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

type Action = Box<dyn FnOnce() + Send>;

/// How long the thread waits for more before it ends.
const LINGER: Duration = Duration::from_secs(2);

/// The longest time ahead: far beyond any lifetime, and no clock overflows.
const HORIZON: Duration = Duration::from_hours(24 * 366);

static CLOCK: Clock = Clock {
    waiting: Mutex::new(Waiting {
        actions: BTreeMap::new(),
        next: 0,
        running: false,
    }),
    changed: Condvar::new(),
};

struct Clock {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

struct Waiting {
    actions: BTreeMap<(Instant, u64), Action>,
    next: u64,
    running: bool,
}

/// A time that was asked for. Dropping it takes the wish back.
#[derive(Debug)]
pub(crate) struct Alarm(Option<(Instant, u64)>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(key) = self.0.take() {
            // The action is dropped outside the lock: it may hold the last handle of something.
            let action = lock().actions.remove(&key);
            drop(action);
        }
    }
}

fn lock() -> MutexGuard<'static, Waiting> {
    CLOCK.waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `action` on the clock's thread after `delay`. It must be quick.
pub(crate) fn after(delay: Duration, action: impl FnOnce() + Send + 'static) -> Alarm {
    let at = Instant::now() + delay.min(HORIZON);
    let mut waiting = lock();
    let key = (at, waiting.next);
    waiting.next += 1;
    waiting.actions.insert(key, Box::new(action));
    if waiting.running {
        if waiting.actions.keys().next() == Some(&key) {
            CLOCK.changed.notify_one();
        }
    } else {
        waiting.running = std::thread::Builder::new()
            .name("sandbox-mock-clock".into())
            .spawn(tick)
            .inspect_err(|error| tracing::error!(%error, "no thread for deadlines"))
            .is_ok();
    }
    Alarm(Some(key))
}

/// Waits. Dropping the future takes the wish back.
pub(crate) async fn sleep(delay: Duration) {
    let (tx, rx) = oneshot::channel();
    let _alarm = after(delay, move || {
        let _ = tx.send(());
    });
    let _ = rx.await;
}

fn tick() {
    let mut waiting = lock();
    loop {
        let now = Instant::now();
        let due = waiting.actions.first_entry().filter(|e| e.key().0 <= now);
        if let Some(due) = due {
            let action = due.remove();
            drop(waiting);
            action();
            waiting = lock();
            continue;
        }
        let next = waiting.actions.keys().next().map(|key| key.0);
        let patience = next.map_or(LINGER, |at| at - now);
        let (guard, timeout) = CLOCK
            .changed
            .wait_timeout(waiting, patience)
            .unwrap_or_else(PoisonError::into_inner);
        waiting = guard;
        if timeout.timed_out() && waiting.actions.is_empty() {
            waiting.running = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn actions_come_in_the_order_of_their_times_and_dropped_ones_do_not() {
        let (tx, rx) = mpsc::channel();
        let at = |ms: u64, n: u32| {
            let tx = tx.clone();
            after(Duration::from_millis(ms), move || {
                let _ = tx.send(n);
            })
        };
        let _late = at(60, 2);
        let _early = at(20, 1);
        drop(at(10, 0));
        assert_eq!(rx.recv_timeout(Duration::from_secs(5)), Ok(1));
        assert_eq!(rx.recv_timeout(Duration::from_secs(5)), Ok(2));
        assert!(rx.recv_timeout(Duration::from_millis(50)).is_err());
    }
}
