//! Which way requests take to the daemon in a sandbox.

use std::time::{Duration, Instant};

use sandbox_core::{Error, ErrorKind, Result, SandboxId};
use tokio::time::sleep;

use crate::client::{Lifecycle, Port};
use crate::config::{OpenSandboxConfig, ServerProxy};
use crate::error;
use crate::execd::Execd;
use crate::live::{State, state_of};

/// The daemon's port in the sandbox.
pub(crate) const EXECD: u16 = 44772;

/// How long one try may take.
const TRY: Duration = Duration::from_secs(2);

/// Pauses between rounds, at first and at last.
const PAUSE: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(500)];

/// A way to the daemon that works.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) execd: Execd,
    /// Whether the daemon is published at an address that is not this machine's own.
    pub(crate) exposed: bool,
}

/// Waits until the daemon answers, on the best way that works.
///
/// # Errors
///
/// [`ErrorKind::SandboxGone`] if the sandbox ends meanwhile, [`ErrorKind::SandboxPaused`],
/// [`ErrorKind::Unauthorized`] without the daemon's token, [`ErrorKind::Timeout`] with what to do.
pub(crate) async fn reach(
    lifecycle: &Lifecycle,
    config: &OpenSandboxConfig,
    id: &SandboxId,
) -> Result<Reached> {
    let started = Instant::now();
    let [mut pause, longest] = PAUSE;
    loop {
        let failed = match round(lifecycle, config, id).await {
            Ok(reached) => return Ok(reached),
            Err(e) => e,
        };
        if matches!(
            failed.kind(),
            ErrorKind::Unauthorized | ErrorKind::SandboxGone | ErrorKind::Config
        ) {
            return Err(failed);
        }
        match state_of(&lifecycle.get(id).await?.status.state) {
            State::Gone => return Err(ended(failed)),
            State::Paused => return Err(error::paused()),
            State::Running => {}
        }
        if started.elapsed() > config.ready_timeout {
            return Err(unreached(config, failed));
        }
        sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// One try of each way that may be taken.
async fn round(
    lifecycle: &Lifecycle,
    config: &OpenSandboxConfig,
    id: &SandboxId,
) -> Result<Reached> {
    let direct = match config.use_server_proxy {
        ServerProxy::On => None,
        ServerProxy::Off | ServerProxy::Auto => Some(directly(lifecycle, config, id).await),
    };
    match direct {
        Some(Err(e)) if config.use_server_proxy == ServerProxy::Auto => {
            let reached = proxied(lifecycle, config, id).await.map_err(|_| e)?;
            // It may have begun to answer in between.
            Ok(directly(lifecycle, config, id).await.unwrap_or(reached))
        }
        Some(direct) => direct,
        None => proxied(lifecycle, config, id).await,
    }
}

/// At the address that the server names; best without the daemon's own proxy in between.
async fn directly(
    lifecycle: &Lifecycle,
    config: &OpenSandboxConfig,
    id: &SandboxId,
) -> Result<Reached> {
    let named = lifecycle.port(id, EXECD, false).await?;
    if let Some(endpoint) = named.endpoint.bare(EXECD) {
        let bare = Port {
            endpoint,
            headers: named.headers.clone(),
        };
        match ping(lifecycle, config, &bare).await {
            Err(e) if e.kind() == ErrorKind::Protocol || e.kind() == ErrorKind::NotFound => {}
            other => return other,
        }
    }
    ping(lifecycle, config, &named).await
}

async fn proxied(
    lifecycle: &Lifecycle,
    config: &OpenSandboxConfig,
    id: &SandboxId,
) -> Result<Reached> {
    let port = lifecycle.port(id, EXECD, true).await?;
    ping(lifecycle, config, &port).await
}

async fn ping(lifecycle: &Lifecycle, config: &OpenSandboxConfig, port: &Port) -> Result<Reached> {
    let token = config.execd_token.as_ref();
    let execd = Execd::new(lifecycle.http(), port.address(), token)?;
    execd.ping(TRY).await?;
    Ok(Reached {
        execd,
        exposed: !port.endpoint.origin.is_loopback(),
    })
}

/// Process 1 has ended: most often it is not in the image.
fn ended(cause: Error) -> Error {
    Error::new(
        ErrorKind::SandboxGone,
        "the sandbox ended before its daemon answered: its entrypoint is not in the image, or ended",
    )
    .because(cause)
}

fn unreached(config: &OpenSandboxConfig, cause: Error) -> Error {
    let advice = match config.use_server_proxy {
        ServerProxy::Off => {
            "if this machine can't reach the sandboxes' own addresses, set `use_server_proxy` to \
             `on` or `auto`"
        }
        ServerProxy::On => {
            "the server can't reach it either, or `use_server_proxy` should be `off`"
        }
        ServerProxy::Auto => {
            "neither directly nor through the server (`use_server_proxy`): look at the sandbox's \
             log on the server"
        }
    };
    Error::new(
        ErrorKind::Timeout,
        format!("the daemon in the sandbox does not answer: {advice}"),
    )
    .with("use_server_proxy", config.use_server_proxy)
    .because(cause)
}
