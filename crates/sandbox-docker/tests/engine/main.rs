//! What only a real engine can show: life and death, leaks, faults from outside.
//!
//! Needs a Docker engine and the images of `cargo xtask images busybox python`; what stops or fills
//! an engine starts one of its own, and needs root. What can't run says `NOT RUN: docker (why)`, and
//! fails where `SANDBOX_REQUIRE` names docker or `CI` is set.
#![allow(
    clippy::unwrap_used,
    reason = "a test program, with a harness of its own"
)]

mod commands;
mod differential;
mod ends;
mod files;
mod image;
mod leaks;
mod life;
mod outage;
mod own_engine;
mod owner;
mod resources;
mod support;

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use sandbox_testkit::engine;

/// What no test takes, on a slow machine and beside others.
const HANGS: Duration = Duration::from_mins(5);

/// A test, in a runtime of its own.
macro_rules! tests {
    ($($module:ident::$name:ident),* $(,)?) => {
        vec![$(test(concat!(stringify!($module), "::", stringify!($name)), $module::$name)),*]
    };
}

fn main() -> ExitCode {
    if let Some(code) = owner::child() {
        return code;
    }
    let mut args = Arguments::from_args();
    // They wait more than they work.
    args.test_threads.get_or_insert(4);
    let trials = engine::trials(&[support::GNU, support::BUSYBOX], || {
        let missing = own_engine::available().err();
        let mut trials = all();
        trials.extend(engine::unless_missing(
            &["outage", "docker"],
            missing,
            with_own_engine,
        ));
        trials
    });
    libtest_mimic::run(&args, trials).exit_code()
}

fn all() -> Vec<Trial> {
    tests![
        commands::a_command_whose_container_dies_is_lost_and_keeps_its_output,
        commands::a_command_that_kills_all_it_may_is_told,
        commands::a_deadline_holds_though_it_was_paused_from_outside,
        commands::a_silent_command_outlives_the_client_s_own_deadline,
        commands::background_commands_live_on_and_die_when_told,
        commands::every_exit_code_arrives,
        commands::frames_in_the_output_are_bytes,
        commands::hundreds_at_once_get_their_own_output,
        commands::paused_from_outside_is_told,
        commands::starting_commands_survive_another_one_s_death,
        commands::stopped_from_outside_is_gone,
        commands::zombies_are_reaped,
        differential::the_mock_answers_as_a_container_of_root,
        differential::the_mock_answers_as_a_container_of_uid_1000,
        ends::a_dropped_future_leaves_nothing,
        ends::a_dropped_runtime_leaves_nothing,
        ends::a_killed_owner_leaves_nothing,
        ends::a_panicking_owner_leaves_nothing,
        ends::a_terminated_owner_leaves_nothing,
        ends::an_exiting_owner_leaves_nothing,
        ends::an_interrupted_owner_leaves_nothing,
        files::a_file_at_a_mount_of_tmpfs_is_seen,
        files::a_file_mounted_below_var_run_is_no_obstacle,
        files::a_root_that_can_only_be_read_is_no_obstacle_elsewhere,
        files::a_running_program_is_not_half_overwritten,
        files::a_sparse_file_is_too_large_at_once,
        files::a_volume_is_there_at_once,
        files::files_belong_to_the_user,
        files::what_the_kernel_makes_up_is_read,
        image::a_device_that_was_removed_is_told,
        image::a_missing_image_names_the_command_that_makes_it,
        image::another_platform_is_refused_and_both_are_named,
        image::an_image_without_a_shell_is_refused,
        image::what_a_loader_complains_of_is_no_obstacle,
        image::its_own_entrypoint_does_not_run,
        leaks::dropped_commands_leave_no_process,
        leaks::dropped_creates_leave_no_container,
        leaks::dropped_uploads_leave_the_sandbox_usable,
        life::a_detached_sandbox_survives_its_owner,
        life::a_foreign_container_can_be_connected_to,
        life::a_foreign_container_of_the_name_is_left_alone,
        life::a_killed_owner_takes_its_sandbox_along,
        life::a_name_can_be_used_again_at_once,
        life::a_name_is_made_once_however_many_ask,
        life::a_terminated_owner_takes_its_sandbox_along,
        life::gc_removes_what_a_dead_owner_left_and_nothing_else,
        life::killing_is_fast,
        life::renewing_under_a_command_does_not_hide_its_end,
        life::the_defaults_are_strict,
        life::the_lifetime_ends_it_and_renewing_moves_the_end,
        life::the_entrypoint_runs_beside_the_commands,
        life::uid_1000_can_not_touch_the_keeper,
        resources::a_hundred_take_little_memory_and_leave_nothing,
        resources::threads_and_descriptors_are_as_before,
    ]
}

fn with_own_engine() -> Vec<Trial> {
    tests![
        outage::a_full_disk_is_told_and_harms_nothing_that_is_there,
        outage::an_engine_that_hangs_is_given_up_and_serves_on_when_it_wakes,
        outage::an_engine_that_is_killed_loses_what_ran_and_serves_on,
        outage::an_engine_that_is_restarted_loses_what_ran_and_serves_on,
    ]
}

fn test<F>(name: &'static str, body: fn() -> F) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let ended = runtime.block_on(async { tokio::time::timeout(HANGS, body()).await.is_ok() });
        if ended {
            Ok(())
        } else {
            Err(format!("it took longer than {HANGS:?}").into())
        }
    })
}
