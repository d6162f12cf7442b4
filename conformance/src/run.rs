//! Runs cases against a target.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use sandbox_core::{Capabilities, Client, Command, Error, ErrorKind, Result, Sandbox};
use tokio::sync::{Mutex, OnceCell};

use crate::skips::SkipWhat;
use crate::{Case, CaseResult, Cx, Failure, Target, TargetReport};

/// How many cases run at once.
pub(crate) const PARALLEL: usize = 8;

/// How a case went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The promise holds.
    Passed,
    /// It is on the list of skips. The text is the reason.
    Skipped(String),
    /// The promise does not hold. The text says what was seen.
    Failed(String),
}

/// Directories for cases that one command makes: it costs a round trip.
const AT_ONCE: u64 = 32;

/// Where the cases of a group find their sandbox, once the first has made it.
type Slot = Arc<Mutex<Option<Shared>>>;

/// A sandbox that cases share.
#[derive(Debug)]
struct Shared {
    sandbox: Sandbox,
    /// Directories that are there, each for one case.
    unused: Range<u64>,
}

/// A run of one target: the client and the sandboxes that groups share.
#[derive(Debug)]
pub struct Run {
    target: Target,
    client: OnceCell<Client>,
    shared: Mutex<HashMap<&'static str, Slot>>,
    capabilities: std::sync::OnceLock<Capabilities>,
    directories: AtomicU64,
}

impl Run {
    /// A run that has not begun.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            client: OnceCell::new(),
            shared: Mutex::default(),
            capabilities: std::sync::OnceLock::new(),
            directories: AtomicU64::new(0),
        }
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What the sandboxes of the target claim; known once a case has run.
    pub fn capabilities(&self) -> Option<&Capabilities> {
        self.capabilities.get()
    }

    /// Runs one case. Never panics, and ends within the case's limit and some seconds.
    pub async fn case(&self, case: &Case) -> Outcome {
        let cx = match tokio::time::timeout(case.limit, self.prepare(case)).await {
            Ok(Ok(cx)) => cx,
            Ok(Err(e)) => return Outcome::Failed(format!("no sandbox for the case: {e}")),
            Err(_) => return Outcome::Failed("a sandbox for the case took too long".to_owned()),
        };
        let _ = self.capabilities.set(cx.caps());
        let outcome = self.judge(case, &cx).await;
        if case.fresh {
            // Most of these killed it themselves; that is a success too.
            let _ = tokio::time::timeout(Duration::from_secs(10), cx.sandbox.kill()).await;
        } else if matches!(outcome, Outcome::Failed(_)) {
            // It may be damaged: later cases get another one.
            self.slot(case.group).await.lock().await.take();
        }
        outcome
    }

    /// Runs `cases`, several at once, and sums them up.
    pub async fn all(&self, cases: &[Case]) -> TargetReport {
        let outcomes: Vec<(Case, Outcome)> = stream::iter(cases.iter().copied())
            .map(|case| async move { (case, self.case(&case).await) })
            .buffer_unordered(PARALLEL)
            .collect()
            .await;
        self.finish().await;
        TargetReport::new(&self.target, self.capabilities(), &outcomes)
    }

    /// Ends the shared sandboxes.
    pub async fn finish(&self) {
        for (_, slot) in self.shared.lock().await.drain() {
            if let Some(shared) = slot.lock().await.take() {
                // Its lifetime is the second net, and the report is about the cases.
                let _ = tokio::time::timeout(Duration::from_secs(30), shared.sandbox.kill()).await;
            }
        }
    }

    async fn judge(&self, case: &Case, cx: &Cx) -> Outcome {
        let listed = self.target.skip(case);
        let need = case.need.filter(|n| !(n.claimed)(&cx.caps()));
        match (need, listed) {
            (Some(need), listed) => {
                let refusal = match need.otherwise {
                    Some(otherwise) => guarded(case.limit, otherwise, cx.clone()).await,
                    None => match guarded(case.limit, case.run, cx.clone()).await {
                        Err(Failure::Error(e)) if e.kind() == ErrorKind::Unsupported => Ok(()),
                        Err(other) => Err(other),
                        Ok(()) => Err(Failure::Wrong("it works".to_owned())),
                    },
                };
                match (refusal, listed) {
                    (Err(why), _) => Outcome::Failed(format!(
                        "`{}` is not claimed, so this must be refused: {why}",
                        need.name
                    )),
                    (Ok(()), Some(skip)) => Outcome::Skipped(format!(
                        "`{}` is not claimed, and refused: {}",
                        need.name, skip.reason
                    )),
                    (Ok(()), None) => Outcome::Failed(format!(
                        "`{}` is not claimed, and that is not on the list of skips",
                        need.name
                    )),
                }
            }
            (None, Some(skip)) if matches!(skip.what, SkipWhat::Capability(_)) => {
                Outcome::Failed(format!(
                    "the list of skips says that {:?} is not claimed, but it is: remove the row",
                    skip.what
                ))
            }
            (None, Some(skip)) => match guarded(case.limit, case.run, cx.clone()).await {
                Ok(()) => Outcome::Failed(
                    "it is on the list of skips, but it passes: remove the row".to_owned(),
                ),
                Err(_) => Outcome::Skipped(skip.reason.to_owned()),
            },
            (None, None) => match guarded(case.limit, case.run, cx.clone()).await {
                Ok(()) => Outcome::Passed,
                Err(why) => Outcome::Failed(why.to_string()),
            },
        }
    }

    /// The sandbox of a case and its directory.
    async fn prepare(&self, case: &Case) -> Result<Cx> {
        let client = self.client.get_or_try_init(|| self.target.client()).await?;
        let spec = self.target.sandbox_spec();
        let (sandbox, n) = if case.fresh {
            let sandbox = client.create(spec.clone()).await?;
            let n = self.make_directories(&sandbox, 1).await?.start;
            (sandbox, n)
        } else {
            let slot = self.slot(case.group).await;
            let mut slot = slot.lock().await;
            let shared = match &mut *slot {
                Some(shared) => shared,
                none => none.insert(Shared {
                    sandbox: client.create(spec.clone()).await?,
                    unused: 0..0,
                }),
            };
            if shared.unused.is_empty() {
                shared.unused = self.make_directories(&shared.sandbox, AT_ONCE).await?;
            }
            let n = shared.unused.start;
            shared.unused.start += 1;
            (shared.sandbox.clone(), n)
        };
        Ok(Cx {
            sandbox,
            client: client.clone(),
            spec: spec.clone(),
            dir: directory(n),
        })
    }

    /// Makes directories for that many cases, with numbers that no other case has.
    async fn make_directories(&self, sandbox: &Sandbox, count: u64) -> Result<Range<u64>> {
        let first = self.directories.fetch_add(count, Ordering::Relaxed);
        let numbers = first..first + count;
        let paths: Vec<String> = numbers.clone().map(directory).collect();
        let mkdir = Command::shell(format!("mkdir -p {}", paths.join(" ")));
        let made = sandbox
            .execute(mkdir.timeout(Duration::from_secs(30)))
            .await?;
        if !made.success() {
            return Err(Error::new(ErrorKind::Unexpected, "`mkdir` failed")
                .with("status", &made.status)
                .with("output", made.output()));
        }
        Ok(numbers)
    }

    async fn slot(&self, group: &'static str) -> Slot {
        self.shared.lock().await.entry(group).or_default().clone()
    }
}

/// The directory of a case.
fn directory(number: u64) -> String {
    format!("/tmp/kit-{number}")
}

/// Runs the body of a case in a task of its own: a panic and a hang are failures of this case.
async fn guarded(limit: Duration, run: crate::case::CaseFn, cx: Cx) -> CaseResult {
    let mut task = tokio::spawn(run(cx));
    match tokio::time::timeout(limit, &mut task).await {
        Ok(Ok(result)) => result,
        Ok(Err(e)) => Err(Failure::Wrong(format!("the case panicked: {e}"))),
        Err(_) => {
            task.abort();
            Err(Failure::Wrong(format!(
                "the case took longer than {limit:?}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use sandbox_mock::{MockConfig, MockProvider};

    use super::*;
    use crate::{Need, Skip};

    async fn outcome(case: Case, skips: &[Skip]) -> Outcome {
        let target = Target::new("mock", async || {
            Ok(Client::new(MockProvider::with(
                MockConfig::new().hide_families(),
            )))
        });
        let run = Run::new(target.skips(skips));
        let outcome = run.case(&case).await;
        run.finish().await;
        outcome
    }

    fn failed(outcome: &Outcome, why: &str) -> bool {
        matches!(outcome, Outcome::Failed(text) if text.contains(why))
    }

    const GOOD: Case = Case::new("g", "good", |_| Box::pin(async { Ok(()) }));
    const BAD: Case = Case::new("g", "bad", |_| {
        Box::pin(async { Err(Failure::Wrong("seen".to_owned())) })
    });
    /// Asks for what the target hides.
    const HIDDEN: Case = Case::new("g", "hidden", |cx| {
        Box::pin(async move { Ok(cx.sandbox.spawn("true").await.map(|_| ())?) })
    })
    .needs(Need {
        name: "processes",
        claimed: |c| c.processes,
        otherwise: None,
    });

    #[tokio::test]
    async fn a_skip_is_on_the_list_and_what_could_run_is_not() {
        let bad = [Skip::case("mock", "g::bad", "known")];
        assert_eq!(outcome(GOOD, &[]).await, Outcome::Passed);
        assert!(failed(&outcome(BAD, &[]).await, "seen"));
        let known = Outcome::Skipped("known".to_owned());
        assert_eq!(outcome(BAD, &bad).await, known);
        let good = [Skip::case("mock", "g::good", "not so")];
        assert!(failed(&outcome(GOOD, &good).await, "it passes"));
        let other = [Skip::case("other", "g::bad", "another's")];
        assert!(failed(&outcome(BAD, &other).await, "seen"));
    }

    #[tokio::test]
    async fn what_is_not_claimed_is_refused_and_on_the_list() {
        let listed = [Skip::capability("mock", "processes", "hidden here")];
        assert!(failed(&outcome(HIDDEN, &[]).await, "not on the list"));
        let skipped = outcome(HIDDEN, &listed).await;
        assert!(matches!(skipped, Outcome::Skipped(why) if why.contains("hidden here")));
        // It works all the same, or fails otherwise than by a refusal.
        for run in [GOOD.run, BAD.run] {
            let case = Case { run, ..HIDDEN };
            assert!(failed(&outcome(case, &listed).await, "must be refused"));
        }
        let claimed = Need {
            claimed: |_| true,
            ..HIDDEN.need.unwrap()
        };
        let claimed = GOOD.needs(claimed);
        assert!(failed(&outcome(claimed, &listed).await, "remove the row"));
    }

    #[tokio::test]
    async fn a_panic_and_a_hang_are_failures_of_their_case() {
        let panics = Case::new("g", "panics", |_| {
            Box::pin(async { panic!("on purpose: the message before this is not a failure") })
        });
        assert!(failed(&outcome(panics, &[]).await, "panicked"));
        let mut hangs = Case::new("g", "hangs", |_| Box::pin(std::future::pending()));
        hangs.limit = Duration::from_millis(200);
        assert!(failed(&outcome(hangs, &[]).await, "took longer"));
    }
}
