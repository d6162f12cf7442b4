//! Files by one program in the sandbox, with the rights of the sandbox's user. The daemon's own
//! file operations act with its rights, and expand variables in names.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use sandbox_core::derive::{RunScript, ScriptOutput};
use sandbox_core::{Command, ErrorKind, Result, Stream};
use tokio::time::timeout;

use crate::error;
use crate::launch::Files;
use crate::live::Live;
use crate::output;
use crate::running::Running;

#[async_trait]
impl RunScript for Live {
    async fn run_script(
        &self,
        script: &'static str,
        args: Vec<String>,
        input: Vec<Bytes>,
        output: &mut dyn ScriptOutput,
        limit: Duration,
    ) -> Result<i32> {
        let command = Command::new("/bin/sh")
            .args(["-c", script, "sandbox"])
            .args(args)
            .cwd("/")
            .env("LC_ALL", "C");
        let run = async {
            let mut running = Running::start_with(self, &command, self.place.user, input).await?;
            let code = running.wait().await?.code()?;
            let read = read(self, running.files(), code, output).await;
            running.forget();
            read.map(|()| code)
        };
        match timeout(limit, run).await {
            Ok(result) => result,
            Err(_) => Err(error::timed_out("move files")),
        }
    }
}

/// Hands out what the script printed, part by part. What it complained about counts only where it
/// failed.
async fn read(live: &Live, files: &Files, code: i32, output: &mut dyn ScriptOutput) -> Result<()> {
    let streams: &[Stream] = match code {
        0 => &[Stream::Stdout],
        _ => &[Stream::Stderr, Stream::Stdout],
    };
    for stream in streams.iter().copied() {
        let mut download = match live.execd.download(&files.output(stream), None).await {
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(output::removed(e)),
            other => other?,
        };
        while output.wants_more()
            && let Some(part) = download.next().await?
        {
            output.put(stream, part);
        }
    }
    Ok(())
}
