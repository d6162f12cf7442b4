//! What a new sandbox should be like.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Error, ErrorKind, Result, SandboxPath, command, defaults};

/// What a new sandbox should be like. Unset fields take the defaults of [`crate::defaults`].
///
/// What is set and the backend can't honour is refused, naming the field. A default it can't
/// honour is told in [`crate::Sandbox::warnings`].
///
/// ```
/// use std::time::Duration;
/// use sandbox_core::SandboxSpec;
///
/// let spec = SandboxSpec::new().env("STAGE", "test").lifetime(Duration::from_secs(300));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxSpec {
    /// The image; unset means the backend's own default.
    pub image: Option<String>,
    /// What process 1 runs besides waiting; unset means nothing.
    pub entrypoint: Option<Vec<String>>,
    /// Variables of every command.
    pub env: BTreeMap<String, String>,
    /// Where commands start; made for the command's user. Default [`defaults::WORKDIR`].
    pub workdir: Option<String>,
    /// Who runs commands, by name or number; unset means the image's user.
    pub user: Option<String>,
    /// Memory in bytes. Default [`defaults::MEMORY`].
    pub memory: Option<u64>,
    /// CPU time in thousandths of a CPU. Default [`defaults::MILLI_CPUS`].
    pub milli_cpus: Option<u64>,
    /// Processes and threads at once. Default [`defaults::PIDS`].
    pub pids: Option<u64>,
    /// Disk in bytes; unset means what the backend gives.
    pub disk: Option<u64>,
    /// What the sandbox may reach. Unset means the backend's own default: none on `mock` and
    /// `docker`, the server's policy on `opensandbox`.
    pub network: Option<Network>,
    /// How long the sandbox lives unless renewed, enforced outside this process where the backend
    /// can. Default [`defaults::LIFETIME`].
    pub lifetime: Option<Duration>,
    /// Free labels to find the sandbox by.
    pub labels: BTreeMap<String, String>,
    /// Parts of the host's file system, or volumes.
    pub mounts: Vec<Mount>,
    /// How tightly commands are held. Default [`Hardening::Strict`].
    pub hardening: Option<Hardening>,
}

/// What a sandbox may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Network {
    /// Nothing but itself.
    None,
    /// What the engine's default network reaches.
    Full,
}

/// How tightly commands are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hardening {
    /// No capabilities, no new privileges: root inside is not root.
    Strict,
    /// The engine's default capabilities; package managers need them.
    Standard,
}

/// A part of the host's file system, or a volume, inside the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mount {
    /// An absolute host path or the name of a volume.
    pub source: String,
    /// Where it appears.
    pub target: String,
    /// Whether the sandbox may only read it.
    pub read_only: bool,
}

impl Mount {
    /// A mount that may only be read.
    pub fn read_only(source: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            target: target.into(),
            read_only: true,
        }
    }

    /// A mount that may be written.
    pub fn writable(source: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            target: target.into(),
            read_only: false,
        }
    }
}

/// Which fields of a [`SandboxSpec`] a provider honours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "each is the field of the spec of the same name"
)]
#[allow(clippy::struct_excessive_bools, reason = "a set of independent facts")]
pub struct SpecSupport {
    pub image: bool,
    pub entrypoint: bool,
    pub env: bool,
    pub workdir: bool,
    pub user: bool,
    pub memory: bool,
    pub milli_cpus: bool,
    pub pids: bool,
    pub disk: bool,
    pub network_none: bool,
    pub network_full: bool,
    pub lifetime: bool,
    pub labels: bool,
    pub mounts: bool,
    pub hardening: bool,
}

impl SpecSupport {
    /// No field at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// This with some fields set.
    pub fn with(mut self, set: impl FnOnce(&mut Self)) -> Self {
        set(&mut self);
        self
    }
}

impl SandboxSpec {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// This spec, with the fields of `defaults` where it sets none. Variables and labels are put
    /// together, mounts too.
    pub fn or(mut self, defaults: &Self) -> Self {
        let d = defaults.clone();
        self.image = self.image.or(d.image);
        self.entrypoint = self.entrypoint.or(d.entrypoint);
        self.workdir = self.workdir.or(d.workdir);
        self.user = self.user.or(d.user);
        self.memory = self.memory.or(d.memory);
        self.milli_cpus = self.milli_cpus.or(d.milli_cpus);
        self.pids = self.pids.or(d.pids);
        self.disk = self.disk.or(d.disk);
        self.network = self.network.or(d.network);
        self.lifetime = self.lifetime.or(d.lifetime);
        self.hardening = self.hardening.or(d.hardening);
        for (own, theirs) in [(&mut self.env, d.env), (&mut self.labels, d.labels)] {
            for (name, value) in theirs {
                own.entry(name).or_insert(value);
            }
        }
        self.mounts.extend(d.mounts);
        self
    }

    /// Sets the image.
    pub fn image(mut self, image: impl Into<String>) -> Self {
        self.image = Some(image.into());
        self
    }

    /// Sets what process 1 runs besides waiting.
    pub fn entrypoint(mut self, argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.entrypoint = Some(argv.into_iter().map(Into::into).collect());
        self
    }

    /// Adds a variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets where commands start.
    pub fn workdir(mut self, path: impl Into<String>) -> Self {
        self.workdir = Some(path.into());
        self
    }

    /// Sets who runs commands.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets the memory in bytes.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Sets the CPU time in thousandths of a CPU.
    pub fn milli_cpus(mut self, milli_cpus: u64) -> Self {
        self.milli_cpus = Some(milli_cpus);
        self
    }

    /// Sets the number of processes and threads.
    pub fn pids(mut self, pids: u64) -> Self {
        self.pids = Some(pids);
        self
    }

    /// Sets the disk in bytes.
    pub fn disk(mut self, bytes: u64) -> Self {
        self.disk = Some(bytes);
        self
    }

    /// Sets what the sandbox may reach.
    pub fn network(mut self, network: Network) -> Self {
        self.network = Some(network);
        self
    }

    /// Sets how long the sandbox lives.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// Adds a label.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// Adds a mount.
    pub fn mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// Sets how tightly commands are held.
    pub fn hardening(mut self, hardening: Hardening) -> Self {
        self.hardening = Some(hardening);
        self
    }

    /// The workdir, the default filled in.
    pub fn effective_workdir(&self) -> &str {
        self.workdir.as_deref().unwrap_or(defaults::WORKDIR)
    }

    /// The lifetime, the default filled in.
    pub fn effective_lifetime(&self) -> Duration {
        self.lifetime.unwrap_or(defaults::LIFETIME)
    }

    /// Checks the values, then the fields against what the provider honours. Gives the warnings
    /// about defaults that it does not.
    pub(crate) fn check(&self, support: &SpecSupport) -> Result<Vec<String>> {
        command::check_env(&self.env)?;
        if let Some(workdir) = &self.workdir {
            SandboxPath::new(workdir).map_err(|e| e.with("field", "workdir"))?;
        }
        let zero = [
            ("memory", self.memory == Some(0)),
            ("milli_cpus", self.milli_cpus == Some(0)),
            ("pids", self.pids == Some(0)),
            ("disk", self.disk == Some(0)),
            ("lifetime", self.lifetime == Some(Duration::ZERO)),
        ];
        if let Some((field, _)) = zero.iter().find(|(_, zero)| *zero) {
            return Err(
                Error::new(ErrorKind::InvalidArgument, "zero is no usable value")
                    .with("field", field),
            );
        }
        let network = match self.network {
            None => true,
            Some(Network::None) => support.network_none,
            Some(Network::Full) => support.network_full,
        };
        let set = [
            ("image", self.image.is_some(), support.image),
            ("entrypoint", self.entrypoint.is_some(), support.entrypoint),
            ("env", !self.env.is_empty(), support.env),
            ("workdir", self.workdir.is_some(), support.workdir),
            ("user", self.user.is_some(), support.user),
            ("memory", self.memory.is_some(), support.memory),
            ("milli_cpus", self.milli_cpus.is_some(), support.milli_cpus),
            ("pids", self.pids.is_some(), support.pids),
            ("disk", self.disk.is_some(), support.disk),
            ("network", self.network.is_some(), network),
            ("lifetime", self.lifetime.is_some(), support.lifetime),
            ("labels", !self.labels.is_empty(), support.labels),
            ("mounts", !self.mounts.is_empty(), support.mounts),
            ("hardening", self.hardening.is_some(), support.hardening),
        ];
        if let Some((field, ..)) = set.iter().find(|(_, set, honoured)| *set && !honoured) {
            return Err(
                Error::unsupported(format!("the field `{field}` of a spec")).with("field", field)
            );
        }
        let defaults = [
            (
                "workdir",
                support.workdir,
                format!("commands do not start in {}", defaults::WORKDIR),
            ),
            (
                "lifetime",
                support.lifetime,
                "the sandbox does not end by itself: kill it, or it may live on".to_owned(),
            ),
        ];
        Ok(defaults
            .into_iter()
            .filter(|(_, honoured, _)| !honoured)
            .map(|(field, _, what)| format!("{field}: the default is not honoured here: {what}"))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_and_not_honoured_is_refused_by_name_and_a_default_is_a_warning() {
        let support = SpecSupport::none().with(|s| s.env = true);
        let spec = SandboxSpec::new().env("A", "1");
        assert_eq!(spec.check(&support).unwrap().len(), 2);
        let refused = spec.clone().memory(1 << 20).check(&support).unwrap_err();
        assert_eq!(
            (refused.kind(), refused.context("field")),
            (ErrorKind::Unsupported, Some("memory"))
        );
        assert_eq!(
            spec.pids(0).check(&support).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    }
}
