//! Which member may depend on which.

use crate::workspace::{Kind, Member};

/// Members and the members that their code (tests apart) may depend on. Backends and the kit know
/// core only, so that a third party's can do the same.
const LAYERS: &[(&str, &[&str])] = &[
    ("sandbox-core", &[]),
    ("sandbox-mock", &["sandbox-core"]),
    ("sandbox-docker", &["sandbox-core"]),
    ("sandbox-opensandbox", &["sandbox-core"]),
    ("sandbox-conformance", &["sandbox-core"]),
    ("sandbox-tools", &["sandbox-core"]),
    (
        "sandbox",
        &[
            "sandbox-core",
            "sandbox-mock",
            "sandbox-docker",
            "sandbox-opensandbox",
        ],
    ),
    ("sandbox-testkit", &["sandbox-conformance"]),
    ("sandbox-cli", &["sandbox", "sandbox-tools"]),
    // Its optional feature `unify` is how a wheel is made of what the tests were built of.
    ("sandbox-python", &["sandbox", "sandbox-unify"]),
    (
        "sandbox-examples",
        &[
            "sandbox",
            "sandbox-core",
            // A backend of one's own and a test of one's agent show the mock itself.
            "sandbox-mock",
            "sandbox-tools",
            // An agent without a model's key talks to a stand-in.
            "sandbox-testkit",
            "sandbox-conformance",
        ],
    ),
    ("sandbox-execd", &[]),
    ("sandbox-unify", &[]),
    ("xtask", &[]),
];

/// Who may depend on the facade, tests included.
const ON_FACADE: &[&str] = &["sandbox-cli", "sandbox-python", "sandbox-examples"];

pub(super) fn check(members: &[Member]) -> Vec<String> {
    let mut found = Vec::new();
    for member in members {
        let name = member.name.as_str();
        let Some((_, allowed)) = LAYERS.iter().find(|(n, _)| *n == name) else {
            found.push(format!("{name}: has no row in xtask/src/tidy/layers.rs"));
            continue;
        };
        for dependency in &member.internal {
            let on = dependency.name.as_str();
            if dependency.kind != Kind::Dev && !allowed.contains(&on) {
                found.push(format!("{name}: must not depend on {on}"));
            }
            if on == "sandbox" && !ON_FACADE.contains(&name) {
                found.push(format!("{name}: must not depend on the facade"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn member(name: &str, on: &str, kind: Kind) -> Member {
        let name = name.to_owned();
        let internal = vec![Dependency {
            name: on.to_owned(),
            kind,
        }];
        Member {
            name,
            folder: String::new(),
            internal,
            examples: Vec::new(),
            features: Vec::new(),
        }
    }

    #[test]
    fn a_wrong_dependency_is_found() {
        for (name, on, kind, faults) in [
            ("sandbox-mock", "sandbox-core", Kind::Normal, 0),
            ("sandbox-mock", "sandbox-conformance", Kind::Dev, 0),
            ("sandbox-mock", "sandbox-docker", Kind::Normal, 1),
            ("sandbox-mock", "sandbox", Kind::Dev, 1),
            ("sandbox-core", "sandbox-mock", Kind::Build, 1),
            ("sandbox-cli", "sandbox", Kind::Normal, 0),
            ("sandbox-other", "sandbox-core", Kind::Normal, 1),
        ] {
            assert_eq!(
                check(&[member(name, on, kind)]).len(),
                faults,
                "{name} on {on}"
            );
        }
    }
}
