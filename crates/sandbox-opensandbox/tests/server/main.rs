//! What only the real server can show beside the kit: much in a row, and two processes at once. The
//! daemon has the real one's quirks, or is the real one that `SANDBOX_EXECD_IMAGE` names.
//!
//! Needs a Docker engine and the images of `cargo xtask images`. Without them it says
//! `NOT RUN: opensandbox (why)`, and fails where `SANDBOX_REQUIRE` names it or `CI` is set.
#![allow(
    clippy::unwrap_used,
    reason = "a test program, with a harness of its own"
)]

mod editor;

use std::future::Future;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use sandbox_core::{Client, Sandbox, SandboxSpec};
use sandbox_opensandbox::{OpenSandbox, OpenSandboxConfig};
use sandbox_testkit::engine::{self, ExecdProfile, OpenSandbox as Server};

const IMAGE: &str = "sandbox-python:latest";

/// What no test takes, on a slow machine and beside others.
const HANGS: Duration = Duration::from_mins(10);

/// More than the real daemon takes on the address that the server names: a request there costs two
/// descriptors of its 20,000, for ten minutes.
const REQUESTS: usize = 10_500;

/// Edits of each of two processes.
const EDITS: u32 = 200;

fn main() -> ExitCode {
    if let Some(code) = editor::child() {
        return code;
    }
    let server: Arc<OnceLock<Server>> = Arc::default();
    let trials = engine::opensandbox_trials(&[IMAGE], || {
        vec![
            test(
                "thousands_of_requests_in_a_row_are_answered",
                &server,
                requests,
            ),
            test("edits_of_two_processes_lose_none", &server, edits),
        ]
    });
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A server that runs.
#[derive(Clone)]
struct Site {
    address: SocketAddr,
    key: String,
}

impl Site {
    async fn provider(&self) -> OpenSandbox {
        let config = OpenSandboxConfig::new(self.address.to_string());
        let config = config.api_key(&self.key).image(IMAGE);
        OpenSandbox::connect(config).await.unwrap()
    }

    async fn sandbox(&self) -> Sandbox {
        let client = Client::new(self.provider().await);
        client.create(SandboxSpec::new()).await.unwrap()
    }
}

/// A test that begins with a server, in a runtime of its own.
fn test<F>(name: &str, server: &Arc<OnceLock<Server>>, body: fn(Site) -> F) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    let server = server.clone();
    Trial::test(name, move || {
        let server = server.get_or_init(|| Server::start(ExecdProfile::Stock).unwrap());
        let site = Site {
            address: server.address(),
            key: server.key().to_owned(),
        };
        let runtime = tokio::runtime::Runtime::new()?;
        let ended = runtime.block_on(async { tokio::time::timeout(HANGS, body(site)).await });
        ended.map_err(|_| format!("it took longer than {HANGS:?}").into())
    })
}

async fn requests(site: Site) {
    let sandbox = site.sandbox().await;
    let execd = site.provider().await.execd(sandbox.id()).await.unwrap();
    for n in 0..REQUESTS {
        let info = execd.info(&["/etc/passwd"]).await;
        assert!(info.is_ok(), "request {n}: {info:?}");
    }
    let after = sandbox.execute("echo alive").await.unwrap();
    assert_eq!(after.stdout, "alive\n", "{:?}", after.status);
    sandbox.kill().await.unwrap();
}

async fn edits(site: Site) {
    let sandbox = site.sandbox().await;
    let path = "/workspace/counters";
    sandbox.write(path, "a 0\nb 0\n").await.unwrap();
    let children = ["a", "b"].map(|name| editor::start(&site, sandbox.id(), path, name, EDITS));
    for mut child in children {
        let ended = tokio::task::spawn_blocking(move || child.wait().unwrap());
        assert!(ended.await.unwrap().success());
    }
    let text = sandbox.download(path).await.unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert_eq!(text, format!("a {EDITS}\nb {EDITS}\n"));
    sandbox.kill().await.unwrap();
}
