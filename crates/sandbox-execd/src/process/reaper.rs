//! One place that waits for children: those started here, and the orphans that come to process 1
//! or to a subreaper. No zombie stays, and no signal is sent to a number that is somebody else's
//! by now: a child is collected, and signalled, under one lock.

use std::collections::HashMap;
use std::io;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};
use tokio::sync::oneshot;

use crate::names;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Exited(i32),
    Signaled { signal: i32, dumped: bool },
}

impl Ended {
    fn of(status: WaitStatus) -> Option<Self> {
        if let Some(code) = status.exit_status() {
            return Some(Self::Exited(code));
        }
        let signal = status.terminating_signal()?;
        Some(Self::Signaled {
            signal,
            dumped: status.as_raw() & 0x80 != 0,
        })
    }

    /// `exit status 3`, `signal: killed`.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Exited(code) => format!("exit status {code}"),
            Self::Signaled { signal, dumped } => {
                let dumped = if dumped { " (core dumped)" } else { "" };
                format!("signal: {}{dumped}", names::signal(signal))
            }
        }
    }
}

struct Child {
    ended: oneshot::Sender<Ended>,
    /// Whether the rest of its process group dies with it.
    takes_group_along: bool,
}

#[derive(Default)]
struct Children {
    known: Mutex<HashMap<i32, Child>>,
    started: Condvar,
}

/// Starts and collects children. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Reaper {
    children: Arc<Children>,
}

impl Reaper {
    /// Begins to collect, on a thread of its own that lives as long as the process.
    ///
    /// # Errors
    ///
    /// When the thread can't be started.
    pub(crate) fn start() -> io::Result<Self> {
        let reaper = Self::default();
        let children = reaper.children.clone();
        std::thread::Builder::new()
            .name("reaper".into())
            .spawn(move || children.collect())?;
        Ok(reaper)
    }

    /// Starts `command`, which leads a process group of its own if it was told so, and gives its
    /// number and the news of its end.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn spawn(
        &self,
        command: &mut Command,
        takes_group_along: bool,
    ) -> io::Result<(Pid, oneshot::Receiver<Ended>)> {
        let mut known = self.children.lock();
        let child = command.spawn()?;
        let (ended, news) = oneshot::channel();
        let id = i32::try_from(child.id()).unwrap_or(0);
        let Some(pid) = Pid::from_raw(id) else {
            return Err(io::Error::other("the system gave a child no number"));
        };
        known.insert(
            id,
            Child {
                ended,
                takes_group_along,
            },
        );
        self.children.started.notify_one();
        Ok((pid, news))
    }

    /// Sends `signal` to the process group that `leader` leads. False when the leader has ended.
    pub(crate) fn signal_group(&self, leader: Pid, signal: Signal) -> bool {
        let known = self.children.lock();
        known.contains_key(&leader.as_raw_pid())
            && rustix::process::kill_process_group(leader, signal).is_ok()
    }

    /// Sends `signal` to one process started here.
    pub(crate) fn signal(&self, child: Pid, signal: Signal) -> bool {
        let known = self.children.lock();
        known.contains_key(&child.as_raw_pid())
            && rustix::process::kill_process(child, signal).is_ok()
    }
}

impl Children {
    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Child>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn collect(&self) {
        loop {
            // Waits without collecting: `std` collects a child itself whose program could not be
            // started, and it must find it.
            match rustix::process::waitid(
                WaitId::All,
                WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
            ) {
                Ok(_) => self.collect_ended(),
                Err(Errno::INTR) => {}
                Err(_) => {
                    // No child at all. One of ours is announced; an orphan is not.
                    let known = self.lock();
                    drop(self.started.wait_timeout(known, Duration::from_secs(1)));
                }
            }
        }
    }

    fn collect_ended(&self) {
        let mut known = self.lock();
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let Some(child) = known.remove(&pid.as_raw_pid()) else {
                continue;
            };
            if child.takes_group_along {
                let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            }
            if let Some(ended) = Ended::of(status) {
                let _ = child.ended.send(ended);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_as_the_real_one_does() {
        assert_eq!(Ended::Exited(3).text(), "exit status 3");
        assert_eq!(
            Ended::Signaled {
                signal: 9,
                dumped: false
            }
            .text(),
            "signal: killed"
        );
        assert_eq!(
            Ended::Signaled {
                signal: 11,
                dumped: true
            }
            .text(),
            "signal: segmentation fault (core dumped)"
        );
    }
}
