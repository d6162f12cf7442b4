//! Hostile code is held: what it may not reach, and what it may not take from others.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sandbox_core::{Command, ErrorKind, Network, Status};

use crate::{CaseResult, Cx, Failure};

cases! { "isolation":
    a_fork_bomb_ends_with_its_deadline isolation fresh;
    a_memory_bomb_ends_alone isolation fresh;
    filling_a_disk_of_memory_ends_alone isolation fresh;
    no_address_is_reached isolation;
    the_metadata_address_is_not_reached isolation;
    the_host_s_files_are_not_here isolation;
    the_host_s_variables_are_not_here isolation;
    the_host_s_processes_are_not_here isolation;
    the_kernel_s_settings_can_not_be_written isolation;
    no_device_of_the_host_is_here isolation;
    nothing_can_be_mounted isolation;
    a_setuid_file_gives_no_rights isolation;
    no_capability_is_held isolation;
    an_upload_through_a_swapped_link_stays_inside isolation fresh;
    a_download_through_a_swapped_link_stays_inside isolation fresh;
    files_are_reached_with_the_user_s_rights_only isolation fresh;
    two_sandboxes_share_nothing isolation;
}

async fn a_fork_bomb_ends_with_its_deadline(cx: Cx) -> CaseResult {
    let start = Instant::now();
    let bomb = Command::shell("b() { b | b & b; }; b").timeout(Duration::from_secs(3));
    // Where there is no room for one more process, the shell itself may give up first.
    let r = cx.sandbox.execute(bomb).await?;
    check!(
        start.elapsed() < Duration::from_secs(25),
        "it took {:?}",
        start.elapsed()
    );
    if r.sandbox_killed {
        return Ok(());
    }
    for _ in 0..20 {
        match cx.raw("echo alive").await {
            Ok(r) if r.stdout == "alive\n" => return Ok(()),
            Err(e) if e.kind() == ErrorKind::SandboxGone => return Ok(()),
            _ => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
    Err(Failure::Wrong(
        "the sandbox neither works nor is gone".to_owned(),
    ))
}

async fn a_memory_bomb_ends_alone(cx: Cx) -> CaseResult {
    let small = cx.client.create(cx.spec.clone().memory(128 << 20)).await?;
    let bomb = Command::shell("awk 'BEGIN { s = \"x\"; while (1) s = s s }'")
        .timeout(Duration::from_secs(40));
    let r = small.execute(bomb).await?;
    check!(!r.success(), "it found the memory: {}", r.status);
    check!(r.status != Status::TimedOut, "nothing ended it");
    match small.execute("echo alive").await {
        Ok(r) => check_eq!(r.stdout, "alive\n"),
        Err(e) => check_eq!(e.kind(), ErrorKind::SandboxGone),
    }
    check_eq!(cx.raw("echo alive").await?.stdout, "alive\n");
    small.kill().await?;
    Ok(())
}

async fn filling_a_disk_of_memory_ends_alone(cx: Cx) -> CaseResult {
    let r = cx
        .sh("head -c 300000000 /dev/zero >/dev/shm/fill; echo rc=$?; rm -f /dev/shm/fill")
        .await?;
    check!(!r.output().contains("rc=0"), "{}", r.output());
    check_eq!(cx.raw("echo alive").await?.stdout, "alive\n");
    Ok(())
}

/// Tries to open a connection with what the image has.
const CONNECT: &str = r#"
if command -v python3 >/dev/null; then
  python3 -c 'import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)' "$1" "$2" 2>&1 && echo reached
elif command -v nc >/dev/null; then
  nc -w 3 "$1" "$2" </dev/null 2>&1 && echo reached
else
  echo "no way to try"
fi"#;

async fn reaches_nothing(cx: &Cx, address: &str, port: &str) -> CaseResult {
    check!(
        cx.spec.network != Some(Network::Full),
        "the target asks for a network"
    );
    let try_it = Command::shell(CONNECT)
        .arg(address)
        .arg(port)
        .timeout(Duration::from_secs(20));
    let r = cx.sandbox.execute(try_it).await?;
    check!(!r.output().contains("reached"), "{address}: {}", r.output());
    check!(
        !r.output().contains("no way to try"),
        "the image has no program to try it with"
    );
    Ok(())
}

async fn no_address_is_reached(cx: Cx) -> CaseResult {
    for (address, port) in [("1.1.1.1", "443"), ("172.17.0.1", "22"), ("10.0.0.1", "80")] {
        reaches_nothing(&cx, address, port).await?;
    }
    let interfaces = cx.ok("ls /sys/class/net 2>/dev/null || echo lo").await?;
    check!(
        !interfaces.contains("eth"),
        "there is an interface: {interfaces}"
    );
    Ok(())
}

async fn the_metadata_address_is_not_reached(cx: Cx) -> CaseResult {
    reaches_nothing(&cx, "169.254.169.254", "80").await
}

async fn the_host_s_files_are_not_here(cx: Cx) -> CaseResult {
    // A file of this process, by name and by what it holds.
    let secret = tempfile::NamedTempFile::new()?;
    std::fs::write(secret.path(), "kit-secret")?;
    let path = secret.path().to_string_lossy().into_owned();
    let r = cx
        .sandbox
        .execute(
            Command::shell("cat -- \"$1\" \"/proc/1/root$1\" \"/proc/self/root$1\" /../../$1")
                .arg(&path),
        )
        .await?;
    check!(!r.output().contains("kit-secret"), "{}", r.output());
    for socket in ["/var/run/docker.sock", "/run/containerd/containerd.sock"] {
        let r = cx.raw(&format!("[ ! -e {socket} ] && echo none")).await?;
        check_eq!(r.stdout, "none\n");
    }
    Ok(())
}

async fn the_host_s_variables_are_not_here(cx: Cx) -> CaseResult {
    let seen = cx
        .raw("env; for f in /proc/[0-9]*/environ; do cat \"$f\" 2>/dev/null; done")
        .await?
        .output();
    for (name, value) in std::env::vars() {
        // What every image has, too, tells nothing.
        let telling = name.starts_with("CARGO") || name.starts_with("RUST");
        check!(
            !(telling && value.len() > 3 && seen.contains(&format!("{name}={value}"))),
            "the host's variable {name} is here"
        );
    }
    Ok(())
}

async fn the_host_s_processes_are_not_here(cx: Cx) -> CaseResult {
    let me = std::process::id();
    let name = std::env::current_exe()?;
    let name = name.file_name().unwrap_or_default().to_string_lossy();
    let seen = cx
        .raw("for f in /proc/[0-9]*/cmdline; do cat \"$f\" 2>/dev/null; echo; done")
        .await?
        .output();
    check!(!seen.contains(&*name), "process {me} of the host is here");
    Ok(())
}

async fn the_kernel_s_settings_can_not_be_written(cx: Cx) -> CaseResult {
    for file in [
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sysrq-trigger",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory.max",
    ] {
        let text = "if (: >>\"$1\") 2>/dev/null; then echo open; else echo refused; fi";
        let r = cx.sandbox.execute(Command::shell(text).arg(file)).await?;
        check_eq!((file, r.stdout.to_text().as_str()), (file, "refused\n"));
    }
    Ok(())
}

async fn no_device_of_the_host_is_here(cx: Cx) -> CaseResult {
    let blocks = cx
        .ok("find /dev -type b 2>/dev/null; for d in /dev/mem /dev/kmem /dev/kmsg /dev/sda /dev/vda; do [ ! -e $d ] || echo $d; done")
        .await?;
    check_eq!(blocks, "");
    let made = cx.sh("mknod disk b 8 0 2>/dev/null && echo made").await?;
    check!(!made.output().contains("made"), "a block device was made");
    Ok(())
}

async fn nothing_can_be_mounted(cx: Cx) -> CaseResult {
    let r = cx
        .sh("mkdir -p m; mount -t tmpfs none m 2>/dev/null && echo mounted; \
             unshare -Ur true 2>/dev/null && echo user; unshare -m true 2>/dev/null && echo space; true")
        .await?;
    check!(
        !r.output().contains("mounted") && !r.output().contains("space"),
        "{}",
        r.output()
    );
    Ok(())
}

async fn a_setuid_file_gives_no_rights(cx: Cx) -> CaseResult {
    let r = cx
        .ok("mkdir s && cp /bin/cat s/cat && chmod 4755 s/cat && ./s/cat /proc/self/status")
        .await?;
    check!(r.contains("NoNewPrivs:\t1"), "{r}");
    let id = cx.ok("id -u").await?;
    let right = format!("Uid:\t{0}\t{0}\t{0}\t{0}\n", id.trim());
    check!(r.contains(&right), "it runs as another: {r}");
    Ok(())
}

async fn no_capability_is_held(cx: Cx) -> CaseResult {
    let r = cx.ok("grep ^Cap /proc/self/status").await?;
    for line in r.lines() {
        check!(
            line.ends_with("0000000000000000"),
            "a capability is held: {line}"
        );
    }
    Ok(())
}

/// What swaps a link between a good and a bad target as fast as it can.
const SWAP: &str = "mkdir -p good; while :; do ln -sfn good d; ln -sfn /etc d; done";

async fn an_upload_through_a_swapped_link_stays_inside(cx: Cx) -> CaseResult {
    let before = cx.raw("ls -la /etc | grep kit-raced").await?.output();
    check_eq!(before, "");
    let swapping = cx
        .sandbox
        .execute(cx.command(SWAP).timeout(Duration::from_secs(5)));
    let uploading = async {
        for _ in 0..20 {
            // Either target, or a refusal: all of it inside, with the user's rights.
            let _ = cx.sandbox.upload(cx.path("d/kit-raced"), "x").await;
        }
    };
    let (swapped, ()) = tokio::join!(swapping, uploading);
    swapped?;
    check!(
        !std::path::Path::new("/etc/kit-raced").exists(),
        "a file of the host was written"
    );
    let user = cx.ok("id -u").await?;
    if user.trim() != "0" {
        let after = cx.raw("ls /etc | grep kit-raced").await?.output();
        check_eq!(after, "");
    }
    Ok(())
}

async fn a_download_through_a_swapped_link_stays_inside(cx: Cx) -> CaseResult {
    let secret = tempfile::NamedTempFile::new()?;
    std::fs::write(secret.path(), "kit-secret")?;
    let path = secret.path().to_string_lossy().into_owned();
    let swap = Command::shell("echo good >g; while :; do ln -sfn g f; ln -sfn \"$1\" f; done")
        .arg(&path)
        .cwd(&cx.dir)
        .timeout(Duration::from_secs(5));
    let downloading = async {
        for _ in 0..20 {
            if let Ok(content) = cx.sandbox.download(cx.path("f")).await {
                check!(content != "kit-secret", "a file of the host was read");
            }
        }
        Ok(())
    };
    let (swapped, read) = tokio::join!(cx.sandbox.execute(swap), downloading);
    swapped?;
    read
}

async fn files_are_reached_with_the_user_s_rights_only(cx: Cx) -> CaseResult {
    let refused = ErrorKind::PermissionDenied;
    if cx.ok("id -u").await?.trim() != "0" {
        for path in ["/etc/kit-new", "/kit-new", "/root/kit-new"] {
            let e = cx.sandbox.upload(path, "x").await.err().map(|e| e.kind());
            check_eq!((path, e), (path, Some(refused)));
        }
    }
    cx.ok("echo x >shut; chmod 000 shut").await?;
    let open = cx.sh("cat shut").await?.success();
    let e = cx.sandbox.download(cx.path("shut")).await;
    check_eq!(e.is_ok(), open);
    Ok(())
}

async fn two_sandboxes_share_nothing(cx: Cx) -> CaseResult {
    let other = cx.another().await?;
    let (a, b) = (&cx.sandbox, &other);
    // Files, also those of the system.
    a.execute("echo a >/tmp/kit-shared; echo a >/dev/shm/kit-shared")
        .await?;
    for place in ["/tmp", "/dev/shm"] {
        let e = b.download(format!("{place}/kit-shared")).await.err();
        check_eq!(e.map(|e| e.kind()), Some(ErrorKind::NotFound));
    }
    // Processes, and the space of their numbers.
    let sleeping =
        a.execute(Command::shell("sleep 77 & echo $!; wait").timeout(Duration::from_secs(4)));
    let looking = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        b.execute(
            "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done | grep -c '^sleep 77'",
        )
        .await
    };
    let (slept, seen) = tokio::join!(sleeping, looking);
    slept?;
    check_eq!(seen?.stdout, "0\n");
    // Names of the machine.
    let names = join_all(
        [a, b].map(|s| s.execute("hostname 2>/dev/null || cat /proc/sys/kernel/hostname")),
    )
    .await;
    let [first, second] = &names[..] else {
        return Err(Failure::Wrong("two answers were asked".to_owned()));
    };
    let name = |r: &sandbox_core::Result<sandbox_core::ExecuteResponse>| {
        r.as_ref().map(|r| r.stdout.to_text()).unwrap_or_default()
    };
    check!(name(first) != name(second), "both have the same host name");
    // One dies, the other works on.
    other.kill().await?;
    check_eq!(a.execute("echo alive").await?.stdout, "alive\n");
    Ok(())
}
