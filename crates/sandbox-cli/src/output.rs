//! What is printed, and the exit code.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;

use sandbox::{Error, ErrorKind};
use serde_json::{Value, json};

/// `sandbox` itself failed.
pub(crate) const FAILED: u8 = 125;

/// The reader of our output went away, as if SIGPIPE had ended us.
pub(crate) const BROKEN_PIPE: u8 = 128 + 13;

/// How a task ends early.
pub(crate) enum Failure {
    /// It could not be done.
    Error(Error),
    /// Nobody reads what is printed: no more to say.
    NobodyReads,
}

impl From<Error> for Failure {
    /// A writer that failed is found under the error of the operation that wrote.
    fn from(error: Error) -> Self {
        let cause = error.source().and_then(|e| e.downcast_ref::<io::Error>());
        if cause.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
            return Self::NobodyReads;
        }
        Self::Error(error)
    }
}

/// The exit code of a task, or why it has none.
pub(crate) type Outcome<T = u8> = Result<T, Failure>;

/// A failure of this machine's own files or streams.
pub(crate) fn local(what: impl std::fmt::Display, error: io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
        io::ErrorKind::IsADirectory => ErrorKind::IsADirectory,
        io::ErrorKind::NotADirectory => ErrorKind::NotADirectory,
        _ => ErrorKind::Unexpected,
    };
    Error::new(kind, format!("on this machine: {what}"))
        .because(error)
        .into()
}

/// Our stdout or stderr as a file that does not block the runtime and keeps nothing back.
///
/// # Errors
///
/// The stream can't be duplicated: no descriptor is left.
pub(crate) fn raw(stream: sandbox::Stream) -> io::Result<tokio::fs::File> {
    let fd = match stream {
        sandbox::Stream::Stdout => io::stdout().as_fd().try_clone_to_owned()?,
        sandbox::Stream::Stderr => io::stderr().as_fd().try_clone_to_owned()?,
    };
    Ok(tokio::fs::File::from_std(fd.into()))
}

/// Prints a result of ours, a line.
pub(crate) fn line(text: impl std::fmt::Display) -> Outcome<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::NobodyReads),
        other => other.map_err(|e| local("stdout could not be written", e)),
    }
}

/// Says something beside the results. There is nobody to tell if that fails.
pub(crate) fn say(text: impl std::fmt::Display) {
    let coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let (on, off) = if coloured {
        ("\x1b[1m", "\x1b[0m")
    } else {
        ("", "")
    };
    let text = plain(&text.to_string());
    let _ = writeln!(io::stderr(), "{on}sandbox:{off} {text}");
}

/// Reports an error: one line, the causes after it.
pub(crate) fn report(error: &Error, as_json: bool) {
    let causes = causes(error);
    if as_json {
        let text = json!({ "error": {
            "kind": error.kind().as_str(),
            "message": error.to_string(),
            "causes": causes,
        }});
        let _ = writeln!(io::stderr(), "{text}");
        return;
    }
    say(with_causes(error));
}

/// An error and its causes as one line.
pub(crate) fn with_causes(error: &Error) -> String {
    std::iter::once(error.to_string())
        .chain(causes(error))
        .collect::<Vec<_>>()
        .join(": ")
}

fn causes(error: &Error) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        // Some say their own cause too.
        if causes.last().is_none_or(|before| !before.contains(&text)) {
            causes.push(text);
        }
        next = cause.source();
    }
    causes
}

/// Text from a sandbox or an engine, so that it can't move the cursor or begin a line.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// What was kept of a stream; `exact` unless it was cut or is no UTF-8.
pub(crate) fn captured(stream: &sandbox::Captured) -> Value {
    let exact = stream.dropped() == 0 && std::str::from_utf8(stream.bytes()).is_ok();
    json!({ "text": stream.to_text(), "exact": exact, "dropped": stream.dropped() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_whatever_its_causes_hold() {
        let inner = io::Error::other("two\nlines \x1b[2J");
        let error = Error::new(ErrorKind::Unavailable, "no answer").because(inner);
        assert_eq!(
            plain(&with_causes(&error)),
            "no answer: two\\nlines \\u{1b}[2J"
        );
    }
}
