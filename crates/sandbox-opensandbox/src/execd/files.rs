//! Files, with the daemon's own rights.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{HeaderValue, RANGE};
use sandbox_core::{Error, ErrorKind, Result, shell};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Execd, QUICK, SILENCE};
use crate::error;
use crate::http::{Answer, Content, Request, encoded};

/// The least bytes a second that a transfer is expected to make.
const SLOWEST: u64 = 256 << 10;

/// What the daemon knows of a file. Links are not followed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct FileInfo {
    /// The path, variables expanded.
    pub path: String,
    /// `file`, `directory`, `symlink` or `other`. Old daemons do not say.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// Bytes.
    #[serde(default)]
    pub size: u64,
    /// The name of its owner, or the number.
    #[serde(default)]
    pub owner: String,
    /// The name of its group, or the number.
    #[serde(default)]
    pub group: String,
    /// The permission bits, octal digits read as a decimal number: 644.
    #[serde(default)]
    pub mode: u32,
}

/// Owner, group and permission bits of a file; what is unset stays as it is.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Permissions {
    /// The name of the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The name of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Octal digits read as a decimal number: 644.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

impl Execd {
    /// What each path is. One that is missing fails all.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`].
    pub async fn info(&self, paths: &[&str]) -> Result<BTreeMap<String, FileInfo>> {
        let target = format!("/files/info?{}", query(paths));
        let request = Request::new("look at files", Method::GET, target, QUICK);
        self.http.json(request).await
    }

    /// The regular files below `path` whose base name the pattern matches.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`]; a directory that can't be read fails all.
    pub async fn search(&self, path: &str, pattern: &str) -> Result<Vec<FileInfo>> {
        let target = format!(
            "/files/search?path={}&pattern={}",
            encoded(path),
            encoded(pattern)
        );
        let request = Request::new("search files", Method::GET, target, QUICK);
        self.http.json(request).await
    }

    /// Replaces a text everywhere in files; gives how often in each.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] for an empty text to replace.
    pub async fn replace(
        &self,
        edits: &BTreeMap<String, (String, String)>,
    ) -> Result<BTreeMap<String, u64>> {
        let body: BTreeMap<&String, Value> = edits
            .iter()
            .map(|(path, (old, new))| (path, serde_json::json!({ "old": old, "new": new })))
            .collect();
        let what = "replace text in files";
        let request = Request::new(what, Method::POST, "/files/replace?verbose=true", QUICK)
            .content(Content::json(&body)?);
        let counts: BTreeMap<String, Value> = self.http.json(request).await?;
        counts
            .into_iter()
            .map(|(path, count)| {
                let count = count["replacedCount"].as_u64();
                Ok((path, count.ok_or_else(|| error::garbled(what))?))
            })
            .collect()
    }

    /// Moves a file. One that is there already is never replaced.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], [`ErrorKind::Unexpected`] where the target exists.
    pub async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let body = serde_json::json!([{ "src": from, "dest": to }]);
        self.post("move a file", "/files/mv", &body).await
    }

    /// Sets owner, group and permission bits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unexpected`] for a missing file and an unknown owner.
    pub async fn set_permissions(&self, path: &str, permissions: &Permissions) -> Result<()> {
        let body = serde_json::json!({ path: permissions });
        self.post("set a file's permissions", "/files/permissions", &body)
            .await
    }

    /// Removes files. One that is missing is a success.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unexpected`] for a directory.
    pub async fn delete(&self, paths: &[&str]) -> Result<()> {
        let target = format!("/files?{}", query(paths));
        let request = Request::new("remove files", Method::DELETE, target, QUICK);
        self.http.whole(request).await.map(drop)
    }

    /// The entries of a directory, `depth` levels down.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], [`ErrorKind::InvalidArgument`] for what is no directory.
    pub async fn list_directory(&self, path: &str, depth: u32) -> Result<Vec<FileInfo>> {
        let target = format!("/directories/list?path={}&depth={depth}", encoded(path));
        let request = Request::new("list a directory", Method::GET, target, QUICK);
        self.http.json(request).await
    }

    /// Makes a directory and its parents.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unexpected`] where a part of it is a file.
    pub async fn make_directory(&self, path: &str, permissions: &Permissions) -> Result<()> {
        let body = serde_json::json!({ path: permissions });
        self.post("make a directory", "/directories", &body).await
    }

    /// Removes directories with all that is in them.
    ///
    /// # Errors
    ///
    /// Those of the transport.
    pub async fn remove_directories(&self, paths: &[&str]) -> Result<()> {
        let target = format!("/directories?{}", query(paths));
        let request = Request::new("remove directories", Method::DELETE, target, QUICK);
        self.http.whole(request).await.map(drop)
    }

    /// Writes a file, parents included, from parts that follow each other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unexpected`] where it can't be written.
    pub async fn upload(
        &self,
        path: &str,
        permissions: &Permissions,
        parts: Vec<Bytes>,
    ) -> Result<()> {
        #[derive(Serialize)]
        struct Metadata<'a> {
            path: &'a str,
            #[serde(flatten)]
            permissions: &'a Permissions,
        }
        let metadata = serde_json::to_string(&Metadata { path, permissions })
            .map_err(|e| Error::new(ErrorKind::Unexpected, "no JSON of a file").because(e))?;
        let size: u64 = parts.iter().map(|p| p.len() as u64).sum();
        // Random, so that no content can hold it.
        let boundary = shell::command_id();
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"metadata\"; \
             filename=\"metadata\"\r\nContent-Type: application/json\r\n\r\n{metadata}\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; \
             filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\n"
        );
        let mut body = vec![Bytes::from(head)];
        body.extend(parts);
        body.push(Bytes::from(format!("\r\n--{boundary}--\r\n")));
        let kind = HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}"))
            .map_err(|e| Error::new(ErrorKind::Unexpected, "no content type").because(e))?;
        let limit = QUICK + Duration::from_secs(size / SLOWEST);
        let request = Request::new("upload a file", Method::POST, "/files/upload", limit)
            .content(Content::Parts(kind, body));
        self.http.whole(request).await.map(drop)
    }

    /// Reads a file, or a part of it. The daemon answers with the size it has at the moment.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Unexpected`] where it can't be read.
    pub async fn download(&self, path: &str, range: Option<(u64, u64)>) -> Result<Download> {
        let what = "download a file";
        let target = format!("/files/download?path={}", encoded(path));
        let mut request = Request::new(what, Method::GET, target, QUICK);
        if let Some((from, to)) = range {
            let value = HeaderValue::try_from(format!("bytes={from}-{to}"))
                .map_err(|e| Error::new(ErrorKind::Unexpected, "no range").because(e))?;
            request.headers.insert(RANGE, value);
        }
        let answer = self.http.send(request).await?;
        if range.is_some() && answer.status() != 206 {
            return Err(error::garbled(what));
        }
        let left = answer
            .header("content-length")
            .and_then(|n| n.parse().ok())
            .ok_or_else(|| error::garbled(what))?;
        Ok(Download {
            answer: Some(answer),
            left,
        })
    }
}

/// A file that is being read.
#[derive(Debug)]
pub struct Download {
    /// Taken when it is dropped.
    answer: Option<Answer>,
    left: u64,
}

impl Download {
    /// Bytes that are still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next bytes; `None` when all have come. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] if it is shorter than was said; those of the transport.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(answer) = self.answer.as_mut().filter(|_| self.left > 0) else {
            return Ok(None);
        };
        match tokio::time::timeout(SILENCE, answer.next()).await {
            Ok(Ok(Some(part))) => {
                self.left = self.left.saturating_sub(part.len() as u64);
                Ok(Some(part))
            }
            Ok(Ok(None)) => Err(Error::new(
                ErrorKind::Conflict,
                "the file became shorter while it was read",
            )),
            Ok(Err(e)) => Err(e),
            Err(_) => Err(error::timed_out("download a file")),
        }
    }
}

/// The rest is read and thrown away: it is not larger than what was asked for.
impl Drop for Download {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take() {
            answer.drain();
        }
    }
}

fn query(paths: &[&str]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|p| format!("path={}", encoded(p)))
        .collect();
    paths.join("&")
}
