//! How sandboxes begin and end.

use std::process::Command;
use std::time::{Duration, Instant};

use sandbox_core::{Client, ErrorKind, Filter, SandboxId, SandboxSpec};
use sandbox_docker::Docker;
use sandbox_testkit::engine::testcontainers::ImageExt as _;
use sandbox_testkit::engine::{self, Container};

use crate::owner;
use crate::support::{BUSYBOX, GNU, client, config, docker, ends, exists, sandbox, unique};

pub(crate) async fn a_killed_owner_takes_its_sandbox_along() {
    let (mut child, id) = owner::start("own");
    assert!(exists(id.as_str()));
    child.kill().unwrap();
    child.wait().unwrap();
    ends(&id).await;
}

pub(crate) async fn a_terminated_owner_takes_its_sandbox_along() {
    let (mut child, id) = owner::start("own");
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    child.wait().unwrap();
    ends(&id).await;
}

pub(crate) async fn a_detached_sandbox_survives_its_owner() {
    let (mut child, id) = owner::start("detach");
    child.kill().unwrap();
    child.wait().unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let client = client(GNU, "0").await;
    let again = client.connect(&id).await.unwrap();
    assert_eq!(again.execute("echo ok").await.unwrap().stdout, "ok\n");
    // It was let go on purpose and has time left.
    client.gc().await.unwrap();
    assert!(exists(id.as_str()));
    again.kill().await.unwrap();
    assert!(!exists(id.as_str()));
}

pub(crate) async fn the_lifetime_ends_it_and_renewing_moves_the_end() {
    let client = client(BUSYBOX, "1000").await;
    let spec = || SandboxSpec::new().lifetime(Duration::from_secs(5));
    let (short, renewed) = (client.create(spec()).await, client.create(spec()).await);
    let (short, renewed) = (short.unwrap(), renewed.unwrap());
    renewed.renew(Duration::from_mins(1)).await.unwrap();
    ends(short.id()).await;
    let gone = short.execute("echo hi").await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::SandboxGone);
    assert_eq!(renewed.execute("echo ok").await.unwrap().stdout, "ok\n");
    renewed.renew(Duration::from_secs(1)).await.unwrap();
    ends(renewed.id()).await;
}

pub(crate) async fn renewing_under_a_command_does_not_hide_its_end() {
    let sandbox = sandbox(BUSYBOX, "1000").await;
    let command =
        sandbox_core::Command::shell("sleep 50 & sleep 60").timeout(Duration::from_secs(2));
    let renew = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        sandbox.renew(Duration::from_secs(100)).await.unwrap();
    };
    let (run, ()) = tokio::join!(sandbox.execute(command), renew);
    let run = run.unwrap();
    assert_eq!(run.status, sandbox_core::Status::TimedOut);
    // The keeper's new nap is younger than the command and none of its processes.
    assert!(!run.sandbox_killed);
}

pub(crate) async fn uid_1000_can_not_touch_the_keeper() {
    for image in [GNU, BUSYBOX] {
        let sandbox = sandbox(image, "1000").await;
        let attack = "kill -STOP 1; kill -9 1; for p in /proc/[0-9]*; do p=${p#/proc/}; \
                      [ $p = $$ ] || kill -STOP $p; done; kill -9 -1; \
                      echo 9999999999 >/run/sandbox-keeper/expires";
        // It may kill itself in passing.
        sandbox.execute(attack).await.unwrap();
        sandbox.renew(Duration::from_secs(1)).await.unwrap();
        ends(sandbox.id()).await;
    }
}

pub(crate) async fn killing_is_fast() {
    let sandbox = sandbox(GNU, "0").await;
    let _ = sandbox
        .execute("trap '' TERM; (sleep 100 >/dev/null 2>&1 &)")
        .await;
    let start = Instant::now();
    sandbox.kill().await.unwrap();
    assert!(!exists(sandbox.id().as_str()));
    // `docker stop` waits for ten.
    assert!(
        start.elapsed() < Duration::from_secs(9),
        "{:?}",
        start.elapsed()
    );
}

pub(crate) async fn a_name_is_made_once_however_many_ask() {
    let name = unique("once ä/");
    let role = format!("name:{name}");
    let owners: Vec<_> = (0..3)
        .map(|_| {
            let role = role.clone();
            std::thread::spawn(move || {
                let (mut child, id) = owner::start(&role);
                child.wait().unwrap();
                id
            })
        })
        .collect();
    let client = client(GNU, "0").await;
    let (a, b) = tokio::join!(
        client.get_or_create(&name, SandboxSpec::new()),
        client.get_or_create(&name, SandboxSpec::new())
    );
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(a.id(), b.id());
    for owner in owners {
        assert_eq!(&owner.join().unwrap(), a.id());
    }
    drop(b);
    // Nobody owns it: the ends of those who asked are not its end.
    assert_eq!(a.execute("echo ok").await.unwrap().stdout, "ok\n");
    a.kill().await.unwrap();
}

pub(crate) async fn a_name_can_be_used_again_at_once() {
    let client = client(BUSYBOX, "0").await;
    let name = unique("again");
    let mut last: Option<SandboxId> = None;
    for _ in 0..8 {
        let sandbox = client
            .get_or_create(&name, SandboxSpec::new())
            .await
            .unwrap();
        assert_ne!(Some(sandbox.id()), last.as_ref());
        last = Some(sandbox.id().clone());
        sandbox.kill().await.unwrap();
    }
}

pub(crate) async fn a_foreign_container_of_the_name_is_left_alone() {
    let name = unique("foreign");
    let container = format!("sandbox-named-{name}");
    docker(&["create", "--name", &container, BUSYBOX, "true"]);
    let client = client(BUSYBOX, "0").await;
    let refused = client
        .get_or_create(&name, SandboxSpec::new())
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    let removed = docker(&["rm", &container]);
    assert_eq!(removed, container);
}

pub(crate) async fn a_foreign_container_can_be_connected_to() {
    let request = engine::image(GNU)
        .with_host_config_modifier(|config| config.init = Some(true))
        .with_network("none")
        .with_user("1000")
        .with_working_dir("/tmp")
        .with_cmd(["sleep", "100"]);
    let foreign = Container::start(request).unwrap();
    let id = foreign.id();
    let client = client(GNU, "0").await;
    let sandbox = client.connect(&SandboxId::new(id)).await.unwrap();
    let seen = sandbox.execute("id -u; pwd").await.unwrap();
    assert_eq!(seen.stdout, "1000\n/tmp\n");
    assert!(!sandbox.capabilities().lease, "there is no keeper");
    let late = sandbox_core::Command::shell("sleep 50 & sleep 60").timeout(Duration::from_secs(1));
    let late = sandbox.execute(late).await.unwrap();
    assert_eq!(late.status, sandbox_core::Status::TimedOut);
    // What was there before is no part of a command.
    assert!(!late.sandbox_killed);
    assert_eq!(docker(&["inspect", "-f", "{{.State.Running}}", id]), "true");
    drop(sandbox);
    assert!(exists(id), "it is not the backend's to end");
}

pub(crate) async fn gc_removes_what_a_dead_owner_left_and_nothing_else() {
    let client = client(BUSYBOX, "0").await;
    let mine = client.create(SandboxSpec::new()).await.unwrap();
    let owner = docker(&[
        "inspect",
        "-f",
        "{{index .Config.Labels \"rs.sandbox.owner\"}}",
        mine.id().as_str(),
    ]);
    // The same process id with another start is another process, and a dead one.
    let (rest, start) = owner.rsplit_once('/').unwrap();
    let dead = format!("{rest}/{}", start.parse::<u64>().unwrap() + 1);
    let left = |owner: &str, run: &[&str]| {
        let (owner, managed) = (
            format!("rs.sandbox.owner={owner}"),
            "rs.sandbox.managed=1".to_owned(),
        );
        let mut args = vec![run[0]];
        args.extend(&run[1..]);
        args.extend([
            "--label", &owner, "--label", &managed, BUSYBOX, "sleep", "100",
        ]);
        docker(&args)
    };
    let created = left(&dead, &["create"]);
    let running = left(&dead, &["run", "-d"]);
    let elsewhere = left("other/boot/1/1", &["create"]);
    let foreign = docker(&["create", BUSYBOX, "true"]);
    // Another test's sweep may have been first.
    client.gc().await.unwrap();
    for id in [&created, &running] {
        assert!(!exists(id), "{id}");
    }
    for id in [&elsewhere, &foreign, &mine.id().to_string()] {
        assert!(exists(id), "{id}");
    }
    docker(&["rm", "-f", &elsewhere, &foreign]);
}

pub(crate) async fn the_defaults_are_strict() {
    let sandbox = sandbox(GNU, "1000").await;
    let inspect = |what: &str| docker(&["inspect", "-f", what, sandbox.id().as_str()]);
    for (what, right) in [
        ("{{.HostConfig.NetworkMode}}", "none"),
        ("{{.HostConfig.CapDrop}}", "[ALL]"),
        ("{{.HostConfig.CapAdd}}", "[]"),
        ("{{.HostConfig.SecurityOpt}}", "[no-new-privileges]"),
        ("{{.HostConfig.Privileged}}", "false"),
        ("{{.HostConfig.PidMode}}", ""),
        ("{{.HostConfig.IpcMode}}", "private"),
        ("{{.HostConfig.PidsLimit}}", "512"),
        ("{{.HostConfig.Memory}}", "1073741824"),
        ("{{.HostConfig.MemorySwap}}", "1073741824"),
        ("{{.HostConfig.NanoCpus}}", "1000000000"),
        ("{{len .Mounts}}", "0"),
        ("{{.HostConfig.AutoRemove}}", "true"),
    ] {
        assert_eq!(inspect(what), right, "{what}");
    }
    let seen = sandbox
        .execute("id -u; pwd; echo $HOME; touch x && ls")
        .await
        .unwrap();
    assert_eq!(seen.stdout, "1000\n/workspace\n/workspace\nx\n");
}

pub(crate) async fn the_entrypoint_runs_beside_the_commands() {
    let client = Client::new(Docker::connect(config(GNU)).await.unwrap());
    let spec = SandboxSpec::new()
        .user("1000")
        .label("test", unique("entrypoint"))
        .entrypoint(["sh", "-c", "id -u >up; exec sleep 99"]);
    let sandbox = client.create(spec.clone()).await.unwrap();
    let wait =
        "i=0; while ! [ -s up ]; do i=$((i+1)); [ $i -lt 50 ] || exit 1; sleep 0.1; done; cat up";
    assert_eq!(sandbox.execute(wait).await.unwrap().stdout, "1000\n");
    let filter = Filter::all().label("test", &spec.labels["test"]);
    assert_eq!(client.list(&filter).await.unwrap().len(), 1);
    sandbox.kill().await.unwrap();
    assert!(client.list(&filter).await.unwrap().is_empty());
}
