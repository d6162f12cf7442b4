//! What a server is asked for: from code, from a URL, from the environment, or from the server's
//! own file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox_core::{BackendUrl, Error, ErrorKind, Network, Result, SandboxSpec};

use crate::origin::Origin;
use crate::policy::NetworkPolicy;
use crate::secret::Secret;

/// The image of a sandbox that names none, and what keeps it up: a pair of OpenSandbox's own.
pub(crate) const DEFAULT_IMAGE: &str = "opensandbox/code-interpreter:v1.1.0";

/// Only in [`DEFAULT_IMAGE`].
pub(crate) const DEFAULT_ENTRYPOINT: &str = "/opt/code-interpreter/code-interpreter.sh";

/// The variable with the server's address, as the official SDKs read it.
pub(crate) const DOMAIN: &str = "OPEN_SANDBOX_DOMAIN";

/// The variable with the key, as the official SDKs read it.
pub(crate) const API_KEY: &str = "OPEN_SANDBOX_API_KEY";

/// How long making a sandbox may take: the server pulls the image first.
const CREATE: Duration = Duration::from_mins(10);

/// How long the daemon of a new sandbox may take to answer.
const READY: Duration = Duration::from_secs(30);

/// How requests get to the daemon in a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerProxy {
    /// Directly; through the server where only that works.
    #[default]
    Auto,
    /// Through the server.
    On,
    /// Directly.
    Off,
}

/// Which server, and what its sandboxes are like where their spec does not say.
///
/// ```
/// use sandbox_opensandbox::OpenSandboxConfig;
///
/// let config = OpenSandboxConfig::new("127.0.0.1:8080").image("python:3.12").api_key("secret");
/// assert!(!format!("{config:?}").contains("secret"));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenSandboxConfig {
    /// The server, as `HOST:PORT`, `http://HOST:PORT` or `https://HOST:PORT`.
    pub server: String,
    /// The image of a sandbox whose spec names none. Unset means OpenSandbox's own,
    /// `opensandbox/code-interpreter:v1.1.0`, with its own entrypoint.
    pub image: Option<String>,
    /// How requests get to the daemon in a sandbox.
    pub use_server_proxy: ServerProxy,
    /// What sandboxes may reach. Needs an egress sidecar at the server.
    pub network_policy: Option<NetworkPolicy>,
    /// Sandboxes whose spec sets no lifetime never end by themselves.
    pub no_expiry: bool,
    /// How long making a sandbox may take, its image's pull included. Default 10 minutes.
    pub create_timeout: Duration,
    /// How long the daemon of a new sandbox may take to answer. Default 30 seconds.
    pub ready_timeout: Duration,
    /// Fields of a spec that sets them not itself.
    pub defaults: SandboxSpec,
    pub(crate) key: Option<Secret>,
    pub(crate) execd_token: Option<Secret>,
    pub(crate) image_auth: Option<(String, Secret)>,
    pub(crate) extensions: BTreeMap<String, String>,
}

/// The options of a URL.
const OPTIONS: &[&str] = &[
    "tls",
    "use_server_proxy",
    "user",
    "workdir",
    "network",
    "memory",
    "cpus",
    "lifetime",
    "ready_timeout",
];

impl OpenSandboxConfig {
    /// Sandboxes of this server, as `HOST:PORT`, `http://HOST:PORT` or `https://HOST:PORT`.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            image: None,
            use_server_proxy: ServerProxy::default(),
            network_policy: None,
            no_expiry: false,
            create_timeout: CREATE,
            ready_timeout: READY,
            defaults: SandboxSpec::new(),
            key: None,
            execd_token: None,
            image_auth: None,
            extensions: BTreeMap::new(),
        }
    }

    /// Reads the server from `OPEN_SANDBOX_DOMAIN` and the key from `OPEN_SANDBOX_API_KEY`, as the
    /// official SDKs do.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] without the first.
    pub fn from_env() -> Result<Self> {
        let server = variable(DOMAIN).ok_or_else(|| {
            Error::new(
                ErrorKind::Config,
                "no server: set OPEN_SANDBOX_DOMAIN to HOST:PORT",
            )
        })?;
        Ok(Self {
            key: variable(API_KEY).map(Secret::new),
            ..Self::new(server)
        })
    }

    /// Reads address and key from the file that a server on this machine was started with;
    /// `~/.sandbox.toml` if none is named.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if it can't be read or names no port.
    pub fn from_server_file(path: Option<&Path>) -> Result<Self> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => home()?.join(".sandbox.toml"),
        };
        let bad = |why: &'static str| {
            Error::new(ErrorKind::Config, why).with("file", path.display().to_string())
        };
        let text = std::fs::read_to_string(&path)
            .map_err(|e| bad("the server's file can't be read").because(e))?;
        let server = crate::server_file::read(&text)
            .ok_or_else(|| bad("the server's file has no usable `[server]` table"))?;
        Ok(Self {
            key: server.key.map(Secret::new),
            ..Self::new(server.address)
        })
    }

    /// Reads `opensandbox://HOST:PORT[/IMAGE]?option=value&…`. The key is never in a URL: it is
    /// read from the variable `OPEN_SANDBOX_API_KEY`.
    ///
    /// Options: `tls` (`on`, `off`), `use_server_proxy` (`auto`, `on`, `off`), `user`, `workdir`,
    /// `network` (`none`, `full`), `memory` (bytes, or with `k`, `m`, `g`), `cpus` (as `1.5`),
    /// `lifetime` (seconds, or `none`), `ready_timeout` (seconds).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] naming the option that can't be used.
    pub fn from_url(url: &BackendUrl) -> Result<Self> {
        url.allow_options(OPTIONS)?;
        let (server, image) = match url.rest().split_once('/') {
            Some((server, image)) => (server, Some(image.to_owned()).filter(|i| !i.is_empty())),
            None => (url.rest(), None),
        };
        if server.is_empty() {
            return Err(Error::new(
                ErrorKind::Config,
                "which server is missing: `opensandbox://HOST:PORT/IMAGE`",
            ));
        }
        let switch = [("on", true), ("off", false)];
        let tls = url.read_word("tls", &switch)?.unwrap_or(false);
        let scheme = if tls { "https" } else { "http" };
        let mut config = Self::new(format!("{scheme}://{server}"));
        config.origin()?;
        config.image = image;
        config.key = variable(API_KEY).map(Secret::new);
        let proxies = [
            ("auto", ServerProxy::Auto),
            ("on", ServerProxy::On),
            ("off", ServerProxy::Off),
        ];
        let proxy = url.read_word("use_server_proxy", &proxies)?;
        config.use_server_proxy = proxy.unwrap_or_default();
        let text = |key: &str| url.option(key).map(str::to_owned);
        let d = &mut config.defaults;
        d.user = text("user");
        d.workdir = text("workdir");
        let networks = [("none", Network::None), ("full", Network::Full)];
        d.network = url.read_word("network", &networks)?;
        d.memory = url.read_bytes("memory")?;
        d.milli_cpus = url.read_milli_cpus("cpus")?;
        if url.option("lifetime") == Some("none") {
            config.no_expiry = true;
        } else {
            d.lifetime = url.read_seconds("lifetime")?;
        }
        if let Some(limit) = url.read_seconds("ready_timeout")? {
            config.ready_timeout = limit;
        }
        Ok(config)
    }

    /// The URL of an equal configuration, as far as a URL can say it, and without secrets.
    pub(crate) fn to_url(&self) -> BackendUrl {
        let (authority, tls) = match self.origin() {
            Ok(origin) => (origin.authority(), origin.is_tls()),
            Err(_) => (self.server.clone(), false),
        };
        let rest = match &self.image {
            Some(image) => format!("{authority}/{image}"),
            None => authority,
        };
        let d = &self.defaults;
        let options = [
            ("tls", tls.then(|| "on".to_owned())),
            (
                "use_server_proxy",
                match self.use_server_proxy {
                    ServerProxy::Auto => None,
                    ServerProxy::On => Some("on".to_owned()),
                    ServerProxy::Off => Some("off".to_owned()),
                },
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
            ("memory", d.memory.map(|n| n.to_string())),
            (
                "cpus",
                d.milli_cpus
                    .map(|n| format!("{}.{:03}", n / 1000, n % 1000)),
            ),
            (
                "lifetime",
                if self.no_expiry {
                    Some("none".to_owned())
                } else {
                    d.lifetime.map(|l| l.as_secs().max(1).to_string())
                },
            ),
            (
                "ready_timeout",
                (self.ready_timeout != READY).then(|| self.ready_timeout.as_secs().to_string()),
            ),
        ];
        let url = BackendUrl::new("opensandbox", rest);
        options
            .into_iter()
            .fold(url, |url, (key, value)| url.with_some(key, value))
    }

    /// Where the server is.
    pub(crate) fn origin(&self) -> Result<Origin> {
        Origin::parse(&self.server, false).map_err(|e| {
            // What stands before an `@` may be a password.
            if self.server.contains('@') {
                e
            } else {
                e.with("server", &self.server)
            }
        })
    }

    /// Sets the key. It goes to the server only, and is never shown.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(Secret::new(key));
        self
    }

    /// Sets the token that the daemons of the sandboxes ask for (`EXECD_ACCESS_TOKEN`), where the
    /// server's operator has given them one.
    pub fn execd_token(mut self, token: impl Into<String>) -> Self {
        self.execd_token = Some(Secret::new(token));
        self
    }

    /// Sets the image.
    pub fn image(mut self, image: impl Into<String>) -> Self {
        self.image = Some(image.into());
        self
    }

    /// Sets what the server pulls a private image with.
    pub fn image_auth(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.image_auth = Some((user.into(), Secret::new(password)));
        self
    }

    /// Sets who runs commands where a spec does not say.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.defaults.user = Some(user.into());
        self
    }

    /// Sets how requests get to the daemon in a sandbox.
    pub fn use_server_proxy(mut self, proxy: ServerProxy) -> Self {
        self.use_server_proxy = proxy;
        self
    }

    /// Sets what sandboxes may reach.
    pub fn network_policy(mut self, policy: NetworkPolicy) -> Self {
        self.network_policy = Some(policy);
        self
    }

    /// Sets how long a sandbox lives where its spec does not say; `None` means until it is killed.
    pub fn lifetime(mut self, lifetime: Option<Duration>) -> Self {
        self.no_expiry = lifetime.is_none();
        self.defaults.lifetime = lifetime;
        self
    }

    /// Adds an extension of the server's runtime.
    pub fn extension(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.extensions.insert(name.into(), value.into());
        self
    }

    /// Sets how long the daemon of a new sandbox may take to answer.
    pub fn ready_timeout(mut self, limit: Duration) -> Self {
        self.ready_timeout = limit;
        self
    }

    /// The spec with this configuration's fields where it sets none.
    pub(crate) fn fill(&self, spec: &SandboxSpec) -> SandboxSpec {
        let mut spec = spec.clone();
        spec.image = spec.image.or_else(|| self.image.clone());
        spec.or(&self.defaults)
    }
}

impl fmt::Display for ServerProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        })
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn home() -> Result<PathBuf> {
    std::env::home_dir().ok_or_else(|| {
        Error::new(
            ErrorKind::Config,
            "no home directory: name the server's file",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> Result<OpenSandboxConfig> {
        OpenSandboxConfig::from_url(&BackendUrl::parse(url).unwrap())
    }

    #[test]
    fn a_url_is_read_and_given_back_without_a_secret() {
        let url = "opensandbox://boxes.example:8080/registry.example/team/python:3.12?tls=on\
                   &use_server_proxy=on&user=1000&network=none&memory=536870912&cpus=1.500\
                   &lifetime=none&ready_timeout=5";
        let read = config(url).unwrap().api_key("s3cret");
        assert_eq!(read.server, "https://boxes.example:8080");
        assert_eq!(
            read.image.as_deref(),
            Some("registry.example/team/python:3.12")
        );
        assert_eq!(read.use_server_proxy, ServerProxy::On);
        assert!(read.no_expiry && read.defaults.lifetime.is_none());
        assert_eq!(read.to_url().to_string(), url);
        assert!(!format!("{read:?}").contains("s3cret"));
        let plain = config("opensandbox://127.0.0.1:8080").unwrap();
        assert_eq!(plain.image, None);
        assert_eq!(plain.to_url().to_string(), "opensandbox://127.0.0.1:8080");
    }

    #[test]
    fn what_can_t_be_used_is_refused_by_name() {
        for bad in [
            "opensandbox:",
            "opensandbox:///image",
            "opensandbox://h:0",
            "opensandbox://user:pass@h:1",
            "opensandbox://h:1?tls=yes",
            "opensandbox://h:1?use_server_proxy=maybe",
            "opensandbox://h:1?lifetime=0",
            "opensandbox://h:1?api_key=k",
        ] {
            let e = config(bad).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Config, "{bad}");
            assert!(!e.to_string().contains("pass"), "{e}");
        }
    }
}
