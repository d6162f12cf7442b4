//! Starting a shell for a command's text.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Pid;
use tokio::sync::oneshot;

use super::accounts::Identity;
use super::reaper::{Ended, Reaper};
use super::shim;
use crate::names::error_text;

/// A shell about to be started.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) text: String,
    /// Empty for the daemon's own.
    pub(crate) directory: OsString,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) identity: Option<Identity>,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
    /// Whether what is left of the process group is killed when the shell ends.
    pub(crate) takes_group_along: bool,
}

/// A shell that runs.
#[derive(Debug)]
pub(crate) struct Started {
    /// Its number, and that of its process group.
    pub(crate) leader: Pid,
    pub(crate) ended: oneshot::Receiver<Ended>,
}

impl Launch {
    /// Starts it. Blocks for as long as starting a program takes.
    ///
    /// # Errors
    ///
    /// The text a client gets, as `fork/exec /usr/bin/bash: argument list too long`.
    pub(crate) fn start(self, reaper: &Reaper, path: Option<&OsStr>) -> Result<Started, String> {
        let (name, shell) = find_shell(path)?;
        let failed =
            |error: &io::Error| format!("fork/exec {}: {}", shell.display(), error_text(error));
        let mut report = None;
        let mut command = if let Some(identity) = &self.identity {
            // A NUL would end the text early on its way through the shim's arguments.
            let mut command = Command::new("/proc/self/exe");
            command.arg0("execd-run-as").args(shim::arguments(
                identity,
                &self.directory,
                shell.as_os_str(),
                name,
                self.text.as_ref(),
            ));
            let (reader, writer) = io::pipe().map_err(|it| failed(&it))?;
            report = Some(reader);
            command.stdin(writer);
            command
        } else {
            let mut command = Command::new(&shell);
            command
                .arg0(name)
                .arg("-c")
                .arg(&self.text)
                .stdin(Stdio::null());
            if !self.directory.is_empty() {
                command.current_dir(&self.directory);
            }
            command
        };
        command
            .env_clear()
            .envs(self.environment)
            .stdout(self.stdout)
            .stderr(self.stderr)
            .process_group(0);
        let started = reaper.spawn(&mut command, self.takes_group_along);
        // Holds the pipe's other ends, which the shim must be the last to close.
        drop(command);
        let (leader, ended) = started.map_err(|it| failed(&it))?;
        if let Some(mut report) = report {
            let mut said = String::new();
            let read = report.read_to_string(&mut said);
            if let Some(error) = read.err().or_else(|| shim::reported(&said)) {
                return Err(failed(&error));
            }
        }
        Ok(Started { leader, ended })
    }
}

/// `bash` if there is one in `path`, else `sh`.
fn find_shell(path: Option<&OsStr>) -> Result<(&'static str, PathBuf), String> {
    let search = |name: &str| {
        std::env::split_paths(path?)
            .map(|directory| {
                if directory.as_os_str().is_empty() {
                    Path::new(".").join(name)
                } else {
                    directory.join(name)
                }
            })
            .find(|candidate| {
                candidate
                    .metadata()
                    .is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
            })
    };
    ["bash", "sh"]
        .into_iter()
        .find_map(|name| Some((name, search(name)?)))
        .ok_or_else(|| "exec: \"sh\": executable file not found in $PATH".into())
}
