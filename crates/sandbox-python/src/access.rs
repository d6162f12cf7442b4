//! How a backend is reached, where a URL must not or need not say it.

use pyo3::prelude::*;
use sandbox::opensandbox::{OpenSandbox, OpenSandboxConfig, ServerProxy};
use sandbox::{BackendUrl, Client, Error, ErrorKind, Result};

use crate::arguments::Text;

/// A URL, and what goes with it.
pub(crate) struct Access {
    pub(crate) url: String,
    /// The key of a server; without one its variable is read.
    pub(crate) api_key: Option<Text>,
    /// Whether requests to a sandbox go through the server; without one, where only that works.
    pub(crate) use_server_proxy: Option<bool>,
}

impl Access {
    /// A URL alone.
    pub(crate) fn new(url: Text) -> Self {
        Self {
            url: url.0,
            api_key: None,
            use_server_proxy: None,
        }
    }

    /// Takes an option if it is one of these.
    pub(crate) fn take(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name {
            "api_key" => self.api_key = Some(value.extract()?),
            "use_server_proxy" => self.use_server_proxy = Some(value.extract()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Opens the backend.
    pub(crate) async fn client(self) -> Result<Client> {
        if self.api_key.is_none() && self.use_server_proxy.is_none() {
            return sandbox::connect(&self.url).await;
        }
        let url = BackendUrl::parse(&self.url)?;
        if url.scheme() != "opensandbox" {
            let why = "`api_key` and `use_server_proxy` are for `opensandbox://` only";
            return Err(Error::new(ErrorKind::Config, why).with("scheme", url.scheme()));
        }
        let mut config = OpenSandboxConfig::from_url(&url)?;
        if let Some(key) = self.api_key {
            config = config.api_key(key.0);
        }
        if let Some(on) = self.use_server_proxy {
            let proxy = if on {
                ServerProxy::On
            } else {
                ServerProxy::Off
            };
            config = config.use_server_proxy(proxy);
        }
        Ok(Client::new(OpenSandbox::connect(config).await?))
    }
}
