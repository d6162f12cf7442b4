//! Running commands: in the foreground with a stream of events, in the background, and asking for
//! and ending either by id.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use sandbox_core::Result;
use serde::{Deserialize, Serialize};

use super::{Execd, QUICK, SILENCE};
use crate::error;
use crate::events::{Decoder, ExecdEnding, ExecdEvent};
use crate::http::{ANSWER, Answer, Content, Request, encoded};

/// How long it may take to begin a command.
const BEGIN: Duration = Duration::from_secs(30);

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
    /// [`sandbox_core::ErrorKind::NotFound`] for an unknown id: of a background command, for some milliseconds
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
    /// [`sandbox_core::ErrorKind::InvalidArgument`] for an unknown id, and for a command that is not in the
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
        let bytes = read_at_most(&mut answer, what, ANSWER as u64).await?;
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
                        answer.drain();
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

/// Whoever leaves a command leaves it to end by itself: what it says until then is read.
impl Drop for Events {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take() {
            answer.drain();
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
