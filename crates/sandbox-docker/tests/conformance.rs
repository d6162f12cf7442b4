//! The conformance kit on containers. The opposite corners of image and user run all of it, the
//! other two what can differ.

use std::process::ExitCode;

use sandbox_conformance::{Availability, OWN_SKIPS, Profile, Target};
use sandbox_core::Client;
use sandbox_docker::{Docker, DockerConfig, Pull};

/// Where image or user make a difference that the opposite corners do not show: tools at work on
/// files that belong to somebody, and the tree that they run in.
const DIFFERENT: &[&str] = &[
    "timeout", "upload", "download", "write", "edit", "ls", "glob", "grep", "delete", "tree",
];

/// GNU tools.
const GNU: &str = "sandbox-python:latest";

/// `BusyBox` and nothing else.
const BUSYBOX: &str = "sandbox-busybox:latest";

fn main() -> ExitCode {
    let targets = [
        target("docker-gnu-root", GNU, "0"),
        target("docker-busybox-uid1000", BUSYBOX, "1000"),
        target("docker-gnu-uid1000", GNU, "1000").groups(DIFFERENT),
        target("docker-busybox-root", BUSYBOX, "0").groups(DIFFERENT),
    ];
    sandbox_conformance::main(targets.map(|t| t.skips(OWN_SKIPS)).to_vec())
}

fn target(name: &'static str, image: &'static str, user: &'static str) -> Target {
    let config = DockerConfig::new(image).user(user).pull(Pull::Never);
    let availability = availability(config.clone());
    Target::new(name, move || {
        let config = config.clone();
        async move { Ok(Client::new(Docker::connect(config).await?)) }
    })
    .profile(Profile::Isolation)
    .availability(availability)
}

fn availability(config: DockerConfig) -> Availability {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let check = async { Docker::connect(config).await?.check_image().await };
    match runtime.map(|runtime| runtime.block_on(check)) {
        Ok(Ok(())) => Availability::Available,
        Ok(Err(e)) => Availability::NotRun(e.to_string()),
        Err(e) => Availability::NotRun(e.to_string()),
    }
}
