//! The access token, and keeping it from the commands.
//!
//! A token in the environment or among the arguments of a process can be read by others in
//! `/proc/PID/environ` and `/proc/PID/cmdline`, and neither can be wiped from within. So the
//! daemon starts itself anew without it: the second self finds it in a pipe on its stdin.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::DumpableBehavior;

use crate::options::{BadOption, TOKEN_VARIABLE};

/// Fits a pipe whose other end nobody reads yet.
const LONGEST: usize = 4096;

/// A token, printed as `***`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AccessToken(String);

impl AccessToken {
    /// # Errors
    ///
    /// When no HTTP header can carry it.
    pub(crate) fn new(token: String) -> Result<Self, BadOption> {
        if token.len() > LONGEST
            || token.is_empty()
            || !token.bytes().all(|it| it.is_ascii_graphic())
        {
            return Err(BadOption(format!(
                "the access token must be 1 to {LONGEST} visible ASCII characters"
            )));
        }
        Ok(Self(token))
    }

    /// Compares in a time that does not tell how much of `given` is right.
    pub(crate) fn matches(&self, given: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let differences = own.iter().enumerate().fold(0, |sum, (at, byte)| {
            sum | (byte ^ given.get(at).copied().unwrap_or(!byte))
        });
        differences == 0 && given.len() == own.len()
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Starts this program anew, with the token in a pipe instead of its environment and arguments.
/// Returns only when that failed.
pub(crate) fn restart_without(token: &AccessToken, arguments: &[OsString]) -> io::Error {
    let (reader, mut writer) = match io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => return error,
    };
    if let Err(error) = writer.write_all(token.0.as_bytes()) {
        return error;
    }
    drop(writer);
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command
        .arg("--token-on-stdin")
        .args(without_token(arguments))
        .env_remove(TOKEN_VARIABLE)
        .stdin(reader)
        .exec()
}

/// The arguments without `--access-token` and its value.
fn without_token(arguments: &[OsString]) -> Vec<&OsString> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_str().unwrap_or_default();
        if text == "--" {
            kept.push(argument);
            break;
        }
        match text.strip_prefix("--").or_else(|| text.strip_prefix('-')) {
            Some("access-token") => drop(rest.next()),
            Some(flag) if flag.starts_with("access-token=") => {}
            _ => kept.push(argument),
        }
    }
    kept.extend(rest);
    kept
}

/// Takes the token an earlier self left on stdin, and gives this one `/dev/null` there.
///
/// # Errors
///
/// When nothing is there, or it is no token.
pub(crate) fn from_stdin() -> io::Result<AccessToken> {
    let mut text = String::new();
    io::stdin()
        .take(LONGEST as u64 + 1)
        .read_to_string(&mut text)?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    AccessToken::new(text).map_err(|BadOption(why)| io::Error::other(why))
}

/// Closes this process's memory and open files to others of the same user.
///
/// # Errors
///
/// What the system says.
pub(crate) fn shut_proc() -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_matches() {
        let token = AccessToken::new("s3cret".into()).unwrap();
        assert!(token.matches(b"s3cret"));
        for wrong in [&b""[..], b"s3cre", b"s3crets", b"S3cret", b"s3cret\0"] {
            assert!(!token.matches(wrong));
        }
    }

    #[test]
    fn is_not_printed() {
        let token = AccessToken::new("s3cret".into()).unwrap();
        assert_eq!(format!("{token:?}"), "***");
    }

    #[test]
    fn goes_out_of_the_arguments_but_not_out_of_the_program() {
        let arguments: Vec<OsString> = [
            "--port",
            "1",
            "-access-token",
            "x",
            "--access-token=y",
            "--init",
            "--",
            "--access-token=z",
        ]
        .map(Into::into)
        .into();
        let kept = without_token(&arguments);
        assert_eq!(kept, ["--port", "1", "--init", "--", "--access-token=z"]);
    }
}
