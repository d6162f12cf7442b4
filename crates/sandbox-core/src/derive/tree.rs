//! `upload_dir` and `download_dir`: a tree as one tar.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use super::archive::{pack_tree, unpack_tree};
use super::script::{self, Run, garbled, number, script};
use crate::defaults::{TREE_ENTRIES, TREE_LIMIT};
use crate::files::TreeReport;
use crate::{Error, ErrorKind, Result, SandboxBackend, SandboxPath};

/// Argument: the directory. Reads a tar.
const UPLOAD: &str = script!(
    r#"need mkdir tar
umask 022
if [ ! -d "$1" ]; then
  [ ! -e "$1" ] && [ ! -L "$1" ] || exit 64
  e=$(mkdir -p -- "$1" 2>&1) || case $e in
    *'File exists'*|*'ot a directory'*) exit 64 ;;
    *) fail "$e" ;;
  esac
fi
cd -- "$1" 2>/dev/null || exit 62
e=$(tar -xof - 2>&1) || fail "$e""#
);

/// Argument: the directory. Prints a tar, what could not be read, and [`TRAILER`] bytes that say
/// how `tar` ended and how long the text before them is.
const DOWNLOAD: &str = script!(
    r#"need head tar
[ -e "$1" ] || gone "$1"
[ -d "$1" ] || exit 64
cd -- "$1" 2>/dev/null || exit 62
[ -r . ] || exit 62
tar -cf - . 2>/dev/null
r=$? e=
[ "$r" = 0 ] || e=$(tar -cf - . 2>&1 >/dev/null | head -c 4000)
printf '%s' "$e"
printf 'tar:%03d %08d' "$r" "${#e}""#
);

/// Length of the end of what [`DOWNLOAD`] prints.
const TRAILER: usize = 16;

/// How long a tree may take on its way.
const TIME: Duration = Duration::from_mins(10);

/// What a tar has around the bytes of a file, at most: headers, a long name, padding.
const PER_ENTRY: u64 = 8 << 10;

/// See [`crate::Sandbox::upload_dir`].
///
/// # Errors
///
/// As there.
pub async fn upload_dir(
    backend: &dyn SandboxBackend,
    local: &Path,
    path: &SandboxPath,
) -> Result<TreeReport> {
    let local = local.to_owned();
    let (tar, report) = blocking(move || pack_tree(&local)).await?;
    let run = Run::on(path).stdin(Bytes::from(tar));
    script::run(backend, UPLOAD, run).await?;
    Ok(report)
}

/// See [`crate::Sandbox::download_dir`].
///
/// # Errors
///
/// As there.
pub async fn download_dir(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    local: &Path,
) -> Result<TreeReport> {
    let run = Run::on(path)
        .time(TIME)
        .output_limit(TREE_LIMIT + TREE_ENTRIES * PER_ENTRY);
    let answer = script::run(backend, DOWNLOAD, run).await?;
    let output = answer.output.bytes().clone();
    let local = local.to_owned();
    blocking(move || {
        let (tar, unread) = split(&output)?;
        let mut report = unpack_tree(tar, &local)?;
        report.skipped.extend(unread);
        Ok(report)
    })
    .await
    .map_err(|e| e.with("path", path))
}

/// Takes what [`DOWNLOAD`] printed apart: the tar, and a line for each thing that was not read.
fn split(output: &[u8]) -> Result<(&[u8], Vec<String>)> {
    let (rest, trailer) = output
        .split_last_chunk::<TRAILER>()
        .ok_or_else(|| garbled("the end of the tree"))?;
    let trailer = trailer
        .strip_prefix(b"tar:")
        .ok_or_else(|| garbled("the end of the tree"))?;
    let failed = number::<u32>(&trailer[..3])? != 0;
    let length: usize = number(&trailer[4..])?;
    let tar = rest
        .len()
        .checked_sub(length)
        .ok_or_else(|| garbled("the end of the tree"))?;
    let (tar, text) = rest.split_at(tar);
    let mut unread: Vec<String> = String::from_utf8_lossy(text)
        .lines()
        .take(100)
        .map(ToOwned::to_owned)
        .collect();
    if failed && unread.is_empty() {
        unread.push("some of the tree could not be read".to_owned());
    }
    Ok((tar, unread))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(e) => {
            Err(Error::new(ErrorKind::Unexpected, "the work on local files was stopped").because(e))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_could_not_be_read_is_told() {
        let (tar, unread) = split(b"TARtar: ./no: Permission deniedtar:002 00000028").unwrap();
        assert_eq!(
            (tar, unread),
            (&b"TAR"[..], vec!["tar: ./no: Permission denied".to_owned()])
        );
        assert_eq!(split(b"TARtar:000 00000000").unwrap().1.len(), 0);
        assert_eq!(split(b"TARtar:001 00000000").unwrap().1.len(), 1);
        for bad in [
            &b""[..],
            b"tar:000 00000000"[1..].as_ref(),
            b"tar:000 00000009",
            b"tar:xxx 00000000",
        ] {
            assert_eq!(split(bad).unwrap_err().kind(), ErrorKind::Protocol);
        }
    }

    proptest! {
        #[test]
        fn no_answer_panics(noise in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = split(&noise);
        }
    }
}
