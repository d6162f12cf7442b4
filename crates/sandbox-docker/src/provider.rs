//! Making, finding and sweeping sandboxes.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerSummaryStateEnum, HealthConfig,
    HostConfig, HostConfigLogConfig, ImageInspect,
};
use sandbox_core::{
    BackendUrl, Error, ErrorKind, Filter, Hardening, KillGuard, KillTicket, Network, Result, Retry,
    SandboxBackend, SandboxId, SandboxInfo, SandboxPath, SandboxProvider, SandboxSpec,
    SandboxState, SpecSupport, defaults, shell,
};

use tokio::sync::watch;

use crate::backend::DockerSandbox;
use crate::client::{Engine, EngineAddress};
use crate::config::{DockerConfig, Pull};
use crate::container::{Container, Place, no_such};
use crate::keeper::Tether;
use crate::owner::Owner;
use crate::socket::{Address, Surroundings};
use crate::{error, gc, keeper, labels, mounts, pull, users};

/// How long a named sandbox that somebody else makes may take.
const OTHERS: Duration = Duration::from_secs(90);

/// How long a container that was asked for may take to appear, if the answer was lost. An engine
/// with much to do takes seconds.
const APPEARS: Duration = Duration::from_secs(10);

/// How long asking a container may take.
const ASK: Duration = Duration::from_secs(20);

/// Sandboxes of one Docker engine. Belongs to the runtime that made it.
#[derive(Debug)]
pub struct Docker {
    engine: Engine,
    config: DockerConfig,
    swept: AtomicBool,
}

impl Docker {
    /// Connects to the engine that the configuration names and agrees on a version of its API.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] where no engine answers, [`ErrorKind::Unauthorized`] without the
    /// right to use its socket, [`ErrorKind::Protocol`] where something else answers,
    /// [`ErrorKind::Timeout`], [`ErrorKind::Config`].
    pub async fn connect(config: DockerConfig) -> Result<Self> {
        let address = match &config.host {
            Some(host) => Address::parse(host)?,
            None => Surroundings::of_process().address()?,
        };
        Ok(Self {
            engine: Engine::connect(&address).await?,
            config,
            swept: AtomicBool::new(false),
        })
    }

    /// As [`connect`](Self::connect), for `docker://IMAGE?option=value&…`.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn from_url(url: &BackendUrl) -> Result<Self> {
        Self::connect(DockerConfig::from_url(url)?).await
    }

    /// Whether the configured image is there, without making anything. Pulls nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ImageNotFound`] with the command that gets it, [`ErrorKind::Config`] if none is
    /// configured.
    pub async fn check_image(&self) -> Result<()> {
        let image = self.config.image.as_deref().ok_or_else(no_image)?;
        let config = self.config.clone().pull(Pull::Never);
        pull::image(&self.engine, &config, image).await.map(drop)
    }

    /// Makes a sandbox, owned by this process or by nobody. Once more where the engine was too busy
    /// to start it.
    async fn make(
        &self,
        name: Option<&str>,
        spec: &SandboxSpec,
        owned: bool,
    ) -> Result<DockerSandbox> {
        match self.make_once(name, spec, owned).await {
            Err(e) if error::is_busy(&e) && e.retry_advice() == Retry::Safe => {
                tracing::warn!(error = %e, "the engine is busy: trying once more");
                self.make_once(name, spec, owned).await
            }
            made => made,
        }
    }

    async fn make_once(
        &self,
        name: Option<&str>,
        spec: &SandboxSpec,
        owned: bool,
    ) -> Result<DockerSandbox> {
        let spec = self.config.fill(spec);
        let image = spec.image.as_deref().ok_or_else(no_image)?;
        let workdir = SandboxPath::new(spec.effective_workdir())?;
        let found = pull::image(&self.engine, &self.config, image).await?;
        let place = Place {
            user: Some(spec.user.clone().unwrap_or_else(|| user_of(&found))),
            workdir: Some(workdir.as_str().to_owned()),
            home: None,
        };
        let token = shell::command_id();
        let mut body = self.body(image, &spec, owned)?;
        let me = Owner::current().filter(|_| owned).map(|o| o.to_label());
        body.labels = Some(labels::of(&token, me.as_deref(), &place, &spec.labels));
        let own_name = format!("sandbox-{}", &token[..16]);

        // From here on there may be a container, whatever the engine answers.
        let (tell, told) = watch::channel(Answer::None);
        let guard = KillGuard::arm(ticket(self.engine.address(), token, told));
        // A task, so that the request is never cut off: a container that the engine is just making
        // can't be removed.
        let (engine, platform) = (self.engine.clone(), self.config.platform.clone());
        let name = name.unwrap_or(&own_name).to_owned();
        let create = tokio::spawn(async move {
            let made = engine.create(&name, platform.as_deref(), body).await;
            tell.send_replace(match &made {
                Ok((id, _)) => Answer::Made(id.clone()),
                Err(e) if unsure(e) => Answer::None,
                Err(_) => Answer::Refused,
            });
            made
        });
        let (id, mut warnings) = match create.await {
            Ok(made) => made?,
            Err(e) => return Err(Error::new(ErrorKind::Unexpected, "no answer").because(e)),
        };
        warnings.retain(|w| !w.is_empty());
        let user = users::find(&self.engine, &id, place.user.as_deref().unwrap_or("0")).await?;
        self.make_workdir(&id, &workdir, &user).await?;
        let place = Place {
            // Where none is known, the workdir is the one directory that surely is the user's.
            home: match user.home {
                Some(_) => None,
                None => Some(workdir.as_str().to_owned()),
            },
            ..place
        };
        let tether = if owned {
            Some(Tether::tie(&self.engine, &id).await?)
        } else {
            None
        };
        let output = self.engine.attach(&id, false).await?.output;
        self.engine.start(&id).await?;
        let floor = keeper::ready(output).await?;

        let container = Container::new(self.engine.clone(), id, place, floor);
        if let Some(entrypoint) = &spec.entrypoint {
            container.begin(entrypoint).await?;
        }
        let network = spec.network == Some(Network::Full);
        let sandbox = DockerSandbox::new(container, tether, true, network, warnings);
        guard.disarm();
        Ok(sandbox)
    }

    /// What the engine is asked to make.
    fn body(&self, image: &str, spec: &SandboxSpec, owned: bool) -> Result<ContainerCreateBody> {
        let memory = signed("memory", spec.memory.unwrap_or(defaults::MEMORY))?;
        let milli_cpus = spec.milli_cpus.unwrap_or(defaults::MILLI_CPUS);
        let nano_cpus = signed("milli_cpus", milli_cpus.saturating_mul(1_000_000))?;
        let mut host = HostConfig {
            init: Some(true),
            auto_remove: Some(true),
            memory: Some(memory),
            // The sum of both: no swap.
            memory_swap: Some(memory),
            nano_cpus: Some(nano_cpus),
            pids_limit: Some(signed("pids", spec.pids.unwrap_or(defaults::PIDS))?),
            network_mode: match spec.network {
                Some(Network::Full) => Some("bridge".to_owned()),
                _ => Some("none".to_owned()),
            },
            ipc_mode: Some("private".to_owned()),
            tmpfs: Some(keeper::tmpfs()),
            runtime: self.config.runtime.clone(),
            mounts: Some(mounts::mounts(
                &spec.mounts,
                self.engine.socket(),
                self.config.allow_engine_socket,
            )?),
            // Only the entrypoint could write there; what commands print never does.
            log_config: Some(HostConfigLogConfig {
                typ: Some("json-file".to_owned()),
                config: Some(HashMap::from([
                    ("max-size".to_owned(), "1m".to_owned()),
                    ("max-file".to_owned(), "1".to_owned()),
                ])),
            }),
            ..HostConfig::default()
        };
        if spec.hardening != Some(Hardening::Standard) {
            host.cap_drop = Some(vec!["ALL".to_owned()]);
            host.security_opt = Some(vec!["no-new-privileges".to_owned()]);
        }
        let env = spec.env.iter().map(|(k, v)| format!("{k}={v}"));
        let keeper_id = format!("{}={}", shell::COMMAND_ID, keeper::COMMAND_ID);
        Ok(ContainerCreateBody {
            image: Some(image.to_owned()),
            // For the keeper; commands run as the spec's user.
            user: Some("0:0".to_owned()),
            entrypoint: Some(keeper::entrypoint(spec.effective_lifetime(), owned)),
            cmd: Some(Vec::new()),
            env: Some(env.chain([keeper_id]).collect()),
            working_dir: Some("/".to_owned()),
            open_stdin: Some(owned),
            stdin_once: Some(owned),
            attach_stdin: Some(owned),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(false),
            // The image's own would run with the keeper's rights.
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            stop_signal: Some("SIGTERM".to_owned()),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        })
    }

    /// Makes what is missing of the workdir, owned by the user. What the image has stays as it is.
    async fn make_workdir(
        &self,
        id: &str,
        workdir: &SandboxPath,
        user: &users::User,
    ) -> Result<()> {
        let mut missing = Vec::new();
        let mut at = workdir.clone();
        while !at.is_root() && !self.engine.path_exists(id, at.as_str()).await? {
            let Some((name, parent)) = at.file_name().map(str::to_owned).zip(at.parent()) else {
                break;
            };
            missing.insert(0, name);
            at = parent;
        }
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = missing.iter().map(String::as_str).collect();
        let tar = users::directories(&names, user)?;
        self.engine.unpack(id, at.as_str(), tar).await
    }

    /// A sandbox of a container that runs, which may be of anyone's making.
    async fn adopt(&self, seen: ContainerInspectResponse) -> Result<DockerSandbox> {
        let id = seen
            .id
            .ok_or_else(|| error::garbled("look at the container"))?;
        let state = seen.state.unwrap_or_default();
        if state.paused == Some(true) {
            return Err(error::paused());
        }
        if state.running != Some(true) {
            return Err(no_such(&id));
        }
        let config = seen.config.unwrap_or_default();
        let labels = config.labels.unwrap_or_default();
        let ours = labels.contains_key(labels::MANAGED);
        let place = if ours {
            labels::place(&labels)
        } else {
            let set = |value: Option<String>| value.filter(|v| !v.is_empty());
            Place {
                user: set(config.user),
                workdir: set(config.working_dir),
                home: None,
            }
        };
        let mode = seen.host_config.and_then(|h| h.network_mode);
        let network = mode.is_none_or(|m| m != "none");
        let mut container = Container::new(self.engine.clone(), id, place, 0);
        // Also a proof that it takes commands.
        let look = if ours {
            let user = container.place.user.as_deref().unwrap_or("0");
            keeper::script(keeper::AWAIT).arg(user.split(':').next().unwrap_or_default())
        } else {
            shell::floor_probe()
        };
        let (code, printed) = container.program(&look, ASK).await?;
        if code != 0 {
            return Err(Error::new(
                ErrorKind::Unexpected,
                "the container runs and does not take commands",
            ));
        }
        let printed = printed.to_text();
        let (floor, rest) = printed.split_once('\n').unwrap_or((&printed, ""));
        container.floor = shell::parse_floor(floor.as_bytes())?;
        if rest.trim() == "homeless" {
            container.place.home.clone_from(&container.place.workdir);
        }
        Ok(DockerSandbox::new(
            container,
            None,
            ours,
            network,
            Vec::new(),
        ))
    }

    /// Once a process, in passing: what dead owners left before its start can't end by itself.
    async fn sweep(&self) {
        if self.swept.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Err(error) = gc::never_started(&self.engine).await {
            tracing::debug!(%error, "no sweep");
        }
    }
}

#[async_trait]
impl SandboxProvider for Docker {
    fn name(&self) -> &'static str {
        "docker"
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
            s.pids = true;
            s.network_none = true;
            s.network_full = true;
            s.lifetime = true;
            s.labels = true;
            s.mounts = true;
            s.hardening = true;
        })
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Arc<dyn SandboxBackend>> {
        self.sweep().await;
        Ok(Arc::new(self.make(None, spec, true).await?))
    }

    async fn connect(&self, id: &SandboxId) -> Result<Arc<dyn SandboxBackend>> {
        // It becomes a part of a request's path.
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
        if id.as_str().is_empty() || !id.as_str().bytes().all(plain) {
            return Err(no_such(id));
        }
        let seen = self.engine.inspect(id.as_str()).await?;
        Ok(Arc::new(self.adopt(seen).await?))
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<SandboxInfo>> {
        let found = self.engine.list(labels::filter(&filter.labels)).await?;
        Ok(found
            .into_iter()
            .filter_map(|c| {
                let state = match c.state {
                    Some(ContainerSummaryStateEnum::RUNNING) => SandboxState::Running,
                    Some(ContainerSummaryStateEnum::PAUSED) => SandboxState::Paused,
                    _ => SandboxState::NotRunning,
                };
                let labels = labels::of_spec(&c.labels.unwrap_or_default());
                Some(SandboxInfo::new(SandboxId::new(c.id?), labels, state))
            })
            .collect())
    }

    async fn get_or_create(
        &self,
        name: &str,
        spec: &SandboxSpec,
    ) -> Result<(Arc<dyn SandboxBackend>, bool)> {
        let name = container_name(name);
        let started = Instant::now();
        loop {
            match self.engine.inspect(&name).await {
                Err(e) if e.kind() == ErrorKind::SandboxGone => {
                    // The engine gives a name once: one of all who ask makes it.
                    match self.make(Some(&name), spec, false).await {
                        Ok(made) => return Ok((Arc::new(made), true)),
                        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                        Err(e) => return Err(e),
                    }
                }
                Err(e) => return Err(e),
                Ok(seen) => {
                    let labels = seen.config.as_ref().and_then(|c| c.labels.as_ref());
                    if !labels.is_some_and(|l| l.contains_key(labels::MANAGED)) {
                        return Err(Error::new(
                            ErrorKind::AlreadyExists,
                            "a container of this name exists and is not ours: choose another name",
                        )
                        .with("container", &name));
                    }
                    match self.adopt(seen).await {
                        Ok(found) => return Ok((Arc::new(found), false)),
                        // It is being made, or is being removed.
                        Err(e) if e.kind() == ErrorKind::SandboxGone => {}
                        Err(e) => return Err(e),
                    }
                }
            }
            if started.elapsed() > OTHERS {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    "a sandbox of this name exists and neither runs nor goes: `docker rm -f` it",
                )
                .with("container", &name));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn gc(&self) -> Result<Vec<SandboxId>> {
        gc::collect(&self.engine).await
    }
}

fn no_image() -> Error {
    Error::new(
        ErrorKind::Config,
        "no image is named: say docker://IMAGE or set the spec's image",
    )
}

/// Who the image says runs its commands.
fn user_of(image: &ImageInspect) -> String {
    let user = image.config.as_ref().and_then(|c| c.user.clone());
    user.filter(|u| !u.is_empty())
        .unwrap_or_else(|| "0".to_owned())
}

/// What the engine said to the request for a container.
#[derive(Clone, Debug)]
enum Answer {
    /// Nothing, or nothing that tells.
    None,
    /// There is none.
    Refused,
    /// There is this one.
    Made(String),
}

/// Whether the engine may have done what it did not answer to.
fn unsure(e: &Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::Timeout | ErrorKind::Unavailable | ErrorKind::Protocol
    )
}

/// Ends the container of one call of `make`, also the one that the engine is still making although
/// nobody waits for it any more.
fn ticket(engine: EngineAddress, token: String, mut told: watch::Receiver<Answer>) -> KillTicket {
    KillTicket::new(SandboxId::new(token.clone()), move || async move {
        let engine = engine.open()?;
        // The other end is dropped after the answer, and when the runtime ends before it.
        while told.changed().await.is_ok() {}
        let answer = told.borrow().clone();
        match answer {
            Answer::Refused => Ok(()),
            Answer::Made(id) => engine.remove(&id).await,
            Answer::None => hunt(&engine, &token).await,
        }
    })
}

/// Ends a container that may appear: it is listed before it can be removed, and one that is
/// removed too early appears again.
async fn hunt(engine: &Engine, token: &str) -> Result<()> {
    let mut seen = Instant::now();
    while seen.elapsed() < APPEARS {
        for found in engine
            .list(vec![format!("{}={token}", labels::TOKEN)])
            .await?
        {
            seen = Instant::now();
            engine.remove(&found.id.unwrap_or_default()).await?;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// The container's name of a named sandbox: different names never become one.
fn container_name(name: &str) -> String {
    let mut plain = "sandbox-named-".to_owned();
    for b in name.bytes() {
        if b.is_ascii_alphanumeric() || b == b'-' {
            plain.push(char::from(b));
        } else {
            // Writing to a string can't fail.
            let _ = write!(plain, "_{b:02x}");
        }
    }
    plain
}

fn signed(field: &'static str, value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|_| {
        Error::new(ErrorKind::InvalidArgument, "the value is too large").with("field", field)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_names_that_the_engine_takes_and_stay_different() {
        let names = ["a", "a_", "a.b", "a b", "ä", "A-1", "../x"].map(container_name);
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name));
            let ok = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
            assert!(name.bytes().all(ok), "{name}");
        }
    }
}
