//! Running programs at the root of the workspace.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::{Result, workspace};

/// `cargo` with arguments, the same cargo that runs this.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(args).current_dir(workspace::root());
    command
}

/// Runs to the end, its output going where ours goes. Not zero is an error.
pub(crate) fn run(command: &mut Command) -> Result {
    eprintln!("$ {}", line(command));
    let status = wait(command, None)?;
    done(command, status)
}

/// As [`run`], killed after `limit`.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result {
    eprintln!("$ {}", line(command));
    let status = wait(command, Some(limit))?;
    done(command, status)
}

/// Runs to the end and gives standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let out = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("`{}` does not start: {e}", line(command)))?;
    done(command, out.status)?;
    Ok(String::from_utf8(out.stdout)?)
}

/// Runs to the end in silence. Whether it ended with 0.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Whether there is a program of that name.
pub(crate) fn has(program: &str) -> bool {
    succeeds(Command::new(program).arg("--version"))
}

/// Whether this user is root.
pub(crate) fn is_root() -> Result<bool> {
    Ok(output(Command::new("id").arg("-u"))?.trim() == "0")
}

/// Lets everybody run a file.
pub(crate) fn executable(path: &Path) -> Result {
    Ok(fs::set_permissions(path, Permissions::from_mode(0o755))?)
}

/// Installs a package of Debian, if this is root.
pub(crate) fn install(package: &str) -> Result {
    if !is_root()? {
        return Err(format!("`{package}` is missing: apt-get install {package}").into());
    }
    eprintln!("installing {package}");
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    let mut install = Command::new("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive");
    run(install.args(["install", "-qq", "-y", "--no-install-recommends", package]))
}

fn wait(command: &mut Command, limit: Option<Duration>) -> Result<ExitStatus> {
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .map_err(|e| format!("`{}` does not start: {e}", line(command)))?;
    let Some(limit) = limit else {
        return Ok(child.wait()?);
    };
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Err(format!("`{}` took longer than {limit:?}", line(command)).into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn done(command: &Command, status: ExitStatus) -> Result {
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}`: {status}", line(command)).into())
    }
}

/// The command as one would type it.
fn line(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or(&program).to_owned();
    let args = command.get_args().map(|a| a.to_string_lossy().into_owned());
    std::iter::once(name)
        .chain(args)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_and_an_endless_command_are_errors() {
        assert!(run(&mut Command::new("true")).is_ok());
        assert!(run(&mut Command::new("false")).is_err());
        assert!(run(&mut Command::new("/no/such/program")).is_err());
        let mut sleep = Command::new("sleep");
        sleep.arg("60");
        let late = run_within(&mut sleep, Duration::from_millis(100)).unwrap_err();
        assert!(late.to_string().contains("sleep 60"), "{late}");
    }
}
