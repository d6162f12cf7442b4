//! Background commands over `execute` alone, for backends whose provider has none.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::script::{self, Run, field, garbled, number, script};
use crate::{
    Command, Error, ErrorKind, LogCursor, ProcessId, ProcessLogs, Processes, Program, Result,
    SandboxBackend, SandboxPath, Status, shell,
};

/// Arguments: a directory of its own, the command's id, the keeper's id, the deadline in seconds
/// or nothing, the tree kill and its floor, `1` if stdin is to be read, the argv to run.
///
/// A keeper in a session of its own runs the command with files for its streams, and writes how it
/// ended. Whoever makes the directory `late` first says so: the keeper, its watch, or a kill. The
/// command looks for it when it already carries its id: a kill finds it, or it does not begin.
const START: &str = script!(
    r#"need cat mkdir mv rm sleep
umask 077
d=$1
e=$(mkdir -p -- "${d%/*}" 2>&1 && mkdir -- "$d" 2>&1) || fail "$e"
if [ -n "$7" ]; then
  e=$(cat 2>&1 >"$d/stdin") || { rm -rf -- "$d"; fail "$e"; }
else
  : >"$d/stdin" || exit 69
fi
SANDBOX_COMMAND_ID=$3; export SANDBOX_COMMAND_ID
keeper='
d=$1 id=$2 limit=$4 tree=$5 floor=$6; shift 7
ended() { printf %s "$1" >"$d/status.new" && mv -f -- "$d/status.new" "$d/status"; }
umask 022
begin="[ ! -e \"\$1/late\" ] || exit 137; shift; exec \"\$@\""
SANDBOX_COMMAND_ID=$id sh -c "$begin" sandbox "$d" "$@" <"$d/stdin" >"$d/stdout" 2>"$d/stderr" &
c=$!
if [ -n "$limit" ]; then
  (
    i=0
    while [ "$i" -lt "$limit" ]; do
      sleep 1; i=$((i+1))
      [ ! -e "$d/status" ] || exit 0
    done
    mkdir "$d/late" 2>/dev/null || exit 0
    i=0
    until sh -c "$tree" sandbox "$id" "$((limit*100+500))" "$floor" || [ "$i" -ge 20 ]; do i=$((i+1)); done
    ended timeout
  ) &
fi
wait "$c"; r=$?
mkdir "$d/late" 2>/dev/null && ended "$r"
'
: >"$d/stdout"; : >"$d/stderr"
if command -v setsid >/dev/null 2>&1; then
  setsid sh -c "$keeper" sandbox "$@" </dev/null >/dev/null 2>&1 &
else
  sh -c "$keeper" sandbox "$@" </dev/null >/dev/null 2>&1 &
fi
exit 0"#
);

/// Argument: the directory. Prints how the command ended, or nothing.
const STATUS: &str = script!(
    r#"[ -d "$1" ] || exit 61
if [ -e "$1/status" ]; then need cat; cat -- "$1/status"; fi"#
);

/// Arguments: the directory, offsets into both streams, bytes at most.
///
/// Prints of each stream: a number of bytes, a NUL, the bytes.
const LOGS: &str = script!(
    r#"need head tail wc
[ -d "$1" ] || exit 61
part() {
  n=$(($(wc -c <"$1")-$2))
  [ "$n" -ge 0 ] || n=0
  [ "$n" -le "$3" ] || n=$3
  printf '%s\0' "$n"
  [ "$n" = 0 ] || tail -c "+$(($2+1))" -- "$1" | head -c "$n"
}
part "$1/stdout" "$2" "$4"
part "$1/stderr" "$3" "$4""#
);

/// Arguments: the directory, the command's id, the tree kill, its floor.
const KILL: &str = script!(
    r#"need date mkdir mv stat
[ -d "$1" ] || exit 61
[ ! -e "$1/status" ] || exit 0
mkdir -- "$1/late" 2>/dev/null && mine=1 || mine=
age=$(($(date +%s)-$(stat -c %Y -- "$1/stdin")))
i=0
until sh -c "$3" sandbox "$2" "$((age*100+200))" "$4"; do
  i=$((i+1)); [ "$i" -lt 20 ] || exit 69
done
[ -n "$mine" ] || exit 0
printf 137 >"$1/status.new" && mv -f -- "$1/status.new" "$1/status""#
);

/// How often the end of a command is asked for, at first and at last.
const POLL: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// [`Processes`] by shell scripts. A backend makes one for each call and hands the call on.
///
/// Streams and ending of a command lie in a directory that only its user can read, until the
/// sandbox dies. A deadline is exact to a second. A signal shows as `Exited(128 + signal)`. Commands
/// run as the sandbox's user; another one is refused.
#[derive(Debug)]
pub struct ShellProcesses<'a> {
    backend: &'a dyn SandboxBackend,
    floor: u64,
}

impl<'a> ShellProcesses<'a> {
    /// For a sandbox with this [floor](shell::parse_floor); 0 if none was taken.
    pub fn new(backend: &'a dyn SandboxBackend, floor: u64) -> Self {
        Self { backend, floor }
    }
}

/// Where the files of a command lie.
fn dir(id: &ProcessId) -> Result<SandboxPath> {
    let known = id.0.len() == 32 && id.0.bytes().all(|b| b.is_ascii_hexdigit());
    if !known {
        return Err(unknown(id));
    }
    SandboxPath::new(format!("/tmp/.sandbox-processes/{}", id.0))
}

fn unknown(id: &ProcessId) -> Error {
    let shown: String = id.0.chars().take(100).collect();
    Error::new(
        ErrorKind::NotFound,
        "the sandbox has no such background command",
    )
    .with("process", shown)
}

#[async_trait]
impl Processes for ShellProcesses<'_> {
    async fn start(&self, command: &Command) -> Result<ProcessId> {
        if command.user.is_some() {
            // Its files would be closed to the user that looks at them later.
            return Err(Error::unsupported("a user for a background command"));
        }
        let id = ProcessId(shell::command_id());
        let argv = match &command.program {
            Program::Shell(text) => shell::shell_argv(text),
            Program::Argv(argv) => argv.clone(),
        };
        let limit = command
            .timeout
            .map(|t| t.as_millis().div_ceil(1000).to_string())
            .unwrap_or_default();
        let input = command.stdin.clone().filter(|input| !input.is_empty());
        let mut run = Run::on(&dir(&id)?)
            .surroundings(command)
            .arg(&id)
            .arg(shell::command_id())
            .arg(limit)
            .arg(shell::TREE_KILL)
            .arg(self.floor)
            .arg(if input.is_some() { "1" } else { "" })
            .args(&argv);
        if let Some(input) = input {
            run = run.stdin(input);
        }
        script::run(self.backend, START, run).await?;
        Ok(id)
    }

    async fn status(&self, id: &ProcessId) -> Result<Option<Status>> {
        let answer = script::run(self.backend, STATUS, Run::on(&dir(id)?))
            .await
            .map_err(|e| named(e, id))?;
        match answer.output.bytes().as_ref() {
            b"" => Ok(None),
            b"timeout" => Ok(Some(Status::TimedOut)),
            code => number(code).map(|code| Some(Status::Exited(code))),
        }
    }

    async fn logs(&self, id: &ProcessId, from: LogCursor, max: u64) -> Result<ProcessLogs> {
        let max = max.min(crate::defaults::INTERNAL_OUTPUT / 4);
        let run = Run::on(&dir(id)?)
            .arg(from.stdout.min(1 << 62))
            .arg(from.stderr.min(1 << 62))
            .arg(max);
        let answer = script::run(self.backend, LOGS, run)
            .await
            .map_err(|e| named(e, id))?;
        parse_logs(answer.output.bytes(), from, max)
    }

    async fn wait(&self, id: &ProcessId) -> Result<Status> {
        let [mut pause, longest] = POLL;
        loop {
            if let Some(status) = self.status(id).await? {
                return Ok(status);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }

    async fn kill(&self, id: &ProcessId) -> Result<()> {
        let run = Run::on(&dir(id)?)
            .arg(id)
            .arg(shell::TREE_KILL)
            .arg(self.floor);
        script::run(self.backend, KILL, run)
            .await
            .map(drop)
            .map_err(|e| named(e, id))
    }
}

/// A missing directory is an unknown command.
fn named(e: Error, id: &ProcessId) -> Error {
    if e.kind() == ErrorKind::NotFound {
        unknown(id)
    } else {
        e
    }
}

fn parse_logs(answer: &Bytes, from: LogCursor, max: u64) -> Result<ProcessLogs> {
    let mut rest = answer.as_ref();
    let mut part = || -> Result<Bytes> {
        let length: usize = number(field(&mut rest)?)?;
        if length as u64 > max || length > rest.len() {
            return Err(garbled("the length of a log"));
        }
        let (bytes, after) = rest.split_at(length);
        rest = after;
        Ok(answer.slice_ref(bytes))
    };
    let (stdout, stderr) = (part()?, part()?);
    if !rest.is_empty() {
        return Err(garbled("something after the end"));
    }
    let next = LogCursor {
        stdout: from.stdout.saturating_add(stdout.len() as u64),
        stderr: from.stderr.saturating_add(stderr.len() as u64),
    };
    Ok(ProcessLogs::new(stdout, stderr, next))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn logs_are_framed_by_their_lengths() {
        let from = LogCursor {
            stdout: 5,
            stderr: 0,
        };
        let logs = parse_logs(&Bytes::from_static(b"3\x00a\x00b0\x00"), from, 10).unwrap();
        assert_eq!(
            (logs.stdout, logs.stderr),
            (Bytes::from_static(b"a\0b"), Bytes::new())
        );
        assert_eq!(
            logs.next,
            LogCursor {
                stdout: 8,
                stderr: 0
            }
        );
        for bad in [
            &b""[..],
            b"3\x00ab",
            b"11\x00aaaaaaaaaaa0\x00",
            b"0\x000\x00x",
            b"-1\x00",
        ] {
            let bad = Bytes::copy_from_slice(bad);
            assert_eq!(
                parse_logs(&bad, from, 10).unwrap_err().kind(),
                ErrorKind::Protocol
            );
        }
    }

    #[test]
    fn an_id_is_no_path() {
        for id in ["", "../x", "/etc", &"g".repeat(32), &"a".repeat(31)] {
            assert_eq!(
                dir(&ProcessId(id.into())).unwrap_err().kind(),
                ErrorKind::NotFound
            );
        }
        assert!(dir(&ProcessId(shell::command_id())).is_ok());
    }

    proptest! {
        #[test]
        fn no_answer_panics(bytes in prop::collection::vec(prop::sample::select(&b"019\x00a"[..]), 0..30)) {
            let _ = parse_logs(&bytes.into(), LogCursor::default(), 20);
        }
    }
}
