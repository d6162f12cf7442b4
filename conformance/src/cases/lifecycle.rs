//! Making, finding and ending sandboxes.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sandbox_core::{
    ErrorKind, Filter, GrepOptions, ReadOptions, SandboxId, SandboxRef, SandboxState, Status,
};

use crate::check::refused;
use crate::{CaseResult, Cx, Failure};

cases! { "lifecycle":
    a_new_sandbox_takes_files_and_commands_at_once minimal fresh;
    sandboxes_share_no_file minimal;
    sandboxes_share_no_variable_and_no_process;
    killing_ends_every_operation minimal fresh;
    killing_twice_is_a_success minimal fresh;
    killing_ten_times_at_once_is_a_success fresh;
    killing_what_another_handle_killed_is_a_success fresh;
    a_sandbox_killed_behind_ones_back_is_gone fresh;
    killing_ends_a_running_command fresh;
    killing_is_fast fresh;
    connecting_reaches_the_same_sandbox minimal;
    connecting_to_an_unknown_id_is_gone minimal;
    connecting_to_a_killed_sandbox_is_gone minimal fresh;
    a_reference_survives_json minimal;
    a_reference_of_another_backend_is_refused minimal;
    the_list_has_the_living minimal;
    the_list_can_be_filtered;
    the_list_has_no_killed_one fresh;
    a_name_gives_one_sandbox_or_is_refused;
    a_bad_name_is_refused;
    many_sandboxes_live_side_by_side;
}

async fn a_new_sandbox_takes_files_and_commands_at_once(cx: Cx) -> CaseResult {
    for _ in 0..3 {
        let sandbox = cx.another().await?;
        sandbox.upload("/tmp/kit-new", "new").await?;
        check_eq!(sandbox.execute("cat /tmp/kit-new").await?.stdout, "new");
        sandbox.kill().await?;
    }
    Ok(())
}

async fn sandboxes_share_no_file(cx: Cx) -> CaseResult {
    let other = cx.another().await?;
    check!(other.id() != cx.sandbox.id(), "both have the same id");
    cx.put([("mine", b"x")]).await?;
    refused(other.download(cx.path("mine")).await, ErrorKind::NotFound)?;
    other.execute("echo x >/tmp/kit-other").await?;
    refused(
        cx.sandbox.download("/tmp/kit-other").await,
        ErrorKind::NotFound,
    )?;
    other.kill().await?;
    check_eq!(cx.get("mine").await?, b"x".to_vec());
    Ok(())
}

async fn sandboxes_share_no_variable_and_no_process(cx: Cx) -> CaseResult {
    let other = cx.another().await?;
    other
        .execute("export KIT_LEAK=1; (sleep 20 >/dev/null 2>&1 &)")
        .await?;
    let seen = cx
        .raw("env; for f in /proc/[0-9]*/cmdline; do cat \"$f\" 2>/dev/null; done")
        .await?
        .output();
    check!(
        !seen.contains("KIT_LEAK"),
        "a variable of another sandbox is here"
    );
    check!(
        !seen.contains("sleep\u{0}20"),
        "a process of another sandbox is here"
    );
    other.kill().await?;
    Ok(())
}

async fn killing_ends_every_operation(cx: Cx) -> CaseResult {
    let s = &cx.sandbox;
    s.kill().await?;
    let gone = ErrorKind::SandboxGone;
    refused(s.execute("echo hi").await, gone)?;
    refused(s.upload("/tmp/f", "x").await, gone)?;
    refused(s.download("/tmp/f").await, gone)?;
    refused(s.ls("/").await, gone)?;
    refused(s.read("/etc/passwd", ReadOptions::default()).await, gone)?;
    refused(s.write("/tmp/f", "x").await, gone)?;
    refused(s.edit("/tmp/f", "a", "b", false).await, gone)?;
    refused(s.glob("*", "/tmp").await, gone)?;
    refused(s.grep("x", "/tmp", GrepOptions::default()).await, gone)?;
    refused(s.delete("/tmp/f").await, gone)?;
    let results = s
        .upload_files([("/tmp/a", "x"), ("rel", "x"), ("/tmp/b", "x")])
        .await;
    check_eq!(
        super::kinds(&results),
        [Some(gone), Some(ErrorKind::InvalidPath), Some(gone)]
    );
    Ok(())
}

async fn killing_twice_is_a_success(cx: Cx) -> CaseResult {
    cx.sandbox.kill().await?;
    cx.sandbox.kill().await?;
    // The provider's own, too: the handle remembers nothing there.
    cx.sandbox.backend().kill().await?;
    Ok(())
}

async fn killing_ten_times_at_once_is_a_success(cx: Cx) -> CaseResult {
    for result in join_all((0..10).map(|_| cx.sandbox.backend().kill())).await {
        result?;
    }
    Ok(())
}

async fn killing_what_another_handle_killed_is_a_success(cx: Cx) -> CaseResult {
    let other = cx.client.connect(cx.sandbox.id()).await?;
    other.kill().await?;
    cx.sandbox.kill().await?;
    Ok(())
}

async fn a_sandbox_killed_behind_ones_back_is_gone(cx: Cx) -> CaseResult {
    let other = cx.client.connect(cx.sandbox.id()).await?;
    cx.sandbox.kill().await?;
    let start = Instant::now();
    refused(other.execute("echo hi").await, ErrorKind::SandboxGone)?;
    refused(other.upload("/tmp/f", "x").await, ErrorKind::SandboxGone)?;
    refused(other.ls("/tmp").await, ErrorKind::SandboxGone)?;
    check!(
        start.elapsed() < Duration::from_secs(15),
        "it took {:?}",
        start.elapsed()
    );
    Ok(())
}

/// What no command of these takes, and what a slow machine needs at most.
const LONG: Duration = Duration::from_mins(4);

async fn killing_ends_a_running_command(cx: Cx) -> CaseResult {
    let start = Instant::now();
    let killer = async {
        while !cx.exists("begun").await? {}
        // What it printed may take a while.
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok::<_, Failure>(cx.sandbox.backend().kill().await?)
    };
    let text = "echo before; : >begun; sleep 600; echo after";
    let (run, killed) = tokio::join!(cx.sandbox.execute(cx.command(text).timeout(LONG)), killer);
    killed?;
    check!(start.elapsed() < LONG / 2, "it took {:?}", start.elapsed());
    match run {
        Ok(r) => {
            check!(
                matches!(r.status, Status::Lost(_)),
                "the sandbox died, and the command is {}",
                r.status
            );
            check!(r.output().contains("before"), "the output is lost: {r:?}");
        }
        Err(e) => {
            return Err(Failure::Wrong(format!(
                "it had started, so this is no error: {e:?}"
            )));
        }
    }
    Ok(())
}

async fn killing_is_fast(cx: Cx) -> CaseResult {
    // A machine that has much to do can hold one up for that long, but not each.
    let mut fastest = Duration::MAX;
    for sandbox in [cx.another().await?, cx.another().await?, cx.sandbox] {
        let start = Instant::now();
        sandbox.kill().await?;
        fastest = fastest.min(start.elapsed());
    }
    check!(fastest < Duration::from_secs(5), "it took {fastest:?}");
    Ok(())
}

async fn connecting_reaches_the_same_sandbox(cx: Cx) -> CaseResult {
    cx.put([("f", b"here")]).await?;
    let other = cx.client.connect(cx.sandbox.id()).await?;
    check_eq!(other.id(), cx.sandbox.id());
    check_eq!(
        other.download(cx.path("f")).await?.to_vec(),
        b"here".to_vec()
    );
    other.write(cx.path("g"), "there").await?;
    check_eq!(cx.get("g").await?, b"there".to_vec());
    check_eq!(
        other.execute("pwd").await?.stdout,
        cx.raw("pwd").await?.stdout
    );
    check_eq!(
        other.execute("id -u").await?.stdout,
        cx.raw("id -u").await?.stdout
    );
    check_eq!(other.capabilities(), cx.caps());
    Ok(())
}

async fn connecting_to_an_unknown_id_is_gone(cx: Cx) -> CaseResult {
    for id in ["no-such-sandbox", "", "../x", "a b", "é\n"] {
        refused(
            cx.client.connect(&SandboxId::new(id)).await,
            ErrorKind::SandboxGone,
        )?;
    }
    Ok(())
}

async fn connecting_to_a_killed_sandbox_is_gone(cx: Cx) -> CaseResult {
    cx.sandbox.kill().await?;
    refused(
        cx.client.connect(cx.sandbox.id()).await,
        ErrorKind::SandboxGone,
    )?;
    Ok(())
}

async fn a_reference_survives_json(cx: Cx) -> CaseResult {
    cx.put([("f", b"here")]).await?;
    let json = serde_json::to_string(&cx.sandbox.reference())
        .map_err(|e| Failure::Wrong(e.to_string()))?;
    let back: SandboxRef =
        serde_json::from_str(&json).map_err(|e| Failure::Wrong(e.to_string()))?;
    check_eq!(back, cx.sandbox.reference());
    let again = cx.client.connect_ref(&back).await?;
    check_eq!(
        again.download(cx.path("f")).await?.to_vec(),
        b"here".to_vec()
    );
    Ok(())
}

async fn a_reference_of_another_backend_is_refused(cx: Cx) -> CaseResult {
    let mut reference = cx.sandbox.reference();
    "otherbackend://host".clone_into(&mut reference.url);
    refused(cx.client.connect_ref(&reference).await, ErrorKind::Config)?;
    Ok(())
}

async fn the_list_has_the_living(cx: Cx) -> CaseResult {
    let all = cx.client.list(&Filter::all()).await?;
    let mine = all.iter().find(|info| info.id == *cx.sandbox.id());
    check_eq!(mine.map(|info| info.state), Some(SandboxState::Running));
    Ok(())
}

async fn the_list_can_be_filtered(cx: Cx) -> CaseResult {
    let tag = format!("t{}", cx.sandbox.id());
    let made = cx
        .client
        .create(cx.spec.clone().label("kit", &tag).label("other", "1"))
        .await?;
    let ids = |filter: Filter| {
        let client = cx.client.clone();
        async move {
            let list = client.list(&filter).await?;
            Ok::<_, Failure>(list.into_iter().map(|i| i.id).collect::<Vec<_>>())
        }
    };
    check_eq!(
        ids(Filter::all().label("kit", &tag)).await?,
        vec![made.id().clone()]
    );
    check_eq!(
        ids(Filter::all().label("kit", &tag).label("other", "1"))
            .await?
            .len(),
        1
    );
    check_eq!(
        ids(Filter::all().label("kit", &tag).label("other", "2"))
            .await?
            .len(),
        0
    );
    check_eq!(
        ids(Filter::all().label("kit", "no-such-value"))
            .await?
            .len(),
        0
    );
    made.kill().await?;
    Ok(())
}

async fn the_list_has_no_killed_one(cx: Cx) -> CaseResult {
    cx.sandbox.kill().await?;
    let all = cx.client.list(&Filter::all()).await?;
    check!(
        all.iter().all(|info| info.id != *cx.sandbox.id()),
        "a killed sandbox is in the list"
    );
    Ok(())
}

async fn a_name_gives_one_sandbox_or_is_refused(cx: Cx) -> CaseResult {
    let name = format!("kit-{}", cx.sandbox.id());
    let first = match cx.client.get_or_create(&name, cx.spec.clone()).await {
        Err(e) if e.kind() == ErrorKind::Unsupported => return Ok(()),
        first => first?,
    };
    let calls = (0..8).map(|_| cx.client.get_or_create(&name, cx.spec.clone()));
    for sandbox in join_all(calls).await {
        check_eq!(sandbox?.id(), first.id(), "two sandboxes of one name");
    }
    check_eq!(
        first.execute("echo ok").await?.stdout,
        "ok\n",
        "a dropped handle killed it"
    );
    let id = first.id().clone();
    first.kill().await?;
    let next = cx.client.get_or_create(&name, cx.spec.clone()).await?;
    check!(*next.id() != id, "the killed one came back");
    next.kill().await?;
    Ok(())
}

async fn a_bad_name_is_refused(cx: Cx) -> CaseResult {
    for name in ["", "a\nb", &"x".repeat(129)] {
        let call = cx.client.get_or_create(name, cx.spec.clone());
        refused(call.await, ErrorKind::InvalidArgument)?;
    }
    Ok(())
}

async fn many_sandboxes_live_side_by_side(cx: Cx) -> CaseResult {
    let made = join_all((0..6).map(|_| cx.another())).await;
    let made: Vec<_> = made.into_iter().collect::<sandbox_core::Result<_>>()?;
    let runs = made.iter().enumerate().map(|(i, s)| async move {
        s.write("/tmp/kit-own", format!("{i}")).await?;
        let r = s.execute("sleep 0.2; cat /tmp/kit-own").await?;
        check_eq!(r.stdout.to_text(), i.to_string());
        Ok(())
    });
    for result in join_all(runs).await {
        result?;
    }
    for sandbox in &made {
        sandbox.kill().await?;
    }
    Ok(())
}
