//! Removing files and trees.

use sandbox_core::ErrorKind;

use super::needs::{FIFOS, FILE_OWNERS};
use crate::check::refused;
use crate::{CaseResult, Cx};

cases! { "delete":
    a_file_is_removed minimal;
    a_tree_is_removed minimal;
    an_empty_directory_is_removed minimal;
    a_missing_path_is_not_found minimal;
    a_dangling_link_is_removed minimal;
    of_a_link_only_the_link_is_removed minimal;
    a_trailing_slash_reaches_no_target minimal;
    links_inside_a_tree_are_not_followed minimal;
    the_root_is_refused minimal;
    relative_and_empty_paths_are_refused minimal;
    a_read_only_file_is_removed minimal;
    other_names_stay minimal;
    a_special_file_is_removed needs(FIFOS);
    rights_are_those_of_the_user needs(FILE_OWNERS);
    below_a_file_nothing_is_found minimal;
}

async fn a_file_is_removed(cx: Cx) -> CaseResult {
    cx.put([("f", b"x"), ("g", b"y")]).await?;
    cx.sandbox.delete(cx.path("f")).await?;
    check_eq!(cx.ok("ls -A").await?, "g\n");
    Ok(())
}

async fn a_tree_is_removed(cx: Cx) -> CaseResult {
    cx.ok("mkdir -p d/e/.h; : >d/e/.h/f; : >d/.x; : >'d/a b'; mkdir keep")
        .await?;
    cx.sandbox.delete(cx.path("d")).await?;
    check_eq!(cx.ok("ls -A").await?, "keep\n");
    Ok(())
}

async fn an_empty_directory_is_removed(cx: Cx) -> CaseResult {
    cx.ok("mkdir d").await?;
    cx.sandbox.delete(cx.path("d/")).await?;
    check!(!cx.exists("d").await?, "it is still there");
    Ok(())
}

async fn a_missing_path_is_not_found(cx: Cx) -> CaseResult {
    for name in ["none", "none/deeper"] {
        refused(cx.sandbox.delete(cx.path(name)).await, ErrorKind::NotFound)?;
    }
    cx.put([("f", b"x")]).await?;
    cx.sandbox.delete(cx.path("f")).await?;
    refused(cx.sandbox.delete(cx.path("f")).await, ErrorKind::NotFound)?;
    Ok(())
}

async fn a_dangling_link_is_removed(cx: Cx) -> CaseResult {
    cx.ok("ln -s nowhere l; ln -s self self").await?;
    cx.sandbox.delete(cx.path("l")).await?;
    cx.sandbox.delete(cx.path("self")).await?;
    check_eq!(cx.ok("ls -A").await?, "");
    Ok(())
}

async fn of_a_link_only_the_link_is_removed(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; echo x >d/f; ln -s d l; ln -s d/f m")
        .await?;
    cx.sandbox.delete(cx.path("l")).await?;
    cx.sandbox.delete(cx.path("m")).await?;
    check_eq!(cx.ok("ls -A; cat d/f").await?, "d\nx\n");
    Ok(())
}

async fn a_trailing_slash_reaches_no_target(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; echo x >d/f; ln -s d l").await?;
    cx.sandbox.delete(cx.path("l/")).await?;
    check_eq!(cx.ok("ls -A; cat d/f").await?, "d\nx\n");
    cx.ok("ln -s d l").await?;
    cx.sandbox.delete(cx.path("l/.")).await?;
    check_eq!(cx.ok("ls -A; cat d/f").await?, "d\nx\n");
    Ok(())
}

async fn links_inside_a_tree_are_not_followed(cx: Cx) -> CaseResult {
    cx.ok("mkdir d keep; echo x >keep/k; ln -s ../keep d/out; ln -s ../keep/k d/file")
        .await?;
    cx.sandbox.delete(cx.path("d")).await?;
    check_eq!(cx.ok("ls -A; cat keep/k").await?, "keep\nx\n");
    Ok(())
}

async fn the_root_is_refused(cx: Cx) -> CaseResult {
    for path in ["/", "//", "/.", "/./", "///."] {
        refused(cx.sandbox.delete(path).await, ErrorKind::InvalidPath)?;
    }
    check_eq!(cx.sh("echo alive").await?.stdout, "alive\n");
    Ok(())
}

async fn relative_and_empty_paths_are_refused(cx: Cx) -> CaseResult {
    cx.put([("f", b"x")]).await?;
    for path in ["", ".", "..", "f", "./f", "*"] {
        refused(cx.sandbox.delete(path).await, ErrorKind::InvalidPath)?;
    }
    refused(
        cx.sandbox.delete(cx.path("..")).await,
        ErrorKind::InvalidPath,
    )?;
    check_eq!(cx.ok("ls -A").await?, "f\n");
    Ok(())
}

async fn a_read_only_file_is_removed(cx: Cx) -> CaseResult {
    cx.ok("echo x >f; chmod 400 f").await?;
    cx.sandbox.delete(cx.path("f")).await?;
    check!(!cx.exists("f").await?, "it is still there");
    Ok(())
}

async fn other_names_stay(cx: Cx) -> CaseResult {
    let names = ["*", "-rf", "f*", "a b", "$HOME", "~"];
    for name in names {
        cx.sandbox.upload(cx.path(name), "x").await?;
    }
    cx.put([("f1", b""), ("a", b""), ("b", b"")]).await?;
    for name in names {
        cx.sandbox.delete(cx.path(name)).await?;
    }
    check_eq!(cx.ok("ls -A").await?, "a\nb\nf1\n");
    Ok(())
}

async fn a_special_file_is_removed(cx: Cx) -> CaseResult {
    cx.ok("mkfifo p").await?;
    cx.sandbox.delete(cx.path("p")).await?;
    check_eq!(cx.ok("ls -A").await?, "");
    Ok(())
}

async fn rights_are_those_of_the_user(cx: Cx) -> CaseResult {
    cx.ok("mkdir -p d/e; : >d/f; : >d/e/g; chmod 555 d").await?;
    let mut calls = Vec::new();
    for name in ["d/f", "d"] {
        calls.push(cx.sandbox.delete(cx.path(name)).await);
    }
    check_eq!(
        cx.ok("chmod 755 d; ls -A . d").await?.contains('f'),
        true,
        "the file"
    );
    for call in calls {
        refused(call, ErrorKind::PermissionDenied)?;
    }
    Ok(())
}

async fn below_a_file_nothing_is_found(cx: Cx) -> CaseResult {
    cx.put([("f", b"x")]).await?;
    let kind = cx
        .sandbox
        .delete(cx.path("f/x"))
        .await
        .err()
        .map(|e| e.kind());
    check!(
        matches!(kind, Some(ErrorKind::NotFound | ErrorKind::NotADirectory)),
        "{kind:?}"
    );
    check_eq!(cx.get("f").await?, b"x".to_vec());
    Ok(())
}
