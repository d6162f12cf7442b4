//! The commands that run and the last of those that ran, by id.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::process::Pid;

use super::output::BackgroundOutput;
use crate::clock::Instant;
use crate::json::Object;

/// How many commands may run at once.
const RUNNING_LIMIT: usize = 2048;
/// How many ended ones are remembered, and how long.
const ENDED_LIMIT: usize = 1024;
const ENDED_KEPT: Duration = Duration::from_hours(24);
/// A longer text can't have been run: the system's limit on one argument.
const LONGEST_TEXT: usize = 128 * 1024;

/// How a command ended, as a status tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) code: i32,
    /// Empty when it exited with 0.
    pub(crate) error: String,
    at: SystemTime,
}

impl End {
    pub(crate) fn now(code: i32, error: String) -> Self {
        Self {
            code,
            error,
            at: SystemTime::now(),
        }
    }
}

/// One command.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) id: String,
    text: String,
    started: SystemTime,
    /// Its number while it runs.
    pub(crate) leader: Option<Pid>,
    end: Mutex<Option<End>>,
    /// What it printed, if it runs in the background.
    pub(crate) output: Option<BackgroundOutput>,
}

impl Record {
    pub(crate) fn new(
        id: &str,
        text: &str,
        started: SystemTime,
        leader: Option<Pid>,
        output: Option<BackgroundOutput>,
    ) -> Arc<Self> {
        let text = text[..text.floor_char_boundary(LONGEST_TEXT)].to_owned();
        Arc::new(Self {
            id: id.into(),
            text,
            started,
            leader,
            end: Mutex::default(),
            output,
        })
    }

    fn end(&self) -> MutexGuard<'_, Option<End>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.end().is_none()
    }

    pub(crate) fn finish(&self, end: End) {
        *self.end() = Some(end);
    }

    fn ended_before(&self, moment: SystemTime) -> bool {
        self.end().as_ref().is_some_and(|end| end.at < moment)
    }

    /// The answer to a question for its status.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let end = self.end().clone();
        let mut out = Object::new()
            .str("id", &self.id)
            .str("content", &self.text)
            .bool("running", end.is_none());
        if let Some(end) = &end {
            out = out.int("exit_code", end.code);
            if !end.error.is_empty() {
                out = out.str("error", &end.error);
            }
        }
        out = out.str("started_at", Instant::from(self.started).rfc3339());
        if let Some(end) = &end {
            out = out.str("finished_at", Instant::from(end.at).rfc3339());
        }
        out.finish()
    }
}

#[derive(Debug, Default)]
struct Inner {
    records: HashMap<String, Arc<Record>>,
    /// In the order they came.
    order: VecDeque<Arc<Record>>,
    running: usize,
}

/// All commands. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registry {
    inner: Arc<Mutex<Inner>>,
}

/// The right to run one more command; given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    registry: Registry,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.registry.lock().running -= 1;
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to run one more, unless too many run.
    pub(crate) fn slot(&self) -> Option<Slot> {
        let mut inner = self.lock();
        if inner.running >= RUNNING_LIMIT {
            return None;
        }
        inner.running += 1;
        Some(Slot {
            registry: self.clone(),
        })
    }

    /// Remembers a command, and forgets ended ones that are too many or too old.
    pub(crate) fn insert(&self, record: Arc<Record>) {
        let mut inner = self.lock();
        inner.records.insert(record.id.clone(), record.clone());
        inner.order.push_back(record);
        let oldest = SystemTime::now()
            .checked_sub(ENDED_KEPT)
            .unwrap_or(SystemTime::UNIX_EPOCH);
        let mut surplus = inner
            .order
            .len()
            .saturating_sub(inner.running + ENDED_LIMIT);
        let Inner { records, order, .. } = &mut *inner;
        order.retain(|it| {
            let ended = !it.is_running();
            let forget = ended && (surplus > 0 || it.ended_before(oldest));
            if forget {
                surplus = surplus.saturating_sub(1);
                records.remove(&it.id);
            }
            !forget
        });
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Record>> {
        self.lock().records.get(id).cloned()
    }

    /// Those that run.
    pub(crate) fn running(&self) -> Vec<Arc<Record>> {
        self.lock()
            .order
            .iter()
            .filter(|it| it.is_running())
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str) -> Arc<Record> {
        Record::new(id, "echo > x", SystemTime::UNIX_EPOCH, None, None)
    }

    #[test]
    fn a_status_is_as_recorded() {
        let it = record("a");
        assert_eq!(
            it.to_json(),
            br#"{"id":"a","content":"echo \u003e x","running":true,"started_at":"1970-01-01T00:00:00Z"}"#
        );
        it.finish(End {
            code: -1,
            error: "signal: killed".into(),
            at: SystemTime::UNIX_EPOCH,
        });
        let json = String::from_utf8(it.to_json()).unwrap();
        assert!(
            json.contains(r#""running":false,"exit_code":-1,"error":"signal: killed","started_at"#)
        );
        assert!(json.ends_with(r#""finished_at":"1970-01-01T00:00:00Z"}"#));
    }

    #[test]
    fn ended_ones_are_forgotten_but_never_running_ones() {
        let registry = Registry::default();
        let running = record("running");
        let slot = registry.slot().unwrap();
        registry.insert(running);
        for at in 0..ENDED_LIMIT + 10 {
            let it = record(&at.to_string());
            it.finish(End::now(0, String::new()));
            registry.insert(it);
        }
        assert!(registry.get("running").is_some());
        assert!(registry.get("0").is_none());
        assert!(registry.get(&(ENDED_LIMIT + 9).to_string()).is_some());
        assert!(registry.lock().order.len() <= ENDED_LIMIT + 1);
        assert_eq!(registry.running().len(), 1);
        drop(slot);
        assert_eq!(registry.lock().running, 0);
    }

    #[test]
    fn a_text_that_can_not_run_is_not_kept_whole() {
        let it = Record::new("a", &"é".repeat(100_000), SystemTime::now(), None, None);
        assert!(it.text.len() <= LONGEST_TEXT);
    }
}
