//! The Engine API with a deadline on every call.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant};

use bollard::container::AttachContainerResults;
use bollard::errors::Error as BollardError;
use bollard::exec::StartExecResults;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerSummary, ExecConfig,
    ExecInspectResponse, ImageInspect,
};
use bollard::query_parameters as query;
use bollard::{API_DEFAULT_VERSION, ClientVersion, Docker};
use bytes::Bytes;
use futures_util::StreamExt as _;
use sandbox_core::{Error, ErrorKind, Result, Retry};

use crate::error;
use crate::socket::Address;

/// How long the engine may take for what it does at once.
const QUICK: Duration = Duration::from_secs(20);

/// How long it may take to make, start or remove a container: under load, tens of seconds.
const SLOW: Duration = Duration::from_mins(1);

/// How long the first answer of an engine may take.
const HELLO: Duration = Duration::from_secs(10);

/// The client's own deadline, in whole seconds, beyond all of ours.
const BEYOND: u64 = 120;

/// A connection to one engine. Cheap to clone. Belongs to the runtime that made it.
#[derive(Clone)]
pub(crate) struct Engine {
    docker: Docker,
    address: Address,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Engine").field(&self.address).finish()
    }
}

/// All that makes an equal [`Engine`] on another runtime, without asking the engine again.
#[derive(Clone, Debug)]
pub(crate) struct EngineAddress {
    address: Address,
    version: (usize, usize),
}

impl EngineAddress {
    /// A connection for the runtime that calls this. No I/O.
    pub(crate) fn open(&self) -> Result<Engine> {
        open(&self.address, self.version)
    }
}

fn open(address: &Address, (major_version, minor_version): (usize, usize)) -> Result<Engine> {
    let version = ClientVersion {
        major_version,
        minor_version,
    };
    let docker = match address {
        Address::Unix(path) => Docker::connect_with_unix(&path.to_string_lossy(), BEYOND, &version),
        Address::Tcp(url) => Docker::connect_with_http(url, BEYOND, &version),
    };
    let docker = docker.map_err(|e| error::from_engine("connect", e))?;
    Ok(Engine {
        docker,
        address: address.clone(),
    })
}

impl Engine {
    /// Connects, and agrees on a version of the API.
    pub(crate) async fn connect(address: &Address) -> Result<Self> {
        let newest = API_DEFAULT_VERSION;
        let engine = open(address, (newest.major_version, newest.minor_version))?;
        let docker = engine.docker.clone();
        let docker = within("say its version", HELLO, docker.negotiate_version())
            .await
            .map_err(|e| e.with("engine", address))?;
        Ok(Self { docker, ..engine })
    }

    /// What makes an equal connection elsewhere.
    pub(crate) fn address(&self) -> EngineAddress {
        let version = self.docker.client_version();
        EngineAddress {
            address: self.address.clone(),
            version: (version.major_version, version.minor_version),
        }
    }

    /// The path of the engine's socket, if it is one on this machine.
    pub(crate) fn socket(&self) -> Option<&std::path::Path> {
        self.address.socket()
    }

    /// The client itself, for what is a stream.
    pub(crate) fn raw(&self) -> &Docker {
        &self.docker
    }

    pub(crate) async fn image(&self, name: &str) -> Result<ImageInspect> {
        within("look at the image", QUICK, self.docker.inspect_image(name))
            .await
            .map_err(|e| e.with("image", name))
    }

    /// Makes a container; gives its id and the engine's warnings.
    pub(crate) async fn create(
        &self,
        name: &str,
        platform: Option<&str>,
        body: ContainerCreateBody,
    ) -> Result<(String, Vec<String>)> {
        let mut options = query::CreateContainerOptionsBuilder::new().name(name);
        if let Some(platform) = platform {
            options = options.platform(platform);
        }
        let made = self.docker.create_container(Some(options.build()), body);
        let made = within("create the container", SLOW, made).await?;
        Ok((made.id, made.warnings))
    }

    pub(crate) async fn start(&self, id: &str) -> Result<()> {
        let start = self
            .docker
            .start_container(id, None::<query::StartContainerOptions>);
        match within("start the container", SLOW, start).await {
            Err(e) if e.context("status") == Some("304") => Ok(()),
            // Nothing has run in it, and it will be removed.
            Err(e) if error::is_busy(&e) => Err(e.retry(Retry::Safe)),
            other => other,
        }
    }

    pub(crate) async fn inspect(&self, id: &str) -> Result<ContainerInspectResponse> {
        let inspect = self
            .docker
            .inspect_container(id, None::<query::InspectContainerOptions>);
        within("look at the container", QUICK, inspect).await
    }

    /// Containers of all states that have all the labels, each as `NAME=VALUE` or `NAME`.
    pub(crate) async fn list(&self, labels: Vec<String>) -> Result<Vec<ContainerSummary>> {
        let filters = HashMap::from([("label".to_owned(), labels)]);
        let options = query::ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filters)
            .build();
        within(
            "list containers",
            QUICK,
            self.docker.list_containers(Some(options)),
        )
        .await
    }

    /// Kills and removes a container with its anonymous volumes, and waits until it is gone. One
    /// that is gone already is a success.
    pub(crate) async fn remove(&self, id: &str) -> Result<()> {
        let started = Instant::now();
        loop {
            let options = query::RemoveContainerOptionsBuilder::new()
                .force(true)
                .v(true)
                .build();
            let removed = self.docker.remove_container(id, Some(options));
            match within("remove the container", SLOW, removed).await {
                Ok(()) => return Ok(()),
                // It is gone, or it was just starting or ending and could not be killed: the
                // engine says both alike.
                Err(e) if e.kind() == ErrorKind::SandboxGone => match self.inspect(id).await {
                    Err(e) if e.kind() == ErrorKind::SandboxGone => return Ok(()),
                    _ if started.elapsed() < SLOW => {}
                    _ => return Err(e),
                },
                // Its removal is under way already.
                Err(e) if e.kind() == ErrorKind::AlreadyExists && started.elapsed() < SLOW => {}
                Err(e) => return Err(e),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Attaches to the container's stdin, or to its output.
    pub(crate) async fn attach(&self, id: &str, stdin: bool) -> Result<AttachContainerResults> {
        let options = query::AttachContainerOptionsBuilder::new()
            .stream(true)
            .stdin(stdin)
            .stdout(!stdin)
            .stderr(!stdin)
            .build();
        let attached = self.docker.attach_container(id, Some(options));
        within("attach to the container", QUICK, attached).await
    }

    /// Whether the path exists in a container that need not run. Follows hostile links if it does:
    /// only for containers that have not been started.
    pub(crate) async fn path_exists(&self, id: &str, path: &str) -> Result<bool> {
        let options = query::ContainerArchiveInfoOptionsBuilder::new()
            .path(path)
            .build();
        let info = self.docker.get_container_archive_info(id, Some(options));
        match within("look for a path", QUICK, info).await {
            Ok(_) => Ok(true),
            Err(e) if e.context("status") == Some("404") => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// A part of a container that has not been started, as tar of at most `limit` bytes.
    pub(crate) async fn archive(
        &self,
        id: &str,
        path: &str,
        limit: usize,
    ) -> Result<Option<Vec<u8>>> {
        let options = query::DownloadFromContainerOptionsBuilder::new()
            .path(path)
            .build();
        let mut parts = self.docker.download_from_container(id, Some(options));
        let whole = async {
            let mut tar = Vec::new();
            while let Some(part) = parts.next().await {
                let part = match part.map_err(|e| error::from_engine("read a file", e)) {
                    Err(e) if e.context("status") == Some("404") => return Ok(None),
                    other => other?,
                };
                if tar.len() + part.len() > limit {
                    return Err(error::garbled("a file larger than can be"));
                }
                tar.extend_from_slice(&part);
            }
            Ok(Some(tar))
        };
        match tokio::time::timeout(QUICK, whole).await {
            Ok(result) => result,
            Err(_) => Err(error::timed_out("read a file")),
        }
    }

    /// Unpacks a tar below an existing directory of a container that has not been started.
    pub(crate) async fn unpack(&self, id: &str, below: &str, tar: Vec<u8>) -> Result<()> {
        let options = query::UploadToContainerOptionsBuilder::new()
            .path(below)
            .no_overwrite_dir_non_dir("1")
            .build();
        let body = bollard::body_full(Bytes::from(tar));
        let unpack = self.docker.upload_to_container(id, Some(options), body);
        within("make the workdir", QUICK, unpack).await
    }

    pub(crate) async fn exec_create(&self, id: &str, config: ExecConfig) -> Result<String> {
        let made = within(
            "prepare a command",
            SLOW,
            self.docker.create_exec(id, config),
        )
        .await?;
        Ok(made.id)
    }

    pub(crate) async fn exec_start(&self, exec: &str) -> Result<StartExecResults> {
        let start = self.docker.start_exec(exec, None);
        within("start a command", SLOW, start).await
    }

    pub(crate) async fn exec_inspect(&self, exec: &str) -> Result<ExecInspectResponse> {
        within("look at a command", QUICK, self.docker.inspect_exec(exec)).await
    }
}

async fn within<T>(
    what: &'static str,
    limit: Duration,
    call: impl Future<Output = Result<T, BollardError>>,
) -> Result<T, Error> {
    match tokio::time::timeout(limit, call).await {
        Ok(result) => result.map_err(|e| error::from_engine(what, e)),
        Err(_) => Err(error::timed_out(what)),
    }
}
