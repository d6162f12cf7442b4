//! `upload_from` and `download_to`: files of any size with bounded memory.

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::install::{self, Parts};
use super::script::{self, Run, field, garbled, number, script};
use crate::files::WriteMode;
use crate::{Error, ErrorKind, Result, SandboxBackend, SandboxPath};

/// What is held in memory, in bytes: a few round trips a gigabyte, little memory.
const CHUNK: u64 = 8 << 20;

/// `dd` counts in these.
const BLOCK: u64 = 1 << 20;

/// Arguments: the file, the first block, the number of blocks.
///
/// Prints what tells whether the file changes, a NUL, the bytes, a NUL, and that again.
const RANGE: &str = script!(
    r#"need dd stat
regular "$1"
facts() { stat -L -c '%s %i %y %z' -- "$1" || exit 62; }
facts "$1"
printf '\0'
dd bs=1048576 skip="$2" count="$3" <"$1" 2>/dev/null || exit 69
printf '\0'
facts "$1""#
);

/// See [`crate::Sandbox::upload_from`].
///
/// # Errors
///
/// As there.
pub async fn upload_from(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    reader: &mut (dyn AsyncRead + Send + Unpin),
) -> Result<u64> {
    let first = chunk(reader).await?;
    if (first.len() as u64) < CHUNK {
        let size = first.len() as u64;
        let source = install::Source::Content(first);
        install::install(backend, path, source, WriteMode::Overwrite).await?;
        return Ok(size);
    }
    let mut parts = Parts::new(backend, path);
    let sent = async {
        let mut next = first;
        while !next.is_empty() {
            parts.push(next).await?;
            next = chunk(reader).await?;
        }
        parts.finish().await
    }
    .await;
    if sent.is_err() {
        // The error that counts is the first one; what is left lies under a name of its own.
        let _ = parts.abandon().await;
    }
    sent
}

/// Reads until the chunk is full or the reader at its end.
async fn chunk(reader: &mut (dyn AsyncRead + Send + Unpin)) -> Result<Bytes> {
    let mut chunk = Vec::new();
    reader
        .take(CHUNK)
        .read_to_end(&mut chunk)
        .await
        .map_err(|e| Error::new(ErrorKind::Unexpected, "the reader failed").because(e))?;
    Ok(chunk.into())
}

/// See [`crate::Sandbox::download_to`].
///
/// # Errors
///
/// As there.
pub async fn download_to(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    writer: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<u64> {
    let mut done = 0;
    let mut before: Option<Vec<u8>> = None;
    loop {
        let run = Run::on(path)
            .arg(done / BLOCK)
            .arg(CHUNK / BLOCK)
            .output_limit(CHUNK + (4 << 10));
        let answer = script::run(backend, RANGE, run).await?;
        let (facts, bytes) = parse(answer.output.bytes()).map_err(|e| e.with("path", path))?;
        if before.get_or_insert_with(|| facts.to_vec()) != facts {
            return Err(changed(path));
        }
        done += bytes.len() as u64;
        writer
            .write_all(&bytes)
            .await
            .map_err(|e| Error::new(ErrorKind::Unexpected, "the writer failed").because(e))?;
        if (bytes.len() as u64) < CHUNK {
            let size: u64 = number(facts.split(|b| *b == b' ').next().unwrap_or_default())?;
            // What the kernel makes up on the fly says 0.
            if size != done && size != 0 {
                return Err(changed(path));
            }
            break;
        }
    }
    writer
        .flush()
        .await
        .map_err(|e| Error::new(ErrorKind::Unexpected, "the writer failed").because(e))?;
    Ok(done)
}

/// The facts and the bytes of a range; an error if the file changed meanwhile.
fn parse(answer: &Bytes) -> Result<(&[u8], Bytes)> {
    let mut rest = answer.as_ref();
    let before = field(&mut rest)?;
    let end = memchr::memrchr(0, rest).ok_or_else(|| garbled("the end of a range"))?;
    if rest[end + 1..] != *before {
        return Err(Error::new(
            ErrorKind::Conflict,
            "the file changed while it was read",
        ));
    }
    if end as u64 > CHUNK {
        return Err(garbled("the size of a range"));
    }
    Ok((before, answer.slice_ref(&rest[..end])))
}

fn changed(path: &SandboxPath) -> Error {
    Error::new(ErrorKind::Conflict, "the file changed while it was read").with("path", path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_says_whether_the_file_changed() {
        let whole = Bytes::from_static(b"3 1 t\n\x00a\x00b\x003 1 t\n");
        assert_eq!(parse(&whole).unwrap().1, "a\0b");
        let changed = Bytes::from_static(b"3 1 t\n\x00abc\x003 1 u\n");
        assert_eq!(parse(&changed).unwrap_err().kind(), ErrorKind::Conflict);
        for bad in [&b""[..], b"3 1", b"3 1\x00"] {
            assert_eq!(
                parse(&Bytes::copy_from_slice(bad)).unwrap_err().kind(),
                ErrorKind::Protocol
            );
        }
    }

    proptest! {
        #[test]
        fn no_answer_panics(bytes in prop::collection::vec(0u8..3, 0..50)) {
            let _ = parse(&bytes.into());
        }
    }
}
