//! Images that make trouble.

use std::process::{Command, Stdio};

use sandbox_core::{Client, ErrorKind, SandboxSpec};
use sandbox_docker::Docker;

use crate::support::{BUSYBOX, config, docker, unique};

pub(crate) async fn a_missing_image_names_the_command_that_makes_it() {
    for (image, command) in [
        ("no-such-image-zz:1", "docker pull no-such-image-zz:1"),
        ("sandbox-nosuch:latest", "cargo xtask images nosuch"),
    ] {
        let client = Client::new(Docker::connect(config(image)).await.unwrap());
        let missing = client.create(SandboxSpec::new()).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::ImageNotFound);
        let text = missing.to_string();
        assert!(text.contains(image) && text.contains(command), "{text}");
    }
}

pub(crate) async fn another_platform_is_refused_and_both_are_named() {
    let other = "linux/s390x";
    let config = config(BUSYBOX).platform(other);
    let client = Client::new(Docker::connect(config).await.unwrap());
    let refused = client.create(SandboxSpec::new()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ImageNotFound, "{refused}");
    let own = docker(&["image", "inspect", "-f", "{{.Architecture}}", BUSYBOX]);
    let text = refused.to_string();
    assert!(text.contains(other) && text.contains(&own), "{text}");
}

pub(crate) async fn an_image_without_a_shell_is_refused() {
    let image = format!("{}:latest", unique("sandbox-test-empty"));
    // A tar without an entry.
    let empty = "head -c 10240 /dev/zero | docker import - \"$1\"";
    let made = Command::new("sh")
        .args(["-c", empty, "sh", &image])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
    let client = Client::new(Docker::connect(config(&image)).await.unwrap());
    let refused = client.create(SandboxSpec::new()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::MissingTool, "{refused}");
    assert!(refused.to_string().contains("/bin/sh"), "{refused}");
    assert!(sandbox_core::flush(std::time::Duration::from_secs(30)));
    docker(&["rmi", &image]);
}

pub(crate) async fn its_own_entrypoint_does_not_run() {
    let base = docker(&["create", BUSYBOX]);
    for change in [
        "ENTRYPOINT [\"echo\"]",
        "ENTRYPOINT [\"/bin/sh\",\"-c\"]",
        "HEALTHCHECK CMD false",
    ] {
        let image = format!("{}:latest", unique("sandbox-test-entry"));
        docker(&["commit", "--change", change, &base, &image]);
        let client = Client::new(Docker::connect(config(&image)).await.unwrap());
        let sandbox = client.create(SandboxSpec::new()).await.unwrap();
        assert_eq!(sandbox.execute("echo ok").await.unwrap().stdout, "ok\n");
        sandbox.kill().await.unwrap();
        docker(&["rmi", &image]);
    }
    docker(&["rm", &base]);
}
