//! What an engine is asked for: from code, or from a URL.

use std::fmt;
use std::sync::Arc;

use sandbox_core::{BackendUrl, Hardening, Network, Result, SandboxSpec};

/// How a pull gets on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PullProgress {
    /// The image.
    pub image: String,
    /// The layer that is worked on; empty for the image as a whole.
    pub layer: String,
    /// What is done, in the engine's words.
    pub status: String,
    /// Bytes done and bytes in all, where the engine tells.
    pub bytes: Option<(u64, u64)>,
}

impl PullProgress {
    pub(crate) fn new(image: &str) -> Self {
        Self {
            image: image.to_owned(),
            layer: String::new(),
            status: String::new(),
            bytes: None,
        }
    }
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pull {
    /// If the engine has none of that name.
    #[default]
    Missing,
    /// Never.
    Never,
}

type OnPull = Arc<dyn Fn(&PullProgress) + Send + Sync>;

/// Which engine, and what its sandboxes are like where their spec does not say.
///
/// ```
/// use sandbox_docker::DockerConfig;
///
/// let config = DockerConfig::new("debian:12").user("1000").runtime("runsc");
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct DockerConfig {
    /// The image of a sandbox whose spec names none.
    pub image: Option<String>,
    /// The engine, as `unix:///path` or `tcp://host:port`. Unset means `DOCKER_HOST`, the current
    /// context of the `docker` command, or the usual places, in that order.
    pub host: Option<String>,
    /// The platform of the image, as `linux/arm64`.
    pub platform: Option<String>,
    /// The engine's runtime, as `runsc` (gVisor) or `kata`.
    pub runtime: Option<String>,
    /// When an image is pulled.
    pub pull: Pull,
    /// Whether a mount may hold the engine's own socket. Who can write to it owns the host.
    pub allow_engine_socket: bool,
    /// Fields of a spec that sets them not itself.
    pub defaults: SandboxSpec,
    on_pull: Option<OnPull>,
}

impl fmt::Debug for DockerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DockerConfig")
            .field("image", &self.image)
            .field("host", &self.host)
            .field("platform", &self.platform)
            .field("runtime", &self.runtime)
            .field("pull", &self.pull)
            .finish_non_exhaustive()
    }
}

/// The options of a URL.
const OPTIONS: &[&str] = &[
    "host",
    "platform",
    "runtime",
    "pull",
    "user",
    "workdir",
    "network",
    "hardening",
    "memory",
    "cpus",
    "pids",
    "lifetime",
];

impl DockerConfig {
    /// Sandboxes of this image.
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: Some(image.into()),
            ..Self::default()
        }
    }

    /// Reads `docker://IMAGE?option=value&…`. Options: `host`, `platform`, `runtime`, `pull`
    /// (`missing`, `never`), `user`, `workdir`, `network` (`none`, `full`), `hardening` (`strict`,
    /// `standard`), `memory` (bytes, or with `k`, `m`, `g`), `cpus` (as `1.5`), `pids`, `lifetime`
    /// (seconds).
    ///
    /// # Errors
    ///
    /// [`sandbox_core::ErrorKind::Config`] naming the option that can't be used.
    pub fn from_url(url: &BackendUrl) -> Result<Self> {
        url.allow_options(OPTIONS)?;
        let text = |key: &str| url.option(key).map(str::to_owned);
        let mut defaults = SandboxSpec::new();
        defaults.user = text("user");
        defaults.workdir = text("workdir");
        let networks = [("none", Network::None), ("full", Network::Full)];
        defaults.network = url.read_word("network", &networks)?;
        let hardenings = [
            ("strict", Hardening::Strict),
            ("standard", Hardening::Standard),
        ];
        defaults.hardening = url.read_word("hardening", &hardenings)?;
        defaults.memory = url.read_bytes("memory")?;
        defaults.milli_cpus = url.read_milli_cpus("cpus")?;
        defaults.pids = url.read_number("pids")?;
        defaults.lifetime = url.read_seconds("lifetime")?;
        let pulls = [("missing", Pull::Missing), ("never", Pull::Never)];
        let pull = url.read_word("pull", &pulls)?;
        Ok(Self {
            image: Some(url.rest().to_owned()).filter(|image| !image.is_empty()),
            host: text("host"),
            platform: text("platform"),
            runtime: text("runtime"),
            pull: pull.unwrap_or_default(),
            defaults,
            ..Self::default()
        })
    }

    /// The URL of an equal configuration, as far as a URL can say it.
    pub(crate) fn to_url(&self) -> BackendUrl {
        let d = &self.defaults;
        let options = [
            ("host", self.host.clone()),
            ("platform", self.platform.clone()),
            ("runtime", self.runtime.clone()),
            (
                "pull",
                (self.pull == Pull::Never).then(|| "never".to_owned()),
            ),
            ("user", d.user.clone()),
            ("workdir", d.workdir.clone()),
            (
                "network",
                d.network.map(|n| match n {
                    Network::Full => "full".to_owned(),
                    _ => "none".to_owned(),
                }),
            ),
            (
                "hardening",
                d.hardening.map(|h| match h {
                    Hardening::Standard => "standard".to_owned(),
                    _ => "strict".to_owned(),
                }),
            ),
            ("memory", d.memory.map(|n| n.to_string())),
            (
                "cpus",
                d.milli_cpus
                    .map(|n| format!("{}.{:03}", n / 1000, n % 1000)),
            ),
            ("pids", d.pids.map(|n| n.to_string())),
            (
                "lifetime",
                d.lifetime.map(|l| l.as_secs().max(1).to_string()),
            ),
        ];
        let url = BackendUrl::new("docker", self.image.clone().unwrap_or_default());
        options
            .into_iter()
            .fold(url, |url, (key, value)| url.with_some(key, value))
    }

    /// Sets the engine's address.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.host = Some(host.into());
        self
    }

    /// Sets who runs commands where a spec does not say.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.defaults.user = Some(user.into());
        self
    }

    /// Sets the platform of the image.
    pub fn platform(mut self, platform: impl Into<String>) -> Self {
        self.platform = Some(platform.into());
        self
    }

    /// Sets the engine's runtime.
    pub fn runtime(mut self, runtime: impl Into<String>) -> Self {
        self.runtime = Some(runtime.into());
        self
    }

    /// Sets when an image is pulled.
    pub fn pull(mut self, pull: Pull) -> Self {
        self.pull = pull;
        self
    }

    /// Calls `progress` while an image is pulled.
    pub fn on_pull(mut self, progress: impl Fn(&PullProgress) + Send + Sync + 'static) -> Self {
        self.on_pull = Some(Arc::new(progress));
        self
    }

    /// Lets mounts hold the engine's own socket: who can write to it owns the host.
    pub fn allow_engine_socket(mut self) -> Self {
        self.allow_engine_socket = true;
        self
    }

    pub(crate) fn report(&self, progress: &PullProgress) {
        if let Some(on_pull) = &self.on_pull {
            on_pull(progress);
        }
    }

    /// The spec with this configuration's fields where it sets none.
    pub(crate) fn fill(&self, spec: &SandboxSpec) -> SandboxSpec {
        let mut spec = spec.clone();
        spec.image = spec.image.or_else(|| self.image.clone());
        spec.or(&self.defaults)
    }
}

#[cfg(test)]
mod tests {
    use sandbox_core::ErrorKind;

    use super::*;

    fn config(url: &str) -> Result<DockerConfig> {
        DockerConfig::from_url(&BackendUrl::parse(url).unwrap())
    }

    #[test]
    fn a_url_is_read_and_given_back() {
        let url = "docker://python:3.12?host=unix:///x.sock&runtime=runsc&user=1000&network=full\
                   &hardening=standard&memory=536870912&cpus=1.500&pids=64&lifetime=60";
        let read = config(url).unwrap();
        assert_eq!(read.image.as_deref(), Some("python:3.12"));
        assert_eq!(read.defaults.milli_cpus, Some(1500));
        assert_eq!(read.to_url().to_string(), url);
        assert_eq!(
            config("docker://x?memory=512m").unwrap().defaults.memory,
            Some(512 << 20)
        );
        assert_eq!(config("docker:").unwrap().image, None);
    }

    #[test]
    fn what_can_t_be_used_is_refused_by_name() {
        for bad in [
            "docker://x?netwrok=full",
            "docker://x?network=some",
            "docker://x?memory=0",
            "docker://x?memory=99999999999g",
            "docker://x?cpus=-1",
            "docker://x?cpus=0",
            "docker://x?pids=many",
            "docker://x?lifetime=0",
            "docker://x?lifetime=-1",
        ] {
            assert_eq!(config(bad).unwrap_err().kind(), ErrorKind::Config, "{bad}");
        }
    }
}
