//! `ls`.

use std::time::{Duration, SystemTime};

use super::script::{self, Run, field, garbled, number, script};
use crate::files::{Entry, EntryKind, Gap, Listing};
use crate::{Error, Result, SandboxBackend, SandboxPath};

/// Argument: the directory.
///
/// Prints batches: the number of names, one line a name of size, mtime and kind, the names. A name
/// that is gone when it is looked at makes `stat` fail, and then that batch is done one by one.
/// Ends with an empty batch and how `find` ended.
const LS: &str = script!(
    r#"need find stat
[ -e "$1" ] || gone "$1"
[ -d "$1" ] || exit 64
cd -P -- "$1" 2>/dev/null || exit 62
find . -mindepth 1 -maxdepth 1 -exec sh -c '
  one() { stat -c "%s %Y %F" -- "$@" 2>/dev/null; }
  if l=$(one "$@"); then :; else
    l=; for f in "$@"; do
      l="$l$(one "$f" || echo "? ? ?")
"
    done; l=${l%?}
  fi
  printf "%s\0%s\0" "$#" "$l"; printf "%s\0" "$@"' sandbox {} + 2>/dev/null
printf '0\0%s\0' "$?""#
);

/// How often a directory that changes while it is listed is listed again.
const TRIES: usize = 3;

/// See [`crate::Sandbox::ls`].
///
/// # Errors
///
/// As there.
pub async fn ls(backend: &dyn SandboxBackend, path: &SandboxPath) -> Result<Listing> {
    let mut tries = 1;
    loop {
        let answer = script::run(backend, LS, Run::on(path).ends_with(b"0\x000\0")).await?;
        match parse(path, answer.output.bytes()) {
            Err(_) if tries < TRIES => tries += 1,
            result => return result,
        }
    }
}

fn parse(path: &SandboxPath, mut rest: &[u8]) -> Result<Listing> {
    let mut entries = Vec::new();
    let (mut not_utf8, mut unreadable, mut changed) = (0, 0, 0);
    loop {
        let count: usize = number(field(&mut rest)?)?;
        let facts = field(&mut rest)?;
        if count == 0 {
            if number::<u8>(facts)? != 0 {
                unreadable += 1;
            }
            break;
        }
        let facts: Vec<&[u8]> = facts.split(|b| *b == b'\n').collect();
        if facts.len() != count {
            return Err(garbled("the number of entries"));
        }
        for facts in facts {
            let name = field(&mut rest)?;
            let name = name.strip_prefix(b"./").unwrap_or(name);
            if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
                return Err(garbled("the name of an entry"));
            }
            let Ok(name) = std::str::from_utf8(name) else {
                not_utf8 += 1;
                continue;
            };
            if facts.starts_with(b"?") {
                changed += 1;
                continue;
            }
            match path.join(name) {
                Ok(path) => entries.push(entry(path, facts)?),
                // Longer than a path may be.
                Err(_) => unreadable += 1,
            }
        }
    }
    if !rest.is_empty() {
        return Err(garbled("something after the end"));
    }
    if entries.is_empty() && not_utf8 == 0 && changed == 0 && unreadable > 0 {
        return Err(Error::new(
            crate::ErrorKind::PermissionDenied,
            "the sandbox's user may not list this directory",
        )
        .with("path", path));
    }
    let gaps = [
        Gap::NotUtf8(not_utf8),
        Gap::Unreadable(unreadable),
        Gap::Changed(changed),
    ];
    let gaps = gaps.into_iter().zip([not_utf8, unreadable, changed]);
    Ok(Listing::new(
        entries,
        gaps.filter(|(_, n)| *n > 0).map(|(g, _)| g).collect(),
    ))
}

/// From `SIZE MTIME KIND`, as GNU and BusyBox `stat` tell them in the C locale.
fn entry(path: SandboxPath, facts: &[u8]) -> Result<Entry> {
    let mut parts = facts.splitn(3, |b| *b == b' ');
    let mut part = || parts.next().ok_or_else(|| garbled("the facts of an entry"));
    let size = number(part()?)?;
    let seconds: i64 = number(part()?)?;
    let kind = match part()? {
        b"regular file" | b"regular empty file" => EntryKind::File,
        b"directory" => EntryKind::Dir,
        b"symbolic link" => EntryKind::Symlink,
        _ => EntryKind::Other,
    };
    let offset = Duration::from_secs(seconds.unsigned_abs());
    let modified = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(offset)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(offset)
    };
    let modified = modified.ok_or_else(|| garbled("the time of an entry"))?;
    Ok(Entry::new(path, kind, size, modified))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ErrorKind;

    fn dir() -> SandboxPath {
        SandboxPath::new("/d").unwrap()
    }

    #[test]
    fn names_of_any_kind_and_every_gap() {
        let answer = b"3\x001 2 regular file\n0 -5 symbolic link\n? ? ?\x00./nl\nname\x00./ -x\x00./gone\x00\
            1\x000 0 fifo\x00./\xff\x000\x001\x00";
        let listing = parse(&dir(), answer).unwrap();
        let names: Vec<_> = listing.entries.iter().map(|e| e.path.as_str()).collect();
        assert_eq!(names, ["/d/ -x", "/d/nl\nname"]);
        assert_eq!(listing.entries[0].kind, EntryKind::Symlink);
        assert_eq!(
            listing.gaps,
            [Gap::Unreadable(1), Gap::NotUtf8(1), Gap::Changed(1)]
        );
    }

    #[test]
    fn an_empty_directory_is_told_from_one_that_can_not_be_listed() {
        assert_eq!(parse(&dir(), b"0\x000\x00").unwrap(), Listing::default());
        let denied = parse(&dir(), b"0\x001\x00").unwrap_err();
        assert_eq!(denied.kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn hostile_answers_are_errors() {
        for answer in [
            &b""[..],
            b"1\x000 0 directory\x00./a\x00",
            b"2\x000 0 directory\x00./a\x00./b\x000\x000\x00",
            b"1\x000 0 directory\x00./../a\x000\x000\x00",
            b"1\x000 0 directory\x00./..\x000\x000\x00",
            b"18446744073709551615\x00x\x00",
            b"0\x000\x00more",
        ] {
            assert_eq!(
                parse(&dir(), answer).unwrap_err().kind(),
                ErrorKind::Protocol
            );
        }
    }

    proptest! {
        #[test]
        fn no_answer_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&dir(), &bytes);
        }
    }
}
