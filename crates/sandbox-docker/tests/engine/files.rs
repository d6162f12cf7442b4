//! Files in the places that a container can have.

use std::time::{Duration, Instant};

use sandbox_core::{ErrorKind, GrepOptions, Mount, ReadOptions, SandboxId, SandboxSpec};

use crate::support::{BUSYBOX, GNU, client, docker, sandbox, unique};

pub(crate) async fn files_belong_to_the_user() {
    for image in [GNU, BUSYBOX] {
        let sandbox = sandbox(image, "1000").await;
        sandbox.upload("/workspace/a/b/c.txt", "x").await.unwrap();
        let seen = sandbox
            .execute("stat -c '%u %a' a a/b a/b/c.txt; echo y >>a/b/c.txt; touch a/b/d && rm -r a")
            .await
            .unwrap();
        assert_eq!(seen.stdout, "1000 755\n1000 755\n1000 644\n");
        assert!(seen.success());
        for path in ["/etc/passwd", "/root/x", "/new"] {
            let refused = sandbox.upload(path, "x").await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused}");
        }
    }
}

pub(crate) async fn a_file_at_a_mount_of_tmpfs_is_seen() {
    in_container(&["--tmpfs", "/w:mode=1777"], async |sandbox| {
        sandbox.upload("/w/a", "x").await.unwrap();
        assert_eq!(sandbox.execute("cat /w/a").await.unwrap().stdout, "x");
        assert_eq!(sandbox.download("/w/a").await.unwrap(), "x");
    })
    .await;
}

pub(crate) async fn a_root_that_can_only_be_read_is_no_obstacle_elsewhere() {
    let options = ["--read-only", "--tmpfs", "/w:mode=1777"];
    in_container(&options, async |sandbox| {
        sandbox.upload("/w/a", "x").await.unwrap();
        assert_eq!(sandbox.download("/w/a").await.unwrap(), "x");
        let refused = sandbox.upload("/x", "x").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused}");
        let full = sandbox.upload("/w/full", vec![0; 3 << 20]).await;
        assert!(full.is_ok());
        // Without a place for anything temporary but beside the file.
        sandbox.write("/w/b", "needle\n").await.unwrap();
        let edited = sandbox.edit("/w/b", "needle", "a needle", false).await;
        assert_eq!(edited.unwrap().replaced, 1);
        let read = sandbox.read("/w/b", ReadOptions::default()).await.unwrap();
        assert_eq!(read.text(), Some("a needle"));
        assert_eq!(sandbox.ls("/w").await.unwrap().entries.len(), 3);
        assert_eq!(sandbox.glob("b", "/w").await.unwrap().paths.len(), 1);
        let found = sandbox.grep("needle", "/w", GrepOptions::default()).await;
        assert_eq!(found.unwrap().matches.len(), 1);
        let refused = sandbox.write("/x", "x").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused}");
        sandbox.delete("/w/b").await.unwrap();
    })
    .await;
    let small = ["--tmpfs", "/w:mode=1777,size=1m"];
    in_container(&small, async |sandbox| {
        let results = sandbox
            .upload_files([
                ("/w/a", vec![1; 1000]),
                ("/w/b", vec![2; 3 << 20]),
                ("/tmp/c", vec![3; 1000]),
            ])
            .await;
        assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
        let full = results[1].as_ref().unwrap_err();
        assert_eq!(full.kind(), ErrorKind::LimitExceeded, "{full}");
        assert_eq!(sandbox.download("/tmp/c").await.unwrap(), vec![3; 1000]);
    })
    .await;
}

pub(crate) async fn a_file_mounted_below_var_run_is_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x");
    std::fs::write(&file, "from outside").unwrap();
    for (image, target) in [(GNU, "/var/run/x.sock"), (BUSYBOX, "/var/run/sub/x")] {
        let mount = Mount::read_only(file.to_str().unwrap(), target);
        let client = client(image, "0").await;
        let sandbox = client.create(SandboxSpec::new().mount(mount)).await;
        let sandbox = sandbox.unwrap();
        sandbox.upload("/tmp/a", "x").await.unwrap();
        assert_eq!(sandbox.download("/tmp/a").await.unwrap(), "x");
        assert_eq!(sandbox.download(target).await.unwrap(), "from outside");
        assert!(sandbox.upload(target, "x").await.is_err());
    }
}

pub(crate) async fn a_volume_is_there_at_once() {
    let volume = unique("sandbox-test-volume");
    let client = client(BUSYBOX, "0").await;
    for n in 0..10 {
        let spec = SandboxSpec::new().mount(Mount::writable(&volume, "/w"));
        let sandbox = client.create(spec).await.unwrap();
        sandbox.upload("/w/a", format!("{n}")).await.unwrap();
        let seen = sandbox.execute("cat /w/a; echo >>/w/all").await.unwrap();
        assert_eq!(seen.stdout, format!("{n}").as_str());
        let all = sandbox.download("/w/all").await.unwrap();
        // A volume outlives its sandboxes.
        assert_eq!(all.len(), n + 1);
        sandbox.kill().await.unwrap();
    }
    docker(&["volume", "rm", &volume]);
}

pub(crate) async fn a_running_program_is_not_half_overwritten() {
    let sandbox = sandbox(GNU, "1000").await;
    let start = "cp /bin/sleep s; ./s 60 >/dev/null 2>&1 & sleep 0.2";
    sandbox.execute(start).await.unwrap();
    let before = sandbox.download("/workspace/s").await.unwrap();
    let busy = sandbox.upload("/workspace/s", "new").await.unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Conflict, "{busy}");
    assert_eq!(sandbox.download("/workspace/s").await.unwrap(), before);
}

pub(crate) async fn a_sparse_file_is_too_large_at_once() {
    let sandbox = sandbox(GNU, "1000").await;
    sandbox
        .execute("truncate -s 20G sparse; echo x >small")
        .await
        .unwrap();
    let start = Instant::now();
    let results = sandbox
        .download_files(["/workspace/sparse", "/workspace/small"])
        .await;
    let large = results[0].as_ref().unwrap_err();
    assert_eq!(large.kind(), ErrorKind::TooLarge);
    assert_eq!(results[1].as_ref().unwrap(), "x\n");
    assert!(start.elapsed() < Duration::from_secs(10));
}

pub(crate) async fn what_the_kernel_makes_up_is_read() {
    let sandbox = sandbox(BUSYBOX, "1000").await;
    let many = ["/proc/self/status", "/proc/cpuinfo", "/proc/version"];
    for content in sandbox.download_files(many).await {
        assert!(!content.unwrap().is_empty());
    }
    assert!(
        !sandbox
            .download("/proc/self/status")
            .await
            .unwrap()
            .is_empty()
    );
}

/// In a container of somebody else's making.
async fn in_container(options: &[&str], body: impl AsyncFnOnce(&sandbox_core::Sandbox)) {
    for image in [GNU, BUSYBOX] {
        if image == BUSYBOX && !options.contains(&"--read-only") {
            continue;
        }
        let mut args = vec![
            "run",
            "-d",
            "--rm",
            "--init",
            "--network",
            "none",
            "--user",
            "1000",
        ];
        args.extend(options);
        args.extend([image, "sleep", "100"]);
        let id = docker(&args);
        let client = client(image, "0").await;
        let sandbox = client.connect(&SandboxId::new(&id)).await.unwrap();
        body(&sandbox).await;
        docker(&["rm", "-f", &id]);
        return;
    }
}
