//! From a URL to a client.

use crate::{BackendUrl, Client, Error, ErrorKind, Result, Sandbox, SandboxRef};

/// The schemes that [`connect`] takes in this build.
pub const SCHEMES: &[&str] = &[
    #[cfg(feature = "mock")]
    "mock",
    #[cfg(feature = "docker")]
    "docker",
    #[cfg(feature = "opensandbox")]
    "opensandbox",
];

/// The schemes that exist, each behind the feature of the same name.
const ALL: &[&str] = &["mock", "docker", "opensandbox"];

/// Opens the backend that `url` names: `mock:`, `docker://IMAGE`, `opensandbox://HOST:PORT/IMAGE`.
/// Makes no sandbox yet.
///
/// # Errors
///
/// [`ErrorKind::Config`] for a URL that can't be used, for an unknown scheme, and for one whose
/// feature is not on, naming the feature; those of the backend.
pub async fn connect(url: &str) -> Result<Client> {
    let url = BackendUrl::parse(url)?;
    #[allow(
        clippy::match_single_binding,
        clippy::single_match_else,
        reason = "an arm a feature"
    )]
    match url.scheme() {
        #[cfg(feature = "mock")]
        "mock" => Ok(Client::new(crate::mock::MockProvider::from_url(&url)?)),
        #[cfg(feature = "docker")]
        "docker" => Ok(Client::new(crate::docker::Docker::from_url(&url).await?)),
        #[cfg(feature = "opensandbox")]
        "opensandbox" => Ok(Client::new(
            crate::opensandbox::OpenSandbox::from_url(&url).await?,
        )),
        _ => Err(not_here(&url)),
    }
}

/// Picks up a sandbox by its reference without owning it: dropping never kills it.
///
/// # Errors
///
/// As [`connect`]; [`ErrorKind::SandboxGone`] if it is not there any more.
pub async fn connect_ref(reference: &SandboxRef) -> Result<Sandbox> {
    connect(&reference.url).await?.connect_ref(reference).await
}

/// Why no backend of this build serves `url`, and what to do.
fn not_here(url: &BackendUrl) -> Error {
    let scheme = url.scheme();
    let message = if ALL.contains(&scheme) {
        format!(
            "this build has no `{scheme}` backend: add `features = [\"{scheme}\"]` to the \
             dependency `sandbox` in Cargo.toml"
        )
    } else {
        format!("no such backend; there are: {}", ALL.join(", "))
    };
    Error::new(ErrorKind::Config, message).with("scheme", scheme)
}
