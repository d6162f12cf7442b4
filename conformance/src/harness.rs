//! The test program: `target::group::case` for each, under libtest's command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::run::PARALLEL;
use crate::{Availability, Case, Outcome, Run, Target, TargetReport, report, unavailable};

/// A target of this program and what came of it.
struct Planned {
    run: Arc<Run>,
    outcomes: Arc<Mutex<Vec<(Case, Outcome)>>>,
}

/// Runs the kit on `targets`, as the environment and the command line say (see the crate's
/// documentation), and gives the exit code of the test program.
pub fn main(targets: Vec<Target>) -> ExitCode {
    let mut args = Arguments::from_args();
    // Cases wait more than they work.
    args.test_threads.get_or_insert(PARALLEL);
    let wanted = std::env::var("SANDBOX_TARGET")
        .ok()
        .filter(|t| !t.is_empty());
    let file = std::env::var_os("SANDBOX_REPORT").map(PathBuf::from);

    let names: Vec<&str> = targets.iter().map(Target::name).collect();
    let is_wanted = |t: &Target| {
        wanted
            .as_deref()
            .is_none_or(|w| w == t.name() || w == t.backend())
    };
    let chosen: Vec<Target> = targets.into_iter().filter(is_wanted).collect();
    if let (Some(wanted), true) = (&wanted, chosen.is_empty()) {
        eprintln!(
            "there is no target `{wanted}` here; there are: {}",
            names.join(", ")
        );
        return ExitCode::FAILURE;
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => Arc::new(runtime),
        Err(e) => {
            eprintln!("no runtime for the cases: {e}");
            return ExitCode::FAILURE;
        }
    };

    let mut trials = Vec::new();
    let mut planned = Vec::new();
    let mut not_run = Vec::new();
    for target in chosen {
        if let Availability::NotRun(why) = target.is_available() {
            trials.push(unavailable(&[target.name(), target.backend()], why));
            not_run.push(TargetReport::not_run(&target, why));
            continue;
        }
        trials.push(list_of_skips(&target));
        let cases = target.cases();
        let plan = Planned {
            run: Arc::new(Run::new(target)),
            outcomes: Arc::default(),
        };
        trials.extend(cases.into_iter().map(|case| trial(&plan, &runtime, case)));
        planned.push(plan);
    }

    let conclusion = libtest_mimic::run(&args, trials);
    if args.list {
        return ExitCode::SUCCESS;
    }
    for plan in &planned {
        runtime.block_on(plan.run.finish());
    }
    // Sandboxes that a case dropped end before the program does.
    if !sandbox_core::flush(Duration::from_secs(30)) {
        eprintln!("some sandboxes may live on until their lifetime ends");
    }
    let mut failed = conclusion.has_failed();
    if let Some(file) = file {
        let mut reports: Vec<TargetReport> = planned
            .iter()
            .map(|plan| {
                let outcomes = plan.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                TargetReport::new(plan.run.target(), plan.run.capabilities(), &outcomes)
            })
            .collect();
        reports.extend(not_run.iter().cloned());
        if let Err(e) = report::write(&file, &reports) {
            eprintln!("{e:?}");
            failed = true;
        }
    }
    for report in &not_run {
        eprintln!(
            "NOT RUN: {} ({})",
            report.target,
            report.not_run.as_deref().unwrap_or("")
        );
    }
    if failed {
        ExitCode::from(101)
    } else {
        ExitCode::SUCCESS
    }
}

fn trial(plan: &Planned, runtime: &Arc<tokio::runtime::Runtime>, case: Case) -> Trial {
    let (run, outcomes, runtime) = (plan.run.clone(), plan.outcomes.clone(), runtime.clone());
    let name = format!("{}::{}", run.target().name(), case.full_name());
    Trial::ignorable_test(name, move || {
        let outcome = runtime.block_on(run.case(&case));
        let result = match &outcome {
            Outcome::Passed => Ok(Completion::Completed),
            Outcome::Skipped(reason) => Ok(Completion::ignored_with(reason)),
            Outcome::Failed(why) => Err(Failed::from(why)),
        };
        outcomes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((case, outcome));
        result
    })
}

/// Rows of the list of skips that name nothing hide a mistake.
fn list_of_skips(target: &Target) -> Trial {
    let stale: Vec<String> = target
        .stale_skips()
        .iter()
        .map(|s| format!("{:?}", s.what))
        .collect();
    Trial::test(
        format!("{}::the_list_of_skips_names_what_exists", target.name()),
        move || {
            if stale.is_empty() {
                Ok(())
            } else {
                Err(Failed::from(format!(
                    "no case has to do with: {}",
                    stale.join(", ")
                )))
            }
        },
    )
}
