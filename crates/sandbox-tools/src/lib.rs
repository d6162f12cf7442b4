//! A sandbox's operations as tools for a language model.
//!
//! Names, arguments and the wording of results are those of Deep Agents: `execute`, `ls`,
//! `read_file`, `write_file`, `edit_file`, `glob`, `grep`. [`definitions`] gives what a model is
//! told, [`dispatch`] does what it asks. Nothing here belongs to one agent library: the arguments
//! come in as JSON, the answer goes out as text.
//!
//! A call never fails for the caller: whatever the model sent and whatever the sandbox answered,
//! the result is text that the model can act on, of bounded length.
//!
//! ```
//! # async fn f(sandbox: &sandbox_core::Sandbox) {
//! use serde_json::json;
//!
//! let answer = sandbox_tools::dispatch(sandbox, "execute", json!({"command": "echo hi"})).await;
//! assert_eq!(answer.text, "hi\n[Command succeeded with exit code 0]");
//! # }
//! ```

mod args;
mod definition;
mod format;
mod run;

use std::time::Duration;

use sandbox_core::{ErrorKind, Sandbox, defaults};
use serde_json::Value;

pub use args::{
    EditFileArgs, ExecuteArgs, GlobArgs, GrepArgs, LsArgs, OutputMode, ReadFileArgs, WriteFileArgs,
};
pub use definition::{ToolDefinition, definitions};

/// The names of all tools.
pub const NAMES: [&str; 7] = [
    "execute",
    "ls",
    "read_file",
    "write_file",
    "edit_file",
    "glob",
    "grep",
];

/// What goes back to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The answer. A failure begins with `Error: ` and says what to do.
    pub text: String,
    /// The tool did not do what was asked. A command that ran and failed is no error of the tool.
    pub is_error: bool,
    /// What the sandbox answered, for the program around the model: with
    /// [`ErrorKind::SandboxGone`] there is no use in going on.
    pub kind: Option<ErrorKind>,
}

/// What the tools of one agent may do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOptions {
    /// Where `glob` and `grep` search when the model names no path.
    pub root: String,
    /// The deadline of a command when the model names none.
    pub timeout: Duration,
    /// The longest deadline that the model may ask for; a longer one means this one.
    pub timeout_max: Duration,
    /// Bytes of an answer's payload at most; notes on it come on top. A command's output keeps its
    /// beginning and its end, everything else its beginning.
    pub output: usize,
}

impl Default for ToolOptions {
    /// [`defaults::WORKDIR`], two minutes, an hour, and 80,000 bytes, which is some 20,000 tokens
    /// (Deep Agents' number).
    fn default() -> Self {
        Self {
            root: defaults::WORKDIR.to_owned(),
            timeout: Duration::from_mins(2),
            timeout_max: Duration::from_hours(1),
            output: 80_000,
        }
    }
}

impl ToolOptions {
    /// Sets where `glob` and `grep` search when the model names no path.
    pub fn root(mut self, path: impl Into<String>) -> Self {
        self.root = path.into();
        self
    }

    /// Sets the deadline of a command when the model names none.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the bytes of an answer at most; at least 1,000 are given.
    pub fn output(mut self, bytes: usize) -> Self {
        self.output = bytes.max(1000);
        self
    }

    /// Does what the model asks: the tool `name` with the arguments `args`, a JSON object.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops a running command; a file operation may have had its effect.
    pub async fn dispatch(&self, sandbox: &Sandbox, name: &str, args: Value) -> ToolOutput {
        run::dispatch(self, sandbox, name, args).await
    }

    /// As [`dispatch`](Self::dispatch), from JSON text as a model wrote it.
    pub async fn dispatch_json(&self, sandbox: &Sandbox, name: &str, args: &str) -> ToolOutput {
        match args::parse(args) {
            Ok(args) => self.dispatch(sandbox, name, args).await,
            Err(why) => ToolOutput::refused(why),
        }
    }
}

/// [`ToolOptions::dispatch`] with the defaults.
pub async fn dispatch(sandbox: &Sandbox, name: &str, args: Value) -> ToolOutput {
    ToolOptions::default().dispatch(sandbox, name, args).await
}

impl ToolOutput {
    fn done(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: false,
            kind: None,
        }
    }

    /// What the model sent can't be used.
    fn refused(why: impl std::fmt::Display) -> Self {
        Self {
            text: format!("Error: {why}"),
            is_error: true,
            kind: Some(ErrorKind::InvalidArgument),
        }
    }
}
