//! What a sandbox is made from is honoured, or refused by name.

use std::time::{Duration, Instant};

use sandbox_core::{
    Command, ErrorKind, GrepOptions, Mount, Network, ReadOptions, Sandbox, SandboxSpec,
};

use crate::check::refused;
use crate::{CaseResult, Cx, Failure};

cases! { "spec":
    variables_reach_commands_and_operations_or_are_refused;
    a_workdir_is_made_for_the_user_or_refused;
    a_workdir_that_was_removed_stops_no_operation;
    variables_that_tools_read_change_no_operation;
    a_user_runs_the_commands_or_is_refused;
    labels_are_told_or_refused;
    limits_are_taken_or_refused;
    a_network_is_given_or_refused;
    mounts_are_given_or_refused;
    an_image_that_is_not_there_is_an_error;
    values_that_cannot_be_are_refused minimal;
    the_lifetime_ends_the_sandbox_or_is_refused;
    a_default_that_is_not_honoured_is_a_warning minimal;
}

/// A sandbox with one field more; `None` if the field is refused, by name.
async fn with(cx: &Cx, spec: SandboxSpec, field: &str) -> Result<Option<Sandbox>, Failure> {
    match cx.client.create(spec).await {
        Ok(sandbox) => Ok(Some(sandbox)),
        Err(e) if e.kind() == ErrorKind::Unsupported => {
            check_eq!(e.context("field"), Some(field), "{e}");
            Ok(None)
        }
        Err(e) => Err(e.into()),
    }
}

async fn variables_reach_commands_and_operations_or_are_refused(cx: Cx) -> CaseResult {
    let value = "v w\n'$x'";
    let spec = cx.spec.clone().env("KIT_SPEC", value).env("LC_ALL", "C");
    if let Some(sandbox) = with(&cx, spec, "env").await? {
        let r = sandbox.execute("printf %s \"$KIT_SPEC\"").await?;
        check_eq!(r.stdout.to_text(), value);
        let own = Command::shell("echo \"$KIT_SPEC\"").env("KIT_SPEC", "own");
        check_eq!(sandbox.execute(own).await?.stdout, "own\n");
        // Another locale changes no operation.
        sandbox.write("/tmp/naïve-漢.txt", "süß\n").await?;
        check_eq!(
            sandbox
                .grep("ü", "/tmp", GrepOptions::default())
                .await?
                .matches
                .len(),
            1
        );
        check_eq!(sandbox.glob("na?ve-?.txt", "/tmp").await?.paths.len(), 1);
        sandbox.kill().await?;
    }
    Ok(())
}

async fn a_workdir_is_made_for_the_user_or_refused(cx: Cx) -> CaseResult {
    if let Some(sandbox) =
        with(&cx, cx.spec.clone().workdir("/tmp/kit work/dir"), "workdir").await?
    {
        let r = sandbox.execute("pwd; echo x >f && cat f").await?;
        check_eq!(r.output(), "/tmp/kit work/dir\nx\n");
        sandbox.kill().await?;
    }
    Ok(())
}

/// What an operation of each kind gives, in a directory that is empty.
async fn operations(sandbox: &Sandbox, dir: &str) -> CaseResult {
    let path = format!("{dir}/a b.txt");
    sandbox.write(&path, "needle\nNeedle\n").await?;
    check_eq!(
        sandbox
            .edit(&path, "needle", "needle: 1", false)
            .await?
            .replaced,
        1
    );
    let page = sandbox.read(&path, ReadOptions::default()).await?;
    check_eq!(page.text(), Some("needle: 1\nNeedle"));
    sandbox.upload(format!("{dir}/u"), "1\r\n2\r\n").await?;
    sandbox
        .edit(format!("{dir}/u"), "1\n2", "3\n4", false)
        .await?;
    check_eq!(sandbox.download(format!("{dir}/u")).await?, "3\r\n4\r\n");
    let names: Vec<String> = sandbox
        .ls(dir)
        .await?
        .entries
        .into_iter()
        .map(|e| e.path.as_str().to_owned())
        .collect();
    check_eq!(names, [path.clone(), format!("{dir}/u")]);
    let hits = sandbox.grep("needle", dir, GrepOptions::default()).await?;
    let hits: Vec<_> = hits.matches.into_iter().map(|m| (m.line, m.text)).collect();
    check_eq!(hits, [(1, "needle: 1".to_owned())]);
    check_eq!(sandbox.glob("*.txt", dir).await?.paths.len(), 1);
    let command = Command::shell("pwd; cat").cwd(dir).stdin("in");
    check_eq!(
        sandbox.execute(command).await?.stdout.to_text(),
        format!("{dir}\nin")
    );
    sandbox.delete(&path).await?;
    check_eq!(sandbox.ls(dir).await?.entries.len(), 1);
    Ok(())
}

async fn a_workdir_that_was_removed_stops_no_operation(cx: Cx) -> CaseResult {
    let spec = cx.spec.clone().workdir("/tmp/kit-workdir");
    if let Some(sandbox) = with(&cx, spec, "workdir").await? {
        sandbox
            .execute("mkdir /tmp/kit-other && rmdir /tmp/kit-workdir")
            .await?
            .into_result()?;
        operations(&sandbox, "/tmp/kit-other").await?;
        refused(sandbox.execute("echo x").await, ErrorKind::NotFound)?;
        // It can be made again.
        sandbox.write("/tmp/kit-workdir/f", "x").await?;
        check_eq!(sandbox.execute("cat f").await?.stdout, "x");
        sandbox.kill().await?;
    }
    Ok(())
}

/// What tools, shells and loaders look at, with values that would change what they print.
const READ_BY_TOOLS: &[(&str, &str)] = &[
    ("BASH_ENV", "/tmp/kit-none"),
    ("BLOCKSIZE", "1M"),
    ("BLOCK_SIZE", "human-readable"),
    ("CDPATH", "/tmp:/etc"),
    ("COLUMNS", "10"),
    ("ENV", "/tmp/kit-none"),
    ("GREP_COLORS", "mt=01;31"),
    ("GREP_OPTIONS", "-i"),
    ("IFS", "/:.e"),
    ("LC_ALL", "xx_YY.UTF-8"),
    ("LS_COLORS", "x"),
    ("OLDPWD", "/none"),
    ("POSIXLY_CORRECT", "1"),
    ("PWD", "/none"),
    ("QUOTING_STYLE", "shell"),
    ("TAR_OPTIONS", "--verbose"),
    ("TIME_STYLE", "+x"),
    ("TMPDIR", "/none"),
    ("TZ", "Nowhere/None"),
    ("a", "a"),
    ("b", "b"),
    ("d", "d"),
    ("e", "e"),
    ("f", "f"),
    ("n", "n"),
    ("p", "p"),
    ("t", "t"),
];

async fn variables_that_tools_read_change_no_operation(cx: Cx) -> CaseResult {
    let spec = READ_BY_TOOLS
        .iter()
        .fold(cx.spec.clone(), |spec, (name, value)| {
            spec.env(*name, *value)
        });
    if let Some(sandbox) = with(&cx, spec, "env").await? {
        sandbox.execute("mkdir /tmp/kit-dir").await?.into_result()?;
        operations(&sandbox, "/tmp/kit-dir").await?;
        sandbox.kill().await?;
    }
    Ok(())
}

async fn a_user_runs_the_commands_or_is_refused(cx: Cx) -> CaseResult {
    if let Some(sandbox) = with(&cx, cx.spec.clone().user("12345"), "user").await? {
        check_eq!(sandbox.execute("id -u").await?.stdout, "12345\n");
        sandbox.upload("/tmp/kit-user/f", "x").await?;
        sandbox.write("/tmp/kit-user/g", "x").await?;
        let r = sandbox
            .execute("echo y >>/tmp/kit-user/f && rm /tmp/kit-user/g && cd && echo ok")
            .await?;
        check_eq!(r.output(), "ok\n");
        sandbox.kill().await?;
    }
    Ok(())
}

async fn labels_are_told_or_refused(cx: Cx) -> CaseResult {
    let spec = cx.spec.clone().label("kit", "a b").label("kit.two", "");
    if let Some(sandbox) = with(&cx, spec, "labels").await? {
        let all = cx.client.list(&sandbox_core::Filter::all()).await?;
        let mine = all.iter().find(|info| info.id == *sandbox.id());
        check_eq!(
            mine.and_then(|i| i.labels.get("kit")).map(String::as_str),
            Some("a b")
        );
        sandbox.kill().await?;
    }
    Ok(())
}

async fn limits_are_taken_or_refused(cx: Cx) -> CaseResult {
    for (field, spec) in [
        ("memory", cx.spec.clone().memory(512 << 20)),
        ("milli_cpus", cx.spec.clone().milli_cpus(500)),
        ("pids", cx.spec.clone().pids(64)),
        ("disk", cx.spec.clone().disk(1 << 30)),
    ] {
        if let Some(sandbox) = with(&cx, spec, field).await? {
            check_eq!(sandbox.execute("echo ok").await?.stdout, "ok\n", "{field}");
            sandbox.kill().await?;
        }
    }
    Ok(())
}

async fn a_network_is_given_or_refused(cx: Cx) -> CaseResult {
    for network in [Network::None, Network::Full] {
        if let Some(sandbox) = with(&cx, cx.spec.clone().network(network), "network").await? {
            check_eq!(sandbox.execute("echo ok").await?.stdout, "ok\n");
            sandbox.kill().await?;
        }
    }
    Ok(())
}

async fn mounts_are_given_or_refused(cx: Cx) -> CaseResult {
    let local = tempfile::tempdir()?;
    std::fs::write(local.path().join("f"), "from outside")?;
    let mount = Mount::read_only(local.path().to_string_lossy(), "/kit-mount");
    if let Some(sandbox) = with(&cx, cx.spec.clone().mount(mount), "mounts").await? {
        check_eq!(
            sandbox.execute("cat /kit-mount/f").await?.stdout,
            "from outside"
        );
        check!(
            !sandbox.execute("echo x >/kit-mount/f").await?.success(),
            "it can be written"
        );
        sandbox.kill().await?;
    }
    Ok(())
}

async fn an_image_that_is_not_there_is_an_error(cx: Cx) -> CaseResult {
    let image = "no-such-image-zz:1";
    match cx.client.create(cx.spec.clone().image(image)).await {
        Err(e) if e.kind() == ErrorKind::Unsupported => {
            check_eq!(e.context("field"), Some("image"));
        }
        Err(e) => check!(e.to_string().contains(image), "the image is not named: {e}"),
        Ok(sandbox) => return Err(Failure::Wrong(format!("{sandbox:?} was made"))),
    }
    Ok(())
}

async fn values_that_cannot_be_are_refused(cx: Cx) -> CaseResult {
    let spec = &cx.spec;
    for bad in [
        spec.clone().memory(0),
        spec.clone().milli_cpus(0),
        spec.clone().pids(0),
        spec.clone().disk(0),
        spec.clone().lifetime(Duration::ZERO),
        spec.clone().env("A B", "1"),
        spec.clone().env("A", "\0"),
    ] {
        refused(cx.client.create(bad).await, ErrorKind::InvalidArgument)?;
    }
    for workdir in ["", "rel", "/a/../b", "/a\0b"] {
        refused(
            cx.client.create(spec.clone().workdir(workdir)).await,
            ErrorKind::InvalidPath,
        )?;
    }
    Ok(())
}

async fn the_lifetime_ends_the_sandbox_or_is_refused(cx: Cx) -> CaseResult {
    // On a machine that has much to do, making one and asking it may take seconds.
    for lifetime in [2, 6, 20].map(Duration::from_secs) {
        let sandbox = match cx.client.create(cx.spec.clone().lifetime(lifetime)).await {
            Ok(sandbox) => sandbox,
            // A provider may have a shortest lifetime, and says so.
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::Unsupported | ErrorKind::InvalidArgument
                ) =>
            {
                check!(
                    e.to_string().contains("lifetime"),
                    "the field is not named: {e}"
                );
                return Ok(());
            }
            Err(e) => return Err(e.into()),
        };
        match sandbox.execute("echo ok").await {
            Err(e) if e.kind() == ErrorKind::SandboxGone => continue,
            r => check_eq!(r?.stdout, "ok\n"),
        }
        let late = Instant::now() + lifetime + Duration::from_secs(10);
        loop {
            let answer = sandbox.execute("echo ok").await;
            if matches!(&answer, Err(e) if e.kind() == ErrorKind::SandboxGone) {
                break;
            }
            check!(Instant::now() < late, "after {lifetime:?}: {answer:?}");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        refused(
            cx.client.connect(sandbox.id()).await,
            ErrorKind::SandboxGone,
        )?;
        sandbox.kill().await?;
        return Ok(());
    }
    Err(Failure::Wrong("it lived for less than 20 s".to_owned()))
}

async fn a_default_that_is_not_honoured_is_a_warning(cx: Cx) -> CaseResult {
    let warned = |field: &str| cx.sandbox.warnings().iter().any(|w| w.starts_with(field));
    for (field, spec) in [
        ("workdir", cx.spec.clone().workdir("/tmp/kit-w")),
        (
            "lifetime",
            cx.spec.clone().lifetime(Duration::from_mins(10)),
        ),
    ] {
        let honoured = match with(&cx, spec, field).await? {
            Some(sandbox) => {
                sandbox.kill().await?;
                true
            }
            None => false,
        };
        check_eq!(
            warned(field),
            !honoured,
            "{field}: {:?}",
            cx.sandbox.warnings()
        );
    }
    Ok(())
}
