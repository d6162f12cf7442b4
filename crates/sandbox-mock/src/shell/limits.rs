//! What the engine may take, and why so much.

use std::time::Duration;

use bashkit::{ExecutionLimits, MemoryLimits};

/// The memory a command's values in flight may take: pipes, substitutions, standard input.
const IN_FLIGHT: u64 = 48 << 20;

/// What a command may print to each stream in its life; it is held until the command ends.
const OUTPUT: usize = 64 << 20;

/// Turns of one loop. Loops of the shell stop at a deadline; those inside `awk` only here, within
/// the grace of a deadline (some ten million turns a second).
const LOOP: usize = 30_000_000;

/// Turns of all loops of one command.
const LOOPS: usize = 1_000_000_000;

/// The limits of one command in a sandbox with `memory` bytes.
pub(super) fn execution(memory: u64) -> ExecutionLimits {
    ExecutionLimits::cli()
        // Deadlines are kept outside: the engine's own would lose the output.
        .timeout(Duration::from_secs(u64::MAX / 4))
        .parser_timeout(Duration::from_secs(30))
        .max_work_units(u64::MAX)
        .max_aggregate_input_bytes(u64::MAX)
        .max_live_intermediate_bytes((memory / 4).min(IN_FLIGHT))
        .max_stdout_bytes(OUTPUT)
        .max_stderr_bytes(OUTPUT)
        .max_input_bytes(16 << 20)
        .max_parser_operations(10_000_000)
        .max_word_split_fields(1_000_000)
        .max_word_split_bytes(16 << 20)
        .max_background_jobs(64)
        .max_loop_iterations(LOOP)
        .max_total_loop_iterations(LOOPS)
}

/// The limits of its variables.
pub(super) fn variables(memory: u64) -> MemoryLimits {
    MemoryLimits::new()
        .max_total_variable_bytes(
            usize::try_from(memory / 16)
                .unwrap_or(usize::MAX)
                .min(16 << 20),
        )
        .max_array_entries(1_000_000)
}
