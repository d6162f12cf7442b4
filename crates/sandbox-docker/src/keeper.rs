//! The keeper: what process 1 runs, so that a sandbox ends by itself and with its owner.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use bollard::container::LogOutput;
use futures_util::{Stream, StreamExt as _};
use sandbox_core::{Command, Error, ErrorKind, Program, Result, shell};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;

use crate::client::Engine;
use crate::error;

const SCRIPT: &str = include_str!("scripts/keeper.sh");

/// Where the keeper has its files: a small tmpfs that only root may enter.
const DIR: &str = "/run/sandbox-keeper";

/// The keeper's own command id: it is never taken for a part of a command.
pub(crate) const COMMAND_ID: &str = "keeper";

/// The longest lifetime in seconds; a longer one means this one. Every `sleep` takes it.
const LONGEST: u64 = 10 * 366 * 24 * 3600;

/// How long a container may take from its start until its keeper says so.
const READY: Duration = Duration::from_secs(30);

/// How long letting go may take.
const LET_GO: Duration = Duration::from_secs(5);

/// Whole seconds, rounded up, within what the keeper takes.
pub(crate) fn seconds(lifetime: Duration) -> u64 {
    let up = lifetime
        .as_secs()
        .saturating_add(u64::from(lifetime.subsec_nanos() > 0));
    up.clamp(1, LONGEST)
}

/// What process 1 runs.
pub(crate) fn entrypoint(lifetime: Duration, tethered: bool) -> Vec<String> {
    let tether = if tethered { "1" } else { "" };
    let youngest = match shell::floor_probe().program {
        Program::Argv(argv) => argv.into_iter().nth(2).unwrap_or_default(),
        Program::Shell(text) => text,
        _ => String::new(),
    };
    [
        "/bin/sh",
        "-c",
        SCRIPT,
        "keeper",
        &seconds(lifetime).to_string(),
        DIR,
        tether,
        &youngest,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// The tmpfs of the keeper's files.
pub(crate) fn tmpfs() -> HashMap<String, String> {
    let options = "rw,noexec,nosuid,nodev,size=64k,mode=0700";
    HashMap::from([(DIR.to_owned(), options.to_owned())])
}

/// Run as root, this sets when the sandbox ends. Argument: seconds from now.
pub(crate) const RENEW: &str = r#"cd /run/sandbox-keeper && n=$(date +%s) &&
echo $((n+$1)) >new && mv -f new expires && kill -USR1 "$(cat pid)""#;

/// Run as root, this prints the seconds that are left.
pub(crate) const REMAINING: &str = r"cd /run/sandbox-keeper && n=$(date +%s) &&
e=$(cat expires) && echo $((e-n))";

/// Run as root, this waits until the keeper has begun, at most 10 s. Prints its floor, then
/// `homeless` if the image knows no home for the user. Argument: the user, by name or number.
pub(crate) const AWAIT: &str = r#"i=0; while ! [ -s /run/sandbox-keeper/pid ]; do
i=$((i+1)); [ $i -lt 100 ] || exit 1; sleep 0.1 2>/dev/null || sleep 1; done
cat /run/sandbox-keeper/floor; echo
[ "$1" != 0 ] || exit 0
while IFS=: read -r n p u r; do [ "$n" = "$1" ] || [ "$u" = "$1" ] && exit 0; done </etc/passwd
echo homeless"#;

/// Run as root, this succeeds if the owner let the sandbox go or its lifetime is not over.
pub(crate) const LET_GO_OF: &str = r#"cd /run/sandbox-keeper && [ -e detached ] &&
[ "$(cat expires)" -gt "$(date +%s)" ]"#;

/// One of the scripts above as a command of root.
pub(crate) fn script(text: &str) -> Command {
    Command::new("/bin/sh")
        .args(["-c", text, "sandbox"])
        .user("0:0")
}

/// Reads the keeper's first line. Gives the floor: no process that began before is part of a command.
pub(crate) async fn ready(
    mut output: Pin<
        Box<dyn Stream<Item = std::result::Result<LogOutput, bollard::errors::Error>> + Send>,
    >,
) -> Result<u64> {
    let read = async {
        // A loader or a shell may complain of the image's own variables and go on.
        let (mut line, mut complaints) = (Vec::new(), Vec::new());
        while let Some(part) = output.next().await {
            let part = part.map_err(|e| error::from_engine("read the keeper's output", e))?;
            if matches!(part, LogOutput::StdErr { .. }) {
                if complaints.len() < 4096 {
                    complaints.extend_from_slice(&part.into_bytes());
                }
                continue;
            }
            line.extend_from_slice(&part.into_bytes());
            if line.contains(&b'\n') || line.len() > 4096 {
                break;
            }
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        if let Some(floor) = line.strip_prefix("ready ") {
            return shell::parse_floor(floor.as_bytes());
        }
        if let Some(tool) = line.strip_prefix("missing:") {
            return Err(Error::new(
                ErrorKind::MissingTool,
                "the image lacks a program that a sandbox needs",
            )
            .with("program", tool.trim()));
        }
        Err(Error::new(
            ErrorKind::MissingTool,
            "the container ended before it took commands: the image needs a POSIX shell at /bin/sh",
        )
        .with(
            "output",
            error::shorten(&(line + &String::from_utf8_lossy(&complaints))),
        ))
    };
    match tokio::time::timeout(READY, read).await {
        Ok(result) => result,
        Err(_) => Err(error::timed_out("get the container ready")),
    }
}

/// The owner's end of the keeper's stdin. Dropping it ends the sandbox, by nothing but a closed
/// descriptor: so it ends with the process too, however that ends.
pub(crate) struct Tether(Mutex<Option<Pin<Box<dyn AsyncWrite + Send>>>>);

impl std::fmt::Debug for Tether {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tether")
    }
}

impl Tether {
    /// Ties a container that has not been started to this process.
    pub(crate) async fn tie(engine: &Engine, id: &str) -> Result<Self> {
        let attached = engine.attach(id, true).await?;
        Ok(Self(Mutex::new(Some(attached.input))))
    }

    /// Lets the sandbox live on without its owner.
    pub(crate) async fn let_go(&self) -> Result<()> {
        let mut held = self.0.lock().await;
        let Some(input) = held.as_mut() else {
            return Ok(());
        };
        let write = async {
            input.write_all(b"detach\n").await?;
            input.flush().await
        };
        match tokio::time::timeout(LET_GO, write).await {
            Ok(Ok(())) => {}
            Ok(Err(e)) => return Err(error::gone().because(e)),
            Err(_) => return Err(error::timed_out("let the sandbox go")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_whole_seconds_that_every_sleep_takes() {
        assert_eq!(seconds(Duration::from_millis(1)), 1);
        assert_eq!(seconds(Duration::from_millis(1001)), 2);
        assert_eq!(seconds(Duration::MAX), LONGEST);
    }
}
