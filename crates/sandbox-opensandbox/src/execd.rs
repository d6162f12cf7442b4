//! The API of the daemon in a sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue, RANGE};
use sandbox_core::{Error, ErrorKind, Result, shell};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::secret_header;
use crate::error;
use crate::events::{Decoder, ExecdEnding, ExecdEvent};
use crate::http::{Address, Answer, Content, Http, Request, encoded};
use crate::secret::Secret;

/// How long the daemon may take for what it does at once.
const QUICK: Duration = Duration::from_secs(20);

/// How long it may take to begin a command.
const BEGIN: Duration = Duration::from_secs(30);

/// How long a stream may be silent: the daemon says something every 3 s.
const SILENCE: Duration = Duration::from_secs(30);

/// How long is waited for what follows a command's end: the next command then uses the same
/// connection. The stock daemon holds it for a second or so: that is not waited for.
const REST: Duration = Duration::from_millis(50);

/// The least bytes a second that a transfer is expected to make.
const SLOWEST: u64 = 256 << 10;

/// The header of the daemon's own token.
const TOKEN: HeaderName = HeaderName::from_static("x-execd-access-token");

/// The daemon of one sandbox. Cheap to clone. Belongs to the runtime that uses it first.
///
/// What it does, it does with its own rights, which are root's as a rule, and it expands variables
/// in paths. [`sandbox_core::Sandbox`] has neither in its way.
#[derive(Clone, Debug)]
pub struct Execd {
    http: Http,
}

/// A command for the daemon.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunCommand {
    /// Shell text.
    pub command: String,
    /// Where it starts. The daemon expands `~` and variables in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables added to the daemon's own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub envs: BTreeMap<String, String>,
    /// Who runs it; the daemon's own user if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The group, with a user only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// When the daemon kills the command's process group, in milliseconds. Never 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// Whether the daemon answers before the command has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

/// What the daemon knows of a command.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct CommandStatus {
    /// Whether it runs.
    #[serde(default)]
    pub running: bool,
    /// Its exit code, if it has one.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The daemon's words about the end.
    #[serde(default)]
    pub error: Option<String>,
}

impl CommandStatus {
    /// How it ended; `None` while it runs.
    pub fn ending(&self) -> Option<ExecdEnding> {
        if self.running {
            return None;
        }
        let words = self.error.as_deref().unwrap_or_default();
        Some(match self.exit_code {
            Some(code) => ExecdEnding::of(&code.to_string(), words),
            None => ExecdEnding::Unknown(error::shorten(words)),
        })
    }
}

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

/// How busy the machine is that the sandbox runs on.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Metrics {
    /// Processors.
    pub cpu_count: f64,
    /// How much of them is used, in percent.
    pub cpu_used_pct: f64,
    /// Memory in MiB.
    pub mem_total_mib: f64,
    /// Memory in use in MiB.
    pub mem_used_mib: f64,
}

/// A part of a command's log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogPart {
    /// Both streams as they were written.
    pub bytes: Bytes,
    /// Where the next part begins.
    pub cursor: u64,
}

impl Execd {
    pub(crate) fn new(http: &Http, mut address: Address, token: Option<&Secret>) -> Result<Self> {
        if let Some(token) = token {
            let value = secret_header(token, "the daemon's token")?;
            address.headers.insert(TOKEN, value);
        }
        Ok(Self {
            http: http.at(address)?,
        })
    }

    /// The same for another runtime. No I/O.
    pub(crate) fn elsewhere(&self) -> Result<Self> {
        Ok(Self {
            http: self.http.elsewhere()?,
        })
    }

    /// Whether the daemon answers.
    ///
    /// # Errors
    ///
    /// Those of the transport; [`ErrorKind::Unauthorized`] without the daemon's token.
    pub async fn ping(&self, limit: Duration) -> Result<()> {
        let request = Request::new("reach the sandbox's daemon", Method::GET, "/ping", limit);
        if self.http.whole(request).await?.is_empty() {
            Ok(())
        } else {
            Err(error::garbled("reach the sandbox's daemon"))
        }
    }

    /// Starts a command. Dropping the events leaves it running.
    ///
    /// # Errors
    ///
    /// It did not start; or, if the connection was lost, nobody knows.
    pub async fn run(&self, command: &RunCommand) -> Result<Events> {
        let request = Request::new("start a command", Method::POST, "/command", BEGIN)
            .content(Content::json(command)?);
        Ok(Events {
            answer: Some(self.http.send(request).await?),
            decoder: Decoder::default(),
            ready: Vec::new(),
        })
    }

    /// What a command does, by the id of its first event.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an unknown id: of a background command, for some milliseconds
    /// after its start too.
    pub async fn status(&self, id: &str) -> Result<CommandStatus> {
        let target = format!("/command/status/{}", encoded(id));
        let request = Request::new("look at a command", Method::GET, target, QUICK);
        self.http.json(request).await
    }

    /// What a background command wrote from the cursor on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] for an unknown id, and for a command that is not in the
    /// background.
    pub async fn logs(&self, id: &str, cursor: u64) -> Result<LogPart> {
        let what = "read a command's log";
        let target = format!("/command/{}/logs?cursor={cursor}", encoded(id));
        let mut answer = self
            .http
            .send(Request::new(what, Method::GET, target, QUICK))
            .await?;
        let next = answer
            .header("execd-commands-tail-cursor")
            .and_then(|value| value.parse().ok())
            .ok_or_else(|| error::garbled(what))?;
        let bytes = read_at_most(&mut answer, what, crate::http::ANSWER as u64).await?;
        Ok(LogPart {
            bytes,
            cursor: next,
        })
    }

    /// Ends a command's process group: a SIGTERM, and SIGKILL three seconds later. One that has
    /// ended already is a success.
    ///
    /// # Errors
    ///
    /// Those of the transport.
    pub async fn interrupt(&self, id: &str) -> Result<()> {
        let target = format!("/command?id={}", encoded(id));
        let request = Request::new("end a command", Method::DELETE, target, QUICK);
        match self.http.whole(request).await {
            Err(e)
                if ["no such session", "is not running"]
                    .iter()
                    .any(|words| e.message().contains(words)) =>
            {
                Ok(())
            }
            other => other.map(drop),
        }
    }

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

    /// How busy the machine is. The daemon takes a second to find out.
    ///
    /// # Errors
    ///
    /// Those of the transport.
    pub async fn metrics(&self) -> Result<Metrics> {
        let request = Request::new("read the metrics", Method::GET, "/metrics", QUICK);
        self.http.json(request).await
    }

    async fn post(&self, what: &'static str, target: &str, body: &impl Serialize) -> Result<()> {
        let request = Request::new(what, Method::POST, target, QUICK).content(Content::json(body)?);
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
        Ok(Download { answer, left })
    }
}

/// The events of a running command.
#[derive(Debug)]
pub struct Events {
    answer: Option<Answer>,
    decoder: Decoder,
    /// In reverse.
    ready: Vec<ExecdEvent>,
}

impl Events {
    /// The next event; `None` when the stream has ended, with or without an end of the command.
    /// After the end of the command nothing is waited for. Cancel safe.
    ///
    /// # Errors
    ///
    /// The connection was lost, or the daemon was silent for too long.
    pub async fn next(&mut self) -> Result<Option<ExecdEvent>> {
        loop {
            if let Some(event) = self.ready.pop() {
                if matches!(event, ExecdEvent::Ended(_)) {
                    self.ready.clear();
                    if let Some(answer) = self.answer.take() {
                        answer.drain(REST);
                    }
                }
                return Ok(Some(event));
            }
            let Some(answer) = &mut self.answer else {
                return Ok(None);
            };
            let part = match tokio::time::timeout(SILENCE, answer.next()).await {
                Ok(part) => part,
                Err(_) => Err(error::timed_out("hear from a command")),
            };
            let ready = &mut self.ready;
            match part {
                Ok(Some(bytes)) => self.decoder.push(&bytes, |event| ready.push(event)),
                Ok(None) => {
                    self.answer = None;
                    self.decoder.finish(|event| ready.push(event));
                }
                Err(e) => {
                    self.answer = None;
                    return Err(e);
                }
            }
            ready.reverse();
        }
    }
}

/// A file that is being read.
#[derive(Debug)]
pub struct Download {
    answer: Answer,
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
        if self.left == 0 {
            return Ok(None);
        }
        match tokio::time::timeout(SILENCE, self.answer.next()).await {
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

async fn read_at_most(answer: &mut Answer, what: &'static str, most: u64) -> Result<Bytes> {
    let mut body = Vec::new();
    let read = async {
        while let Some(part) = answer.next().await? {
            if (body.len() + part.len()) as u64 > most {
                return Err(error::endless(what));
            }
            body.extend_from_slice(&part);
        }
        Ok(())
    };
    match tokio::time::timeout(QUICK, read).await {
        Ok(Ok(())) => Ok(body.into()),
        Ok(Err(e)) => Err(e),
        Err(_) => Err(error::timed_out(what)),
    }
}

fn query(paths: &[&str]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|p| format!("path={}", encoded(p)))
        .collect();
    paths.join("&")
}
