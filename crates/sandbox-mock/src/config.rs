//! What a provider is made with.

use sandbox_core::{BackendUrl, Error, ErrorKind, Result};

use crate::vfs::Accounts;

/// Memory of a sandbox unless its spec says otherwise: enough for a data set of a test, little
/// enough for many sandboxes in one process.
pub(crate) const MEMORY: u64 = 256 << 20;

/// What all sandboxes of a provider have in common. Unset fields take the defaults.
///
/// ```
/// use sandbox_mock::{MockConfig, MockProvider};
///
/// let provider = MockProvider::with(MockConfig::new().user("1000").memory(64 << 20).seed(7));
/// assert_eq!(
///     sandbox_core::SandboxProvider::url(&provider).to_string(),
///     "mock:?user=1000&memory=67108864&seed=7"
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MockConfig {
    pub(crate) user: Option<String>,
    pub(crate) memory: Option<u64>,
    pub(crate) hide_families: bool,
    pub(crate) seed: Option<u64>,
}

/// The options of a `mock:` URL.
const OPTIONS: &[&str] = &["user", "memory", "native", "seed"];

impl MockConfig {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Who runs commands where the spec names nobody: a name of `/etc/passwd` or a number.
    /// Default: root.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// The memory of a sandbox in bytes where the spec says nothing: all its files together, and
    /// from it derived what a command's variables and pipes may take. Default: 256 MiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Hides all optional families (streaming, background commands, native file operations,
    /// lease, snapshots), so that everything goes through the four methods.
    pub fn hide_families(mut self) -> Self {
        self.hide_families = true;
        self
    }

    /// Makes ids and the noise of `/dev/urandom` the same in every run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Reads a URL: `mock:?user=1000&memory=BYTES&native=off&seed=N`, all options optional.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] for another scheme, an unknown option, or a value that can't be.
    pub fn from_url(url: &BackendUrl) -> Result<Self> {
        if url.scheme() != "mock" || !url.rest().is_empty() {
            return Err(Error::new(
                ErrorKind::Config,
                "the mock has no host and no image: its URL is `mock:`, with options after `?`",
            )
            .with("url", url));
        }
        url.allow_options(OPTIONS)?;
        let number = |key: &'static str| -> Result<Option<u64>> {
            url.option(key)
                .map(|value| {
                    value.parse().map_err(|_| {
                        Error::new(ErrorKind::Config, "the option takes a whole number")
                            .with("option", key)
                            .with("value", value)
                    })
                })
                .transpose()
        };
        let hide_families = match url.option("native") {
            None | Some("on") => false,
            Some("off") => true,
            Some(value) => {
                return Err(
                    Error::new(ErrorKind::Config, "the option takes `on` or `off`")
                        .with("option", "native")
                        .with("value", value),
                );
            }
        };
        let user = url.option("user").map(str::to_owned);
        if let Some(user) = &user {
            Accounts::find(user).map_err(|e| {
                Error::new(ErrorKind::Config, e.message().to_owned()).with("user", user)
            })?;
        }
        Ok(Self {
            user,
            memory: number("memory")?,
            hide_families,
            seed: number("seed")?,
        })
    }

    /// The URL that gives an equal configuration.
    pub(crate) fn url(&self) -> BackendUrl {
        let mut options = Vec::new();
        if let Some(user) = &self.user {
            options.push(format!("user={}", percent(user)));
        }
        if let Some(memory) = self.memory {
            options.push(format!("memory={memory}"));
        }
        if self.hide_families {
            options.push("native=off".to_owned());
        }
        if let Some(seed) = self.seed {
            options.push(format!("seed={seed}"));
        }
        let query = options.join("&");
        let mark = if query.is_empty() { "" } else { "?" };
        match BackendUrl::parse(&format!("mock:{mark}{query}")) {
            Ok(url) => url,
            Err(e) => unreachable!("all values are percent-encoded: {e}"),
        }
    }
}

fn percent(text: &str) -> String {
    text.bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || b"-_.:".contains(&b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_survives_the_way_in_and_out_and_a_wrong_one_is_refused() {
        let all = "mock:?user=1000&memory=1048576&native=off&seed=3";
        let config = MockConfig::from_url(&BackendUrl::parse(all).unwrap()).unwrap();
        assert_eq!(config.url().to_string(), all);
        for bad in [
            "docker:",
            "mock://image",
            "mock:?users=1",
            "mock:?memory=lots",
            "mock:?native=maybe",
            "mock:?user=nosuchuser",
        ] {
            let e = MockConfig::from_url(&BackendUrl::parse(bad).unwrap()).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Config, "{bad}");
        }
    }
}
