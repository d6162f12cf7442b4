//! Running a command: its input, its output as it comes, its exit code.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;

use sandbox::{Bytes, Command, Error, ErrorKind, ExecuteEvent, Sandbox, Status, Stream};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::life::Backend;
use crate::output::{self, FAILED, Outcome};
use crate::{args, files};

/// The most input that is taken: it is held in memory, here and on the way.
const STDIN_LIMIT: u64 = 64 << 20;

/// Runs a command in a sandbox of its own.
pub(crate) async fn run(at: &Backend, args: args::Run) -> Outcome {
    let client = at.connect().await?;
    let command = command(args.command).await?;
    let sandbox = at.make(&client, &args.new).await?;
    let outcome = inside(at, &sandbox, command, &args.uploads, &args.downloads).await;
    if let Err(e) = sandbox.kill().await {
        // The command has ended as it has: that stays the exit code.
        output::report(&e, at.json);
    }
    outcome
}

async fn inside(
    at: &Backend,
    sandbox: &Sandbox,
    command: Command,
    uploads: &[args::Copy],
    downloads: &[args::Copy],
) -> Outcome {
    for copy in uploads {
        files::upload(sandbox, &copy.local, &copy.remote).await?;
    }
    let code = execute(at, sandbox, command).await?;
    for copy in downloads {
        if let Err(failure) = files::download(sandbox, &copy.remote, &copy.local).await {
            // A command that failed may not have made the file, and its own code says more.
            if code == 0 {
                return Err(failure);
            }
            if let output::Failure::Error(e) = failure {
                output::report(&e, at.json);
            }
        }
    }
    Ok(code)
}

/// Runs a command in a sandbox that is there.
pub(crate) async fn exec(at: &Backend, args: args::Exec) -> Outcome {
    let sandbox = at.pick_up(&args.id).await?;
    let mut command = command(args.command).await?;
    command.user = args.user;
    execute(at, &sandbox, command).await
}

/// The command with its input.
async fn command(args: args::Command) -> Outcome<Command> {
    let mut argv = args.argv.into_iter();
    let mut command = Command::new(argv.next().unwrap_or_default()).args(argv);
    command.timeout = args.timeout;
    command.cwd = args.workdir;
    command.env = args.env.into_iter().collect();
    if !args.no_stdin && !io::stdin().is_terminal() {
        command.stdin = Some(stdin().await?);
    }
    // What can't be is said before a sandbox is made for it.
    Ok(command.checked()?)
}

/// All of our stdin.
async fn stdin() -> Outcome<Bytes> {
    let failed = |e| output::local("stdin could not be read; -n gives none", e);
    let fd = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let mut input = Vec::new();
    tokio::fs::File::from_std(fd.into())
        .take(STDIN_LIMIT + 1)
        .read_to_end(&mut input)
        .await
        .map_err(failed)?;
    if input.len() as u64 > STDIN_LIMIT {
        return Err(Error::new(
            ErrorKind::TooLarge,
            "stdin is larger than 64 MiB: use --upload for it",
        )
        .into());
    }
    Ok(input.into())
}

async fn execute(at: &Backend, sandbox: &Sandbox, command: Command) -> Outcome {
    if at.json {
        return as_json(sandbox, command).await;
    }
    let mut out = Sink::new()?;
    if !sandbox.capabilities().streaming {
        let response = sandbox.execute(command).await?;
        for (stream, kept) in [
            (Stream::Stdout, &response.stdout),
            (Stream::Stderr, &response.stderr),
        ] {
            if kept.dropped() > 0 {
                output::say(format!(
                    "warning: {} bytes of {stream:?} are missing: this backend does not stream",
                    kept.dropped()
                ));
            }
            out.write(stream, kept.bytes()).await?;
        }
        return Ok(ending(&response.status, response.sandbox_killed));
    }
    let mut events = sandbox.stream(command).await?;
    while let Some(event) = events.next().await {
        match event {
            ExecuteEvent::Output(stream, bytes) => out.write(stream, &bytes).await?,
            ExecuteEvent::Ended {
                status,
                sandbox_killed,
            } => return Ok(ending(&status, sandbox_killed)),
            _ => {}
        }
    }
    Ok(ending(
        &Status::Lost("the stream ended without a result".to_owned()),
        false,
    ))
}

/// Where the command's output goes, byte for byte and at once.
struct Sink {
    stdout: tokio::fs::File,
    stderr: tokio::fs::File,
}

impl Sink {
    fn new() -> Outcome<Self> {
        let open = |stream| {
            output::raw(stream).map_err(|e| output::local("an output stream is not usable", e))
        };
        Ok(Self {
            stdout: open(Stream::Stdout)?,
            stderr: open(Stream::Stderr)?,
        })
    }

    async fn write(&mut self, stream: Stream, bytes: &[u8]) -> Outcome<()> {
        let file = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let written = async {
            file.write_all(bytes).await?;
            // It keeps what it was given until the next call, errors too.
            file.flush().await
        };
        written
            .await
            .map_err(|e| output::local("the output could not be written", e))
    }
}

/// Says what an exit code can't; gives the exit code.
fn ending(status: &Status, sandbox_killed: bool) -> u8 {
    if let Status::Lost(why) = status {
        output::say(format!("the command was lost: {why}"));
    }
    if sandbox_killed {
        output::say("warning: the command could not be killed, so its sandbox was");
    }
    exit_code(status)
}

fn exit_code(status: &Status) -> u8 {
    status
        .exit_code()
        .and_then(|code| u8::try_from(code & 0xff).ok())
        .unwrap_or(FAILED)
}

async fn as_json(sandbox: &Sandbox, command: Command) -> Outcome {
    let response = sandbox.execute(command).await?;
    let (word, why) = match &response.status {
        Status::Exited(_) => ("exited", None),
        Status::Signaled(_) => ("signaled", None),
        Status::TimedOut => ("timed_out", None),
        Status::Lost(why) => ("lost", Some(why)),
        _ => ("unknown", None),
    };
    output::line(json!({
        "status": word,
        "lost": why,
        "exit_code": response.exit_code(),
        "stdout": output::captured(&response.stdout),
        "stderr": output::captured(&response.stderr),
        "elapsed_ms": u64::try_from(response.elapsed.as_millis()).unwrap_or(u64::MAX),
        "sandbox_killed": response.sandbox_killed,
    }))?;
    Ok(exit_code(&response.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_the_shell_s_and_lost_is_our_own() {
        assert_eq!(exit_code(&Status::Exited(3)), 3);
        assert_eq!(exit_code(&Status::Signaled(9)), 137);
        assert_eq!(exit_code(&Status::TimedOut), 124);
        assert_eq!(exit_code(&Status::Lost("x".to_owned())), FAILED);
    }
}
