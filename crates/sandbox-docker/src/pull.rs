//! Getting an image that the engine does not have.

use std::time::Duration;

use bollard::models::ImageInspect;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt as _;
use sandbox_core::{Error, ErrorKind, Result};
use tokio::time::timeout;

use crate::client::Engine;
use crate::config::{DockerConfig, Pull, PullProgress};
use crate::error;

/// How long a pull may be silent.
const SILENCE: Duration = Duration::from_mins(1);

/// Images with names like these are made by `cargo xtask images`, and no registry's: what a
/// registry has by that name is somebody else's.
const OURS: &str = "sandbox-";

/// The image, pulled if need be.
///
/// # Errors
///
/// [`ErrorKind::ImageNotFound`] with the command that gets it.
pub(crate) async fn image(
    engine: &Engine,
    config: &DockerConfig,
    name: &str,
) -> Result<ImageInspect> {
    match engine.image(name).await {
        Err(e) if e.kind() == ErrorKind::ImageNotFound => {}
        other => return other,
    }
    if name.starts_with(OURS) {
        let made = name.trim_start_matches(OURS).split([':', '@']).next();
        return Err(missing(name).with(
            "make it with",
            format!("cargo xtask images {}", made.unwrap_or_default()),
        ));
    }
    let by_hand = |e: Error| e.with("get it with", format!("docker pull {name}"));
    if config.pull == Pull::Never {
        return Err(by_hand(missing(name)));
    }
    pull(engine, config, name)
        .await
        .map_err(|cause| by_hand(missing(name).with("why", cause.message()).because(cause)))?;
    engine.image(name).await
}

fn missing(name: &str) -> Error {
    Error::new(ErrorKind::ImageNotFound, "the engine has no such image").with("image", name)
}

async fn pull(engine: &Engine, config: &DockerConfig, name: &str) -> Result<()> {
    tracing::info!(image = name, "pulling the image");
    let mut options = CreateImageOptionsBuilder::new().from_image(name);
    if !name.contains('@') && !name.rsplit('/').next().is_some_and(|n| n.contains(':')) {
        // Without a tag the engine would pull all of them.
        options = options.tag("latest");
    }
    if let Some(platform) = &config.platform {
        options = options.platform(platform);
    }
    let mut steps = engine.raw().create_image(Some(options.build()), None, None);
    loop {
        let Ok(step) = timeout(SILENCE, steps.next()).await else {
            return Err(error::timed_out("pull the image"));
        };
        let Some(step) = step else { return Ok(()) };
        let step = step.map_err(|e| error::from_engine("pull the image", e))?;
        // An error in the middle comes with status 200.
        if let Some(detail) = step.error_detail {
            let words = detail.message.unwrap_or_default();
            return Err(Error::new(ErrorKind::Unavailable, error::shorten(&words)));
        }
        let mut progress = PullProgress::new(name);
        progress.layer = step.id.unwrap_or_default();
        progress.status = step.status.unwrap_or_default();
        progress.bytes = step.progress_detail.and_then(|p| {
            let count = |n: Option<i64>| u64::try_from(n?).ok();
            Some((count(p.current)?, count(p.total)?))
        });
        config.report(&progress);
    }
}
