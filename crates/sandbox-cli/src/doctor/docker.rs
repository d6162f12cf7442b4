//! Whether Docker works here.

use sandbox::docker::{Docker, DockerConfig};
use sandbox::{BackendUrl, Client, Error, ErrorKind};

use super::{Finding, SEE_ERRORS, failed, greet, worked};

/// The engine, the image and a container, as far as it gets.
pub(super) async fn find(url: &BackendUrl) -> Vec<Finding> {
    let connected = async {
        let docker = Docker::connect(DockerConfig::from_url(url)?).await?;
        // Whether this user may ask it for something.
        Client::new(Docker::connect(DockerConfig::from_url(url)?).await?)
            .list(&sandbox::Filter::all())
            .await?;
        Ok(docker)
    };
    let docker = match connected.await {
        Ok(docker) => docker,
        Err(e) => return vec![broken("docker engine", e)],
    };
    let mut found = vec![worked("docker engine", "answers")];
    if url.rest().is_empty() {
        found.push(Finding {
            name: "docker image",
            result: Ok("not tried: no image is named".to_owned()),
            advice: Some("name one to try it: sandbox doctor --backend docker://IMAGE"),
        });
        return found;
    }
    if let Err(e) = docker.check_image().await {
        found.push(broken("docker image", e));
        return found;
    }
    found.push(worked("docker image", url.rest()));
    found.push(match greet(&Client::new(docker)).await {
        Ok(()) => worked("docker container", "runs a command"),
        Err(e) => broken("docker container", e),
    });
    found
}

fn broken(name: &'static str, error: Error) -> Finding {
    let advice = match error.kind() {
        ErrorKind::Unavailable => {
            "install Docker or start it (systemctl start docker), or set DOCKER_HOST to where an \
             engine is"
        }
        ErrorKind::Unauthorized | ErrorKind::PermissionDenied => {
            "become a member of the group `docker` (it can do all that root can), or use rootless \
             Docker"
        }
        ErrorKind::Timeout => "the engine hangs or has too much to do: see its log, restart it",
        ErrorKind::Protocol => "something else than an engine answers there: see DOCKER_HOST",
        ErrorKind::Config => "correct the URL, DOCKER_HOST or the current Docker context",
        ErrorKind::ImageNotFound => "get the image first, or name another",
        ErrorKind::MissingTool => "take an image with a POSIX shell at /bin/sh",
        _ => SEE_ERRORS,
    };
    failed(name, error, advice)
}
