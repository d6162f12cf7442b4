//! Making and finding sandboxes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sandbox_core::{
    BackendUrl, Error, ErrorKind, Filter, KillGuard, KillTicket, Network, Result, Retry,
    SandboxBackend, SandboxId, SandboxInfo, SandboxPath, SandboxProvider, SandboxSpec,
    SandboxState, SpecSupport, shell,
};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::backend::OpenSandboxSandbox;
use crate::client::Lifecycle;
use crate::config::OpenSandboxConfig;
use crate::execd::Execd;
use crate::litter::Litter;
use crate::live::{Live, State, state_of};
use crate::model::{CreateRequest, SandboxObject};
use crate::place::Place;
use crate::{error, route, security, spec};

/// How long a sandbox that was asked for may take to appear, if the answer was lost.
const APPEARS: Duration = Duration::from_secs(20);

/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(500);

/// Sandboxes of one OpenSandbox server. Belongs to the runtime that uses it first.
#[derive(Debug)]
pub struct OpenSandbox {
    lifecycle: Lifecycle,
    config: OpenSandboxConfig,
}

/// What the request to make a sandbox has come to.
#[derive(Clone, Debug)]
enum Answer {
    None,
    Refused,
    Made(SandboxId),
}

impl OpenSandbox {
    /// Sandboxes of the server that the configuration names.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] for an address or a key that can't be used; [`ErrorKind::Unavailable`]
    /// where no server answers, [`ErrorKind::Protocol`] where something else does.
    pub async fn connect(config: OpenSandboxConfig) -> Result<Self> {
        let lifecycle = Lifecycle::new(&config)?;
        lifecycle.health().await?;
        Ok(Self { lifecycle, config })
    }

    /// As [`connect`](Self::connect), for `opensandbox://HOST:PORT[/IMAGE]?option=value&…`.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn from_url(url: &BackendUrl) -> Result<Self> {
        Self::connect(OpenSandboxConfig::from_url(url)?).await
    }

    /// The server's own API.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// The daemon of a sandbox, once it answers.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SandboxGone`], [`ErrorKind::SandboxPaused`], [`ErrorKind::Timeout`].
    pub async fn execd(&self, id: &SandboxId) -> Result<Execd> {
        Ok(route::reach(&self.lifecycle, &self.config, id).await?.execd)
    }

    async fn make(&self, spec: &SandboxSpec) -> Result<OpenSandboxSandbox> {
        let spec = self.config.fill(spec);
        let workdir = SandboxPath::new(spec.effective_workdir())?;
        let token = shell::command_id();
        let request = spec::request(&self.config, &spec, &token)?;
        let policy = spec::network(&self.config, &spec);

        // From here on there may be a sandbox, whatever the server answers.
        let (tell, told) = watch::channel(Answer::None);
        let guard = KillGuard::arm(ticket(&self.lifecycle, &token, told));
        // A task, so that the request is never cut off: the server goes on all the same.
        let (lifecycle, limit) = (self.lifecycle.clone(), self.config.create_timeout);
        let create = tokio::spawn(async move {
            let made = create(&lifecycle, &request, &token, limit).await;
            if let (Ok(object), true) = (&made, tell.is_closed()) {
                // Nobody waits any more, not even to end it.
                lifecycle.kill(&SandboxId::new(&object.id)).await?;
            }
            tell.send_replace(match &made {
                Ok(object) => Answer::Made(SandboxId::new(&object.id)),
                Err(e) if is_unsure(e) => Answer::None,
                Err(_) => Answer::Refused,
            });
            made
        });
        let object = match create.await {
            Ok(made) => made.map_err(|e| of_image(e, &spec))?,
            Err(e) => return Err(Error::new(ErrorKind::Unexpected, "no answer").because(e)),
        };
        let id = SandboxId::new(object.id);
        let reached = route::reach(&self.lifecycle, &self.config, &id)
            .await
            .map_err(|e| of_image(e, &spec))?;
        let mut live = self.live(id, reached.execd);
        let user = spec.user.as_deref();
        live.prepare(Place::prepare(&live.execd.clone(), user, workdir.as_str()))
            .await?;
        if let Some(entrypoint) = &spec.entrypoint {
            live.begin(entrypoint).await?;
        }
        let network = policy.is_none_or(|p| p.reaches());
        let warnings = self.warnings(reached.exposed);
        guard.disarm();
        Ok(OpenSandboxSandbox::new(live, network, warnings))
    }

    /// A sandbox that is not prepared yet.
    fn live(&self, id: SandboxId, execd: Execd) -> Live {
        Live {
            id,
            lifecycle: self.lifecycle.clone(),
            execd,
            place: Place::default(),
            paused: Arc::default(),
            litter: Litter::default(),
        }
    }

    fn warnings(&self, exposed: bool) -> Vec<String> {
        security::warnings(&self.config, self.lifecycle.origin(), exposed)
    }
}

#[async_trait]
impl SandboxProvider for OpenSandbox {
    fn name(&self) -> &'static str {
        "opensandbox"
    }

    fn url(&self) -> BackendUrl {
        self.config.to_url()
    }

    fn spec_support(&self) -> SpecSupport {
        SpecSupport::none().with(|s| {
            s.image = true;
            s.entrypoint = true;
            s.env = true;
            s.workdir = true;
            s.user = true;
            s.memory = true;
            s.milli_cpus = true;
            s.network_none = true;
            s.network_full = true;
            s.lifetime = true;
            s.labels = true;
            s.mounts = true;
        })
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Arc<dyn SandboxBackend>> {
        Ok(Arc::new(self.make(spec).await?))
    }

    async fn connect(&self, id: &SandboxId) -> Result<Arc<dyn SandboxBackend>> {
        match state_of(&self.lifecycle.get(id).await?.status.state) {
            State::Gone => return Err(error::gone()),
            State::Paused => return Err(error::paused()),
            State::Running => {}
        }
        let reached = route::reach(&self.lifecycle, &self.config, id).await?;
        let mut live = self.live(id.clone(), reached.execd);
        live.prepare(Place::find(&live.execd.clone())).await?;
        let warnings = self.warnings(reached.exposed);
        Ok(Arc::new(OpenSandboxSandbox::new(live, true, warnings)))
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<SandboxInfo>> {
        let mut labels = filter.labels.clone();
        labels.insert(spec::MANAGED.to_owned(), "1".to_owned());
        let found = self.lifecycle.list(&labels).await?;
        Ok(found.into_iter().map(info).collect())
    }

    async fn gc(&self) -> Result<Vec<SandboxId>> {
        let labels = BTreeMap::from([(spec::MANAGED.to_owned(), "1".to_owned())]);
        let mut removed = Vec::new();
        for object in self.lifecycle.list(&labels).await? {
            if is_dead(&object) {
                let id = SandboxId::new(object.id);
                self.lifecycle.kill(&id).await?;
                removed.push(id);
            }
        }
        Ok(removed)
    }
}

/// Makes a sandbox. If the answer is lost, the sandbox is looked for by its label.
async fn create(
    lifecycle: &Lifecycle,
    request: &CreateRequest,
    token: &str,
    limit: Duration,
) -> Result<SandboxObject> {
    let lost = match lifecycle.create(request, limit).await {
        Err(e) if is_unsure(&e) => e,
        other => return other,
    };
    let started = Instant::now();
    while started.elapsed() < APPEARS {
        // A server that can't be asked now may be in a moment.
        if let Ok(Some(object)) = find(lifecycle, token).await {
            tracing::debug!(
                sandbox.id = object.id,
                "found by its label: the answer was lost"
            );
            return Ok(object);
        }
        sleep(LOOK).await;
    }
    Err(lost)
}

/// Whether the server may have made something all the same.
fn is_unsure(error: &Error) -> bool {
    let lost = matches!(
        error.kind(),
        ErrorKind::Timeout | ErrorKind::Unavailable | ErrorKind::Protocol
    );
    lost && error.retry_advice() != Retry::Safe
}

async fn find(lifecycle: &Lifecycle, token: &str) -> Result<Option<SandboxObject>> {
    let labels = BTreeMap::from([(spec::TOKEN.to_owned(), token.to_owned())]);
    Ok(lifecycle.list(&labels).await?.into_iter().next())
}

/// Ends what a dropped or failed creation leaves, which may be still to come.
fn ticket(lifecycle: &Lifecycle, token: &str, mut told: watch::Receiver<Answer>) -> KillTicket {
    let (lifecycle, token) = (lifecycle.clone(), token.to_owned());
    let name = SandboxId::new(format!("{}={token}", spec::TOKEN));
    KillTicket::new(name, move || async move {
        let lifecycle = lifecycle.elsewhere()?;
        // As long as the request is under way its answer tells all, and ending what is just being
        // made might not last.
        let known = |answer: &Answer| !matches!(answer, Answer::None);
        let answer = told.wait_for(known).await.map(|answer| answer.clone());
        match answer {
            Ok(Answer::Made(id)) => return lifecycle.kill(&id).await,
            Ok(_) => return Ok(()),
            // The task of the request has ended with its runtime, or without an answer.
            Err(_) => {}
        }
        let started = Instant::now();
        while started.elapsed() < APPEARS {
            match find(&lifecycle, &token).await {
                Ok(Some(object)) => return lifecycle.kill(&SandboxId::new(object.id)).await,
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "the server can't be asked now"),
            }
            sleep(LOOK).await;
        }
        Ok(())
    })
}

/// Names the image where that helps.
fn of_image(error: Error, spec: &SandboxSpec) -> Error {
    match error.kind() {
        ErrorKind::ImageNotFound | ErrorKind::SandboxGone => {
            let image = spec
                .image
                .as_deref()
                .unwrap_or(crate::config::DEFAULT_IMAGE);
            error.with("image", image)
        }
        ErrorKind::InvalidArgument if error.message().contains("Host path") => Error::unsupported(
            "this mount: the server's `storage.allowed_host_paths` does not allow the path",
        )
        .with("field", "mounts")
        .because(error),
        // A server without an egress sidecar keeps nobody from the network, nor does one whose
        // sandboxes are in a network of their own.
        ErrorKind::InvalidArgument
            if spec.network == Some(Network::None)
                && ["egress", "networkPolicy"]
                    .iter()
                    .any(|word| error.message().contains(word)) =>
        {
            Error::unsupported(
                "a sandbox without network: this server has no egress sidecar for it",
            )
            .with("field", "network")
            .because(error)
        }
        _ => error,
    }
}

fn is_dead(object: &SandboxObject) -> bool {
    ["terminated", "failed"].contains(&object.status.state.to_ascii_lowercase().as_str())
}

fn info(object: SandboxObject) -> SandboxInfo {
    let state = match object.status.state.to_ascii_lowercase().as_str() {
        "running" | "allocated" => SandboxState::Running,
        "paused" => SandboxState::Paused,
        _ => SandboxState::NotRunning,
    };
    let labels = spec::of_spec(&object.metadata);
    SandboxInfo::new(SandboxId::new(object.id), labels, state)
}
