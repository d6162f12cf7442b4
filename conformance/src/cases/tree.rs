//! Whole directories, in and out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sandbox_core::ErrorKind;

use super::needs::FIFOS;
use super::random_bytes;
use crate::check::refused;
use crate::{CaseResult, Cx, Failure};

cases! { "tree":
    a_tree_arrives_in_the_sandbox minimal;
    a_tree_arrives_on_this_side minimal;
    there_and_back_is_the_same_tree minimal;
    uploading_twice_is_like_once minimal;
    downloading_twice_is_like_once minimal;
    uploading_keeps_what_else_is_there minimal;
    an_empty_tree_makes_a_directory minimal;
    many_small_files_arrive;
    the_report_counts_files_and_bytes minimal;
    uploading_leaves_out_links_that_lead_out minimal;
    downloading_makes_no_link_on_this_side minimal;
    downloading_leaves_special_files_out needs(FIFOS);
    a_missing_directory_is_not_found minimal;
    a_file_is_no_directory minimal;
    a_missing_local_directory_is_an_error minimal;
    hostile_names_stay_inside minimal;
}

/// Every file below `root` with its content; directories end in `/`.
fn files_of(root: &Path) -> std::io::Result<BTreeMap<String, Vec<u8>>> {
    fn walk(dir: &Path, prefix: &str, all: &mut BTreeMap<String, Vec<u8>>) -> std::io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                walk(&entry.path(), &format!("{name}/"), all)?;
                all.insert(format!("{name}/"), Vec::new());
            } else if kind.is_file() {
                all.insert(name, fs::read(entry.path())?);
            } else {
                all.insert(format!("{name} (special)"), Vec::new());
            }
        }
        Ok(())
    }
    let mut all = BTreeMap::new();
    walk(root, "", &mut all)?;
    Ok(all)
}

/// A small tree of everything, on this side.
fn sample() -> std::io::Result<tempfile::TempDir> {
    let dir = tempfile::tempdir()?;
    let root = dir.path();
    fs::create_dir_all(root.join("a/b/c"))?;
    fs::create_dir(root.join("void"))?;
    fs::write(root.join("top.txt"), "top\n")?;
    fs::write(root.join("a/one"), "")?;
    fs::write(root.join("a/b/bytes"), random_bytes(11, 70_000))?;
    fs::write(root.join("a/b/c/.hidden"), "hidden")?;
    fs::write(root.join("a/sp ace 'q' $x é"), "odd")?;
    Ok(dir)
}

async fn a_tree_arrives_in_the_sandbox(cx: Cx) -> CaseResult {
    let local = sample()?;
    cx.sandbox
        .upload_dir(local.path(), cx.path("new/t"))
        .await?;
    check_eq!(
        cx.ok("cat new/t/top.txt new/t/a/b/c/.hidden").await?,
        "top\nhidden"
    );
    check_eq!(
        cx.ok("wc -c <new/t/a/b/bytes; wc -c <new/t/a/one")
            .await?
            .split_whitespace()
            .collect::<Vec<_>>(),
        ["70000", "0"]
    );
    check_eq!(
        cx.ok("cat \"new/t/a/sp ace 'q' \\$x é\"; test -d new/t/void && echo dir")
            .await?,
        "odddir\n"
    );
    Ok(())
}

async fn a_tree_arrives_on_this_side(cx: Cx) -> CaseResult {
    cx.ok("mkdir -p t/a/b t/void; printf x >t/a/b/f; : >t/e; printf y >t/.h")
        .await?;
    let local = tempfile::tempdir()?;
    cx.sandbox
        .download_dir(cx.path("t"), local.path().join("new"))
        .await?;
    let got = files_of(&local.path().join("new"))?;
    let right = ["", "a/b/f", ".h", "e"];
    for name in &right[1..] {
        check!(
            got.contains_key(*name),
            "{name} is missing of {:?}",
            got.keys()
        );
    }
    check_eq!(
        (got["a/b/f"].as_slice(), got[".h"].as_slice()),
        (&b"x"[..], &b"y"[..])
    );
    check!(got.contains_key("void/"), "an empty directory is missing");
    Ok(())
}

async fn there_and_back_is_the_same_tree(cx: Cx) -> CaseResult {
    let (local, back) = (sample()?, tempfile::tempdir()?);
    cx.sandbox.upload_dir(local.path(), cx.path("t")).await?;
    cx.sandbox.download_dir(cx.path("t"), back.path()).await?;
    check_eq!(files_of(back.path())?, files_of(local.path())?);
    Ok(())
}

async fn uploading_twice_is_like_once(cx: Cx) -> CaseResult {
    let local = sample()?;
    cx.sandbox.upload_dir(local.path(), cx.path("t")).await?;
    let once = cx.ok("find t | sort").await?;
    cx.sandbox.upload_dir(local.path(), cx.path("t")).await?;
    check_eq!(cx.ok("find t | sort").await?, once);
    Ok(())
}

async fn downloading_twice_is_like_once(cx: Cx) -> CaseResult {
    cx.ok("mkdir -p t/d; printf x >t/d/f").await?;
    let local = tempfile::tempdir()?;
    for _ in 0..2 {
        cx.sandbox.download_dir(cx.path("t"), local.path()).await?;
        check_eq!(
            files_of(local.path())?.into_keys().collect::<Vec<_>>(),
            ["d/", "d/f"]
        );
    }
    Ok(())
}

async fn uploading_keeps_what_else_is_there(cx: Cx) -> CaseResult {
    cx.ok("mkdir -p t/a; echo keep >t/keep; echo keep >t/a/keep; chmod 700 t/a")
        .await?;
    cx.sandbox
        .upload_dir(sample()?.path(), cx.path("t"))
        .await?;
    check_eq!(
        cx.ok("cat t/keep t/a/keep t/top.txt").await?,
        "keep\nkeep\ntop\n"
    );
    Ok(())
}

async fn an_empty_tree_makes_a_directory(cx: Cx) -> CaseResult {
    let local = tempfile::tempdir()?;
    let report = cx
        .sandbox
        .upload_dir(local.path(), cx.path("new/t"))
        .await?;
    check_eq!(report.files, 0);
    check_eq!(
        cx.ok("test -d new/t && ls -A new/t && echo dir").await?,
        "dir\n"
    );
    let report = cx
        .sandbox
        .download_dir(cx.path("new/t"), local.path().join("back"))
        .await?;
    check_eq!(report.files, 0);
    check!(
        local.path().join("back").is_dir(),
        "no directory on this side"
    );
    Ok(())
}

async fn many_small_files_arrive(cx: Cx) -> CaseResult {
    let (local, back) = (tempfile::tempdir()?, tempfile::tempdir()?);
    for i in 0..300 {
        fs::write(local.path().join(format!("f{i}")), format!("{i}"))?;
    }
    cx.sandbox.upload_dir(local.path(), cx.path("t")).await?;
    check_eq!(cx.ok("ls t | wc -l").await?.trim(), "300");
    cx.sandbox.download_dir(cx.path("t"), back.path()).await?;
    check_eq!(files_of(back.path())?, files_of(local.path())?);
    Ok(())
}

async fn the_report_counts_files_and_bytes(cx: Cx) -> CaseResult {
    let (local, back) = (sample()?, tempfile::tempdir()?);
    let bytes: usize = files_of(local.path())?.values().map(Vec::len).sum();
    let up = cx.sandbox.upload_dir(local.path(), cx.path("t")).await?;
    let down = cx.sandbox.download_dir(cx.path("t"), back.path()).await?;
    check_eq!(
        (up.files, up.bytes, up.skipped),
        (5, bytes as u64, Vec::<String>::new())
    );
    check_eq!(
        (down.files, down.bytes, down.skipped),
        (5, bytes as u64, Vec::<String>::new())
    );
    Ok(())
}

async fn uploading_leaves_out_links_that_lead_out(cx: Cx) -> CaseResult {
    let outside = tempfile::tempdir()?;
    fs::write(outside.path().join("secret"), "s3cr3t")?;
    let local = sample()?;
    std::os::unix::fs::symlink(outside.path().join("secret"), local.path().join("out"))?;
    std::os::unix::fs::symlink(outside.path(), local.path().join("outdir"))?;
    let report = cx.sandbox.upload_dir(local.path(), cx.path("t")).await?;
    check!(
        report.skipped.iter().any(|s| s.contains("out")),
        "not told: {:?}",
        report.skipped
    );
    check_eq!(
        cx.sh("cat t/out t/outdir/secret 2>/dev/null").await?.stdout,
        ""
    );
    check_eq!(cx.ok("cat t/top.txt").await?, "top\n");
    Ok(())
}

async fn downloading_makes_no_link_on_this_side(cx: Cx) -> CaseResult {
    cx.ok("mkdir t; printf x >t/f; ln -s /etc/passwd t/abs; ln -s ../.. t/up; ln -s f t/in")
        .await?;
    let local = tempfile::tempdir()?;
    let report = cx.sandbox.download_dir(cx.path("t"), local.path()).await?;
    let got = files_of(local.path())?;
    check!(
        got.keys().all(|k| !k.contains("special")),
        "{:?}",
        got.keys()
    );
    check!(
        !got.contains_key("abs") && !got.contains_key("up"),
        "{:?}",
        got.keys()
    );
    check!(report.skipped.len() >= 2, "not told: {:?}", report.skipped);
    check_eq!(got["f"], b"x".to_vec());
    Ok(())
}

async fn downloading_leaves_special_files_out(cx: Cx) -> CaseResult {
    cx.ok("mkdir t; printf x >t/f; mkfifo t/p").await?;
    let local = tempfile::tempdir()?;
    let report = cx.sandbox.download_dir(cx.path("t"), local.path()).await?;
    check_eq!(
        files_of(local.path())?.into_keys().collect::<Vec<_>>(),
        ["f"]
    );
    check_eq!(report.skipped.len(), 1);
    Ok(())
}

async fn a_missing_directory_is_not_found(cx: Cx) -> CaseResult {
    let local = tempfile::tempdir()?;
    let call = cx
        .sandbox
        .download_dir(cx.path("none"), local.path().join("x"));
    refused(call.await, ErrorKind::NotFound)?;
    Ok(())
}

async fn a_file_is_no_directory(cx: Cx) -> CaseResult {
    cx.put([("f", b"keep")]).await?;
    let local = tempfile::tempdir()?;
    let down = cx.sandbox.download_dir(cx.path("f"), local.path()).await;
    refused(down, ErrorKind::NotADirectory)?;
    let up = cx.sandbox.upload_dir(sample()?.path(), cx.path("f")).await;
    refused(up, ErrorKind::NotADirectory)?;
    check_eq!(cx.get("f").await?, b"keep".to_vec());
    Ok(())
}

async fn a_missing_local_directory_is_an_error(cx: Cx) -> CaseResult {
    let local = tempfile::tempdir()?;
    let call = cx
        .sandbox
        .upload_dir(local.path().join("none"), cx.path("t"));
    check!(call.await.is_err(), "nothing was uploaded, with success");
    Ok(())
}

async fn hostile_names_stay_inside(cx: Cx) -> CaseResult {
    let names = ["...", "..x", "-rf", "$HOME", "a;b", "C:", "con", "%2e%2e"];
    let outer = tempfile::tempdir()?;
    let local = outer.path().join("in");
    for name in names {
        cx.sandbox
            .upload(cx.path(&format!("t/{name}/..f")), "x")
            .await?;
    }
    cx.sandbox.download_dir(cx.path("t"), &local).await?;
    check_eq!(
        fs::read_dir(outer.path())?.count(),
        1,
        "something is beside the directory"
    );
    let got = files_of(&local)?;
    for name in names {
        if !got.contains_key(&format!("{name}/..f")) {
            return Err(Failure::Wrong(format!(
                "{name} is missing of {:?}",
                got.keys()
            )));
        }
    }
    Ok(())
}
