//! Images that make trouble.

use std::process::{self, Stdio};
use std::time::Duration;

use sandbox_core::{Client, Command, ErrorKind, GrepOptions, SandboxSpec, Status};
use sandbox_docker::Docker;

use crate::support::{BUSYBOX, GNU, config, docker, unique};

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
    let made = process::Command::new("sh")
        .args(["-c", empty, "sh", &image])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
    let client = Client::new(Docker::connect(config(&image)).await.unwrap());
    let refused = client.create(SandboxSpec::new()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::MissingTool, "{refused}");
    assert!(refused.to_string().contains("/bin/sh"), "{refused}");
    assert!(sandbox_core::flush(Duration::from_secs(30)));
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

pub(crate) async fn what_a_loader_complains_of_is_no_obstacle() {
    let client = Client::new(Docker::connect(config(GNU)).await.unwrap());
    let spec = SandboxSpec::new().env("LD_PRELOAD", "/none/libnone.so");
    let sandbox = client.create(spec).await.unwrap();
    let hi = sandbox.execute("ls /; echo hi").await.unwrap();
    assert!(hi.stdout.to_text().ends_with("hi\n"), "{hi:?}");
    assert!(hi.stderr.to_text().contains("LD_PRELOAD"), "{hi:?}");
    let files = [("/tmp/a", "one"), ("/tmp/d/b", "two")];
    for uploaded in sandbox.upload_files(files).await {
        uploaded.unwrap();
    }
    for (downloaded, (_, right)) in sandbox
        .download_files(files.map(|f| f.0))
        .await
        .into_iter()
        .zip(files)
    {
        assert_eq!(downloaded.unwrap(), right);
    }
    sandbox.write("/tmp/d/b", "needle\n").await.unwrap();
    sandbox
        .edit("/tmp/d/b", "needle", "needles", false)
        .await
        .unwrap();
    assert_eq!(sandbox.ls("/tmp/d").await.unwrap().entries.len(), 1);
    assert_eq!(sandbox.glob("*", "/tmp/d").await.unwrap().paths.len(), 1);
    let found = sandbox
        .grep("needles", "/tmp/d", GrepOptions::default())
        .await
        .unwrap();
    assert_eq!((found.matches.len(), found.gaps.len()), (1, 0));
    let late = Command::shell("sleep 60 & sleep 60").timeout(Duration::from_millis(500));
    let late = sandbox.execute(late).await.unwrap();
    assert_eq!(
        (late.status, late.sandbox_killed),
        (Status::TimedOut, false)
    );
    sandbox.kill().await.unwrap();
}

pub(crate) async fn a_device_that_was_removed_is_told() {
    let client = Client::new(Docker::connect(config(GNU)).await.unwrap());
    let sandbox = client.create(SandboxSpec::new()).await.unwrap();
    let removed = sandbox.execute("rm /dev/null && echo done").await.unwrap();
    assert_eq!(removed.stdout, "done\n");
    let e = sandbox.execute("echo hi").await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unexpected, "{e}");
    assert!(e.to_string().contains("a device is missing"), "{e}");
    sandbox.kill().await.unwrap();
}
