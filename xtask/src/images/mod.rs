//! `cargo xtask images`: the images that tests and examples use. None comes from a registry.
//!
//! An image is `sandbox-NAME:CONTENT`, where the tag changes with what it is made of, and
//! `sandbox-NAME:latest`. What was made before is not made again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, command, workspace};

mod debian;
mod execd;
mod server;

pub(crate) use execd::binary as execd_binary;
pub(crate) use server::NAME as SERVER;

/// Makes the named images, or all.
pub(crate) fn run(wanted: &[&str]) -> Result {
    let all: Vec<&str> = debian::names().chain([execd::NAME, server::NAME]).collect();
    if let Some(unknown) = wanted.iter().find(|name| !all.contains(name)) {
        let usage = format!("usage: cargo xtask images [{}]", all.join("] ["));
        return Err(format!("no such image: {unknown}\n{usage}").into());
    }
    for name in all {
        if wanted.is_empty() || wanted.contains(&name) {
            make(name)?;
        }
    }
    Ok(())
}

/// Makes one image, and what it is made of.
fn make(name: &str) -> Result<Image> {
    match name {
        execd::NAME => execd::make(),
        server::NAME => server::make(),
        _ => debian::make(name)?.ok_or_else(|| format!("no such image: {name}").into()),
    }
}

/// An image that may have to be made.
struct Image {
    name: &'static str,
    content: u64,
}

impl Image {
    fn new(name: &'static str, content: u64) -> Self {
        Self { name, content }
    }

    /// Its name, with the tag that changes with its content.
    fn tagged(&self) -> String {
        format!("sandbox-{}:{:016x}", self.name, self.content)
    }

    /// Has it made in an empty folder, unless the engine has it.
    fn make(&self, recipe: impl FnOnce(&Path) -> Result) -> Result {
        let tagged = self.tagged();
        if !command::succeeds(Command::new("docker").args(["image", "inspect", &tagged])) {
            recipe(&Scratch::new(self.name)?.0)?;
        }
        let latest = format!("sandbox-{}:latest", self.name);
        command::run(Command::new("docker").args(["tag", &tagged, &latest]))
    }

    /// `docker build` of a folder.
    fn build(&self, folder: &Path, options: &[&str]) -> Result {
        let mut build = Command::new("docker");
        build.args(["build", "--tag", &self.tagged()]).args(options);
        command::run(build.arg(folder))
    }
}

/// Changes with everything that something is made of. FNV-1a.
fn content<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> u64 {
    parts.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, part| {
        let bytes = part.as_ref().iter().chain(&[0]);
        bytes.fold(hash, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    })
}

/// A folder that is gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Result<Self> {
        let name = format!("images-{name}-{}", std::process::id());
        let path = workspace::target().join(name);
        fs::create_dir_all(&path)?;
        Ok(Self(path.canonicalize()?))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.0) {
            eprintln!("{} is left: {e}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_image_is_refused_before_anything_is_made() {
        let why = run(&["busybox", "ubuntu"]).unwrap_err().to_string();
        assert!(why.contains("ubuntu") && why.contains("[execd]"), "{why}");
    }

    #[test]
    fn parts_are_told_apart() {
        assert_eq!(content(["ab", "c"]), content(["ab", "c"]));
        assert_ne!(content(["ab", "c"]), content(["a", "bc"]));
    }
}
