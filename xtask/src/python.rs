//! Python for what is only had there: the real server and the official client.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{Result, command, workspace};

/// `pip`, in an environment of its own.
pub(crate) fn pip() -> Result<Command> {
    let mut pip = Command::new(environment("pip", "")?);
    pip.args(["-m", "pip", "--disable-pip-version-check", "--quiet"]);
    Ok(pip)
}

/// The Python of an environment that has the packages of a requirements file. Made once, below
/// `target`, and anew when the requirements change.
///
/// # Errors
///
/// No Python 3 that can make environments, and none can be installed; what pip says.
pub(crate) fn environment(name: &str, requirements: &str) -> Result<PathBuf> {
    let folder = workspace::target().join("python").join(name);
    let python = folder.join("bin/python");
    // Written last, so that an environment that was half made is not used.
    let made = folder.join("requirements.txt");
    if fs::read_to_string(&made).is_ok_and(|before| before == requirements) {
        return Ok(python);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let venv = || {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&folder);
        venv
    };
    if !command::succeeds(&mut venv()) {
        if command::has("apt-get") {
            command::install("python3-venv")?;
        }
        command::run(&mut venv())?;
    }
    if !requirements.is_empty() {
        let wanted = folder.join("wanted.txt");
        fs::write(&wanted, requirements)?;
        let mut install = Command::new(&python);
        install.args([
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            // The lists are complete, so nothing is resolved and nothing comes along.
            "--no-deps",
        ]);
        command::run(install.arg("--requirement").arg(&wanted))?;
    }
    fs::write(made, requirements)?;
    Ok(python)
}
