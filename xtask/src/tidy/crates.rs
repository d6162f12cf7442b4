//! Rules for the manifests and the shape of a crate.

use std::path::{Path, PathBuf};

use crate::workspace::Member;
use crate::{Result, workspace};

/// What each manifest takes from the workspace.
const INHERITED: [&str; 6] = [
    "version.workspace = true",
    "edition.workspace = true",
    "rust-version.workspace = true",
    "license.workspace = true",
    "publish.workspace = true",
    "[lints]\nworkspace = true",
];

/// The files that every backend crate has, so that knowing one is knowing all.
const BACKEND: [&str; 5] = [
    "src/lib.rs",
    "src/config.rs",
    "src/provider.rs",
    "src/backend.rs",
    "src/error.rs",
];

pub(super) fn check(files: &[PathBuf], members: &[Member]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for member in members {
        let path = format!("{}/Cargo.toml", member.folder);
        let manifest = workspace::read(&path)?;
        for line in INHERITED.iter().filter(|l| !manifest.contains(*l)) {
            found.push(format!("{path}: no `{}`", line.replace('\n', " ")));
        }
        // That crate is nothing but versions and features of others.
        let own = member.name != "sandbox-unify";
        for line in versions(&manifest).filter(|_| own) {
            found.push(format!(
                "{path}: `{line}`: versions stand in the root Cargo.toml"
            ));
        }
        let has = |file: &str| files.contains(&Path::new(&member.folder).join(file));
        if has("src/provider.rs") && has("src/lib.rs") {
            for file in BACKEND.iter().filter(|f| !has(f)) {
                found.push(format!("{}: a backend without {file}", member.folder));
            }
        }
    }
    Ok(found)
}

/// Dependencies that do not inherit.
fn versions(manifest: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    manifest.lines().filter(move |line| {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]");
            return false;
        }
        inside && line.contains('=') && !line.starts_with('#') && !line.contains("workspace = true")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_in_a_member_is_found() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\nb.workspace = true\nc = \"1\"\n\
                        [dev-dependencies]\nd = { workspace = true, features = [] }\n[features]\ne = []\n";
        assert_eq!(versions(manifest).collect::<Vec<_>>(), ["c = \"1\""]);
    }
}
