//! The faults, by the part of a system that they sit in.

use crate::broken::Hooks;

mod commands;
mod contents;
mod files;
mod life;
mod output;
mod search;

/// One fault.
#[derive(Clone, Copy)]
pub(crate) struct Fault {
    /// Its entry in the public list, or the table of wrong answers of today's adapters.
    pub(crate) from: &'static str,
    /// What is wrong.
    pub(crate) name: &'static str,
    /// The groups of cases that have to do with it.
    pub(crate) groups: &'static [&'static str],
    /// How it is made.
    pub(crate) hooks: Hooks,
}

/// Wrong answers seen in adapters of today, which stand in no public list.
const SEEN: &str = "seen";

pub(crate) fn all() -> Vec<Fault> {
    [
        output::all(),
        commands::all(),
        files::all(),
        contents::all(),
        search::all(),
        life::all(),
    ]
    .concat()
}

/// Hooks that change nothing, to write a fault as what it changes.
fn none() -> Hooks {
    Hooks::default()
}

fn fault(
    from: &'static str,
    name: &'static str,
    group: &'static [&'static str],
    hooks: Hooks,
) -> Fault {
    Fault {
        from,
        name,
        groups: group,
        hooks,
    }
}
