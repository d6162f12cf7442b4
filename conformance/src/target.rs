//! One way to set a backend up.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use sandbox_core::{Client, Result, SandboxSpec};

use crate::skips::SkipWhat;
use crate::{Case, Profile, Skip, cases};

type Connect = dyn Fn() -> Pin<Box<dyn Future<Output = Result<Client>> + Send>> + Send + Sync;

/// Whether a target can run here: known when the list of cases is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It can.
    Available,
    /// It can't, and why: «no Docker engine answers at /var/run/docker.sock».
    NotRun(String),
}

/// One way to set a backend up: a client, a spec, a profile.
#[derive(Clone)]
pub struct Target {
    name: &'static str,
    backend: &'static str,
    profile: Profile,
    spec: SandboxSpec,
    availability: Availability,
    groups: Option<&'static [&'static str]>,
    skips: Vec<Skip>,
    connect: Arc<Connect>,
}

impl Target {
    /// A target with the default spec and the profile [`Profile::Core`]. Its backend is `name` up
    /// to the first `-`.
    pub fn new<F>(name: &'static str, client: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Client>> + Send + 'static,
    {
        Self {
            name,
            backend: name.split('-').next().unwrap_or(name),
            profile: Profile::Core,
            spec: SandboxSpec::new(),
            availability: Availability::Available,
            groups: None,
            skips: Vec::new(),
            connect: Arc::new(move || Box::pin(client())),
        }
    }

    /// Sets what it promises.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets what its sandboxes are made from.
    pub fn spec(mut self, spec: SandboxSpec) -> Self {
        self.spec = spec;
        self
    }

    /// Says whether it can run here. Found out cheaply: this happens when cases are only listed.
    pub fn availability(mut self, availability: Availability) -> Self {
        self.availability = availability;
        self
    }

    /// Only these groups: for a target that differs from another one in them only.
    pub fn groups(mut self, groups: &'static [&'static str]) -> Self {
        self.groups = Some(groups);
        self
    }

    /// Sets what it may skip; rows of other targets don't matter.
    pub fn skips(mut self, skips: &[Skip]) -> Self {
        let mine = |s: &&Skip| s.target == self.name || s.target == self.backend;
        self.skips = skips.iter().filter(mine).copied().collect();
        self
    }

    /// Its name, the first part of a test's.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The backend's one word.
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// What it promises.
    pub fn promised(&self) -> Profile {
        self.profile
    }

    /// Whether it can run here.
    pub fn is_available(&self) -> &Availability {
        &self.availability
    }

    /// What its sandboxes are made from.
    pub fn sandbox_spec(&self) -> &SandboxSpec {
        &self.spec
    }

    /// The cases it has to pass.
    pub fn cases(&self) -> Vec<Case> {
        cases()
            .into_iter()
            .filter(|c| c.profile <= self.profile)
            .filter(|c| self.groups.is_none_or(|groups| groups.contains(&c.group)))
            .collect()
    }

    pub(crate) async fn client(&self) -> Result<Client> {
        (self.connect)().await
    }

    /// The row of the list that allows to skip `case`.
    pub(crate) fn skip(&self, case: &Case) -> Option<&Skip> {
        self.skips.iter().find(|s| match s.what {
            SkipWhat::Case(name) => name == case.full_name(),
            SkipWhat::Capability(name) => case.need.is_some_and(|n| n.name == name),
        })
    }

    /// Rows of the list that name nothing that exists: they would hide a mistake.
    pub(crate) fn stale_skips(&self) -> Vec<&Skip> {
        let cases = self.cases();
        self.skips
            .iter()
            .filter(|s| {
                !cases.iter().any(|c| match s.what {
                    SkipWhat::Case(name) => name == c.full_name(),
                    SkipWhat::Capability(name) => c.need.is_some_and(|n| n.name == name),
                })
            })
            .collect()
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
