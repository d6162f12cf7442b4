//! The always-on checks: the one way from an operation to a backend's primitives.
//!
//! Arguments are checked before, answers after: whatever a backend gives is hostile input.

use std::time::Instant;

use bytes::Bytes;

use crate::lower::lower;
use crate::{
    Command, Error, ErrorKind, ExecuteResponse, ExecuteStream, FileDownload, FileUpload, ProcessId,
    Result, SandboxBackend,
};

/// Checks and lowers `command`, runs it, and checks the response.
///
/// # Errors
///
/// Those of [`Command::checked`], [`ErrorKind::Unsupported`] for what can't be lowered, and those
/// of the backend. A missing cwd is [`ErrorKind::NotFound`].
pub async fn execute(backend: &dyn SandboxBackend, command: Command) -> Result<ExecuteResponse> {
    let caps = backend.capabilities();
    let lowered = lower(command.checked()?, &caps)?;
    if !lowered.uploads.is_empty() {
        upload_files(backend, &lowered.uploads)
            .await
            .into_iter()
            .collect::<Result<Vec<()>>>()?;
    }
    let limit = lowered.command.effective_output_limit();
    let start = Instant::now();
    let mut response = backend.execute(&lowered.command).await?.limited(limit);
    if response.elapsed.is_zero() {
        response.elapsed = start.elapsed();
    }
    lowered.raise(response)
}

/// Writes files; the answer has one result a file, whatever the backend does.
pub async fn upload_files(backend: &dyn SandboxBackend, files: &[FileUpload]) -> Vec<Result<()>> {
    if files.is_empty() {
        return Vec::new();
    }
    // `/` can be no file anywhere: it fails alone, and the backend sees the others.
    let others: Vec<FileUpload>;
    let sent = if files.iter().any(|f| f.path.is_root()) {
        others = files
            .iter()
            .filter(|f| !f.path.is_root())
            .cloned()
            .collect();
        &others[..]
    } else {
        files
    };
    let results = match sent {
        [] => Vec::new(),
        sent => backend.upload_files(sent).await,
    };
    let mut results = each(results, sent.iter().map(|f| f.path.as_str())).into_iter();
    files
        .iter()
        .map(|f| {
            let root = || Error::new(ErrorKind::IsADirectory, "a file can't be written at `/`");
            if f.path.is_root() {
                return Err(root().with("path", &f.path));
            }
            results
                .next()
                .unwrap_or_else(|| Err(Error::new(ErrorKind::Protocol, "no result for this file")))
        })
        .collect()
}

/// Reads files; the answer has one result a file, none larger than its limit.
pub async fn download_files(
    backend: &dyn SandboxBackend,
    files: &[FileDownload],
) -> Vec<Result<Bytes>> {
    if files.is_empty() {
        return Vec::new();
    }
    let results = backend.download_files(files).await;
    each(results, files.iter().map(|f| f.path.as_str()))
        .into_iter()
        .zip(files)
        .map(|(result, file)| match result {
            Ok(content) if content.len() as u64 > file.limit => {
                Err(too_large(content.len() as u64, file.limit).with("path", &file.path))
            }
            other => other,
        })
        .collect()
}

/// A file beyond the limit of a download into memory.
pub fn too_large(size: u64, limit: u64) -> Error {
    Error::new(
        ErrorKind::TooLarge,
        "the file is larger than the limit: stream it with `download_to`",
    )
    .with("bytes", size)
    .with("limit", limit)
}

fn each<'a, T>(
    results: Vec<Result<T>>,
    paths: impl ExactSizeIterator<Item = &'a str>,
) -> Vec<Result<T>> {
    let (got, asked) = (results.len(), paths.len());
    if got == asked {
        return results
            .into_iter()
            .zip(paths)
            .map(|(r, path)| r.map_err(|e| e.with("path", path)))
            .collect();
    }
    // Which result is whose can't be known: none is believed.
    paths
        .map(|path| {
            Err(Error::new(
                ErrorKind::Protocol,
                "the backend answered another number of results than files",
            )
            .with("path", path)
            .with("results", got)
            .with("files", asked))
        })
        .collect()
}

/// Checks and lowers `command` and starts it for streaming.
///
/// # Errors
///
/// As [`execute`]; [`ErrorKind::Unsupported`] without the family.
pub async fn stream(backend: &dyn SandboxBackend, command: Command) -> Result<ExecuteStream> {
    let family = backend
        .streaming()
        .ok_or_else(|| Error::unsupported("streaming output"))?;
    family
        .execute_streaming(&prepared(backend, command).await?)
        .await
}

/// Checks and lowers `command` and starts it in the background.
///
/// # Errors
///
/// As [`execute`]; [`ErrorKind::Unsupported`] without the family.
pub async fn spawn(backend: &dyn SandboxBackend, command: Command) -> Result<ProcessId> {
    let family = backend
        .processes()
        .ok_or_else(|| Error::unsupported("background commands"))?;
    family.start(&prepared(backend, command).await?).await
}

/// A lowered command whose uploads are done. The wrapper's own failures show as exit code 125:
/// backends with these families take cwd and stdin themselves.
async fn prepared(backend: &dyn SandboxBackend, command: Command) -> Result<Command> {
    let lowered = lower(command.checked()?, &backend.capabilities())?;
    upload_files(backend, &lowered.uploads)
        .await
        .into_iter()
        .collect::<Result<Vec<()>>>()?;
    Ok(lowered.command)
}
