//! Every default number, with its reason.

use std::time::Duration;

/// Commands have no deadline unless asked: an agent's build or training run may take hours, and
/// the lifetime of the sandbox bounds them all.
pub const COMMAND_TIMEOUT: Option<Duration> = None;

/// The longest deadline taken as such; a longer one means this one. Far beyond any lifetime, and
/// small enough that no clock arithmetic overflows.
pub const COMMAND_TIMEOUT_MAX: Duration = Duration::from_hours(24 * 366);

/// How long after its deadline a command's process tree may take to be proven dead before the
/// whole sandbox is killed.
pub const KILL_GRACE: Duration = Duration::from_secs(5);

/// What is kept of each output stream: the first and the last half of it. A model reads some
/// 10 KiB; 1 MiB is enough for a program that parses the output.
pub const OUTPUT_LIMIT: u64 = 1 << 20;

/// The largest file that a download into memory takes; `download_to` has no limit.
pub const DOWNLOAD_LIMIT: u64 = 256 << 20;

/// How long a sandbox lives unless renewed: the time of the longest usual agent session.
pub const LIFETIME: Duration = Duration::from_mins(30);

/// Where commands start, made for the command's user.
pub const WORKDIR: &str = "/workspace";

/// Memory of a sandbox in bytes: enough for pandas on a small file.
pub const MEMORY: u64 = 1 << 30;

/// CPU time in thousandths of a CPU.
pub const MILLI_CPUS: u64 = 1000;

/// Processes and threads at once: a build with `make -j` passes, a fork bomb does not.
pub const PIDS: u64 = 512;

/// Lines that `read` hands out when nothing else is asked (Deep Agents' number).
pub const READ_LINES: u64 = 2000;

/// The largest page of `read`, and the largest binary file it hands out, in bytes (Deep Agents'
/// number).
pub const READ_BYTES: u64 = 500 << 10;

/// Paths that `glob` reports at most.
pub const GLOB_MATCHES: u64 = 10_000;

/// How long `glob` searches.
pub const GLOB_TIME: Duration = Duration::from_secs(5);

/// How long `grep` searches.
pub const GREP_TIME: Duration = Duration::from_secs(30);

/// Hits that `grep` reports when nothing else is asked.
pub const GREP_MATCHES: u64 = 10_000;

/// Bytes of a matching line that `grep` reports.
pub const GREP_LINE: u64 = 8 << 10;

/// What an internal command of a derived operation may print, in bytes. Larger is an error or a
/// marked gap, never a silent cut.
pub const INTERNAL_OUTPUT: u64 = 64 << 20;

/// Bytes that one `upload_dir` or `download_dir` moves at most.
pub const TREE_LIMIT: u64 = 1 << 30;

/// Entries that one `upload_dir` or `download_dir` moves at most.
pub const TREE_ENTRIES: u64 = 100_000;

/// How long an internal command without a budget of its own may take.
pub const INTERNAL_TIME: Duration = Duration::from_mins(2);
