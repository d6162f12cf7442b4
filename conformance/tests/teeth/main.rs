//! The kit has teeth: each of these backends has one fault that users of such systems have
//! reported, and the kit catches it. The same backend without a fault passes.
//!
//! The faults come from public lists, not from the cases: one that nothing catches is a missing
//! case.

mod broken;
#[allow(clippy::too_many_lines, reason = "tables of faults")]
mod faults;

use std::process::ExitCode;
use std::sync::Arc;

use broken::{BrokenProvider, Hooks};
use faults::Fault;
use futures_util::StreamExt as _;
use libtest_mimic::{Arguments, Failed, Trial};
use sandbox_conformance::{Case, OWN_SKIPS, Outcome, Run, Skip, SkipWhat, Target};
use sandbox_core::Client;

/// Cases of one run at once: those of several runs are under way.
const PARALLEL: usize = 6;

fn main() -> ExitCode {
    let mut args = Arguments::from_args();
    args.test_threads.get_or_insert(4);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => Arc::new(runtime),
        Err(e) => {
            eprintln!("no runtime: {e}");
            return ExitCode::FAILURE;
        }
    };
    let faults = faults::all();
    let count = faults.len();
    let mut trials = Vec::new();
    let shared = runtime.clone();
    trials.push(Trial::test("unbroken_passes", move || {
        shared.block_on(unbroken())
    }));
    for fault in faults {
        let runtime = runtime.clone();
        let name = format!("{}::{}", fault.from, fault.name.replace(' ', "_"));
        trials.push(Trial::test(name, move || runtime.block_on(caught(&fault))));
    }
    let conclusion = libtest_mimic::run(&args, trials);
    if !args.list {
        eprintln!("{count} faults");
    }
    conclusion.exit_code()
}

/// The target of a broken backend. What the mock behind it may skip, it may skip.
fn target(hooks: Hooks) -> Target {
    let skips: Vec<Skip> = OWN_SKIPS
        .iter()
        .filter(|s| s.target == "mock" || s.target == "mock-derived")
        .map(|s| match s.what {
            SkipWhat::Capability(name) => Skip::capability("broken", name, s.reason),
            SkipWhat::Case(name) => Skip::case("broken", name, s.reason),
        })
        .collect();
    Target::new("broken", move || async move {
        Ok(Client::new(BrokenProvider::new(hooks)))
    })
    .skips(&skips)
}

/// Without a fault every case passes, so what is caught is the fault.
async fn unbroken() -> Result<(), Failed> {
    let run = Run::new(target(Hooks::default()));
    let cases = run.target().cases();
    let report = run.all(&cases).await;
    if report.failed > 0 {
        return Err(format!("{:#?}", report.failures).into());
    }
    Ok(())
}

/// Whether a case fails. Several at once are faster; where they kill each other's sandboxes, what
/// each of them says is only known of one at a time.
async fn caught(fault: &Fault) -> Result<(), Failed> {
    for at_once in [PARALLEL, 1] {
        if let Some((name, why)) = catch(fault, at_once).await {
            if std::env::var_os("SANDBOX_TEETH").is_some() {
                eprintln!("{}: {name}: {why}", fault.name);
            }
            return Ok(());
        }
    }
    Err("nothing catches it: a case is missing".into())
}

/// Runs the groups that the fault has to do with, until a case fails. Gives its name, and why.
async fn catch(fault: &Fault, at_once: usize) -> Option<(String, String)> {
    let run = Run::new(target(fault.hooks));
    let cases: Vec<Case> = run
        .target()
        .cases()
        .into_iter()
        .filter(|c| fault.groups.contains(&c.group))
        .collect();
    assert!(!cases.is_empty(), "no group of {:?}", fault.groups);
    let run = &run;
    let mut outcomes = futures_util::stream::iter(cases)
        .map(|case| async move { (case.full_name(), run.case(&case).await) })
        .buffer_unordered(at_once);
    let mut by = None;
    while let Some((name, outcome)) = outcomes.next().await {
        match outcome {
            // A sandbox that can't even be made says nothing about the cases.
            Outcome::Failed(why) if !why.starts_with("no sandbox") => {
                by = Some((name, why));
                break;
            }
            _ => {}
        }
    }
    drop(outcomes);
    run.finish().await;
    by
}
