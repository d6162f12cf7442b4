//! How a sandbox is named.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A provider's own name of a sandbox, opaque to everyone else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SandboxId(String);

impl SandboxId {
    /// An id as the provider gave it.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// All that is needed to pick a sandbox up again, in another process too. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SandboxRef {
    /// The backend, as for the facade's `connect`.
    pub url: String,
    /// The sandbox.
    pub id: SandboxId,
}

/// What `list` reports of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxInfo {
    /// The sandbox.
    pub id: SandboxId,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it does.
    pub state: SandboxState,
}

impl SandboxInfo {
    /// A running sandbox.
    pub fn new(id: SandboxId, labels: BTreeMap<String, String>, state: SandboxState) -> Self {
        Self { id, labels, state }
    }
}

/// What a sandbox does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SandboxState {
    /// It takes commands.
    Running,
    /// It is paused.
    Paused,
    /// It has ended and its remains have not been removed yet, or it is about to start.
    NotRunning,
}

/// Which sandboxes `list` reports: those that have all the labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// Labels with their values.
    pub labels: BTreeMap<String, String>,
}

impl Filter {
    /// All sandboxes of this library.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those that have this label too.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// True when `labels` has all that is asked.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels.iter().all(|(k, v)| labels.get(k) == Some(v))
    }
}
