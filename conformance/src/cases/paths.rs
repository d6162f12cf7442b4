//! Any name is only a name, in every operation; what is no path is refused before any call.

use std::fmt::Debug;

use sandbox_core::{Command, ErrorKind, GrepOptions, ReadOptions, Result};

use super::needs::CONTROL_CHARACTERS;
use crate::check::refused;
use crate::{CaseResult, Cx};

cases! { "paths":
    any_name_can_be_uploaded_and_downloaded minimal;
    any_name_can_be_written_and_read minimal;
    any_name_can_be_edited minimal;
    any_name_is_listed_as_it_is minimal;
    any_name_is_found_by_glob minimal;
    any_name_is_found_by_grep minimal;
    any_name_can_be_deleted_alone minimal;
    any_name_can_be_a_directory minimal;
    any_name_can_be_a_cwd minimal;
    any_name_travels_in_a_tree minimal;
    control_characters_travel_through_every_operation needs(CONTROL_CHARACTERS);
    what_is_no_path_is_refused_by_every_operation minimal;
    what_is_no_path_is_refused_as_cwd minimal;
    spellings_of_one_path_are_one minimal;
    a_name_of_255_bytes_works minimal;
    a_name_too_long_for_the_system_is_an_error minimal;
}

/// Names that shells, templates, URLs and option parsers stumble over. With `PWNED` for the path
/// that no operation may make.
const NAMES: &[&str] = &[
    "x'; touch PWNED; '",
    "$(touch PWNED)",
    "`touch PWNED`",
    "a;b&c|d",
    "a\"b",
    "it's",
    "a\\b",
    "back\\",
    "a b",
    " lead",
    "trail ",
    "*",
    "?",
    "[ab]",
    "{a,b}",
    "{path}.txt",
    "!x",
    "~",
    "#x",
    "a$HOME.txt",
    "$undefined",
    "%s%n",
    "per%41cent",
    "a%2Fb",
    "plus+sign",
    "q?x=1&y=2#z",
    "-n",
    "-rf",
    "--help",
    "-",
    "=x",
    "a:12:b",
    "...",
    ".hidden",
    "é",
    "e\u{301}",
    "日本語 файл",
    "😀",
];

/// The names, slashes and the bait in place. A name can't hold the slashes of the bait's path, so
/// the bait is made in the cwd, which is the workdir: that is looked at.
fn names() -> Vec<String> {
    NAMES
        .iter()
        .map(|n| n.replace("PWNED", "kit-pwned"))
        .collect()
}

/// No bait was taken, and exactly these names are in `sub`.
async fn only(cx: &Cx, sub: &str, mut right: Vec<String>) -> CaseResult {
    let r = cx.raw("ls -A . / /tmp; ls -A \"$HOME\"").await?;
    check!(!r.output().contains("kit-pwned"), "a name was run");
    let listing = cx.sandbox.ls(cx.path(sub)).await?;
    let got: Vec<String> = listing
        .entries
        .iter()
        .filter_map(|e| Some(e.path.file_name()?.to_owned()))
        .collect();
    right.sort_unstable();
    check_eq!(got, right);
    Ok(())
}

async fn fill(cx: &Cx, sub: &str) -> CaseResult {
    fill_as(cx, |name| format!("{sub}/{name}")).await
}

/// A file for each name, and where it lies.
async fn fill_as(cx: &Cx, path: impl Fn(&str) -> String) -> CaseResult {
    let files = names()
        .into_iter()
        .map(|n| (cx.path(&path(&n)), format!("needle {n}\n")));
    for result in cx.sandbox.upload_files(files).await {
        result?;
    }
    Ok(())
}

/// The file of each name has this word and the name in it.
async fn holds(cx: &Cx, sub: &str, word: &str) -> CaseResult {
    let path = |name: &String| cx.path(&format!("{sub}/{name}"));
    let paths: Vec<String> = names().iter().map(path).collect();
    for (name, got) in names().iter().zip(cx.sandbox.download_files(&paths).await) {
        check_eq!(String::from_utf8_lossy(&got?), format!("{word} {name}\n"));
    }
    Ok(())
}

async fn any_name_can_be_uploaded_and_downloaded(cx: Cx) -> CaseResult {
    fill(&cx, "d").await?;
    holds(&cx, "d", "needle").await?;
    only(&cx, "d", names()).await
}

async fn any_name_can_be_written_and_read(cx: Cx) -> CaseResult {
    for name in names() {
        let path = cx.path(&format!("d/{name}"));
        cx.sandbox.write(&path, format!("in {name}\n")).await?;
        let page = cx.sandbox.read(&path, ReadOptions::default()).await?;
        check_eq!(page.text().map(str::to_owned), Some(format!("in {name}")));
    }
    only(&cx, "d", names()).await
}

async fn any_name_can_be_edited(cx: Cx) -> CaseResult {
    fill(&cx, "d").await?;
    for name in names() {
        let path = cx.path(&format!("d/{name}"));
        cx.sandbox.edit(&path, "needle", "pin", false).await?;
    }
    holds(&cx, "d", "pin").await?;
    only(&cx, "d", names()).await
}

async fn any_name_is_listed_as_it_is(cx: Cx) -> CaseResult {
    fill(&cx, "d").await?;
    only(&cx, "d", names()).await
}

async fn any_name_is_found_by_glob(cx: Cx) -> CaseResult {
    fill(&cx, "d").await?;
    let found = cx.sandbox.glob("*", cx.path("d")).await?;
    let got: Vec<&str> = found.paths.iter().filter_map(|p| p.file_name()).collect();
    let mut right: Vec<String> = names()
        .into_iter()
        .filter(|n| !n.starts_with('.'))
        .collect();
    right.sort_unstable();
    check_eq!(got, right);
    Ok(())
}

async fn any_name_is_found_by_grep(cx: Cx) -> CaseResult {
    fill(&cx, "d").await?;
    let found = cx
        .sandbox
        .grep("needle", cx.path("d"), GrepOptions::default())
        .await?;
    let got: Vec<(String, String)> = found
        .matches
        .iter()
        .filter_map(|m| Some((m.path.file_name()?.to_owned(), m.text.clone())))
        .collect();
    let mut right: Vec<_> = names()
        .into_iter()
        .map(|n| (n.clone(), format!("needle {n}")))
        .collect();
    right.sort_unstable();
    check_eq!(got, right);
    only(&cx, "d", names()).await
}

async fn any_name_can_be_deleted_alone(cx: Cx) -> CaseResult {
    fill(&cx, "d").await?;
    cx.put([("d/keep", b"x")]).await?;
    // One that goes with another is missing when its turn comes.
    for name in names() {
        cx.sandbox.delete(cx.path(&format!("d/{name}"))).await?;
    }
    only(&cx, "d", vec!["keep".to_owned()]).await
}

async fn any_name_can_be_a_directory(cx: Cx) -> CaseResult {
    fill_as(&cx, |name| format!("d/{name}/f")).await?;
    for name in names() {
        let path = cx.path(&format!("d/{name}"));
        check_eq!(cx.sandbox.ls(&path).await?.entries.len(), 1, "{name}");
        check_eq!(cx.sandbox.glob("f", &path).await?.paths.len(), 1, "{name}");
        let grep = cx
            .sandbox
            .grep("needle", &path, GrepOptions::default())
            .await?;
        check_eq!(grep.matches.len(), 1, "{name}");
    }
    only(&cx, "d", names()).await
}

async fn any_name_can_be_a_cwd(cx: Cx) -> CaseResult {
    fill_as(&cx, |name| format!("d/{name}/f")).await?;
    for name in names() {
        let path = cx.path(&format!("d/{name}"));
        let r = cx
            .sandbox
            .execute(Command::shell("cat f; pwd").cwd(&path))
            .await?;
        check_eq!(r.stdout.to_text(), format!("needle {name}\n{path}\n"));
    }
    only(&cx, "d", names()).await
}

async fn any_name_travels_in_a_tree(cx: Cx) -> CaseResult {
    let (local, back) = (tempfile::tempdir()?, tempfile::tempdir()?);
    for name in names() {
        std::fs::write(local.path().join(&name), &name)?;
    }
    cx.sandbox.upload_dir(local.path(), cx.path("d")).await?;
    only(&cx, "d", names()).await?;
    cx.sandbox.download_dir(cx.path("d"), back.path()).await?;
    for name in names() {
        check_eq!(std::fs::read_to_string(back.path().join(&name))?, name);
    }
    Ok(())
}

async fn control_characters_travel_through_every_operation(cx: Cx) -> CaseResult {
    let names = [
        "new\nline",
        "\n",
        "tab\tx",
        "esc\u{1b}[31m",
        "del\u{7f}",
        "cr\r",
        "zwj\u{200d}x",
        "end\n",
    ];
    for name in names {
        let path = cx.path(&format!("d/{name}"));
        cx.sandbox.write(&path, "needle\n").await?;
        cx.sandbox.edit(&path, "needle", "needle 2", false).await?;
        let page = cx.sandbox.read(&path, ReadOptions::default()).await?;
        check_eq!(page.text(), Some("needle 2"), "{name:?}");
        check_eq!(
            cx.sandbox.download(&path).await?.to_vec(),
            b"needle 2\n".to_vec(),
            "{name:?}"
        );
        cx.sandbox.upload(&path, "needle 3\n").await?;
    }
    only(&cx, "d", names.map(str::to_owned).to_vec()).await?;
    let grep = cx
        .sandbox
        .grep("needle 3", cx.path("d"), GrepOptions::default())
        .await?;
    check_eq!((grep.matches.len(), grep.gaps.len()), (names.len(), 0));
    check_eq!(
        cx.sandbox.glob("*", cx.path("d")).await?.paths.len(),
        names.len()
    );
    for name in names {
        cx.sandbox.delete(cx.path(&format!("d/{name}"))).await?;
    }
    only(&cx, "d", Vec::new()).await
}

async fn what_is_no_path_is_refused_by_every_operation(cx: Cx) -> CaseResult {
    fn no<T: Debug>(result: Result<T>) -> CaseResult {
        refused(result, ErrorKind::InvalidPath).map(|_| ())
    }
    let local = tempfile::tempdir()?;
    let long = format!("/{}", "x/".repeat(2100));
    for path in [
        "",
        "rel",
        "./rel",
        "~",
        "$HOME/x",
        "/tmp/../etc/passwd",
        "/..",
        "/a\0b",
        &long,
    ] {
        let s = &cx.sandbox;
        no(s.upload(path, "x").await)?;
        no(s.download(path).await)?;
        no(s.ls(path).await)?;
        no(s.read(path, ReadOptions::default()).await)?;
        no(s.write(path, "x").await)?;
        no(s.create_new(path, "x").await)?;
        no(s.edit(path, "a", "b", false).await)?;
        no(s.glob("*", path).await)?;
        no(s.grep("x", path, GrepOptions::default()).await)?;
        no(s.delete(path).await)?;
        no(s.upload_dir(local.path(), path).await)?;
        no(s.download_dir(path, local.path()).await)?;
        no(s.upload_from(path, &mut &b"x"[..]).await)?;
        no(s.download_to(path, &mut Vec::new()).await)?;
    }
    Ok(())
}

async fn what_is_no_path_is_refused_as_cwd(cx: Cx) -> CaseResult {
    for cwd in ["", "tmp", "../tmp", "/tmp/..", "/a\0b"] {
        let text = format!("echo x >{}", cx.path("ran"));
        let call = cx.sandbox.execute(Command::shell(text).cwd(cwd));
        refused(call.await, ErrorKind::InvalidPath)?;
    }
    check!(!cx.exists("ran").await?, "a command ran elsewhere");
    Ok(())
}

async fn spellings_of_one_path_are_one(cx: Cx) -> CaseResult {
    cx.put([("d/f", b"x")]).await?;
    for path in [
        format!("{}//d/./f", cx.dir),
        format!("{}/d/f/", cx.dir),
        format!("/{}/d/f", cx.dir),
    ] {
        check_eq!(
            cx.sandbox.download(&path).await?.to_vec(),
            b"x".to_vec(),
            "{path}"
        );
    }
    let listing = cx.sandbox.ls(format!("{}/.//d/", cx.dir)).await?;
    check_eq!(listing.entries[0].path.as_str(), cx.path("d/f"));
    Ok(())
}

async fn a_name_of_255_bytes_works(cx: Cx) -> CaseResult {
    let name = "é".repeat(127) + "x";
    cx.sandbox.write(cx.path(&name), "x").await?;
    check_eq!(
        cx.sandbox.download(cx.path(&name)).await?.to_vec(),
        b"x".to_vec()
    );
    only(&cx, ".", vec![name.clone()]).await?;
    cx.sandbox.delete(cx.path(&name)).await?;
    Ok(())
}

async fn a_name_too_long_for_the_system_is_an_error(cx: Cx) -> CaseResult {
    let path = cx.path(&"x".repeat(256));
    check!(
        cx.sandbox.write(&path, "x").await.is_err(),
        "it was written"
    );
    check!(
        cx.sandbox.upload(&path, "x").await.is_err(),
        "it was uploaded"
    );
    check_eq!(cx.ok("ls -A").await?, "");
    Ok(())
}
