//! Whether an `OpenSandbox` server works here.

use sandbox::{BackendUrl, Client, ErrorKind, Filter, Result};

use super::{Finding, SEE_ERRORS, failed, greet, worked};

/// The server, then a sandbox, as far as it gets.
pub(super) async fn find(url: &BackendUrl) -> Vec<Finding> {
    let client = match connect(url).await {
        Ok(client) => client,
        Err(e) => {
            let advice = of_server(e.kind());
            return vec![failed("opensandbox server", e, advice)];
        }
    };
    let mut found = vec![worked("opensandbox server", "answers")];
    if !url.rest().contains('/') {
        found.push(Finding {
            name: "opensandbox sandbox",
            result: Ok("not tried: no image is named".to_owned()),
            advice: Some(
                "name one to try it: sandbox doctor --backend opensandbox://HOST:PORT/IMAGE",
            ),
        });
        return found;
    }
    found.push(match greet(&client).await {
        Ok(()) => worked("opensandbox sandbox", "runs a command"),
        Err(e) => {
            let advice = of_sandbox(e.kind());
            failed("opensandbox sandbox", e, advice)
        }
    });
    found
}

/// A client whose server answers and takes the key.
async fn connect(url: &BackendUrl) -> Result<Client> {
    let client = sandbox::connect(&url.to_string()).await?;
    client.list(&Filter::all()).await?;
    Ok(client)
}

fn of_server(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Unavailable => {
            "start one (opensandbox-server), or correct HOST:PORT; in this repository, \
             `cargo xtask opensandbox up` starts one to try"
        }
        ErrorKind::Unauthorized => {
            "set OPEN_SANDBOX_API_KEY to the `api_key` of the server's configuration"
        }
        ErrorKind::Timeout => "the server hangs or has too much to do: see its log, restart it",
        ErrorKind::Protocol => {
            "something else than an OpenSandbox server answers there, or it speaks TLS (tls=on)"
        }
        ErrorKind::Config => "correct the URL or OPEN_SANDBOX_API_KEY",
        _ => SEE_ERRORS,
    }
}

fn of_sandbox(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ImageNotFound => {
            "have the server's engine pull the image, or name another; an image of a registry that \
             asks for a password needs it on the server"
        }
        ErrorKind::Timeout | ErrorKind::Unavailable => {
            "if this machine can't reach the sandbox's address, let requests go through the server: \
             use_server_proxy=on in the URL"
        }
        ErrorKind::SandboxGone => "take an image with a POSIX shell and `tail`, that stays up",
        ErrorKind::MissingTool => "take an image with a POSIX shell at /bin/sh",
        _ => SEE_ERRORS,
    }
}
