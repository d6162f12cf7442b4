//! The record of what reached the backend, and the one place every call passes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbox_core::{Error, ErrorKind, Operation, Result, SandboxId, Status};

use crate::clock;
use crate::faults::{Faults, Verdict};

/// Calls kept; of older ones only their number is known.
const KEPT: usize = 10_000;

/// Characters of a call's summary.
const SUMMARY: usize = 200;

/// A call that reached the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// What was called: one of the four methods, or of an optional family.
    pub operation: Operation,
    /// The sandbox, unless it was the provider's call.
    pub sandbox: Option<SandboxId>,
    /// The arguments, shortened: the shell text or argv, the paths, the pattern.
    pub summary: String,
    /// How it went.
    pub outcome: Outcome,
}

/// How a call went.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It has not answered yet.
    Running,
    /// It succeeded.
    Done,
    /// A command ended like this.
    Ended(Status),
    /// It failed; for a batch of files, one of them did.
    Failed(ErrorKind),
    /// Its caller did not wait for the answer.
    Dropped,
}

/// What reached the backend: of all sandboxes of one provider, in the order of their beginnings.
/// The last 10,000 calls are kept, all are counted.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use sandbox_core::{Client, Operation, SandboxSpec};
/// use sandbox_mock::MockProvider;
///
/// let provider = MockProvider::new();
/// let sandbox = Client::new(provider.clone()).create(SandboxSpec::new()).await?;
/// sandbox.execute("true").await?;
/// assert_eq!(provider.record().count(Operation::Execute), 1);
/// assert_eq!(provider.record().calls()[1].summary, "true");
/// # Ok::<(), sandbox_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Record(Arc<Control>);

impl Record {
    pub(crate) fn new(control: Arc<Control>) -> Self {
        Self(control)
    }

    /// The calls.
    pub fn calls(&self) -> Vec<Call> {
        self.0.lock().calls.iter().cloned().collect()
    }

    /// How many calls of an operation there were.
    pub fn count(&self, operation: Operation) -> u64 {
        let state = self.0.lock();
        state.counts.get(&operation).copied().unwrap_or_default()
            - state.counted.get(&operation).copied().unwrap_or_default()
    }

    /// How many calls there were: the round trips, were this sandbox far away.
    pub fn total(&self) -> u64 {
        let state = self.0.lock();
        state.counts.values().sum::<u64>() - state.counted.values().sum::<u64>()
    }

    /// Forgets the calls so far. The numbers that [`Faults`] go by run on.
    pub fn clear(&self) {
        let mut state = self.0.lock();
        state.first += state.calls.len() as u64;
        state.calls.clear();
        let State {
            counts, counted, ..
        } = &mut *state;
        counted.clone_from(counts);
    }
}

/// What a provider and its sandboxes share: the script of faults and the record.
#[derive(Debug, Default)]
pub(crate) struct Control {
    faults: Faults,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: HashMap<Operation, u64>,
    /// The counts when the record was last cleared.
    counted: HashMap<Operation, u64>,
    calls: VecDeque<Call>,
    /// The number of the first call kept.
    first: u64,
}

impl Control {
    pub(crate) fn new(faults: Faults) -> Arc<Self> {
        Arc::new(Self {
            faults,
            state: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts and records a call and does what the script says: waits, fails.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        operation: Operation,
        sandbox: Option<&SandboxId>,
        summary: &str,
    ) -> Result<Active> {
        let summary = match summary.char_indices().nth(SUMMARY) {
            Some((end, _)) => format!("{}…", &summary[..end]),
            None => summary.to_owned(),
        };
        let (number, verdict) = {
            let mut state = self.lock();
            let count = state.counts.entry(operation).or_default();
            *count += 1;
            let verdict = self.faults.verdict(operation, *count);
            if state.calls.len() == KEPT {
                state.calls.pop_front();
                state.first += 1;
            }
            state.calls.push_back(Call {
                operation,
                sandbox: sandbox.cloned(),
                summary,
                outcome: Outcome::Running,
            });
            (state.first + state.calls.len() as u64 - 1, verdict)
        };
        let mut active = Active {
            control: self.clone(),
            number,
            verdict,
            done: false,
        };
        if !verdict.delay.is_zero() {
            clock::sleep(verdict.delay).await;
        }
        match verdict.fail {
            Some(kind) => {
                active.end(Outcome::Failed(kind));
                Err(scripted(kind))
            }
            None => Ok(active),
        }
    }

    /// [`begin`](Self::begin), then `call`, then its result into the record.
    pub(crate) async fn around<T>(
        self: &Arc<Self>,
        operation: Operation,
        sandbox: Option<&SandboxId>,
        summary: &str,
        call: impl AsyncFnOnce(Verdict) -> Result<T>,
    ) -> Result<T> {
        let mut active = self.begin(operation, sandbox, summary).await?;
        let result = call(active.verdict).await;
        active.end(match &result {
            Ok(_) => Outcome::Done,
            Err(e) => Outcome::Failed(e.kind()),
        });
        result
    }
}

fn scripted(kind: ErrorKind) -> Error {
    Error::new(kind, "the script of faults says so")
}

/// A call under way. Dropping it without an end records that nobody waited.
#[derive(Debug)]
pub(crate) struct Active {
    control: Arc<Control>,
    number: u64,
    pub(crate) verdict: Verdict,
    done: bool,
}

impl Active {
    pub(crate) fn end(&mut self, outcome: Outcome) {
        self.done = true;
        let mut state = self.control.lock();
        let index = self.number.checked_sub(state.first);
        let index = index.and_then(|i| usize::try_from(i).ok());
        if let Some(call) = index.and_then(|i| state.calls.get_mut(i)) {
            call.outcome = outcome;
        }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        if !self.done {
            self.end(Outcome::Dropped);
        }
    }
}
