//! Where and as whom commands run in one sandbox, and its preparation.

use sandbox_core::{Command, Error, ErrorKind, Program, Result, Stream, shell};

use crate::error;
use crate::events::{ExecdEnding, ExecdEvent};
use crate::execd::{Execd, RunCommand};

const SETUP: &str = include_str!("scripts/setup.sh");

/// The longest answer that is read.
const ANSWER: usize = 64 << 10;

/// Who commands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    /// The daemon finds the groups itself where this is unset.
    pub(crate) gid: Option<u32>,
}

/// Where and as whom commands run, unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where output waits to be fetched.
    pub(crate) dir: String,
    /// The daemon's own user.
    pub(crate) daemon: u32,
    /// The sandbox's user; the daemon's own if unset.
    pub(crate) user: Option<User>,
    /// The home directory of the sandbox's user, if that is not the daemon's own.
    pub(crate) home: Option<String>,
    pub(crate) workdir: Option<String>,
    /// No process that began before this tick belongs to a command.
    pub(crate) floor: u64,
}

impl Place {
    /// Prepares a new sandbox for `user`, with a `workdir` of that user.
    pub(crate) async fn prepare(execd: &Execd, user: Option<&str>, workdir: &str) -> Result<Self> {
        Self::ask(execd, "new", user.unwrap_or_default(), workdir).await
    }

    /// What a sandbox was prepared as, by whomever. One that nobody prepared gets commands of the
    /// daemon's own user.
    pub(crate) async fn find(execd: &Execd) -> Result<Self> {
        Self::ask(execd, "known", "", "").await
    }

    async fn ask(execd: &Execd, mode: &str, user: &str, workdir: &str) -> Result<Self> {
        let Program::Argv(probe) = shell::floor_probe().program else {
            return Err(Error::new(ErrorKind::Unexpected, "the probe is no program"));
        };
        let floor = probe.get(2).map(String::as_str).unwrap_or_default();
        let args = ["sh", "-c", SETUP, "sandbox", mode, user, workdir, floor];
        let command = RunCommand {
            command: format!("exec {}", shell::join(args)),
            // Commands may run already: without an id this would be part of one that is killed.
            envs: [(shell::COMMAND_ID.to_owned(), shell::command_id())].into(),
            timeout: Some(20_000),
            ..RunCommand::default()
        };
        let printed = printed(execd, &command).await?;
        let mut place = parse(&printed, user)?;
        if place.user.is_some() && place.home.is_none() {
            // Where none is known, the workdir is the one directory that surely is the user's.
            place.home.clone_from(&place.workdir);
        }
        Ok(place)
    }

    /// Whether commands can run as another user than the daemon's own.
    pub(crate) fn can_switch(&self) -> bool {
        self.daemon == 0
    }
}

/// Runs a short program of ours and gives the lines that it printed.
async fn printed(execd: &Execd, command: &RunCommand) -> Result<Vec<String>> {
    let mut events = execd.run(command).await?;
    let (mut lines, mut size) = (Vec::new(), 0);
    while let Some(event) = events.next().await? {
        match event {
            ExecdEvent::Line(Stream::Stdout, line) if size < ANSWER => {
                size += line.len();
                lines.push(line);
            }
            ExecdEvent::Ended(ExecdEnding::Exited(0)) => return Ok(lines),
            ExecdEvent::Ended(ending) => {
                return Err(Error::new(
                    ErrorKind::Unexpected,
                    "the sandbox could not be prepared: its image needs a POSIX shell and its \
                     usual tools",
                )
                .with("ending", format!("{ending:?}")));
            }
            _ => {}
        }
    }
    Err(error::garbled("prepare the sandbox"))
}

fn parse(lines: &[String], user: &str) -> Result<Place> {
    let mut place = Place::default();
    let (mut uid, mut gid, mut complete) = (None, None, false);
    let number = |text: &str| -> Result<u32> {
        text.parse()
            .map_err(|_| error::garbled("prepare the sandbox"))
    };
    let text = |text: &str| Some(text.to_owned()).filter(|t| t.starts_with('/'));
    for line in lines {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match key {
            "me" => place.daemon = number(value)?,
            "dir" => place.dir = text(value).ok_or_else(|| error::garbled("find a directory"))?,
            "uid" if !value.is_empty() => uid = Some(number(value)?),
            "gid" if !value.is_empty() => gid = Some(number(value)?),
            "home" => place.home = text(value),
            "work" => place.workdir = text(value),
            "floor" => {
                place.floor = shell::parse_floor(value.as_bytes())?;
                complete = true;
            }
            "missing" => {
                return Err(Error::new(
                    ErrorKind::MissingTool,
                    "the image lacks something that every sandbox needs",
                )
                .with("tool", error::shorten(value)));
            }
            "unknown" => {
                return Err(
                    Error::new(ErrorKind::NotFound, "the image has no such user or group")
                        .with("user", user),
                );
            }
            "bound" => {
                return Err(Error::unsupported(
                    "another user in this image: its daemon does not run as root",
                )
                .with("uid", error::shorten(value))
                .with("field", "user"));
            }
            "workless" => {
                return Err(
                    Error::new(ErrorKind::PermissionDenied, "the workdir can't be made")
                        .with("why", error::shorten(value)),
                );
            }
            _ => {}
        }
    }
    if !complete || place.dir.is_empty() {
        return Err(error::garbled("prepare the sandbox"));
    }
    place.user = uid
        .filter(|uid| *uid != place.daemon || gid.is_some())
        .map(|uid| User { uid, gid });
    Ok(place)
}

/// The command's program as one argv.
pub(crate) fn argv(command: &Command) -> Result<Vec<String>> {
    // By its path, whatever PATH is; its name for itself stays.
    let shell = |mut argv: Vec<String>| {
        "/bin/sh".clone_into(&mut argv[0]);
        argv
    };
    match &command.program {
        Program::Shell(text) => Ok(shell(shell::shell_argv(text))),
        // It is there, or nothing works here.
        Program::Argv(argv) if argv.first().is_some_and(|p| p == "/bin/sh") => Ok(argv.clone()),
        // A shell finds the program and gives the usual codes and words if it can't.
        Program::Argv(argv) => Ok(["/bin/sh", "-c", r#"exec "$@""#, "sh"]
            .into_iter()
            .map(str::to_owned)
            .chain(argv.iter().cloned())
            .collect()),
        _ => Err(Error::unsupported("this form of command")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Result<Place> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        parse(&lines, "app")
    }

    #[test]
    fn what_setup_prints_is_read() {
        let place = place("me 0\ndir /x\nuid 1000\ngid \nhome /home/a\nwork /w\nfloor 7").unwrap();
        assert_eq!(
            place.user,
            Some(User {
                uid: 1000,
                gid: None
            })
        );
        assert_eq!(place.home.as_deref(), Some("/home/a"));
        assert_eq!((place.floor, place.can_switch()), (7, true));
    }

    #[test]
    fn what_is_wrong_is_named_and_what_does_not_add_up_is_refused() {
        for (text, kind) in [
            ("me 0\nmissing chmod", ErrorKind::MissingTool),
            ("me 0\nunknown user", ErrorKind::NotFound),
            ("me 5\nbound 5", ErrorKind::Unsupported),
            ("workless mkdir: no", ErrorKind::PermissionDenied),
            ("me 0\ndir /x\nuid 1", ErrorKind::Protocol),
            ("me x", ErrorKind::Protocol),
            ("me 0\ndir ../x\nfloor 7", ErrorKind::Protocol),
            ("", ErrorKind::Protocol),
        ] {
            assert_eq!(place(text).unwrap_err().kind(), kind, "{text}");
        }
    }
}
