//! Members that are built alone get the same features of their dependencies as in a build of the
//! whole workspace: what differs is built twice.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Result, command, workspace};

/// How members are built alone: by tasks, and by the README.
const ALONE: [&[&str]; 6] = [
    &["-p", "sandbox", "--features", "mock"],
    &["-p", "sandbox", "--features", "docker"],
    &["-p", "sandbox", "--features", "opensandbox"],
    &["-p", "sandbox-conformance"],
    &["-p", "sandbox-examples"],
    // The wheel.
    &["-p", "sandbox-python", "--features", "unify"],
];

/// What testcontainers makes of these takes forty crates more, which is not for the README's first
/// command. Little is above them.
const APART: [&str; 2] = ["bollard", "bollard-stubs"];

/// The features of each package, by name and version. A package that is built for the host too may
/// have two sets.
type Features = BTreeMap<String, BTreeSet<String>>;

pub(super) fn check() -> Result<Vec<String>> {
    let members = workspace::members()?;
    let is_member = |name: &str| members.iter().any(|m| m.name == name);
    let all = features(&["--workspace", "--all-features"])?;
    let mut found = Vec::new();
    for alone in ALONE.iter().filter(|a| is_member(a[1])) {
        for (package, sets) in features(alone)? {
            let name = package.split(' ').next().unwrap_or(&package);
            let apart = is_member(name) || APART.contains(&name);
            if apart || !differs(&sets, all.get(&package)) {
                continue;
            }
            found.push(format!(
                "`{}` builds {package} with other features than the workspace: name {:?} in \
                 crates/sandbox-unify/Cargo.toml, and have that crate as a dev-dependency",
                alone.join(" "),
                all.get(&package)
            ));
        }
    }
    Ok(found)
}

fn differs(alone: &BTreeSet<String>, all: Option<&BTreeSet<String>>) -> bool {
    all.is_none_or(|all| !alone.is_subset(all))
}

fn features(selection: &[&str]) -> Result<Features> {
    let mut tree = command::cargo(&["tree", "--edges", "normal,build,dev", "--prefix", "none"]);
    tree.args(["--format", "{p}|{f}"]).args(selection);
    Ok(parse(&command::output(&mut tree)?))
}

fn parse(tree: &str) -> Features {
    let mut all = Features::new();
    for line in tree.lines() {
        // Seen before: ` (*)`; a path or `(proc-macro)` may follow the version.
        let line = line.trim_end_matches(" (*)");
        let (package, features) = line.split_once('|').unwrap_or((line, ""));
        let package: Vec<&str> = package.split(' ').take(2).collect();
        all.entry(package.join(" "))
            .or_default()
            .insert(features.to_owned());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_with_other_features_is_found() {
        let alone = parse("tokio v1.0.0|rt\nsyn v2.0.0 (proc-macro)|full (*)\n");
        let all = parse("tokio v1.0.0|net,rt\nsyn v2.0.0|full\nsyn v2.0.0|\n");
        let differ = |name: &str| differs(&alone[name], all.get(name));
        assert!(differ("tokio v1.0.0"));
        assert!(!differ("syn v2.0.0"));
        assert!(differs(&alone["tokio v1.0.0"], None));
    }
}
