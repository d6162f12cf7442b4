//! What an error tells.

use std::error::Error as _;

use sandbox_core::{Error, ErrorKind, GrepOptions, Operation, ReadOptions, Retry};

use crate::check::refused;
use crate::{CaseResult, Cx};

cases! { "errors":
    an_error_names_operation_backend_and_sandbox minimal;
    an_error_names_the_path minimal;
    an_error_is_one_line minimal;
    the_same_cause_has_the_same_kind_in_every_operation minimal;
    a_loop_of_links_has_one_kind_in_every_operation minimal;
    what_will_not_change_is_not_to_be_retried minimal;
    a_batch_error_is_as_good_as_a_single_one minimal;
}

async fn missing(cx: &Cx) -> Result<Vec<(Operation, Error)>, crate::Failure> {
    let path = cx.path("none\n'x'");
    let s = &cx.sandbox;
    let mut all = Vec::new();
    let mut add = |operation, result: sandbox_core::Result<()>| -> CaseResult {
        all.push((operation, refused(result, ErrorKind::NotFound)?));
        Ok(())
    };
    add(
        Operation::DownloadFiles,
        s.download(&path).await.map(|_| ()),
    )?;
    add(Operation::Ls, s.ls(&path).await.map(|_| ()))?;
    add(
        Operation::Read,
        s.read(&path, ReadOptions::default()).await.map(|_| ()),
    )?;
    add(
        Operation::Edit,
        s.edit(&path, "a", "b", false).await.map(|_| ()),
    )?;
    add(Operation::Glob, s.glob("*", &path).await.map(|_| ()))?;
    add(
        Operation::Grep,
        s.grep("x", &path, GrepOptions::default()).await.map(|_| ()),
    )?;
    add(Operation::Delete, s.delete(&path).await)?;
    Ok(all)
}

async fn an_error_names_operation_backend_and_sandbox(cx: Cx) -> CaseResult {
    for (operation, e) in missing(&cx).await? {
        check_eq!(e.operation(), Some(operation));
        check_eq!(
            e.context("backend"),
            Some(cx.sandbox.backend_name()),
            "{operation}"
        );
        check_eq!(
            e.context("sandbox"),
            Some(cx.sandbox.id().as_str()),
            "{operation}"
        );
    }
    Ok(())
}

async fn an_error_names_the_path(cx: Cx) -> CaseResult {
    for (operation, e) in missing(&cx).await? {
        check_eq!(
            e.context("path"),
            Some(cx.path("none\n'x'").as_str()),
            "{operation}"
        );
    }
    Ok(())
}

async fn an_error_is_one_line(cx: Cx) -> CaseResult {
    for (operation, e) in missing(&cx).await? {
        let text = e.to_string();
        check!(
            !text.contains('\n') && text.len() < 1000,
            "{operation}: {text:?}"
        );
        check!(!text.ends_with('.'), "{operation}: {text:?}");
        check!(
            e.source().is_none_or(|s| s.to_string() != text),
            "{operation}: said twice"
        );
    }
    Ok(())
}

async fn the_same_cause_has_the_same_kind_in_every_operation(cx: Cx) -> CaseResult {
    check_eq!(missing(&cx).await?.len(), 7);
    cx.ok("mkdir d").await?;
    let d = cx.path("d");
    let s = &cx.sandbox;
    refused(s.download(&d).await, ErrorKind::IsADirectory)?;
    refused(s.upload(&d, "x").await, ErrorKind::IsADirectory)?;
    refused(
        s.read(&d, ReadOptions::default()).await,
        ErrorKind::IsADirectory,
    )?;
    refused(s.write(&d, "x").await, ErrorKind::IsADirectory)?;
    refused(s.edit(&d, "a", "b", false).await, ErrorKind::IsADirectory)?;
    Ok(())
}

async fn a_loop_of_links_has_one_kind_in_every_operation(cx: Cx) -> CaseResult {
    cx.ok("ln -s a b; ln -s b a; ln -s self self").await?;
    for name in ["a", "self"] {
        let (s, p) = (&cx.sandbox, cx.path(name));
        check!(s.upload(&p, "x").await.is_err(), "a loop was followed");
        check!(s.download(&p).await.is_err(), "a loop was followed");
        for e in [
            s.ls(&p).await.err(),
            s.read(&p, ReadOptions::default()).await.err(),
            s.write(&p, "x").await.err(),
            s.edit(&p, "x", "y", false).await.err(),
            s.glob("*", &p).await.err(),
            s.grep("x", &p, GrepOptions::default()).await.err(),
        ] {
            let Some(e) = e else {
                return Err(crate::Failure::Wrong("a loop was followed".to_owned()));
            };
            check_eq!(e.kind(), ErrorKind::InvalidPath, "{e}");
        }
    }
    cx.sandbox.delete(cx.path("self")).await?;
    check_eq!(cx.ok("ls -A").await?, "a\nb\n");
    Ok(())
}

async fn what_will_not_change_is_not_to_be_retried(cx: Cx) -> CaseResult {
    for (operation, e) in missing(&cx).await? {
        check_eq!(e.retry_advice(), Retry::Never, "{operation}");
    }
    Ok(())
}

async fn a_batch_error_is_as_good_as_a_single_one(cx: Cx) -> CaseResult {
    let results = cx
        .sandbox
        .download_files([cx.path("none"), "rel".to_owned()])
        .await;
    for (result, path) in results.into_iter().zip([cx.path("none"), "rel".to_owned()]) {
        let Err(e) = result else {
            return Err(crate::Failure::Wrong(format!("{path} is there")));
        };
        check_eq!(e.operation(), Some(Operation::DownloadFiles));
        check_eq!(e.context("path"), Some(path.as_str()));
        check_eq!(e.context("sandbox"), Some(cx.sandbox.id().as_str()));
    }
    Ok(())
}
