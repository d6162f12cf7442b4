//! What a container's labels say. They can't change after it was made.

use std::collections::{BTreeMap, HashMap};

use crate::container::Place;

/// Every container of this library has it.
pub(crate) const MANAGED: &str = "rs.sandbox.managed";
/// Names the call that made it.
pub(crate) const TOKEN: &str = "rs.sandbox.token";
/// The process that owns it.
pub(crate) const OWNER: &str = "rs.sandbox.owner";
/// Who runs commands.
const USER: &str = "rs.sandbox.user";
/// Where they start.
const WORKDIR: &str = "rs.sandbox.workdir";
/// Before each label of the spec.
const LABEL: &str = "rs.sandbox.label.";

/// The labels of a new container.
pub(crate) fn of(
    token: &str,
    owner: Option<&str>,
    place: &Place,
    labels: &BTreeMap<String, String>,
) -> HashMap<String, String> {
    let mut all = HashMap::from([
        (MANAGED.to_owned(), "1".to_owned()),
        (TOKEN.to_owned(), token.to_owned()),
    ]);
    let known = [
        (OWNER, owner),
        (USER, place.user.as_deref()),
        (WORKDIR, place.workdir.as_deref()),
    ];
    for (name, value) in known {
        if let Some(value) = value {
            all.insert(name.to_owned(), value.to_owned());
        }
    }
    all.extend(
        labels
            .iter()
            .map(|(k, v)| (format!("{LABEL}{k}"), v.clone())),
    );
    all
}

/// Where commands are, as the labels say.
pub(crate) fn place(labels: &HashMap<String, String>) -> Place {
    Place {
        user: labels.get(USER).cloned(),
        workdir: labels.get(WORKDIR).cloned(),
        home: None,
    }
}

/// The labels of the spec.
pub(crate) fn of_spec(labels: &HashMap<String, String>) -> BTreeMap<String, String> {
    labels
        .iter()
        .filter_map(|(k, v)| Some((k.strip_prefix(LABEL)?.to_owned(), v.clone())))
        .collect()
}

/// What the engine is asked for to find all that have these labels of the spec.
pub(crate) fn filter(labels: &BTreeMap<String, String>) -> Vec<String> {
    std::iter::once(format!("{MANAGED}=1"))
        .chain(labels.iter().map(|(k, v)| format!("{LABEL}{k}={v}")))
        .collect()
}
