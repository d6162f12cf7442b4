//! The step between this daemon and a command that runs as another user: this program again,
//! which gives up its rights, enters the directory and becomes the shell. A thread of the daemon
//! itself could do so too, but for that moment the other user could signal it.
//!
//! The shim says why it failed on the pipe that is its stdin; silence means it became the shell.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::{DumpableBehavior, Gid, Uid};

use super::accounts::Identity;

/// The first argument that makes this program a shim.
pub(crate) const ARGUMENT: &str = "__run-as";

/// The arguments of a shim that becomes `shell -c text`, run under the name `name`.
pub(crate) fn arguments(
    identity: &Identity,
    directory: &OsStr,
    shell: &OsStr,
    name: &str,
    text: &OsStr,
) -> [OsString; 8] {
    let groups: Vec<String> = identity.groups.iter().map(ToString::to_string).collect();
    [
        ARGUMENT.into(),
        identity.uid.to_string().into(),
        identity.gid.to_string().into(),
        groups.join(",").into(),
        directory.into(),
        shell.into(),
        name.into(),
        text.into(),
    ]
}

/// Runs as the shim; `arguments` are those after [`ARGUMENT`].
pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let Ok(mut report) = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3).map(File::from) else {
        return ExitCode::FAILURE;
    };
    let error = become_shell(arguments);
    let number = error
        .raw_os_error()
        .unwrap_or(rustix::io::Errno::INVAL.raw_os_error());
    let _ = report.write_all(number.to_string().as_bytes());
    ExitCode::FAILURE
}

/// What the shim reported, if it failed.
pub(crate) fn reported(report: &str) -> Option<io::Error> {
    if report.is_empty() {
        return None;
    }
    Some(report.parse().map_or_else(
        |_| io::Error::other("the shim failed"),
        io::Error::from_raw_os_error,
    ))
}

fn become_shell(arguments: &[OsString]) -> io::Error {
    let [uid, gid, groups, directory, shell, name, text] = arguments else {
        return io::Error::from(io::ErrorKind::InvalidInput);
    };
    match give_up_rights(uid, gid, groups, directory) {
        Ok(()) => Command::new(shell).arg0(name).arg("-c").arg(text).exec(),
        Err(error) => error,
    }
}

fn give_up_rights(uid: &OsStr, gid: &OsStr, groups: &OsStr, directory: &OsStr) -> io::Result<()> {
    let number = |text: &str| -> io::Result<u32> {
        text.parse()
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
    };
    let uid = Uid::from_raw(number(&uid.to_string_lossy())?);
    let gid = Gid::from_raw(number(&gid.to_string_lossy())?);
    let groups = groups.to_string_lossy();
    let groups = groups
        .split(',')
        .filter(|it| !it.is_empty())
        .map(|it| Ok(Gid::from_raw(number(it)?)))
        .collect::<io::Result<Vec<_>>>()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::thread::set_thread_groups(&groups)?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    // The change closed the environment to its own user, who tells commands apart by it. The shell
    // shows the same one.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    if !directory.is_empty() {
        std::env::set_current_dir(directory)?;
    }
    Ok(())
}
