//! What works on this machine, and for what does not, why and what to do.

use sandbox::docker::{Docker, DockerConfig};
use sandbox::{BackendUrl, Client, Error, ErrorKind, Result, SandboxSpec};
use serde_json::json;

use crate::life::Backend;
use crate::output::{self, Outcome};

/// One thing that was tried.
struct Finding {
    name: &'static str,
    /// What was found, or why it does not work.
    result: Result<String>,
    /// What to do.
    advice: Option<&'static str>,
}

/// Tries everything. The exit code is 1 where the backend that was asked for does not work.
pub(crate) async fn doctor(at: &Backend) -> Outcome {
    let url = BackendUrl::parse(&at.url)?;
    let docker = match url.scheme() {
        "docker" => url.clone(),
        "mock" => BackendUrl::new("docker", ""),
        _ => {
            return Err(sandbox::connect(&at.url)
                .await
                .map(drop)
                .map_or_else(Into::into, |()| {
                    Error::new(ErrorKind::Unsupported, "nothing is known of this backend").into()
                }));
        }
    };
    let mut found = vec![Finding {
        name: "mock",
        result: mock(&url).await,
        advice: None,
    }];
    found.extend(engine(&docker).await);
    let works = found
        .iter()
        .filter(|f| f.name.starts_with(url.scheme()))
        .all(|f| f.result.is_ok());
    print(at, &found)?;
    Ok(u8::from(!works))
}

fn print(at: &Backend, found: &[Finding]) -> Outcome<()> {
    if at.json {
        let all: Vec<_> = found
            .iter()
            .map(|f| {
                json!({
                    "name": f.name,
                    "works": f.result.is_ok(),
                    "what": f.result.as_ref().map_or_else(output::with_causes, Clone::clone),
                    "kind": f.result.as_ref().err().map(|e| e.kind().as_str()),
                    "advice": f.advice,
                })
            })
            .collect();
        return output::line(json!(all));
    }
    for f in found {
        let (word, what) = match &f.result {
            Ok(what) => ("ok    ", what.clone()),
            Err(e) => ("FAILED", output::with_causes(e)),
        };
        output::line(format!("{word} {}: {}", f.name, output::plain(&what)))?;
        if let Some(advice) = f.advice {
            output::line(format!("       {advice}"))?;
        }
    }
    Ok(())
}

async fn mock(url: &BackendUrl) -> Result<String> {
    let url = match url.scheme() {
        "mock" => url.to_string(),
        _ => "mock:".to_owned(),
    };
    greet(&sandbox::connect(&url).await?).await?;
    Ok("runs a command inside this process; no isolation".to_owned())
}

/// The engine, the image and a container, as far as it gets.
async fn engine(url: &BackendUrl) -> Vec<Finding> {
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
        Err(e) => return vec![failed("docker engine", e)],
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
        found.push(failed("docker image", e));
        return found;
    }
    found.push(worked("docker image", url.rest()));
    found.push(match greet(&Client::new(docker)).await {
        Ok(()) => worked("docker container", "runs a command"),
        Err(e) => failed("docker container", e),
    });
    found
}

/// Makes a sandbox, runs a command in it and ends it.
async fn greet(client: &Client) -> Result<()> {
    let sandbox = client.create(SandboxSpec::new()).await?;
    let answer = sandbox.execute("echo works").await?.into_result()?;
    if answer.stdout != "works\n" {
        return Err(
            Error::new(ErrorKind::Protocol, "the command printed something else")
                .with("output", answer.output()),
        );
    }
    sandbox.kill().await
}

fn worked(name: &'static str, what: &str) -> Finding {
    Finding {
        name,
        result: Ok(what.to_owned()),
        advice: None,
    }
}

fn failed(name: &'static str, error: Error) -> Finding {
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
        _ => "see docs/errors.md for what this kind of error means",
    };
    Finding {
        name,
        result: Err(error),
        advice: Some(advice),
    }
}
