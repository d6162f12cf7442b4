//! What the tests share.

use std::time::{Duration, Instant};

use sandbox_core::{Client, Sandbox, SandboxId, SandboxSpec};
use sandbox_docker::{Docker, DockerConfig, Pull};
use sandbox_testkit::engine;

/// GNU tools and Python.
pub(crate) const GNU: &str = "sandbox-python:latest";

/// `BusyBox` and nothing else.
pub(crate) const BUSYBOX: &str = "sandbox-busybox:latest";

pub(crate) fn config(image: &str) -> DockerConfig {
    DockerConfig::new(image).pull(Pull::Never)
}

pub(crate) async fn client(image: &str, user: &str) -> Client {
    Client::new(Docker::connect(config(image).user(user)).await.unwrap())
}

pub(crate) async fn sandbox(image: &str, user: &str) -> Sandbox {
    client(image, user)
        .await
        .create(SandboxSpec::new())
        .await
        .unwrap()
}

/// Runs `docker` and gives what it printed.
pub(crate) fn docker(args: &[&str]) -> String {
    engine::docker(args).unwrap()
}

/// Whether the engine has a container of that id or name.
pub(crate) fn exists(id: &str) -> bool {
    !docker(&["ps", "-aq", "--no-trunc", "--filter", &format!("id={id}")]).is_empty()
}

/// How long the engine may take to remove what is to end, on a machine that has much to do.
pub(crate) const REMOVED: Duration = Duration::from_mins(1);

/// Waits until the engine has no such container.
pub(crate) async fn ends(id: &SandboxId) {
    let start = Instant::now();
    while exists(id.as_str()) {
        assert!(start.elapsed() < REMOVED, "{id} lives on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until a command has made this file.
pub(crate) async fn has_begun(sandbox: &Sandbox, file: &str) {
    let start = Instant::now();
    while sandbox.download(file).await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(30), "no {file}");
    }
}

/// The ids of containers of ours that have the label.
pub(crate) fn labelled(name: &str, value: &str) -> Vec<String> {
    let filter = format!("label=rs.sandbox.label.{name}={value}");
    let found = docker(&["ps", "-aq", "--no-trunc", "--filter", &filter]);
    found.lines().map(str::to_owned).collect()
}

/// A name that no other run has.
pub(crate) fn unique(what: &str) -> String {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    format!("{what}-{}-{}", std::process::id(), now.as_nanos())
}

/// A row of numbers that a seed gives.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}
