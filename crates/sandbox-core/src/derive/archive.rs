//! Trees of local files as tars, for every implementation: packing, and unpacking what is hostile.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use tar::{EntryType, Header};

use super::script::garbled;
use crate::defaults::{TREE_ENTRIES, TREE_LIMIT};
use crate::files::TreeReport;
use crate::{Error, ErrorKind, Result};

/// Packs the content of a local directory: directories, regular files, and links that stay within
/// it. The rest is reported.
///
/// # Errors
///
/// [`ErrorKind::NotFound`] and [`ErrorKind::NotADirectory`] for `local`, [`ErrorKind::TooLarge`]
/// beyond [`TREE_LIMIT`] or [`TREE_ENTRIES`], and what the local file system refuses.
pub fn pack_tree(local: &Path) -> Result<(Vec<u8>, TreeReport)> {
    if !fs::metadata(local).map_err(|e| host(e, local))?.is_dir() {
        return Err(Error::new(
            ErrorKind::NotADirectory,
            "the local path is not a directory",
        )
        .with("local", local.display()));
    }
    let mut report = TreeReport::default();
    let mut builder = tar::Builder::new(Vec::new());
    let mut entries = 0;
    let mut todo = vec![PathBuf::new()];
    while let Some(dir) = todo.pop() {
        let full = local.join(&dir);
        let mut names: Vec<_> = fs::read_dir(&full)
            .and_then(|dir| dir.map(|e| e.map(|e| e.file_name())).collect())
            .map_err(|e| host(e, &full))?;
        names.sort_unstable();
        for name in names {
            entries += 1;
            if entries > TREE_ENTRIES {
                return Err(too_many());
            }
            let relative = dir.join(name);
            let full = local.join(&relative);
            if relative.to_str().is_none() {
                let line = format!("{}: the name is not UTF-8", relative.display());
                report.skipped.push(line);
                continue;
            }
            let facts = fs::symlink_metadata(&full).map_err(|e| host(e, &full))?;
            let mut header = Header::new_gnu();
            header.set_mtime(modified(&facts));
            header.set_uid(0);
            header.set_gid(0);
            header.set_size(0);
            let kind = facts.file_type();
            let packed = if kind.is_dir() {
                header.set_entry_type(EntryType::Directory);
                header.set_mode(0o755);
                todo.push(relative.clone());
                builder.append_data(&mut header, &relative, io::empty())
            } else if kind.is_file() {
                if report.bytes.saturating_add(facts.len()) > TREE_LIMIT {
                    return Err(too_large());
                }
                // Read first: a file that grows meanwhile would not fit its header.
                let mut content = Vec::new();
                fs::File::open(&full)
                    .and_then(|file| file.take(TREE_LIMIT + 1).read_to_end(&mut content))
                    .map_err(|e| host(e, &full))?;
                report.files += 1;
                report.bytes += content.len() as u64;
                if report.bytes > TREE_LIMIT {
                    return Err(too_large());
                }
                header.set_entry_type(EntryType::Regular);
                header.set_mode(if is_executable(&facts) { 0o755 } else { 0o644 });
                header.set_size(content.len() as u64);
                builder.append_data(&mut header, &relative, content.as_slice())
            } else if kind.is_symlink() {
                let target = fs::read_link(&full).map_err(|e| host(e, &full))?;
                if !stays_within(&relative, &target) {
                    let line = format!("{}: a link that leads out of the tree", relative.display());
                    report.skipped.push(line);
                    continue;
                }
                header.set_entry_type(EntryType::Symlink);
                header.set_mode(0o777);
                builder.append_link(&mut header, &relative, &target)
            } else {
                let line = format!("{}: not a regular file", relative.display());
                report.skipped.push(line);
                continue;
            };
            packed.map_err(|e| host(e, &full))?;
        }
    }
    let tar = builder.into_inner().map_err(|e| host(e, local))?;
    Ok((tar, report))
}

/// Whether a link at `link` with this target stays in the tree, by the names alone.
fn stays_within(link: &Path, target: &Path) -> bool {
    let mut depth = link.components().count() - 1;
    for component in target.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return false,
        }
    }
    true
}

/// Makes a hostile tar's directories and regular files in `local`, which is made. Nothing outside
/// it is written, no link is made or followed; what is left out is reported.
///
/// # Errors
///
/// [`ErrorKind::Protocol`] for a path that leads out or a tar that can't be read,
/// [`ErrorKind::TooLarge`] beyond [`TREE_LIMIT`] or [`TREE_ENTRIES`], and what the local file
/// system refuses. What was made until then stays.
pub fn unpack_tree(tar: &[u8], local: &Path) -> Result<TreeReport> {
    fs::create_dir_all(local).map_err(|e| host(e, local))?;
    let broken = |e: io::Error| garbled("the tree").because(e);
    let mut report = TreeReport::default();
    let mut made: HashSet<PathBuf> = HashSet::new();
    let mut archive = tar::Archive::new(tar);
    let mut entries = 0;
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        entries += 1;
        if entries > TREE_ENTRIES {
            return Err(too_many());
        }
        let path = relative(&entry.path().map_err(broken)?)?;
        let kind = entry.header().entry_type();
        let size = entry.size();
        match kind {
            EntryType::Directory => {
                if let Err(line) = make_dirs(local, &path)? {
                    report.skipped.push(line);
                }
                continue;
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse | EntryType::Link => {
            }
            _ => {
                let line = format!("{}: neither a file nor a directory", path.display());
                report.skipped.push(line);
                continue;
            }
        }
        if path.as_os_str().is_empty() {
            return Err(garbled("a file without a name"));
        }
        let full = local.join(&path);
        if let Err(line) = make_room(local, &path)? {
            report.skipped.push(line);
            continue;
        }
        let written = if kind == EntryType::Link {
            // Another name of a file that came before.
            let target = entry.link_name().map_err(broken)?;
            let target = relative(&target.ok_or_else(|| garbled("a link without a target"))?)?;
            if !made.contains(&target) || target == path {
                let line = format!("{}: a link to what is not in the tree", path.display());
                report.skipped.push(line);
                continue;
            }
            let from = local.join(&target);
            let size = fs::metadata(&from).map_err(|e| host(e, &from))?.len();
            if report.bytes.saturating_add(size) > TREE_LIMIT {
                return Err(too_large());
            }
            fs::copy(&from, &full).map_err(|e| host(e, &full))?
        } else {
            if report.bytes.saturating_add(size) > TREE_LIMIT {
                return Err(too_large());
            }
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&full)
                .map_err(|e| host(e, &full))?;
            let written = io::copy(&mut (&mut entry).take(size), &mut file).map_err(broken)?;
            if written != size {
                return Err(garbled("the size of a file"));
            }
            set_executable(&file, entry.header().mode().unwrap_or(0))
                .map_err(|e| host(e, &full))?;
            written
        };
        report.files += 1;
        report.bytes += written;
        made.insert(path);
    }
    Ok(report)
}

/// The path of an entry: names only.
fn relative(path: &Path) -> Result<PathBuf> {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            _ => {
                return Err(garbled("a path that leads out of the tree")
                    .with("entry", path.display().to_string().escape_debug()));
            }
        }
    }
    Ok(clean)
}

/// Makes the directories of `path` below `local`, following nothing; a line if one can't be.
fn make_dirs(local: &Path, path: &Path) -> Result<std::result::Result<(), String>> {
    let mut full = local.to_owned();
    for name in path.components() {
        full.push(name);
        match fs::symlink_metadata(&full) {
            Ok(facts) if facts.is_dir() => {}
            Ok(_) => {
                return Ok(Err(format!(
                    "{}: something else is in its way",
                    path.display()
                )));
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(&full).map_err(|e| host(e, &full))?;
            }
            Err(e) => return Err(host(e, &full)),
        }
    }
    Ok(Ok(()))
}

/// Makes the parents of a file and removes what has its name; a line if a directory has.
fn make_room(local: &Path, path: &Path) -> Result<std::result::Result<(), String>> {
    if let Some(parent) = path.parent()
        && let Err(line) = make_dirs(local, parent)?
    {
        return Ok(Err(line));
    }
    let full = local.join(path);
    match fs::symlink_metadata(&full) {
        Ok(facts) if facts.is_dir() => Ok(Err(format!("{}: a directory is there", path.display()))),
        Ok(_) => fs::remove_file(&full).map(Ok).map_err(|e| host(e, &full)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Ok(())),
        Err(e) => Err(host(e, &full)),
    }
}

#[cfg(unix)]
fn is_executable(facts: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    facts.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

#[cfg(unix)]
fn set_executable(file: &fs::File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if mode & 0o100 == 0 {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn set_executable(_: &fs::File, _: u32) -> io::Result<()> {
    Ok(())
}

fn modified(facts: &fs::Metadata) -> u64 {
    facts
        .modified()
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_secs())
}

/// A failure of the local file system.
fn host(e: io::Error, local: &Path) -> Error {
    let kind = match e.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
        io::ErrorKind::NotADirectory => ErrorKind::NotADirectory,
        io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
        _ => ErrorKind::Unexpected,
    };
    Error::new(kind, "the local file system refused")
        .with("local", local.display())
        .because(e)
}

fn too_large() -> Error {
    Error::new(
        ErrorKind::TooLarge,
        "the tree is larger than one call moves: move it in parts",
    )
    .with("limit", TREE_LIMIT)
}

fn too_many() -> Error {
    Error::new(
        ErrorKind::TooLarge,
        "the tree has more entries than one call moves: move it in parts",
    )
    .with("limit", TREE_ENTRIES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(
        builder: &mut tar::Builder<Vec<u8>>,
        kind: EntryType,
        path: &[u8],
        link: &str,
        content: &[u8],
    ) {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        // By hand: the library refuses what an enemy sends.
        header.as_old_mut().name[..path.len()].copy_from_slice(path);
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        builder.append(&header, content).unwrap();
    }

    fn unpack(
        entries: &[(EntryType, &str, &str, &[u8])],
    ) -> (tempfile::TempDir, Result<TreeReport>) {
        let mut builder = tar::Builder::new(Vec::new());
        for (kind, path, link, content) in entries {
            entry(&mut builder, *kind, path.as_bytes(), link, content);
        }
        let dir = tempfile::tempdir().unwrap();
        let report = unpack_tree(&builder.into_inner().unwrap(), &dir.path().join("in"));
        (dir, report)
    }

    use EntryType::{Directory as Dir, Fifo, Link, Regular as File, Symlink};

    #[test]
    fn a_tree_survives_the_way_there_and_back() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        let long = format!("{}/{}", "d".repeat(120), "f".repeat(120));
        fs::create_dir_all(from.join("d".repeat(120))).unwrap();
        fs::create_dir_all(from.join("empty")).unwrap();
        for (name, content) in [("a b\n'", &b"1"[..]), ("-rf", b""), (&long, &[0, 255, 10])] {
            fs::write(from.join(name), content).unwrap();
        }
        let (tar, packed) = pack_tree(&from).unwrap();
        let to = dir.path().join("to");
        let unpacked = unpack_tree(&tar, &to).unwrap();
        assert_eq!((packed.files, packed.bytes), (3, 4));
        assert_eq!(packed, unpacked);
        assert!(to.join("empty").is_dir());
        assert_eq!(fs::read(to.join(&long)).unwrap(), [0, 255, 10]);
        // Again over itself: the same.
        assert_eq!(unpack_tree(&tar, &to).unwrap(), unpacked);
        assert_eq!(
            pack_tree(&to.join("-rf")).unwrap_err().kind(),
            ErrorKind::NotADirectory
        );
        assert_eq!(
            pack_tree(&to.join("no")).unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_are_packed_only_if_they_stay_within() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        for (link, target) in [
            ("d/up", "../x"),
            ("out", "../x"),
            ("d/far", "../../x"),
            ("abs", "/etc"),
        ] {
            std::os::unix::fs::symlink(target, dir.path().join(link)).unwrap();
        }
        let (_, report) = pack_tree(dir.path()).unwrap();
        assert_eq!(report.skipped.len(), 3, "{report:?}");
    }

    #[test]
    fn what_leads_out_is_an_error_and_nothing_is_written() {
        for path in ["../pwn", "/tmp/sandbox-tree-pwn", "a/../../pwn", "a/.."] {
            let (dir, report) = unpack(&[(File, path, "", b"x")]);
            assert_eq!(report.unwrap_err().kind(), ErrorKind::Protocol, "{path}");
            assert!(!dir.path().join("pwn").exists());
            assert!(!Path::new("/tmp/sandbox-tree-pwn").exists());
        }
    }

    #[test]
    fn links_and_devices_are_left_out() {
        let (dir, report) = unpack(&[
            (Symlink, "l", "..", b""),
            (File, "l/pwn", "", b"x"),
            (Fifo, "f", "", b""),
            (Link, "h", "/etc/passwd", b""),
        ]);
        assert_eq!(report.unwrap_err().kind(), ErrorKind::Protocol);
        assert!(!dir.path().join("pwn").exists());
        let (dir, report) = unpack(&[
            (Dir, "./", "", b""),
            (File, "./a", "", b"xy"),
            (Link, "./b", "./a", b""),
            (Link, "./c", "./none", b""),
            (Fifo, "f", "", b""),
            (Symlink, "l", "/etc", b""),
        ]);
        let report = report.unwrap();
        assert_eq!(
            (report.files, report.bytes, report.skipped.len()),
            (2, 4, 3)
        );
        assert_eq!(fs::read(dir.path().join("in/b")).unwrap(), b"xy");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_is_there_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("f"), "keep").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("d")).unwrap();
        std::os::unix::fs::symlink(outside.join("f"), inside.join("f")).unwrap();
        let mut builder = tar::Builder::new(Vec::new());
        entry(&mut builder, File, b"d/new", "", b"x");
        entry(&mut builder, File, b"f", "", b"x");
        let report = unpack_tree(&builder.into_inner().unwrap(), &inside).unwrap();
        assert_eq!(report.skipped.len(), 1);
        assert!(!outside.join("new").exists());
        assert_eq!(fs::read(outside.join("f")).unwrap(), b"keep");
        assert_eq!(fs::read(inside.join("f")).unwrap(), b"x");
    }

    #[test]
    fn a_tree_beyond_the_limit_is_refused_by_its_header() {
        let mut header = Header::new_gnu();
        header.set_path("huge").unwrap();
        header.set_size(TREE_LIMIT + 1);
        header.set_entry_type(EntryType::Regular);
        header.set_cksum();
        let dir = tempfile::tempdir().unwrap();
        let e = unpack_tree(header.as_bytes(), dir.path()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::TooLarge);
        header.set_size(10);
        header.set_cksum();
        let e = unpack_tree(header.as_bytes(), dir.path()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Protocol);
    }

    proptest! {
        #[test]
        fn no_tar_panics(noise in prop::collection::vec(any::<u8>(), 0..2000)) {
            let dir = tempfile::tempdir().unwrap();
            let _ = unpack_tree(&noise, dir.path());
        }
    }
}
