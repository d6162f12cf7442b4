//! Files by one program in the sandbox and its stdin and stdout, so with the rights of the
//! sandbox's user: for backends whose provider moves files with more rights than that.

mod frames;
mod words;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use self::frames::{Frames, Records, Whole};
use super::script::garbled;
use crate::{Error, FileDownload, FileUpload, Result, Stream, call, defaults, shell};

/// Takes what a script prints, part by part.
pub trait ScriptOutput: Send {
    /// False when the rest is of no use: what prints may be hostile and never end.
    fn wants_more(&self) -> bool;
    /// The next part.
    fn put(&mut self, stream: Stream, bytes: Bytes);
}

/// Runs scripts whose input and output may be large.
#[async_trait]
pub trait RunScript: Send + Sync {
    /// Runs `sh -c SCRIPT sandbox ARGS…` as the sandbox's user in `/`, in the C locale, and gives
    /// its exit code. `limit` is for all of it.
    ///
    /// # Errors
    ///
    /// It did not start, did not end in time, or nobody knows its end. Once `output` wants no
    /// more, any error will do.
    async fn run_script(
        &self,
        script: &'static str,
        args: Vec<String>,
        input: Vec<Bytes>,
        output: &mut dyn ScriptOutput,
        limit: Duration,
    ) -> Result<i32>;
}

const UPLOAD: &str = include_str!("scripts/upload.sh");
const DOWNLOAD: &str = include_str!("scripts/download.sh");
const DOWNLOAD_MANY: &str = include_str!("scripts/download_many.sh");

/// What the arguments of one call may take: well below the system's limit.
const ARGUMENTS: usize = 1 << 20;

/// The least bytes a second that a transfer is expected to make.
const SLOWEST: u64 = 256 << 10;

/// The most that the `head` of `BusyBox` takes as a number.
const HEAD_LIMIT: u64 = 4_000_000_000;

/// How long a transfer may take.
fn limit(bytes: u64) -> Duration {
    defaults::INTERNAL_TIME + Duration::from_secs(bytes / SLOWEST)
}

/// Writes files, in one call unless their names are very many.
///
/// One result a file, in order, with the promises of
/// [`SandboxBackend::upload_files`](crate::SandboxBackend::upload_files).
pub async fn upload_by_script(runner: &dyn RunScript, files: &[FileUpload]) -> Vec<Result<()>> {
    let mut results = Vec::with_capacity(files.len());
    while results.len() < files.len() {
        let rest = &files[results.len()..];
        let batch = &rest[..fitting(rest.iter().map(|f| f.path.as_str().len()))];
        let before = results.len();
        let failed = upload_batch(runner, batch, &mut results).await.err();
        if results.len() == before {
            // Nothing was done: the same will happen again.
            let e = failed.unwrap_or_else(|| garbled("what was written"));
            results.extend(rest.iter().map(|_| Err(copy(&e))));
        }
    }
    results
}

async fn upload_batch(
    runner: &dyn RunScript,
    batch: &[FileUpload],
    results: &mut Vec<Result<()>>,
) -> Result<()> {
    let args = batch
        .iter()
        .flat_map(|f| [f.path.as_str().to_owned(), f.content.len().to_string()]);
    let input: Vec<Bytes> = batch.iter().map(|f| f.content.clone()).collect();
    let bytes = input.iter().map(|b| b.len() as u64).sum();
    let mut records = Records::new(batch.len());
    let ran = runner
        .run_script(UPLOAD, args.collect(), input, &mut records, limit(bytes))
        .await;
    results.extend(records.whole.iter().map(|words| match words.as_str() {
        "" => Ok(()),
        words => Err(words::refused(words, "written")),
    }));
    match ran? {
        0 | 9 => Ok(()),
        _ => Err(words::refused(&records.words(), "written")),
    }
}

/// Reads files, in one call unless their names are very many or one changes while it is read.
///
/// One result a file, in order, with the promises of
/// [`SandboxBackend::download_files`](crate::SandboxBackend::download_files).
pub async fn download_by_script(
    runner: &dyn RunScript,
    files: &[FileDownload],
) -> Vec<Result<Bytes>> {
    let mut results = Vec::with_capacity(files.len());
    while results.len() < files.len() {
        let rest = &files[results.len()..];
        if let [only] = rest {
            results.push(download_one(runner, only).await);
            break;
        }
        let batch = &rest[..fitting(rest.iter().map(|f| f.path.as_str().len()))];
        let before = results.len();
        let failed = download_batch(runner, batch, &mut results).await.err();
        match failed {
            Some(e) if results.len() == before => {
                results.extend(rest.iter().map(|_| Err(copy(&e))));
            }
            _ if results.len() < before + batch.len() => {
                // The next one is not what its size said: alone it needs no size.
                results.push(download_one(runner, &rest[results.len() - before]).await);
            }
            _ => {}
        }
    }
    results
}

async fn download_batch(
    runner: &dyn RunScript,
    batch: &[FileDownload],
    results: &mut Vec<Result<Bytes>>,
) -> Result<()> {
    let token = shell::command_id();
    let args = std::iter::once(token.clone()).chain(batch.iter().flat_map(|f| {
        [
            f.path.as_str().to_owned(),
            f.limit.min(HEAD_LIMIT).to_string(),
        ]
    }));
    let mut frames = Frames::new(token, batch);
    let bytes = batch.iter().map(|f| f.limit).fold(0, u64::saturating_add);
    let ran = runner
        .run_script(
            DOWNLOAD_MANY,
            args.collect(),
            Vec::new(),
            &mut frames,
            limit(bytes),
        )
        .await;
    if !frames.complete {
        frames.lose();
    }
    results.append(&mut frames.done);
    match ran {
        Ok(0) => Ok(()),
        // It was stopped there.
        Err(_) if frames.over => Ok(()),
        Err(e) => Err(e),
        Ok(_) => Err(words::refused(
            &String::from_utf8_lossy(&frames.stderr),
            "read",
        )),
    }
}

/// Reads one file: whatever comes until the end is its content.
async fn download_one(runner: &dyn RunScript, file: &FileDownload) -> Result<Bytes> {
    let most = file.limit.min(HEAD_LIMIT);
    let args = vec![file.path.as_str().to_owned(), (most + 1).to_string()];
    let mut whole = Whole {
        most: usize::try_from(most).unwrap_or(usize::MAX - 1) + 1,
        ..Whole::default()
    };
    let code = runner
        .run_script(DOWNLOAD, args, Vec::new(), &mut whole, limit(most))
        .await;
    if whole.content.len() as u64 > most {
        return Err(call::too_large(whole.content.len() as u64, most));
    }
    if code? != 0 {
        return Err(words::refused(
            &String::from_utf8_lossy(&whole.stderr),
            "read",
        ));
    }
    Ok(whole.content.into())
}

/// How many of the paths go into one call; at least one.
fn fitting(lengths: impl Iterator<Item = usize>) -> usize {
    let mut sum = 0;
    lengths
        .take_while(|length| {
            // The size and the pointers, too.
            sum += length + 40;
            sum <= ARGUMENTS
        })
        .count()
        .max(1)
}

/// The same error for another file of the batch.
fn copy(e: &Error) -> Error {
    Error::new(e.kind(), e.message().to_owned()).retry(e.retry_advice())
}
