//! A command as the daemon gets it.
//!
//! What the daemon tells of a command's output loses bytes. So the command writes into files of
//! its own, which are fetched when it has ended; in the stream of events nothing is left but how
//! it ended, and what the few lines before the command have to say.

use std::fmt::Write as _;

use bytes::Bytes;
use sandbox_core::{Command, Error, ErrorKind, Result, Stream, shell};

use crate::execd::RunCommand;
use crate::place::{Place, User, argv};

/// The longest shell text that the daemon takes: it is one argument of the shell.
const TEXT: usize = 120_000;

/// What the arguments of one program may take in sum. Linux takes 2 MiB at the usual stack limit,
/// and the pointers count too.
pub(crate) const MAX_ARGUMENTS: usize = 1_500_000;

/// The largest input that travels in the text: beyond, an upload costs less than it saves.
const INLINE: usize = 8 << 10;

/// How the lines before the command fail, with the command's id before it.
pub(crate) const FAILED: i32 = 125;

/// A command, all decided.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The id that its processes carry.
    pub(crate) id: String,
    pub(crate) run: RunCommand,
    pub(crate) files: Files,
    /// The text, where it is too long for an argument.
    pub(crate) script: Option<Bytes>,
    /// What the command reads, where it is not in the text.
    pub(crate) input: Vec<Bytes>,
}

/// The files of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    base: String,
    merged: bool,
}

impl Files {
    fn new(place: &Place, id: &str, merged: bool) -> Self {
        Self {
            base: format!("{}/{id}", place.dir),
            merged,
        }
    }

    /// Where a stream is written.
    pub(crate) fn output(&self, stream: Stream) -> String {
        match stream {
            Stream::Stdout => format!("{}.out", self.base),
            Stream::Stderr => format!("{}.err", self.base),
        }
    }

    /// The streams that are written.
    pub(crate) fn streams(&self) -> &'static [Stream] {
        if self.merged {
            &[Stream::Stdout]
        } else {
            &[Stream::Stdout, Stream::Stderr]
        }
    }

    /// What the command reads.
    pub(crate) fn input(&self) -> String {
        format!("{}.in", self.base)
    }

    /// The text of a long command.
    pub(crate) fn script(&self) -> String {
        format!("{}.sh", self.base)
    }

    /// A command does not begin once this is there.
    pub(crate) fn stop(&self) -> String {
        format!("{}.no", self.base)
    }

    /// All that a command leaves when it has ended.
    pub(crate) fn all(&self) -> [String; 4] {
        [
            self.output(Stream::Stdout),
            self.output(Stream::Stderr),
            self.input(),
            self.script(),
        ]
    }
}

impl Launch {
    /// What the daemon is to do for `command`, as `user`, reading `input`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooLarge`] for what Linux does not take, [`ErrorKind::Unsupported`] for a form
    /// of command that this does not know.
    pub(crate) fn new(
        place: &Place,
        command: &Command,
        user: Option<User>,
        input: Vec<Bytes>,
    ) -> Result<Self> {
        let argv = argv(command)?;
        check(&argv, &command.env)?;
        let id = shell::command_id();
        let files = Files::new(place, &id, command.merge_stderr);
        let cwd = command.cwd.as_deref().or(place.workdir.as_deref());
        let mut lines = Lines::new(&id);
        lines.add(
            &format!("[ ! -e {} ]", shell::quote(&files.stop())),
            "stopped",
        );
        let in_all: usize = input.iter().map(Bytes::len).sum();
        let input: Vec<Bytes> = input.into_iter().filter(|part| !part.is_empty()).collect();
        let (inline, input) = if in_all <= INLINE {
            (input, Vec::new())
        } else {
            (Vec::new(), input)
        };
        if !inline.is_empty() {
            let file = shell::quote(&files.input());
            lines.add(&format!("printf {} >{file}", printf(&inline)), "output");
        }
        if let Some(cwd) = cwd {
            lines.add(&format!("cd -- {} 2>/dev/null", shell::quote(cwd)), "cwd");
        }
        lines.add(&redirections(&files, in_all > 0), "output");
        let text = lines.then(&format!("exec {}", shell::join(&argv)));
        let (text, script) = if text.len() > TEXT {
            let script = shell::quote(&files.script());
            (format!(". {script}"), Some(Bytes::from(text)))
        } else {
            (text, None)
        };
        let mut envs = command.env.clone();
        if let (None, Some(home)) = (&command.user, &place.home) {
            envs.entry("HOME".to_owned())
                .or_insert_with(|| home.clone());
        }
        envs.insert(shell::COMMAND_ID.to_owned(), id.clone());
        let timeout = command.timeout.map(|limit| {
            // Rounded up, and never 0, which is none.
            u64::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
        });
        Ok(Self {
            run: RunCommand {
                command: text,
                envs,
                uid: user.map(|u| u.uid),
                gid: user.and_then(|u| u.gid),
                timeout,
                ..RunCommand::default()
            },
            id,
            files,
            script,
            input,
        })
    }
}

fn check(argv: &[String], env: &std::collections::BTreeMap<String, String>) -> Result<()> {
    let words = argv.iter().map(String::len);
    let variables = env.iter().map(|(name, value)| name.len() + value.len() + 1);
    let lengths: Vec<usize> = words.chain(variables).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let sum: usize = lengths.iter().map(|n| n + 9).sum();
    if longest > shell::MAX_ARGUMENT || sum > MAX_ARGUMENTS {
        return Err(Error::new(
            ErrorKind::TooLarge,
            "the arguments and variables are longer than Linux takes: put them into a file or on \
             stdin",
        )
        .with("longest", longest)
        .with("sum", sum));
    }
    Ok(())
}

/// The lines before the command.
struct Lines<'a> {
    id: &'a str,
    text: String,
}

impl<'a> Lines<'a> {
    fn new(id: &'a str) -> Self {
        Self {
            id,
            text: String::new(),
        }
    }

    /// If `line` fails, the command does not begin, and the daemon is told `why`.
    fn add(&mut self, line: &str, why: &str) {
        let id = self.id;
        // Writing into a string does not fail.
        let _ = writeln!(self.text, "{line} || {{ echo {id}:{why}; exit {FAILED}; }}");
    }

    fn then(self, command: &str) -> String {
        self.text + command
    }
}

fn redirections(files: &Files, input: bool) -> String {
    // Appending, so that all who write to a stream write at its end, as to a pipe.
    let stdout = shell::quote(&files.output(Stream::Stdout));
    let stderr = match files.streams() {
        [_] => "2>&1".to_owned(),
        _ => format!("2>>{}", shell::quote(&files.output(Stream::Stderr))),
    };
    let stdin = if input {
        format!(" <{}", shell::quote(&files.input()))
    } else {
        String::new()
    };
    format!("exec >>{stdout} {stderr}{stdin}")
}

/// Bytes as the quoted format of a shell's `printf`.
fn printf(parts: &[Bytes]) -> String {
    let mut format = String::from("'");
    for byte in parts.iter().flatten() {
        match byte {
            b'%' => format.push_str("%%"),
            b'\\' => format.push_str(r"\\"),
            b'\'' => format.push_str(r"\047"),
            b' '..=b'~' | b'\n' => format.push(char::from(*byte)),
            _ => {
                // Writing into a string does not fail.
                let _ = write!(format, r"\{byte:03o}");
            }
        }
    }
    format.push('\'');
    // What begins with a dash is no option.
    format!("-- {format}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn place() -> Place {
        Place {
            dir: "/d".into(),
            workdir: Some("/w".into()),
            home: Some("/home/a".into()),
            ..Place::default()
        }
    }

    #[test]
    fn text_is_passed_on_quoted_and_nothing_else_of_the_user() {
        let command = Command::shell("echo 'a' # $x").timeout(Duration::from_nanos(1));
        let launch = Launch::new(&place(), &command, None, Vec::new()).unwrap();
        assert!(
            launch
                .run
                .command
                .ends_with(r"exec /bin/sh -c 'echo '\''a'\'' # $x' sh"),
            "{}",
            launch.run.command
        );
        assert_eq!(launch.run.timeout, Some(1));
        assert_eq!(launch.run.envs["HOME"], "/home/a");
        assert_eq!(launch.run.envs[shell::COMMAND_ID], launch.id);
        assert!(launch.script.is_none());
    }

    #[test]
    fn short_input_travels_in_the_text_and_long_input_beside_it() {
        let command = Command::shell("cat");
        let short = vec![Bytes::from_static(b"-a%\\'\0\n\xff"), Bytes::new()];
        let launch = Launch::new(&place(), &command, None, short).unwrap();
        let line = format!(
            r"printf -- '-a%%\\\047\000{}\377' >/d/{}.in",
            '\n', launch.id
        );
        assert!(launch.run.command.contains(&line), "{}", launch.run.command);
        assert!(launch.input.is_empty());
        let long = vec![Bytes::from(vec![b'x'; INLINE]), Bytes::from_static(b"y")];
        let launch = Launch::new(&place(), &command, None, long.clone()).unwrap();
        assert_eq!(launch.input, long);
        assert!(
            launch
                .run
                .command
                .contains(&format!("<{}", launch.files.input()))
        );
    }

    #[test]
    fn what_is_longer_than_an_argument_travels_as_a_file() {
        let command = Command::shell("'".repeat(100_000));
        let launch = Launch::new(&place(), &command, None, Vec::new()).unwrap();
        assert_eq!(launch.run.command, format!(". /d/{}.sh", launch.id));
        assert!(launch.script.unwrap().len() > 400_000);
        let long = Command::new("echo").arg("x".repeat(200_000));
        let kind = Launch::new(&place(), &long, None, Vec::new())
            .unwrap_err()
            .kind();
        assert_eq!(kind, ErrorKind::TooLarge);
    }
}
