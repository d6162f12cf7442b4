//! Many and much, and still alive.

use futures_util::future::join_all;
use sandbox_core::{GrepOptions, Status};

use super::{lines, random_bytes};
use crate::{CaseResult, Cx};

cases! { "limits":
    a_hundred_commands_in_a_row_all_run;
    file_operations_at_once_do_not_mix minimal;
    a_deep_directory_works;
    failing_starts_use_nothing_up;
    commands_and_files_at_once_do_not_mix;
}

async fn a_hundred_commands_in_a_row_all_run(cx: Cx) -> CaseResult {
    for i in 0..100 {
        let r = cx.raw(&format!("echo {i}; exit {}", i % 7)).await?;
        check_eq!(
            (r.stdout.to_text(), r.status),
            (format!("{i}\n"), Status::Exited(i % 7))
        );
    }
    Ok(())
}

async fn file_operations_at_once_do_not_mix(cx: Cx) -> CaseResult {
    let calls = (0..20).map(|i| {
        let cx = &cx;
        async move {
            let (path, text) = (cx.path(&format!("d/{i}")), format!("text {i}\n"));
            cx.sandbox.write(&path, text.clone()).await?;
            cx.sandbox.edit(&path, "text", "edited", false).await?;
            check_eq!(
                String::from_utf8_lossy(&cx.sandbox.download(&path).await?),
                format!("edited {i}\n")
            );
            Ok(())
        }
    });
    for result in join_all(calls).await {
        result?;
    }
    check_eq!(cx.sandbox.ls(cx.path("d")).await?.entries.len(), 20);
    Ok(())
}

async fn a_deep_directory_works(cx: Cx) -> CaseResult {
    let deep = lines(100, |i| format!("d{i}/")).replace('\n', "") + "f";
    cx.sandbox.write(cx.path(&deep), "needle").await?;
    check_eq!(
        cx.sandbox.download(cx.path(&deep)).await?.to_vec(),
        b"needle".to_vec()
    );
    check_eq!(cx.sandbox.glob("f", &cx.dir).await?.paths.len(), 1);
    check_eq!(
        cx.sandbox
            .grep("needle", &cx.dir, GrepOptions::default())
            .await?
            .matches
            .len(),
        1
    );
    cx.sandbox.delete(cx.path("d0")).await?;
    check_eq!(cx.ok("ls -A").await?, "");
    Ok(())
}

async fn failing_starts_use_nothing_up(cx: Cx) -> CaseResult {
    for i in 0..40 {
        let call = cx
            .sandbox
            .execute(cx.command("echo x").cwd(cx.path("none")));
        check!(call.await.is_err(), "run {i}");
        check_eq!(cx.raw("nosuchcmd_zz").await?.status, Status::Exited(127));
    }
    check_eq!(cx.raw("echo ok").await?.stdout, "ok\n");
    Ok(())
}

async fn commands_and_files_at_once_do_not_mix(cx: Cx) -> CaseResult {
    let calls = (0..16_u64).map(|i| {
        let cx = &cx;
        async move {
            let bytes = random_bytes(i, 50_000);
            let name = format!("f{i}");
            cx.put([(&*name, &bytes)]).await?;
            let r = cx.sh(&format!("cat f{i}; echo {i} >&2")).await?;
            check!(r.output().len() >= 50_000 || !r.truncated(), "{i}");
            let out = r.stdout.bytes();
            check!(out.starts_with(&bytes), "{i}: the output is another's");
            check!(cx.get(&name).await? == bytes, "{i}: the file is another's");
            Ok(())
        }
    });
    for result in join_all(calls).await {
        result?;
    }
    Ok(())
}
