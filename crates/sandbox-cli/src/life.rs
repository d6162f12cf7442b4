//! Backends, and the lives of sandboxes.

use sandbox::docker::{Docker, DockerConfig};
use sandbox::{
    BackendUrl, Client, Error, ErrorKind, Filter, Network, Result, Sandbox, SandboxId, SandboxSpec,
    SandboxState,
};
use serde_json::json;

use crate::args::New;
use crate::output::{self, Outcome};
use crate::progress;

/// Which backend, and how results are given.
pub(crate) struct Backend {
    pub(crate) url: String,
    pub(crate) json: bool,
}

impl Backend {
    /// The backend's client; pulls are shown where there is a terminal.
    pub(crate) async fn connect(&self) -> Result<Client> {
        let url = BackendUrl::parse(&self.url)?;
        match (url.scheme(), progress::pull()) {
            ("docker", Some(show)) => {
                let config = DockerConfig::from_url(&url)?.on_pull(show);
                Ok(Client::new(Docker::connect(config).await?))
            }
            _ => sandbox::connect(&self.url).await,
        }
    }

    /// A client of sandboxes that outlive this process.
    pub(crate) async fn lasting(&self) -> Result<Client> {
        let client = self.connect().await?;
        if client.backend_name() == "mock" {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a sandbox of `mock:` ends with the process that made it: use `sandbox run`, or \
                 another backend, as --backend docker://IMAGE",
            ));
        }
        Ok(client)
    }

    /// Picks up a sandbox.
    pub(crate) async fn pick_up(&self, id: &str) -> Result<Sandbox> {
        self.lasting().await?.connect(&SandboxId::new(id)).await
    }

    /// Makes a sandbox that this process owns.
    pub(crate) async fn make(&self, client: &Client, new: &New) -> Result<Sandbox> {
        let mut spec = SandboxSpec::new();
        spec.user.clone_from(&new.user);
        spec.lifetime = new.lifetime;
        spec.network = new.network.then_some(Network::Full);
        spec.labels = new.labels.iter().cloned().collect();
        let sandbox = client.create(spec).await?;
        for warning in sandbox.warnings() {
            output::say(format!("warning: {warning}"));
        }
        Ok(sandbox)
    }
}

pub(crate) async fn create(at: &Backend, new: &New) -> Outcome {
    let client = at.lasting().await?;
    let sandbox = at.make(&client, new).await?;
    let reference = sandbox.detach().await?;
    if at.json {
        output::line(json!({ "url": reference.url, "id": reference.id.as_str() }))?;
    } else {
        output::line(&reference.id)?;
    }
    Ok(0)
}

pub(crate) async fn list(at: &Backend, labels: Vec<(String, String)>) -> Outcome {
    let filter = labels
        .into_iter()
        .fold(Filter::all(), |filter, (k, v)| filter.label(k, v));
    let client = at.connect().await?;
    let found = client.list(&filter).await?;
    if at.json {
        let url = client.url();
        let all: Vec<_> = found
            .iter()
            .map(|s| {
                json!({
                    "url": url,
                    "id": s.id.as_str(),
                    "state": state(s.state),
                    "labels": s.labels,
                })
            })
            .collect();
        output::line(json!(all))?;
        return Ok(0);
    }
    for sandbox in found {
        let labels: Vec<_> = sandbox
            .labels
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        let text = format!(
            "{} {} {}",
            sandbox.id,
            state(sandbox.state),
            labels.join(" ")
        );
        output::line(output::plain(text.trim_end()))?;
    }
    Ok(0)
}

fn state(state: SandboxState) -> &'static str {
    match state {
        SandboxState::Running => "running",
        SandboxState::Paused => "paused",
        SandboxState::NotRunning => "not_running",
        _ => "unknown",
    }
}

/// All are tried; the first error is the outcome.
pub(crate) async fn kill(at: &Backend, ids: &[String]) -> Outcome {
    let client = at.lasting().await?;
    let mut failed = None;
    let mut killed = Vec::new();
    for id in ids {
        let id = SandboxId::new(id.as_str());
        let end = async { client.connect(&id).await?.kill().await };
        match end.await {
            Ok(()) if at.json => killed.push(id.as_str().to_owned()),
            Ok(()) => output::line(&id)?,
            Err(e) => {
                if let Some(before) = failed.replace(e) {
                    output::report(&before, at.json);
                }
            }
        }
    }
    if at.json {
        output::line(json!(killed))?;
    }
    failed.map_or(Ok(0), |e| Err(e.into()))
}

pub(crate) async fn gc(at: &Backend) -> Outcome {
    let removed = at.connect().await?.gc().await?;
    if at.json {
        let ids: Vec<_> = removed.iter().map(SandboxId::as_str).collect();
        output::line(json!(ids))?;
        return Ok(0);
    }
    for id in removed {
        output::line(id)?;
    }
    Ok(0)
}
