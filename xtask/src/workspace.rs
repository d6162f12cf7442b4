//! The workspace as cargo sees it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Result, command};

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Where cargo puts what it builds, and we what is only for this machine.
pub(crate) fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    root().join(target.map_or_else(|| PathBuf::from("target"), PathBuf::from))
}

/// A file of the repository as text.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    std::fs::read_to_string(root().join(path))
        .map_err(|e| format!("{}: {e}", path.display()).into())
}

/// The files that are committed or would be: what git knows or does not ignore, that exist.
pub(crate) fn files() -> Result<Vec<PathBuf>> {
    let mut git = std::process::Command::new("git");
    git.current_dir(root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let list = command::output(&mut git)?;
    let mut files: Vec<PathBuf> = list
        .split_terminator('\0')
        .map(PathBuf::from)
        .filter(|p| root().join(p).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// A member of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Its folder, relative to the root, as `crates/sandbox`.
    pub(crate) folder: String,
    /// Its dependencies on other members.
    pub(crate) internal: Vec<Dependency>,
    /// Its examples.
    pub(crate) examples: Vec<String>,
    /// Its features.
    pub(crate) features: Vec<String>,
}

/// A dependency of one member on another.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// Which part of a package depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Dev,
    Build,
}

/// All members, sorted by folder.
pub(crate) fn members() -> Result<Vec<Member>> {
    let json = command::output(&mut command::cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
    ]))?;
    parse(&serde_json::from_str(&json)?)
}

fn parse(metadata: &Value) -> Result<Vec<Member>> {
    let root = text(metadata, "workspace_root")?;
    let packages = array(metadata, "packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut members = packages
        .iter()
        .map(|package| {
            let manifest = text(package, "manifest_path")?;
            let folder = manifest
                .strip_prefix(root)
                .and_then(|p| p.strip_suffix("/Cargo.toml"))
                .unwrap_or(manifest)
                .trim_start_matches('/');
            let internal = array(package, "dependencies")?
                .iter()
                .filter_map(|d| {
                    let name = d["name"].as_str().filter(|n| names.contains(n))?;
                    let kind = match d["kind"].as_str() {
                        Some("dev") => Kind::Dev,
                        Some("build") => Kind::Build,
                        _ => Kind::Normal,
                    };
                    let name = name.to_owned();
                    Some(Dependency { name, kind })
                })
                .collect();
            let examples = array(package, "targets")?
                .iter()
                .filter(|t| t["kind"][0] == "example")
                .filter_map(|t| t["name"].as_str().map(str::to_owned))
                .collect();
            let features = package["features"].as_object().into_iter().flatten();
            Ok(Member {
                name: text(package, "name")?.to_owned(),
                folder: folder.to_owned(),
                internal,
                examples,
                features: features.map(|(name, _)| name.clone()).collect(),
            })
        })
        .collect::<Result<Vec<_>>>()?;
    members.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(members)
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key]
        .as_str()
        .ok_or_else(|| format!("cargo's metadata has no `{key}`").into())
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key]
        .as_array()
        .ok_or_else(|| format!("cargo's metadata has no `{key}`").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_has_core_and_facade() {
        let members = members().unwrap();
        let facade = members.iter().find(|m| m.name == "sandbox").unwrap();
        assert_eq!(facade.folder, "crates/sandbox");
        let core = facade.internal.iter().find(|d| d.name == "sandbox-core");
        assert_eq!(core.unwrap().kind, Kind::Normal);
        assert!(facade.features.iter().any(|f| f == "full"), "{facade:?}");
    }
}
