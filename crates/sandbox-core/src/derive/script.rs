//! How an operation's script is run and how it says what went wrong.
//!
//! A script is a constant. What it works on travels as arguments and stdin. It prints to stdout
//! only, framed by NULs and counts, and ends with 0 or one of the codes below: so it works on a
//! backend that puts both streams into one, and no tool's message can be taken for an answer.

use std::time::Duration;

use bytes::Bytes;

use crate::{
    Captured, Command, Error, ErrorKind, Result, SandboxBackend, SandboxPath, Status, call,
    defaults,
};

/// Puts what every script needs in front of one.
///
/// - `need TOOL…` ends with 68 and the tool's name if one is missing.
/// - `gone PATH` ends with why PATH, which is not there, is not there.
/// - `fail TEXT` ends with the reason that a tool gave, read in the C locale.
/// - `regular PATH` ends unless PATH leads to a regular file that can be read.
///
/// Rights are found out by trying: BusyBox's `test -r` believes that root may do everything, which
/// is not so without capabilities.
macro_rules! script {
    ($($text:expr),+) => {
        concat!(
            r#"LC_ALL=C; export LC_ALL; unset GREP_OPTIONS TAR_OPTIONS POSIXLY_CORRECT CDPATH IFS
need() { for t in "$@"; do command -v "$t" >/dev/null 2>&1 || { printf %s "$t"; exit 68; }; done; }
gone() {
  case $( (: <"$1") 2>&1 ) in *'oo many levels'*) exit 74 ;; esac
  g=$1
  while [ ! -e "$g" ] && [ "$g" != / ]; do
    case $g in /*/*) g=${g%/*} ;; *) g=/ ;; esac
  done
  [ -d "$g" ] || exit 64
  (cd -- "$g") 2>/dev/null || exit 62
  exit 61
}
fail() {
  printf %s "$1"
  case $1 in
    *'ermission denied'*|*'not permitted'*|*'ead-only file system'*) exit 62 ;;
    *'o space left'*|*'uota exceeded'*|*'File too large'*) exit 70 ;;
    *'oo many levels'*) exit 74 ;;
    *'irectory not empty'*) exit 75 ;;
  esac
  exit 69
}
regular() {
  [ -e "$1" ] || gone "$1"
  [ ! -d "$1" ] || exit 63
  [ -f "$1" ] || exit 66
  head -c 1 -- "$1" >/dev/null 2>&1 || exit 62
}
"#,
            $($text),+
        )
    };
}
pub(crate) use script;

/// The key that tells a file that is held from one that has changed.
pub(crate) const HELD: &str = "held";

/// What a script gets besides its arguments.
#[derive(Debug)]
pub(crate) struct Run {
    args: Vec<String>,
    /// Where it runs and with what variables.
    surroundings: Option<Command>,
    stdin: Option<Bytes>,
    timeout: Duration,
    output_limit: u64,
    partial: bool,
    ends_with: Option<&'static [u8]>,
}

impl Run {
    /// With `path` as the first argument.
    pub(crate) fn on(path: &SandboxPath) -> Self {
        Self {
            args: vec![path.as_str().to_owned()],
            surroundings: None,
            stdin: None,
            timeout: defaults::INTERNAL_TIME,
            output_limit: defaults::INTERNAL_OUTPUT,
            partial: false,
            ends_with: None,
        }
    }

    /// The next argument.
    pub(crate) fn arg(mut self, arg: impl std::fmt::Display) -> Self {
        self.args.push(arg.to_string());
        self
    }

    /// Runs it in the cwd and with the variables of `command`.
    pub(crate) fn surroundings(mut self, command: &Command) -> Self {
        self.surroundings = Some(command.clone());
        self
    }

    /// The next arguments.
    pub(crate) fn args(mut self, args: &[String]) -> Self {
        self.args.extend_from_slice(args);
        self
    }

    /// What the script reads. Time is given for it to arrive, at 1 MiB a second.
    pub(crate) fn stdin(mut self, content: Bytes) -> Self {
        self.timeout += Duration::from_secs(content.len() as u64 >> 20);
        self.stdin = Some(content);
        self
    }

    /// How long it may take.
    pub(crate) fn time(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// A bound of its own on what the script prints, in bytes.
    pub(crate) fn output_limit(mut self, bytes: u64) -> Self {
        self.output_limit = bytes;
        self
    }

    /// What the script prints last where all went well.
    pub(crate) fn ends_with(mut self, bytes: &'static [u8]) -> Self {
        self.ends_with = Some(bytes);
        self
    }

    /// A budget after which what was printed until then is the answer. Cut output is one too.
    pub(crate) fn budget(mut self, time: Duration) -> Self {
        self.timeout = time;
        self.partial = true;
        self
    }
}

/// What a script printed.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) output: Captured,
    /// The [budget](Run::budget) was used up.
    pub(crate) timed_out: bool,
}

/// Runs a script of [`script!`] and raises what it ends with.
pub(crate) async fn run(
    backend: &dyn SandboxBackend,
    script: &'static str,
    run: Run,
) -> Result<Answer> {
    let path = run.args.first().cloned().unwrap_or_default();
    // By its path: a backend need not have it searched for, which takes a program of its own.
    let mut command = Command::new("/bin/sh")
        .args(["-c", script, "sandbox"])
        .args(run.args)
        .timeout(run.timeout)
        .output_limit(run.output_limit);
    command.stdin = run.stdin;
    command.ends_with = run.ends_with;
    // Not in the workdir: a command may have removed it. A wrapper just for that costs too much.
    if backend.capabilities().execute_cwd {
        command.cwd = Some("/".to_owned());
    }
    if let Some(like) = run.surroundings {
        (command.cwd, command.env) = (like.cwd, like.env);
    }
    let response = call::execute(backend, command).await?;
    let output = response.stdout;
    let timed_out = response.status == Status::TimedOut;
    let whole = response.status == Status::Exited(0) || (timed_out && run.partial);
    if !whole {
        return Err(failure(&response.status, output.tail_text()).with("path", path));
    }
    if output.dropped() > 0 && !run.partial {
        return Err(Error::new(
            ErrorKind::TooLarge,
            "the answer is larger than an operation takes: ask for less",
        )
        .with("path", path)
        .with("limit", run.output_limit));
    }
    Ok(Answer { output, timed_out })
}

/// The error that a script's ending means. `printed` is its output: a tool's name or message.
fn failure(status: &Status, printed: String) -> Error {
    let code = match status {
        Status::Exited(code) => *code,
        Status::TimedOut => {
            return Error::new(
                ErrorKind::Timeout,
                "the operation's command did not end in time",
            );
        }
        Status::Lost(why) => {
            return Error::new(
                ErrorKind::Unavailable,
                "the operation's command was lost before it ended",
            )
            .with("cause", why);
        }
        Status::Signaled(_) => 0,
    };
    let (kind, message) = match code {
        61 => (ErrorKind::NotFound, "no such file or directory"),
        62 => (
            ErrorKind::PermissionDenied,
            "the sandbox's user may not do this",
        ),
        63 => (ErrorKind::IsADirectory, "this is a directory"),
        64 => (
            ErrorKind::NotADirectory,
            "this, or a parent of it, is not a directory",
        ),
        65 => (ErrorKind::AlreadyExists, "the file exists"),
        66 => (
            ErrorKind::InvalidPath,
            "this is not a regular file but a FIFO, socket or device",
        ),
        67 => (
            ErrorKind::Conflict,
            "somebody else changed the file: read it again",
        ),
        72 => {
            return Error::new(
                ErrorKind::Conflict,
                "another operation holds the file for too long: try later",
            )
            .with(HELD, true);
        }
        68 => {
            return Error::new(
                ErrorKind::MissingTool,
                "the image lacks a program that this operation needs",
            )
            .with("tool", printed);
        }
        70 => (ErrorKind::LimitExceeded, "no space left in the sandbox"),
        71 => (
            ErrorKind::Protocol,
            "what was sent to the sandbox did not arrive whole",
        ),
        73 => (
            ErrorKind::TooLarge,
            "the text to search is longer than the sandbox's `grep` takes: search a part of it",
        ),
        74 => (ErrorKind::InvalidPath, "too many levels of symbolic links"),
        75 => (
            ErrorKind::Conflict,
            "somebody else fills the directory: delete it again",
        ),
        126 | 127 => {
            return Error::new(
                ErrorKind::MissingTool,
                "the image lacks a shell that can be run",
            )
            .with("tool", "sh")
            .with("output", printed);
        }
        _ => {
            return Error::new(ErrorKind::Unexpected, "the operation's command failed")
                .with("status", status)
                .with("output", printed);
        }
    };
    let error = Error::new(kind, message);
    if printed.is_empty() {
        error
    } else {
        error.with("detail", printed)
    }
}

impl Captured {
    /// The last 300 bytes at most, for a message.
    fn tail_text(&self) -> String {
        let all = self.bytes();
        String::from_utf8_lossy(&all[all.len().saturating_sub(300)..])
            .trim()
            .to_owned()
    }
}

/// An answer that does not add up: hostile, or damaged on its way.
pub(crate) fn garbled(what: &'static str) -> Error {
    Error::new(
        ErrorKind::Protocol,
        "the answer of the operation's command does not add up",
    )
    .with("what", what)
}

/// Takes the bytes up to the next NUL off the front of `rest`.
pub(crate) fn field<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    let end = memchr::memchr(0, rest).ok_or_else(|| garbled("a record without an end"))?;
    let (field, after) = rest.split_at(end);
    *rest = &after[1..];
    Ok(field)
}

/// Reads a decimal number.
pub(crate) fn number<T: std::str::FromStr>(digits: &[u8]) -> Result<T> {
    std::str::from_utf8(digits)
        .ok()
        .and_then(|t| t.trim().parse().ok())
        .ok_or_else(|| garbled("a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_is_a_typed_error() {
        for (status, printed, kind) in [
            (Status::Exited(61), "", ErrorKind::NotFound),
            (Status::Exited(68), "find", ErrorKind::MissingTool),
            (Status::Exited(74), "", ErrorKind::InvalidPath),
            (Status::Exited(127), "", ErrorKind::MissingTool),
            (Status::Exited(2), "sh: syntax error", ErrorKind::Unexpected),
            (Status::Signaled(9), "", ErrorKind::Unexpected),
            (Status::TimedOut, "", ErrorKind::Timeout),
            (Status::Lost("cut".into()), "", ErrorKind::Unavailable),
        ] {
            assert_eq!(failure(&status, printed.to_owned()).kind(), kind);
        }
        let missing = failure(&Status::Exited(68), "find".into());
        assert_eq!(missing.context("tool"), Some("find"));
    }
}
