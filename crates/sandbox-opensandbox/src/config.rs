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
        let tls = read(url, "tls", "`on` or `off`", on_off)?.unwrap_or(false);
        let scheme = if tls { "https" } else { "http" };
        let mut config = Self::new(format!("{scheme}://{server}"));
        config.origin()?;
        config.image = image;
        config.key = variable(API_KEY).map(Secret::new);
        config.use_server_proxy = read(
            url,
            "use_server_proxy",
            "`auto`, `on` or `off`",
            |v| match v {
                "auto" => Some(ServerProxy::Auto),
                v => on_off(v).map(|on| {
                    if on {
                        ServerProxy::On
                    } else {
                        ServerProxy::Off
                    }
                }),
            },
        )?
        .unwrap_or_default();
        let text = |key: &str| url.option(key).map(str::to_owned);
        let d = &mut config.defaults;
        d.user = text("user");
        d.workdir = text("workdir");
        d.network = read(url, "network", "`none` or `full`", |v| match v {
            "none" => Some(Network::None),
            "full" => Some(Network::Full),
            _ => None,
        })?;
        d.memory = read(url, "memory", "bytes, as `512m`", bytes)?;
        d.milli_cpus = read(url, "cpus", "a number of CPUs, as `1.5`", milli_cpus)?;
        if url.option("lifetime") == Some("none") {
            config.no_expiry = true;
        } else {
            d.lifetime = read(url, "lifetime", "a number of seconds or `none`", seconds)?;
        }
        if let Some(limit) = read(url, "ready_timeout", "a number of seconds", seconds)? {
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
        options
            .into_iter()
            .fold(
                BackendUrl::new("opensandbox", rest),
                |url, (key, value)| match value {
                    Some(value) => url.with_option(key, value),
                    None => url,
                },
            )
    }

    /// Where the server is.
    pub(crate) fn origin(&self) -> Result<Origin> {
        Origin::parse(&self.server, false).map_err(|e| e.with("server", &self.server))
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
        let (mut spec, d) = (spec.clone(), &self.defaults);
        spec.image = spec.image.or_else(|| self.image.clone());
        spec.entrypoint = spec.entrypoint.or_else(|| d.entrypoint.clone());
        spec.workdir = spec.workdir.or_else(|| d.workdir.clone());
        spec.user = spec.user.or_else(|| d.user.clone());
        spec.memory = spec.memory.or(d.memory);
        spec.milli_cpus = spec.milli_cpus.or(d.milli_cpus);
        spec.network = spec.network.or(d.network);
        spec.lifetime = spec.lifetime.or(d.lifetime);
        for (ours, theirs) in [(&mut spec.env, &d.env), (&mut spec.labels, &d.labels)] {
            for (name, value) in theirs {
                ours.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        spec.mounts.extend(d.mounts.iter().cloned());
        spec
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

fn read<T>(
    url: &BackendUrl,
    key: &'static str,
    what: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>> {
    let Some(value) = url.option(key) else {
        return Ok(None);
    };
    match parse(value) {
        Some(value) => Ok(Some(value)),
        None => Err(
            Error::new(ErrorKind::Config, format!("the option `{key}` is {what}"))
                .with("value", value),
        ),
    }
}

fn on_off(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn seconds(text: &str) -> Option<Duration> {
    positive(text).map(Duration::from_secs)
}

fn positive(text: &str) -> Option<u64> {
    text.parse().ok().filter(|n| *n > 0)
}

fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let (number, unit) = match text.char_indices().last()? {
        (i, 'k') => (&text[..i], 1 << 10),
        (i, 'm') => (&text[..i], 1 << 20),
        (i, 'g') => (&text[..i], 1 << 30),
        _ => (text.as_str(), 1),
    };
    positive(number)?.checked_mul(unit)
}

fn milli_cpus(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.is_empty() || part.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = format!("{part:0<3}").parse().ok()?;
    whole
        .checked_mul(1000)?
        .checked_add(part)
        .filter(|n| *n > 0)
}
