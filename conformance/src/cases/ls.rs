//! Listing a directory.

use std::time::UNIX_EPOCH;

use sandbox_core::ErrorKind;
use sandbox_core::files::{EntryKind, Gap, Listing};

use super::needs::{CONTROL_CHARACTERS, FIFOS, FILE_OWNERS};
use crate::check::refused;
use crate::{CaseResult, Cx};

cases! { "ls":
    children_come_with_path_kind_and_size minimal;
    hidden_children_come_too minimal;
    only_direct_children_come minimal;
    children_are_sorted_by_bytes minimal;
    an_empty_directory_has_no_children minimal;
    links_are_not_followed minimal;
    the_directory_itself_may_be_a_link minimal;
    the_time_of_change_comes minimal;
    the_root_can_be_listed minimal;
    a_trailing_slash_changes_nothing minimal;
    a_missing_directory_is_not_found minimal;
    a_file_is_not_a_directory minimal;
    rights_are_those_of_the_user needs(FILE_OWNERS);
    an_unreadable_child_is_listed minimal;
    special_files_are_other needs(FIFOS);
    names_with_control_characters_are_whole needs(CONTROL_CHARACTERS);
    names_that_are_not_utf_8_are_counted needs(CONTROL_CHARACTERS);
    thousands_of_children_all_come;
    nothing_is_changed minimal;
}

/// Names with their kinds and sizes.
fn brief(listing: &Listing) -> Vec<(&str, EntryKind, u64)> {
    listing
        .entries
        .iter()
        .map(|e| (e.path.file_name().unwrap_or("/"), e.kind, e.size))
        .collect()
}

fn names(listing: &Listing) -> Vec<&str> {
    listing
        .entries
        .iter()
        .filter_map(|e| e.path.file_name())
        .collect()
}

async fn children_come_with_path_kind_and_size(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; printf 12345 >f; : >e").await?;
    let listing = cx.sandbox.ls(&cx.dir).await?;
    check_eq!(listing.gaps, vec![]);
    let paths: Vec<&str> = listing.entries.iter().map(|e| e.path.as_str()).collect();
    check_eq!(paths, [cx.path("d"), cx.path("e"), cx.path("f")]);
    let kinds: Vec<EntryKind> = listing.entries.iter().map(|e| e.kind).collect();
    check_eq!(kinds, [EntryKind::Dir, EntryKind::File, EntryKind::File]);
    check_eq!((listing.entries[1].size, listing.entries[2].size), (0, 5));
    Ok(())
}

async fn hidden_children_come_too(cx: Cx) -> CaseResult {
    cx.ok("mkdir .git; : >.env; : >..data; : >f").await?;
    check_eq!(
        names(&cx.sandbox.ls(&cx.dir).await?),
        ["..data", ".env", ".git", "f"]
    );
    Ok(())
}

async fn only_direct_children_come(cx: Cx) -> CaseResult {
    cx.ok("mkdir -p d/e/f; : >d/x; : >d/e/y").await?;
    check_eq!(names(&cx.sandbox.ls(&cx.dir).await?), ["d"]);
    check_eq!(names(&cx.sandbox.ls(cx.path("d")).await?), ["e", "x"]);
    Ok(())
}

async fn children_are_sorted_by_bytes(cx: Cx) -> CaseResult {
    cx.put([
        ("b", b""),
        ("B", b""),
        ("a", b""),
        ("_", b""),
        ("é", b""),
        ("a b", b""),
        ("10", b""),
        ("9", b""),
    ])
    .await?;
    check_eq!(
        names(&cx.sandbox.ls(&cx.dir).await?),
        ["10", "9", "B", "_", "a", "a b", "b", "é"]
    );
    Ok(())
}

async fn an_empty_directory_has_no_children(cx: Cx) -> CaseResult {
    let listing = cx.sandbox.ls(&cx.dir).await?;
    check_eq!((listing.entries.len(), listing.gaps.len()), (0, 0));
    Ok(())
}

async fn links_are_not_followed(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; echo long >f; ln -s d to-dir; ln -s f to-file; ln -s none dangling; ln -s self self").await?;
    let listing = cx.sandbox.ls(&cx.dir).await?;
    let links: Vec<&str> = brief(&listing)
        .into_iter()
        .filter(|(_, kind, _)| *kind == EntryKind::Symlink)
        .map(|(name, ..)| name)
        .collect();
    check_eq!(links, ["dangling", "self", "to-dir", "to-file"]);
    Ok(())
}

async fn the_directory_itself_may_be_a_link(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; : >d/x; ln -s d l").await?;
    check_eq!(names(&cx.sandbox.ls(cx.path("l")).await?), ["x"]);
    check_eq!(names(&cx.sandbox.ls(cx.path("l/")).await?), ["x"]);
    Ok(())
}

async fn the_time_of_change_comes(cx: Cx) -> CaseResult {
    let now: u64 = cx
        .ok("echo x >f; date +%s")
        .await?
        .trim()
        .parse()
        .unwrap_or(0);
    let listing = cx.sandbox.ls(&cx.dir).await?;
    let modified = listing.entries[0]
        .modified
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    check!(
        modified.as_secs().abs_diff(now) <= 60,
        "{modified:?} against {now}"
    );
    Ok(())
}

async fn the_root_can_be_listed(cx: Cx) -> CaseResult {
    let listing = cx.sandbox.ls("/").await?;
    let tmp = listing.entries.iter().find(|e| e.path.as_str() == "/tmp");
    check_eq!(tmp.map(|e| e.kind), Some(EntryKind::Dir));
    Ok(())
}

async fn a_trailing_slash_changes_nothing(cx: Cx) -> CaseResult {
    cx.put([("f", b"x")]).await?;
    let plain = cx.sandbox.ls(&cx.dir).await?;
    check_eq!(cx.sandbox.ls(cx.path("./")).await?, plain);
    Ok(())
}

async fn a_missing_directory_is_not_found(cx: Cx) -> CaseResult {
    cx.ok("ln -s none dangling").await?;
    for name in ["none", "none/deeper", "dangling"] {
        refused(cx.sandbox.ls(cx.path(name)).await, ErrorKind::NotFound)?;
    }
    Ok(())
}

async fn a_file_is_not_a_directory(cx: Cx) -> CaseResult {
    cx.ok(": >f; ln -s f l").await?;
    for name in ["f", "l", "f/"] {
        refused(cx.sandbox.ls(cx.path(name)).await, ErrorKind::NotADirectory)?;
    }
    Ok(())
}

async fn rights_are_those_of_the_user(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; : >d/f; chmod 000 d").await?;
    refused(
        cx.sandbox.ls(cx.path("d")).await,
        ErrorKind::PermissionDenied,
    )?;
    cx.ok("chmod 755 d").await?;
    Ok(())
}

async fn an_unreadable_child_is_listed(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; echo x >f; chmod 000 d f").await?;
    let listing = cx.sandbox.ls(&cx.dir).await;
    cx.ok("chmod 755 d f").await?;
    check_eq!(names(&listing?), ["d", "f"]);
    Ok(())
}

async fn special_files_are_other(cx: Cx) -> CaseResult {
    cx.ok("mkfifo p").await?;
    let listing = cx.sandbox.ls(&cx.dir).await?;
    check_eq!(
        listing.entries.first().map(|e| e.kind),
        Some(EntryKind::Other)
    );
    Ok(())
}

async fn names_with_control_characters_are_whole(cx: Cx) -> CaseResult {
    cx.ok("touch \"$(printf 'new\\nline')\" \"$(printf 'tab\\tx')\" \"$(printf 'esc\\033')\"")
        .await?;
    check_eq!(
        names(&cx.sandbox.ls(&cx.dir).await?),
        ["esc\u{1b}", "new\nline", "tab\tx"]
    );
    Ok(())
}

async fn names_that_are_not_utf_8_are_counted(cx: Cx) -> CaseResult {
    cx.ok("touch good \"$(printf 'bad\\377')\"").await?;
    let listing = cx.sandbox.ls(&cx.dir).await?;
    check_eq!(
        (names(&listing), listing.gaps.clone()),
        (vec!["good"], vec![Gap::NotUtf8(1)])
    );
    Ok(())
}

async fn thousands_of_children_all_come(cx: Cx) -> CaseResult {
    let files = (0..3000).map(|i| (cx.path(&format!("d/file-with-a-longer-name-{i}")), "x"));
    for result in cx.sandbox.upload_files(files).await {
        result?;
    }
    let listing = cx.sandbox.ls(cx.path("d")).await?;
    check_eq!((listing.entries.len(), listing.gaps.len()), (3000, 0));
    check!(
        listing
            .entries
            .iter()
            .all(|e| e.kind == EntryKind::File && e.size == 1),
        "an entry is wrong"
    );
    Ok(())
}

async fn nothing_is_changed(cx: Cx) -> CaseResult {
    cx.ok("echo x >f; chmod 600 f").await?;
    cx.sandbox.ls(&cx.dir).await?;
    check_eq!(cx.ok("ls -A; cat f").await?, "f\nx\n");
    check_eq!(cx.mode("f").await?, "600");
    Ok(())
}
