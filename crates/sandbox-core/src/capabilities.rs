//! What a live sandbox can do.

/// What a sandbox can do. What is claimed works; what is not claimed is refused with
/// [`crate::ErrorKind::Unsupported`], or lowered by core (each field says which).
///
/// ```
/// use sandbox_core::Capabilities;
///
/// let text_and_timeout_only = Capabilities::none();
/// let more = Capabilities::none().with(|c| {
///     c.execute_argv = true;
///     c.execute_max_text = Some(128 << 10);
/// });
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools, reason = "a set of independent facts")]
pub struct Capabilities {
    /// `execute` takes [`crate::Program::Argv`]. Else core quotes it into shell text.
    pub execute_argv: bool,
    /// `execute` takes a cwd. Else core lowers it to a wrapper.
    pub execute_cwd: bool,
    /// `execute` takes variables. Else core lowers them to a wrapper.
    pub execute_env: bool,
    /// `execute` runs as any user of the image. Else a command with a user is refused.
    pub execute_user: bool,
    /// `execute` takes stdin. Else core uploads it as a file first.
    pub execute_stdin: bool,
    /// `execute` merges stderr into stdout on request. Else core lowers it to a wrapper.
    pub execute_merge_stderr: bool,
    /// stdout and stderr are kept apart. Else all output is in stdout.
    pub separate_streams: bool,
    /// [`crate::ExecuteResponse::ordered`] is exact without merging.
    pub output_order: bool,
    /// [`crate::Status::Signaled`] is told from an exit code above 128.
    pub reports_signals: bool,
    /// The longest shell text or single argument in bytes that `execute` takes. Core moves longer
    /// text through a file. `None`: any length.
    pub execute_max_text: Option<u64>,

    /// File names with control characters work in commands (they always do in file operations).
    pub control_characters_in_commands: bool,
    /// Files have owners, and `chown` and the permission bits of others are enforced.
    pub file_owners: bool,
    /// `ln` makes hard links.
    pub hard_links: bool,
    /// `mkfifo` makes FIFOs.
    pub fifos: bool,
    /// Commands see each other's processes: `kill`, `/proc`.
    pub process_table: bool,
    /// Programs of the image run: `python3`, compilers, package managers.
    pub native_programs: bool,
    /// Commands reach an outside network.
    pub network: bool,

    /// Output arrives while a command runs. Filled in by core from the accessor, as the following.
    pub streaming: bool,
    /// Background commands.
    pub processes: bool,
    /// File operations that the backend does itself. Nothing depends on it but speed.
    pub native_files: bool,
    /// The lifetime can be renewed.
    pub lease: bool,
    /// Snapshots can be taken and restored.
    pub snapshots: bool,
}

impl Capabilities {
    /// Shell text and a timeout, nothing else.
    pub fn none() -> Self {
        Self::default()
    }

    /// This with some fields set.
    pub fn with(mut self, set: impl FnOnce(&mut Self)) -> Self {
        set(&mut self);
        self
    }

    /// The names of what is claimed, for reports and bindings. `any_text_length` says that
    /// [`execute_max_text`](Self::execute_max_text) is unset.
    pub fn claimed(&self) -> impl Iterator<Item = &'static str> {
        let all: [(&str, bool); 22] = [
            ("execute_argv", self.execute_argv),
            ("execute_cwd", self.execute_cwd),
            ("execute_env", self.execute_env),
            ("execute_user", self.execute_user),
            ("execute_stdin", self.execute_stdin),
            ("execute_merge_stderr", self.execute_merge_stderr),
            ("separate_streams", self.separate_streams),
            ("output_order", self.output_order),
            ("reports_signals", self.reports_signals),
            (
                "control_characters_in_commands",
                self.control_characters_in_commands,
            ),
            ("file_owners", self.file_owners),
            ("hard_links", self.hard_links),
            ("fifos", self.fifos),
            ("process_table", self.process_table),
            ("native_programs", self.native_programs),
            ("network", self.network),
            ("streaming", self.streaming),
            ("processes", self.processes),
            ("native_files", self.native_files),
            ("lease", self.lease),
            ("snapshots", self.snapshots),
            ("any_text_length", self.execute_max_text.is_none()),
        ];
        all.into_iter()
            .filter(|(_, claimed)| *claimed)
            .map(|(name, _)| name)
    }
}
