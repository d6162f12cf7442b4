//! The conformance kit on the real server. The opposite corners of daemon, image, user and route run
//! all of it, the others what can differ.
//!
//! The daemon is ours, in both of its profiles. One of another image, which `SANDBOX_EXECD_IMAGE`
//! names, has the targets of `stock`, and all of the kit on both.

use std::process::ExitCode;
use std::sync::Arc;

use sandbox_conformance::{Availability, OWN_SKIPS, Profile, Target};
use sandbox_core::{Client, Error, ErrorKind, Result};
use sandbox_opensandbox::{OpenSandbox, OpenSandboxConfig, ServerProxy};
use sandbox_testkit::engine::{ExecdProfile, OpenSandbox as Server};
use tokio::sync::OnceCell;

/// Where daemon, image, user or route make a difference; and snapshots, which none has.
const DIFFERENT: &[&str] = &[
    "execute",
    "output",
    "stdin",
    "env",
    "timeout",
    "cancel",
    "stream",
    "processes",
    "upload",
    "download",
    "paths",
    "delete",
    "tree",
    "lease",
    "snapshots",
];

/// GNU tools.
const GNU: &str = "sandbox-python:latest";

/// `BusyBox` and nothing else.
const BUSYBOX: &str = "sandbox-busybox:latest";

const STOCK_GNU: &str = "opensandbox-stock-gnu-root-direct";
const STOCK_BUSYBOX: &str = "opensandbox-stock-busybox-uid1000-proxy";

/// A server that is started when it is first needed.
#[derive(Clone)]
struct Lazy {
    profile: ExecdProfile,
    server: Arc<OnceCell<Server>>,
}

fn main() -> ExitCode {
    let default = Lazy::new(ExecdProfile::Default);
    let stock = Lazy::new(ExecdProfile::Stock);
    let gnu = default.target("opensandbox-gnu-root-direct", GNU, "0", ServerProxy::Off);
    let busybox = "opensandbox-busybox-uid1000-proxy";
    let busybox = default.target(busybox, BUSYBOX, "1000", ServerProxy::On);
    let stock_gnu = stock.target(STOCK_GNU, GNU, "0", ServerProxy::Off);
    let stock_busybox = stock.target(STOCK_BUSYBOX, BUSYBOX, "1000", ServerProxy::On);
    let targets = if std::env::var_os("SANDBOX_EXECD_IMAGE").is_none() {
        vec![
            gnu,
            stock_busybox,
            busybox.groups(DIFFERENT),
            stock_gnu.groups(DIFFERENT),
        ]
    } else {
        vec![stock_gnu, stock_busybox]
    };
    // The servers live until here, and end with their sandboxes.
    sandbox_conformance::main(targets.into_iter().map(|t| t.skips(OWN_SKIPS)).collect())
}

impl Lazy {
    fn new(profile: ExecdProfile) -> Self {
        let server = Arc::default();
        Self { profile, server }
    }

    fn target(
        &self,
        name: &'static str,
        image: &'static str,
        user: &'static str,
        proxy: ServerProxy,
    ) -> Target {
        let lazy = self.clone();
        let availability = match Server::missing(&[image]) {
            None => Availability::Available,
            Some(why) => Availability::NotRun(why),
        };
        Target::new(name, move || {
            let lazy = lazy.clone();
            async move {
                let server = lazy.server().await?;
                let config = OpenSandboxConfig::new(server.address().to_string())
                    .api_key(server.key())
                    .image(image)
                    .user(user)
                    .use_server_proxy(proxy);
                Ok(Client::new(OpenSandbox::connect(config).await?))
            }
        })
        .availability(availability)
        .profile(Profile::Core)
    }

    async fn server(&self) -> Result<&Server> {
        let profile = self.profile;
        let start = async || {
            let started = tokio::task::spawn_blocking(move || Server::start(profile)).await;
            let server = started.map_err(|e| e.to_string()).and_then(|server| server);
            server.map_err(|why| Error::new(ErrorKind::Unavailable, why))
        };
        self.server.get_or_try_init(start).await
    }
}
