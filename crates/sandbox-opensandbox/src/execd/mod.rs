//! The API of the daemon in a sandbox.

mod commands;
mod files;

use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderName;
use sandbox_core::Result;
use serde::{Deserialize, Serialize};

pub use self::commands::{CommandStatus, Events, LogPart, RunCommand};
pub use self::files::{Download, FileInfo, Permissions};
use crate::client::secret_header;
use crate::error;
use crate::http::{Address, Content, Http, Request};
use crate::secret::Secret;

/// How long the daemon may take for what it does at once.
const QUICK: Duration = Duration::from_secs(20);

/// How long a stream may be silent: the daemon says something every 3 s.
const SILENCE: Duration = Duration::from_secs(30);

/// The header of the daemon's own token.
const TOKEN: HeaderName = HeaderName::from_static("x-execd-access-token");

/// The daemon of one sandbox. Cheap to clone. Belongs to the runtime that uses it first.
///
/// What it does, it does with its own rights, which are root's as a rule, and it expands variables
/// in paths. [`sandbox_core::Sandbox`] has neither in its way.
#[derive(Clone, Debug)]
pub struct Execd {
    http: Http,
}

/// How busy the machine is that the sandbox runs on.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Metrics {
    /// Processors.
    pub cpu_count: f64,
    /// How much of them is used, in percent.
    pub cpu_used_pct: f64,
    /// Memory in MiB.
    pub mem_total_mib: f64,
    /// Memory in use in MiB.
    pub mem_used_mib: f64,
}

impl Execd {
    pub(crate) fn new(http: &Http, mut address: Address, token: Option<&Secret>) -> Result<Self> {
        if let Some(token) = token {
            let value = secret_header(token, "the daemon's token")?;
            address.headers.insert(TOKEN, value);
        }
        Ok(Self {
            http: http.at(address)?,
        })
    }

    /// The same for another runtime. No I/O.
    pub(crate) fn elsewhere(&self) -> Result<Self> {
        Ok(Self {
            http: self.http.elsewhere()?,
        })
    }

    /// Whether the daemon answers.
    ///
    /// # Errors
    ///
    /// Those of the transport; [`sandbox_core::ErrorKind::Unauthorized`] without the daemon's token.
    pub async fn ping(&self, limit: Duration) -> Result<()> {
        let request = Request::new("reach the sandbox's daemon", Method::GET, "/ping", limit);
        if self.http.whole(request).await?.is_empty() {
            Ok(())
        } else {
            Err(error::garbled("reach the sandbox's daemon"))
        }
    }

    /// How busy the machine is. The daemon takes a second to find out.
    ///
    /// # Errors
    ///
    /// Those of the transport.
    pub async fn metrics(&self) -> Result<Metrics> {
        let request = Request::new("read the metrics", Method::GET, "/metrics", QUICK);
        self.http.json(request).await
    }

    async fn post(&self, what: &'static str, target: &str, body: &impl Serialize) -> Result<()> {
        let request = Request::new(what, Method::POST, target, QUICK).content(Content::json(body)?);
        self.http.whole(request).await.map(drop)
    }
}
