//! How commands get into a container: by Engine exec, behind one trait, so that a faster way can
//! come beside it.

use std::fmt;
use std::pin::Pin;

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::exec::StartExecResults;
use bollard::models::{ExecConfig, ExecInspectResponse};
use bytes::Bytes;
use futures_util::{Stream as FuturesStream, StreamExt as _};
use sandbox_core::{Error, ErrorKind, Result, Stream, shell};
use tokio::io::AsyncWrite;

use crate::client::Engine;
use crate::error;

/// What the arguments and variables of one program may take in sum. Linux takes 2 MiB at the usual
/// stack limit, and the pointers count too.
pub(crate) const MAX_ARGUMENTS: usize = 1_500_000;

/// A program, all decided.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) argv: Vec<String>,
    /// As `NAME=VALUE`.
    pub(crate) env: Vec<String>,
    pub(crate) user: Option<String>,
    pub(crate) cwd: Option<String>,
    /// Whether there is something to read.
    pub(crate) stdin: bool,
    /// As [`sandbox_core::Command::ends_with`].
    pub(crate) ends_with: Option<&'static [u8]>,
}

impl Launch {
    /// # Errors
    ///
    /// [`ErrorKind::TooLarge`] for what Linux does not take.
    fn check(&self) -> Result<()> {
        let all = || self.argv.iter().chain(&self.env);
        let longest = all().map(String::len).max().unwrap_or(0);
        let sum: usize = all().map(|s| s.len() + 9).sum();
        if longest > shell::MAX_ARGUMENT || sum > MAX_ARGUMENTS {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "the arguments and variables are longer than Linux takes: put them into a file or \
                 on stdin",
            )
            .with("longest", longest)
            .with("sum", sum));
        }
        Ok(())
    }
}

/// What a program prints, in order of arrival.
pub(crate) type Output = Pin<Box<dyn FuturesStream<Item = Result<(Stream, Bytes)>> + Send>>;

/// The program's stdin; shutting it down is the end of input.
pub(crate) type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It has not been started yet.
    NotYet,
    /// It runs.
    Running,
    /// It could not be started; what it printed are the engine's own words.
    NeverStarted,
    /// It ended with this code; a signal is 128 more.
    Ended(i32),
    /// As [`Ended`](Self::Ended), or it never started: [`no_start`] tells by what it printed.
    Unclear(i32),
}

/// A way to run programs in one container.
#[async_trait]
pub(crate) trait Route: fmt::Debug + Send + Sync {
    /// Names a program before it runs, so that it can be stopped from then on.
    async fn prepare(&self, launch: &Launch) -> Result<String>;

    /// Starts what was prepared.
    async fn start(&self, name: &str) -> Result<(Output, Input)>;

    /// What it does now.
    async fn look(&self, name: &str) -> Result<Look>;
}

/// Programs by `POST /containers/ID/exec`.
#[derive(Debug)]
pub(crate) struct EngineExec {
    engine: Engine,
    container: String,
}

impl EngineExec {
    pub(crate) fn new(engine: Engine, container: String) -> Self {
        Self { engine, container }
    }
}

#[async_trait]
impl Route for EngineExec {
    async fn prepare(&self, launch: &Launch) -> Result<String> {
        launch.check()?;
        let config = ExecConfig {
            attach_stdin: Some(launch.stdin),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(false),
            privileged: Some(false),
            cmd: Some(launch.argv.clone()),
            env: Some(launch.env.clone()),
            user: launch.user.clone(),
            working_dir: launch.cwd.clone(),
            ..ExecConfig::default()
        };
        self.engine
            .exec_create(&self.container, config)
            .await
            .map_err(explained)
    }

    async fn start(&self, name: &str) -> Result<(Output, Input)> {
        match self.engine.exec_start(name).await.map_err(explained)? {
            StartExecResults::Attached { output, input } => {
                let output = output.map(|part| match part {
                    Ok(LogOutput::StdOut { message }) => Ok((Stream::Stdout, message)),
                    Ok(LogOutput::StdErr { message }) => Ok((Stream::Stderr, message)),
                    // Frames have the ids 1 and 2; anything else is no frame.
                    Ok(LogOutput::StdIn { .. } | LogOutput::Console { .. }) => {
                        Err(error::garbled("read a command's output"))
                    }
                    Err(e) => Err(error::from_engine("read a command's output", e)),
                });
                Ok((Box::pin(output), input))
            }
            StartExecResults::Detached => Err(error::garbled("start a command")),
        }
    }

    async fn look(&self, name: &str) -> Result<Look> {
        seen(&self.engine.exec_inspect(name).await?)
    }
}

fn seen(exec: &ExecInspectResponse) -> Result<Look> {
    let pid = exec.pid.unwrap_or(0);
    let code = |code| i32::try_from(code).map_err(|_| error::garbled("look at a command"));
    Ok(match (exec.running, exec.exit_code) {
        (Some(true), _) if pid > 0 => Look::Running,
        (Some(true), _) | (_, None) => Look::NotYet,
        (_, Some(n)) if pid > 0 => Look::Ended(code(n)?),
        // Podman has no pid of what has ended, and a code of 0 of what has not been started.
        // Docker's execs can be removed long after their end only.
        (_, Some(n)) if exec.can_remove == Some(true) => match code(n)? {
            n @ 125..=127 => Look::Unclear(n),
            n => Look::Ended(n),
        },
        (_, Some(0)) => Look::NotYet,
        (_, Some(_)) => Look::NeverStarted,
    })
}

/// Whether Podman's words stand in the place of a program's output: it could not be started. A
/// program that prints the same and ends with the same code is taken for one that was not.
pub(crate) fn no_start(printed: &[u8]) -> bool {
    let words = String::from_utf8_lossy(printed);
    words.starts_with("Error: ") && words.contains("OCI runtime")
}

/// The engine tells some reasons for not starting a program in its answer.
fn explained(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Unexpected | ErrorKind::InvalidArgument => {
            never_started(error.message()).because(error)
        }
        _ => error,
    }
}

/// Why a program did not start, from the engine's words.
pub(crate) fn never_started(words: &str) -> Error {
    let has = |text: &str| words.contains(text);
    let error = if has("find user") || has("find group") || has("in passwd file") {
        Error::new(ErrorKind::NotFound, "the sandbox has no such user")
    } else if has("chdir") || has("Cwd") || has("cwd") || has("working directory") {
        let kind = if has("permission denied") {
            ErrorKind::PermissionDenied
        } else {
            ErrorKind::NotFound
        };
        Error::new(
            kind,
            "the command's cwd is not a directory that can be entered",
        )
    } else if has("is not running") || has("stopped container") || has("not found: not found") {
        error::gone()
    } else if has("is paused") {
        error::paused()
    } else if has("temporarily unavailable") || has("annot allocate memory") || has("cgroup") {
        Error::new(
            ErrorKind::LimitExceeded,
            "the sandbox has no room for another process: raise `pids` or `memory`",
        )
    } else if has("argument list too long") {
        Error::new(
            ErrorKind::TooLarge,
            "the arguments are longer than Linux takes",
        )
    } else if has("/dev/") {
        // The engine opens devices for whatever it starts.
        Error::new(
            ErrorKind::Unexpected,
            "a device is missing that every command needs: create a new sandbox",
        )
    } else if has("no such file") || has("not found") {
        Error::new(
            ErrorKind::MissingTool,
            "the image needs a POSIX shell at /bin/sh",
        )
    } else {
        Error::new(
            ErrorKind::Unexpected,
            "the engine could not start the command",
        )
    };
    error.with("engine", error::shorten(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_s_words_become_kinds() {
        for (words, kind) in [
            (
                "OCI runtime exec failed: exec failed: unable to start container process: chdir to \
                 cwd (\"/none\") set in config.json failed: no such file or directory: unknown",
                ErrorKind::NotFound,
            ),
            (
                "unable to find user nobody2: no matching entries in passwd file",
                ErrorKind::NotFound,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: exec: \
                 \"/bin/sh\": stat /bin/sh: no such file or directory: unknown",
                ErrorKind::MissingTool,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: read \
                 init-p: resource temporarily unavailable",
                ErrorKind::LimitExceeded,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: unable \
                 to setup user: stat /dev/null: no such file or directory: unknown",
                ErrorKind::Unexpected,
            ),
            ("who knows", ErrorKind::Unexpected),
        ] {
            assert_eq!(never_started(words).kind(), kind, "{words}");
        }
    }

    #[test]
    fn both_engines_are_understood() {
        let look = |running, code, pid, can_remove| {
            let exec = ExecInspectResponse {
                running: Some(running),
                exit_code: code,
                pid,
                can_remove: Some(can_remove),
                ..ExecInspectResponse::default()
            };
            seen(&exec).unwrap()
        };
        // As Docker 20.10 and Podman 4.3 answer: before, during, after, and in vain.
        assert_eq!(look(false, None, Some(0), false), Look::NotYet);
        assert_eq!(look(true, None, Some(7), false), Look::Running);
        assert_eq!(look(false, Some(3), Some(7), false), Look::Ended(3));
        assert_eq!(look(false, Some(127), Some(7), false), Look::Ended(127));
        assert_eq!(look(false, Some(126), Some(0), false), Look::NeverStarted);
        assert_eq!(look(false, Some(0), Some(0), false), Look::NotYet);
        assert_eq!(look(true, Some(0), Some(7), false), Look::Running);
        assert_eq!(look(false, Some(0), Some(0), true), Look::Ended(0));
        assert_eq!(look(false, Some(3), Some(0), true), Look::Ended(3));
        assert_eq!(look(false, Some(127), Some(0), true), Look::Unclear(127));
        let huge = ExecInspectResponse {
            exit_code: Some(i64::MAX),
            pid: Some(1),
            ..ExecInspectResponse::default()
        };
        assert_eq!(seen(&huge).unwrap_err().kind(), ErrorKind::Protocol);
    }

    #[test]
    fn podman_s_words_are_told_from_a_program_s() {
        let never = "Error: runc: exec failed: unable to start container process: chdir to cwd \
                     (\"/none\") set in config.json failed: no such file or directory: OCI runtime \
                     attempted to invoke a command that was not found\n";
        assert!(no_start(never.as_bytes()));
        assert_eq!(never_started(never).kind(), ErrorKind::NotFound);
        for own in [
            "",
            "sh: nope: not found\n",
            "x Error: OCI runtime",
            "Error: nope\n",
        ] {
            assert!(!no_start(own.as_bytes()), "{own:?}");
        }
    }

    #[test]
    fn what_linux_does_not_take_is_refused_before_the_call() {
        let launch = |argv: Vec<String>| Launch {
            argv,
            env: Vec::new(),
            user: None,
            cwd: None,
            stdin: false,
            ends_with: None,
        };
        let long = launch(vec!["x".repeat(shell::MAX_ARGUMENT + 1)]);
        assert_eq!(long.check().unwrap_err().kind(), ErrorKind::TooLarge);
        let many = launch(vec!["x".repeat(100_000); 16]);
        assert_eq!(many.check().unwrap_err().kind(), ErrorKind::TooLarge);
        assert!(
            launch(vec!["x".repeat(shell::MAX_ARGUMENT)])
                .check()
                .is_ok()
        );
    }
}
