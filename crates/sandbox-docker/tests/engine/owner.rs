//! A process that owns sandboxes and ends in one way or another: this program again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use sandbox_core::{SandboxId, SandboxSpec};

use crate::support::{GNU, client};
use crate::{ends, resources};

const ROLE: &str = "SANDBOX_TEST_OWNER";

/// What this process is if it is such an owner; `None` for the test program itself.
pub(crate) fn child() -> Option<ExitCode> {
    let role = std::env::var(ROLE).ok()?;
    let mut words = role.split(' ');
    match words.next()? {
        "end" => ends::child(words),
        "cycles" => resources::cycles(),
        "many" => resources::many(words),
        _ => tokio::runtime::Runtime::new().unwrap().block_on(own(&role)),
    }
    Some(ExitCode::SUCCESS)
}

async fn own(role: &str) {
    let client = client(GNU, "0").await;
    if let Some(name) = role.strip_prefix("name:") {
        let sandbox = client
            .get_or_create(name, SandboxSpec::new())
            .await
            .unwrap();
        print(sandbox.id());
        return;
    }
    let sandbox = client.create(SandboxSpec::new()).await.unwrap();
    if role == "detach" {
        sandbox.detach().await.unwrap();
    }
    print(sandbox.id());
    tokio::time::sleep(Duration::from_secs(100)).await;
}

/// Tells the test something.
#[allow(clippy::print_stdout, reason = "it is how the test learns of it")]
pub(crate) fn print(what: impl std::fmt::Display) {
    println!("{what}");
    std::io::stdout().flush().unwrap();
}

/// A process of a role; what it prints comes by a pipe, as what it reads.
pub(crate) fn spawn(role: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Starts an owner and waits until it has its sandbox.
pub(crate) fn start(role: &str) -> (Child, SandboxId) {
    let mut child = spawn(role);
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(!line.trim().is_empty(), "the owner made no sandbox");
    (child, SandboxId::new(line.trim()))
}
