//! What works on this machine, and for what does not, why and what to do.

mod docker;
mod opensandbox;

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
    let mut found = vec![Finding {
        name: "mock",
        result: mock(&url).await,
        advice: None,
    }];
    found.extend(match url.scheme() {
        "mock" => docker::find(&BackendUrl::new("docker", "")).await,
        "docker" => docker::find(&url).await,
        "opensandbox" => opensandbox::find(&url).await,
        _ => {
            return Err(sandbox::connect(&at.url)
                .await
                .map(drop)
                .map_or_else(Into::into, |()| {
                    Error::new(ErrorKind::Unsupported, "nothing is known of this backend").into()
                }));
        }
    });
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

fn failed(name: &'static str, error: Error, advice: &'static str) -> Finding {
    Finding {
        name,
        result: Err(error),
        advice: Some(advice),
    }
}

/// What to do about an error that no backend has its own advice on.
const SEE_ERRORS: &str = "see docs/errors.md for what this kind of error means";
