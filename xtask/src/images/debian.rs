//! Images that are made of Debian's packages, so that no image registry is needed.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use super::{Image, content};
use crate::{Result, command};

/// The release of Debian that the images are made from.
const SUITE: &str = "bookworm";

/// An image.
struct Recipe {
    name: &'static str,
    /// Of Debian, on top of what is essential. None: `BusyBox` and nothing else.
    packages: Option<&'static str>,
    /// Instructions as a Dockerfile has them.
    changes: &'static [&'static str],
}

const RECIPES: &[Recipe] = &[
    Recipe {
        name: "busybox",
        packages: None,
        changes: &["ENV PATH=/bin", "CMD [\"sh\"]"],
    },
    Recipe {
        name: "python",
        packages: Some("python3,ca-certificates"),
        changes: &[PATH, "CMD [\"python3\"]"],
    },
    Recipe {
        name: "data",
        packages: Some("python3,ca-certificates,python3-pandas,python3-seaborn,python3-matplotlib"),
        changes: &[PATH, "ENV MPLBACKEND=Agg", "CMD [\"python3\"]"],
    },
];

const PATH: &str =
    "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8";

/// The names of all.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    RECIPES.iter().map(|r| r.name)
}

/// Makes the image of that name, if there is one.
pub(super) fn make(name: &str) -> Result<Option<Image>> {
    let Some(recipe) = RECIPES.iter().find(|r| r.name == name) else {
        return Ok(None);
    };
    let image = Image::new(recipe.name, recipe.content());
    image.make(|folder| match recipe.packages {
        _ if !command::has("apt-get") => from_registry(recipe, folder, &image),
        None => busybox(recipe, folder, &image),
        Some(packages) => debian(recipe, packages, folder, &image),
    })?;
    Ok(Some(image))
}

impl Recipe {
    /// Changes with everything that the image is made from.
    fn content(&self) -> u64 {
        let parts = [SUITE, self.name, self.packages.unwrap_or_default()];
        content(parts.iter().chain(self.changes))
    }

    /// `docker import` of a tar.
    fn import(&self, tar: &Path, image: &Image) -> Result {
        let mut import = Command::new("docker");
        import.arg("import");
        for change in self.changes {
            import.args(["--change", change]);
        }
        command::run(import.arg(tar).arg(image.tagged()))
    }
}

/// A small Debian with packages.
fn debian(recipe: &Recipe, packages: &str, folder: &Path, image: &Image) -> Result {
    if !command::has("mmdebstrap") {
        command::install("mmdebstrap")?;
    }
    let tar = folder.join("image.tar");
    let mut build = Command::new("mmdebstrap");
    build
        .args(["--variant=minbase", "--aptopt=Acquire::Retries \"3\""])
        .arg(format!("--include={packages}"))
        // What only people read.
        .args(["--dpkgopt=path-exclude=/usr/share/man/*"])
        .args(["--dpkgopt=path-exclude=/usr/share/doc/*"])
        .args(["--dpkgopt=path-exclude=/usr/share/locale/*"])
        .arg(SUITE)
        .arg(&tar);
    command::run(&mut build)?;
    recipe.import(&tar, image)
}

/// `BusyBox`, a link for each of its programs, and the few files that a system has.
fn busybox(recipe: &Recipe, folder: &Path, image: &Image) -> Result {
    let mut download = Command::new("apt-get");
    command::run(
        download
            .args(["download", "busybox-static"])
            .current_dir(folder),
    )?;
    let deb = fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|e| e == "deb"))
        .ok_or("apt-get downloaded no package")?;
    let unpacked = folder.join("deb");
    command::run(Command::new("dpkg-deb").arg("-x").arg(deb).arg(&unpacked))?;
    let program = [
        unpacked.join("bin/busybox"),
        unpacked.join("usr/bin/busybox"),
    ]
    .into_iter()
    .find(|path| path.exists())
    .ok_or("the package has no busybox")?;

    let root = folder.join("root");
    for dir in [
        "bin", "dev", "etc", "proc", "root", "sys", "tmp", "usr", "var",
    ] {
        fs::create_dir_all(root.join(dir))?;
    }
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
    fs::copy(&program, root.join("bin/busybox"))?;
    for applet in command::output(Command::new(&program).arg("--list"))?.lines() {
        if applet != "busybox" {
            symlink("busybox", root.join("bin").join(applet))?;
        }
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")?;
    fs::write(root.join("etc/group"), "root:x:0:\n")?;
    let tar = folder.join("image.tar");
    let mut pack = Command::new("tar");
    pack.args(["--owner=0", "--group=0", "--numeric-owner", "-cf"]);
    command::run(pack.arg(&tar).arg("-C").arg(&root).arg("."))?;
    recipe.import(&tar, image)
}

/// Where there are no tools of Debian: by the engine, from a registry's Debian.
fn from_registry(recipe: &Recipe, folder: &Path, image: &Image) -> Result {
    let mut lines = match recipe.packages {
        None => vec!["FROM busybox:stable-musl".to_owned()],
        Some(packages) => vec![
            format!("FROM debian:{SUITE}-slim"),
            format!(
                "RUN apt-get update && apt-get install -y --no-install-recommends {} && \
                 rm -rf /var/lib/apt/lists/*",
                packages.replace(',', " ")
            ),
        ],
    };
    lines.extend(recipe.changes.iter().map(ToString::to_string));
    fs::write(folder.join("Dockerfile"), lines.join("\n"))?;
    image.build(folder, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recipe_has_a_tag_of_its_own() {
        let mut tags: Vec<u64> = RECIPES.iter().map(Recipe::content).collect();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), RECIPES.len());
    }
}
