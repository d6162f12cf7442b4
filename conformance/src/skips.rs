//! What targets may skip. One list, in the repository, with reasons.

/// One thing that one target, or all targets of a backend, may skip.
///
/// ```
/// use sandbox_conformance::Skip;
///
/// let skips = [
///     Skip::capability("acme", "fifos", "its file system has none"),
///     Skip::case("acme", "execute::text_beyond_the_argument_limit_works", "issue 12"),
/// ];
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The name of a target, or of a backend for all its targets.
    pub target: &'static str,
    /// What is skipped.
    pub what: SkipWhat,
    /// Why.
    pub reason: &'static str,
}

/// What a [`Skip`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipWhat {
    /// All cases that need this capability: it is not claimed. That it is refused is checked.
    Capability(&'static str),
    /// The case `group::name`: it is known to fail.
    Case(&'static str),
}

impl Skip {
    /// `target` does not claim `capability`.
    pub const fn capability(
        target: &'static str,
        capability: &'static str,
        reason: &'static str,
    ) -> Self {
        Self {
            target,
            what: SkipWhat::Capability(capability),
            reason,
        }
    }

    /// `target` is known to fail `case`.
    pub const fn case(target: &'static str, case: &'static str, reason: &'static str) -> Self {
        Self {
            target,
            what: SkipWhat::Case(case),
            reason,
        }
    }
}

/// What the targets of this repository may skip.
pub const OWN_SKIPS: &[Skip] = &[
    Skip::capability("mock", "control_characters_in_commands", CONTROL),
    Skip::capability("mock", "process_table", PROCESSES),
    Skip::capability("mock-derived", "streaming", HIDDEN),
    Skip::capability("mock-derived", "processes", HIDDEN),
    Skip::capability("mock-derived", "lease", HIDDEN),
    Skip::capability("mock-derived", "snapshots", HIDDEN),
    Skip::capability("mock-derived-uid1000", "streaming", HIDDEN),
    Skip::capability("mock-derived-uid1000", "processes", HIDDEN),
    Skip::capability("mock-derived-uid1000", "lease", HIDDEN),
    Skip::capability("mock-derived-uid1000", "snapshots", HIDDEN),
    Skip::capability("docker-gnu-root", "reports_signals", ENGINE_SIGNALS),
    Skip::capability("docker-gnu-root", "output_order", TWO_PIPES),
    Skip::capability("docker-gnu-root", "snapshots", NO_SNAPSHOTS),
    Skip::capability("docker-busybox-uid1000", "reports_signals", ENGINE_SIGNALS),
    Skip::capability("docker-busybox-uid1000", "output_order", TWO_PIPES),
    Skip::capability("docker-busybox-uid1000", "snapshots", NO_SNAPSHOTS),
    Skip::capability("opensandbox", "output_order", TWO_FILES),
    Skip::capability("opensandbox", "snapshots", SNAPSHOTS_LATER),
    Skip::case(
        "opensandbox-stock-busybox-uid1000-proxy",
        "execute::commands_leave_no_file_behind",
        STOCK_FILES,
    ),
    Skip::case(
        "opensandbox-stock-gnu-root-direct",
        "execute::commands_leave_no_file_behind",
        STOCK_FILES,
    ),
];

const TWO_FILES: &str = "the exact bytes travel in two files, with no order between them";
const STOCK_FILES: &str = "the real daemon keeps its files in /tmp for ever";
const SNAPSHOTS_LATER: &str = "the server can take some, the backend does not ask for them yet";

const ENGINE_SIGNALS: &str = "the engine gives an exit code only: 137 may be either";
const TWO_PIPES: &str = "the engine reads two pipes and keeps no order between them";
const NO_SNAPSHOTS: &str = "the Docker backend takes none yet";

const CONTROL: &str = "the mock's shell has no control characters in names";
const PROCESSES: &str = "the mock's shell has no processes that others could see";
const HIDDEN: &str = "this target hides the optional families";
