//! What a user's build gets: counted with `cargo tree`.

use std::collections::BTreeSet;

use crate::{Result, command};

/// At most so many crates below the facade with one backend.
const CRATES: usize = 120;

/// Each backend of the facade, with what is not counted: the engine that it is made of.
const BACKENDS: &[(&str, &[&str])] = &[
    ("mock", &["bashkit"]),
    ("docker", &[]),
    ("opensandbox", &[]),
];

/// Core knows no transport and no language.
const NOT_IN_CORE: [&str; 8] = [
    "reqwest",
    "hyper",
    "bollard",
    "bashkit",
    "pyo3",
    "openssl-sys",
    "rustls",
    "clap",
];

pub(super) fn check() -> Result<Vec<String>> {
    let mut found = Vec::new();
    let core = tree(&["-p", "sandbox-core"])?;
    for name in NOT_IN_CORE.iter().filter(|n| core.contains(**n)) {
        found.push(format!("sandbox-core: must not bring {name}"));
    }
    for (feature, engine) in BACKENDS {
        let mut args = vec!["-p", "sandbox", "--features", feature];
        for name in *engine {
            args.extend(["--prune", name]);
        }
        let crates = tree(&args)?.len();
        eprintln!("`sandbox` with `{feature}`: {crates} crates, at most {CRATES}");
        if crates > CRATES {
            found.push(format!(
                "sandbox with `{feature}`: {crates} crates, more than {CRATES}"
            ));
        }
    }
    Ok(found)
}

/// The names of the crates that a user's build has, the procedural macros' own included.
fn tree(args: &[&str]) -> Result<BTreeSet<String>> {
    let mut tree = command::cargo(&["tree", "--edges", "normal,build", "--prefix", "none"]);
    tree.args(["--format", "{p}"]).args(args);
    let names = command::output(&mut tree)?;
    Ok(names
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_of_core_holds_what_it_is_made_of() {
        let core = tree(&["-p", "sandbox-core"]).unwrap();
        assert!(
            core.contains("sandbox-core") && core.contains("tokio"),
            "{core:?}"
        );
    }
}
