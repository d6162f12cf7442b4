//! What to run.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use crate::{Error, ErrorKind, Result, SandboxPath, defaults, shell};

/// A command: shell text or a program with arguments, and the surroundings it runs in.
///
/// ```
/// use std::time::Duration;
/// use sandbox_core::Command;
///
/// let shell = Command::shell("sort | uniq -c").stdin("b\na\nb\n").timeout(Duration::from_secs(5));
/// let argv = Command::new("printf").arg("%s|").args(["a b", "$HOME"]).cwd("/tmp").env("LC_ALL", "C");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Command {
    /// What is run.
    pub program: Program,
    /// The absolute directory to start in; the sandbox's workdir if unset. A missing one is an error.
    pub cwd: Option<String>,
    /// Variables added to the sandbox's own.
    pub env: BTreeMap<String, String>,
    /// The user to run as, by name or number; the sandbox's own if unset.
    pub user: Option<String>,
    /// What the command reads; end of input at once if unset.
    pub stdin: Option<Bytes>,
    /// When to kill the command's whole process tree. Unset means
    /// [`defaults::COMMAND_TIMEOUT`]: never. Zero is refused.
    pub timeout: Option<Duration>,
    /// Bytes kept of each output stream; [`defaults::OUTPUT_LIMIT`] if unset.
    pub output_limit: Option<u64>,
    /// Whether stderr goes into the pipe of stdout, which keeps the order of the two exactly.
    pub merge_stderr: bool,
    /// What stdout ends with when the command has done all that it should, and its exit code is 0.
    /// A backend that has to ask for the exit code may take complete output that ends so for the
    /// answer. Set for commands whose output is checked as a whole.
    pub ends_with: Option<&'static [u8]>,
}

/// The two forms of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Program {
    /// Text for `sh -c`, passed on untouched.
    Shell(String),
    /// A program and its arguments, found through `PATH`; no shell reads them.
    Argv(Vec<String>),
}

impl Command {
    fn of(program: Program) -> Self {
        Self {
            program,
            cwd: None,
            env: BTreeMap::new(),
            user: None,
            stdin: None,
            timeout: None,
            output_limit: None,
            merge_stderr: false,
            ends_with: None,
        }
    }

    /// Shell text, with the semantics of `sh -c`.
    pub fn shell(text: impl Into<String>) -> Self {
        Self::of(Program::Shell(text.into()))
    }

    /// A program; add arguments with [`arg`](Self::arg).
    pub fn new(program: impl Into<String>) -> Self {
        Self::of(Program::Argv(vec![program.into()]))
    }

    /// Adds an argument. To shell text it is a positional parameter: the first is `$1`.
    pub fn arg(self, arg: impl Into<String>) -> Self {
        self.args([arg])
    }

    /// Adds arguments, as [`arg`](Self::arg) does.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.program = match self.program {
            Program::Argv(mut argv) => {
                argv.extend(args.into_iter().map(Into::into));
                Program::Argv(argv)
            }
            Program::Shell(text) => {
                let mut argv = vec!["sh".to_owned()];
                argv.extend(shell::text_args(text));
                argv.push("sh".to_owned());
                argv.extend(args.into_iter().map(Into::into));
                Program::Argv(argv)
            }
        };
        self
    }

    /// Sets the directory to start in.
    pub fn cwd(mut self, dir: impl AsRef<str>) -> Self {
        self.cwd = Some(dir.as_ref().to_owned());
        self
    }

    /// Adds a variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the user, by name or number.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets what the command reads.
    pub fn stdin(mut self, input: impl Into<Bytes>) -> Self {
        self.stdin = Some(input.into());
        self
    }

    /// Sets the deadline.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the bytes kept of each output stream.
    pub fn output_limit(mut self, bytes: u64) -> Self {
        self.output_limit = Some(bytes);
        self
    }

    /// Puts stderr into the pipe of stdout.
    pub fn merge_stderr(mut self) -> Self {
        self.merge_stderr = true;
        self
    }

    /// Says what stdout ends with when all went well: see [`ends_with`](Self::ends_with).
    pub fn ends_with(mut self, bytes: &'static [u8]) -> Self {
        self.ends_with = Some(bytes);
        self
    }

    /// Checks what can be checked without a backend, normalises the cwd and clamps the timeout.
    /// [`crate::Sandbox`] does it before every call.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidPath`] for the cwd, [`ErrorKind::InvalidArgument`] for the rest.
    pub fn checked(mut self) -> Result<Self> {
        let invalid = |why: String| Err(Error::new(ErrorKind::InvalidArgument, why));
        match &self.program {
            Program::Shell(text) if text.contains('\0') => {
                return invalid("the command holds a NUL character".into());
            }
            Program::Argv(argv) if argv.first().is_none_or(String::is_empty) => {
                return invalid("the program's name is empty".into());
            }
            Program::Argv(argv) if argv.iter().any(|a| a.contains('\0')) => {
                return invalid("an argument holds a NUL character".into());
            }
            _ => {}
        }
        check_env(&self.env)?;
        if self.timeout == Some(Duration::ZERO) {
            return invalid("the timeout is zero: leave it unset for none".into());
        }
        if self
            .user
            .as_deref()
            .is_some_and(|u| u.is_empty() || u.contains(['\0', '\n']))
        {
            return invalid("the user is empty or holds a NUL or a newline".into());
        }
        self.timeout = self.timeout.map(|t| t.min(defaults::COMMAND_TIMEOUT_MAX));
        if let Some(cwd) = &self.cwd {
            self.cwd = Some(SandboxPath::new(cwd)?.as_str().to_owned());
        }
        Ok(self)
    }

    /// Bytes kept of each output stream, the default filled in.
    pub fn effective_output_limit(&self) -> u64 {
        self.output_limit.unwrap_or(defaults::OUTPUT_LIMIT)
    }
}

/// Checks the names and values of environment variables.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`] for a name that is no shell identifier and a value with NUL.
pub(crate) fn check_env(env: &BTreeMap<String, String>) -> Result<()> {
    for (name, value) in env {
        let mut chars = name.chars();
        let ok = chars
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !ok {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "the name of a variable must be letters, digits and `_`, not beginning with a digit",
            )
            .with("name", name.chars().take(100).collect::<String>()));
        }
        if value.contains('\0') {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "the value of a variable holds a NUL character",
            )
            .with("name", name));
        }
    }
    Ok(())
}

impl From<&str> for Command {
    fn from(text: &str) -> Self {
        Self::shell(text)
    }
}

impl From<String> for Command {
    fn from(text: String) -> Self {
        Self::shell(text)
    }
}

impl From<&String> for Command {
    fn from(text: &String) -> Self {
        Self::shell(text.as_str())
    }
}

impl From<&Self> for Command {
    fn from(command: &Self) -> Self {
        command.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_input_is_refused_before_any_call() {
        let kind = |c: Command| c.checked().unwrap_err().kind();
        assert_eq!(kind(Command::shell("a\0b")), ErrorKind::InvalidArgument);
        assert_eq!(kind(Command::new("")), ErrorKind::InvalidArgument);
        assert_eq!(
            kind(Command::new("a").arg("\0")),
            ErrorKind::InvalidArgument
        );
        assert_eq!(kind(Command::shell("a").cwd("rel")), ErrorKind::InvalidPath);
        assert_eq!(
            kind(Command::shell("a").timeout(Duration::ZERO)),
            ErrorKind::InvalidArgument
        );
        for name in ["", "1A", "A-B", "B=C", "D;touch /tmp/pwned", "Ä"] {
            assert_eq!(
                kind(Command::shell("a").env(name, "1")),
                ErrorKind::InvalidArgument
            );
        }
        assert_eq!(
            kind(Command::shell("a").env("A", "\0")),
            ErrorKind::InvalidArgument
        );
        let huge = Command::shell("a")
            .timeout(Duration::MAX)
            .checked()
            .unwrap();
        assert_eq!(huge.timeout, Some(defaults::COMMAND_TIMEOUT_MAX));
    }

    #[test]
    fn arguments_of_shell_text_are_positional_parameters() {
        let c = Command::shell("echo \"$1\"").arg("a b");
        assert_eq!(
            c.program,
            Program::Argv(
                ["sh", "-c", "echo \"$1\"", "sh", "a b"]
                    .map(String::from)
                    .to_vec()
            )
        );
    }
}
