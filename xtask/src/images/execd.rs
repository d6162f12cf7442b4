//! The image that an OpenSandbox server's configuration names as `execd_image`: our daemon.

use std::env::consts::ARCH;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Image, content};
use crate::{Result, command, workspace};

pub(super) const NAME: &str = "execd";

/// What lies beside the binary.
const FILES: [&str; 2] = ["Dockerfile", "bootstrap.sh"];

pub(super) fn make() -> Result<Image> {
    let folder = workspace::root().join("crates/sandbox-execd/image");
    let mut files = vec![("execd", fs::read(binary()?)?)];
    for name in FILES {
        files.push((name, fs::read(folder.join(name))?));
    }
    let image = Image::new(NAME, content(files.iter().map(|(_, bytes)| bytes)));
    image.make(|scratch| {
        for (name, bytes) in &files {
            let path = scratch.join(name);
            fs::write(&path, bytes)?;
            command::executable(&path)?;
        }
        image.build(scratch, &[])
    })?;
    Ok(image)
}

/// Builds the static binary of the daemon and says where it is.
///
/// # Errors
///
/// What keeps it from being built: no toolchain for static binaries and no rustup to add it.
pub(crate) fn binary() -> Result<PathBuf> {
    let target = format!("{ARCH}-unknown-linux-musl");
    let mut libraries = Command::new("rustc");
    libraries.args(["--print", "target-libdir", "--target", &target]);
    let libraries = command::output(libraries.current_dir(workspace::root()))?;
    if !PathBuf::from(libraries.trim()).is_dir() {
        let mut add = Command::new("rustup");
        command::run(
            add.args(["target", "add", &target])
                .current_dir(workspace::root()),
        )?;
    }
    let mut build = command::cargo(&["build", "--release", "-p", "sandbox-execd"]);
    command::run(build.args(["--target", &target]))?;
    Ok(workspace::target().join(target).join("release/execd"))
}
