//! Lowering: a command in terms of what the backend's `execute` takes.
//!
//! So that shell text and a timeout are enough, everything else is put into shell text here: argv
//! by quoting, cwd, variables, stdin and merging by one constant wrapper that takes them as
//! arguments, long text and stdin by an uploaded file. What can't be lowered is refused.

use bytes::Bytes;

use crate::{
    Capabilities, Command, Error, ErrorKind, ExecuteResponse, FileUpload, Program, Result,
    SandboxPath, Status, shell,
};

/// The end of the wrapper: it becomes what was asked for.
macro_rules! run_it {
    () => {
        r#"if [ -n "$f" ]; then set -- "$s"; unset t d i f m n s; eval "shift
$1"; else exec "$@"; fi"#
    };
}

/// The wrapper. Arguments: token, cwd, stdin file, script file, `1` to merge, number of variables,
/// the variables as NAME=VALUE, then the argv to run.
///
/// Failing before the user's command starts is told by exit code 125 and the token on stderr. The
/// token is random and gone from the process when user code runs (`exec`), so that no output can
/// be mistaken for it. Files of ours are opened, then removed: none is left, however it ends.
///
/// Redirections belong to a group, not to `exec` alone: not every shell passes the latter on to
/// what it becomes.
const WRAPPER: &str = concat!(
    r#"t=$1 d=$2 i=$3 f=$4 m=$5 n=$6; shift 6
bad() { printf '%s:%s' "$t" "$1" >&2; exit 125; }
s=; if [ -n "$f" ]; then s=$(cat -- "$f"; echo .) || bad file; rm -f -- "$f"; s=${s%.}; fi
if [ -n "$i" ]; then [ -r "$i" ] || bad stdin; fi
if [ -n "$d" ]; then cd -- "$d" 2>/dev/null || bad cwd; fi
while [ "$n" -gt 0 ]; do export "$1"; shift; n=$((n-1)); done
if [ -n "$i" ]; then {
  rm -f -- "$i"
"#,
    run_it!(),
    r#"
} <"$i" 2>&${m:-2}; elif [ -n "$m" ]; then {
"#,
    run_it!(),
    r#"
} 2>&1; else
"#,
    run_it!(),
    "\nfi"
);

/// A command that the backend takes as it is, and what has to be uploaded first.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) command: Command,
    pub(crate) uploads: Vec<FileUpload>,
    /// Set when the wrapper is used: how it marks its own failures.
    token: Option<String>,
}

/// Puts `command` (checked) into terms of `caps`.
pub(crate) fn lower(command: Command, caps: &Capabilities) -> Result<Lowered> {
    if command.user.is_some() && !caps.execute_user {
        return Err(Error::unsupported("a user for one command"));
    }
    let mut c = command;
    let token = random_token();
    let mut uploads = Vec::new();
    let mut temp = |name: &str, content: Bytes| -> Result<String> {
        let path = SandboxPath::new(format!("/tmp/.sandbox-{token}.{name}"))?;
        let text = path.as_str().to_owned();
        uploads.push(FileUpload::new(path, content));
        Ok(text)
    };

    let stdin_file = match c.stdin.take_if(|_| !caps.execute_stdin) {
        // The contract gives end of input anyway.
        Some(input) if !input.is_empty() => temp("stdin", input)?,
        _ => String::new(),
    };
    let cwd = c.cwd.take_if(|_| !caps.execute_cwd).unwrap_or_default();
    let env = if caps.execute_env {
        Vec::new()
    } else {
        std::mem::take(&mut c.env).into_iter().collect()
    };
    let merge = c.merge_stderr && caps.separate_streams && !caps.execute_merge_stderr;
    if merge {
        c.merge_stderr = false;
    }
    let script_file = match (&c.program, caps.execute_max_text) {
        (Program::Shell(text), Some(max)) if text.len() as u64 > max => {
            temp("script", Bytes::copy_from_slice(text.as_bytes()))?
        }
        _ => String::new(),
    };

    let plain = stdin_file.is_empty()
        && cwd.is_empty()
        && env.is_empty()
        && !merge
        && script_file.is_empty();
    if !plain {
        let argv = match &c.program {
            Program::Shell(_) if !script_file.is_empty() => Vec::new(),
            Program::Shell(text) => shell::shell_argv(text),
            Program::Argv(argv) => argv.clone(),
        };
        let head = [
            "sh",
            "-c",
            WRAPPER,
            "sandbox",
            &token,
            &cwd,
            &stdin_file,
            &script_file,
        ];
        let merge = if merge { "1" } else { "" };
        let mut wrapped: Vec<String> = head.iter().map(ToString::to_string).collect();
        wrapped.extend([merge.to_owned(), env.len().to_string()]);
        wrapped.extend(env.into_iter().map(|(k, v)| format!("{k}={v}")));
        wrapped.extend(argv);
        c.program = Program::Argv(wrapped);
    }
    if let (Program::Argv(argv), false) = (&c.program, caps.execute_argv) {
        // `exec`, so that the program, and not a shell around it, is the command's leader.
        c.program = Program::Shell(format!("exec {}", shell::join(argv)));
    }
    if let Some(max) = caps.execute_max_text {
        let longest = match &c.program {
            Program::Shell(text) => text.len(),
            Program::Argv(argv) => argv.iter().map(String::len).max().unwrap_or(0),
        };
        if longest as u64 > max {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "the arguments and variables are longer than this backend takes: put them into a file",
            )
            .with("bytes", longest)
            .with("limit", max));
        }
    }
    Ok(Lowered {
        command: c,
        uploads,
        token: (!plain).then_some(token),
    })
}

impl Lowered {
    /// Takes the wrapper's own failures out of the response.
    pub(crate) fn raise(&self, response: ExecuteResponse) -> Result<ExecuteResponse> {
        let Some(token) = &self.token else {
            return Ok(response);
        };
        if response.status != Status::Exited(125) {
            return Ok(response);
        }
        let marked = |b: &[u8]| -> Option<String> {
            let text = std::str::from_utf8(b).ok()?;
            let (_, why) = text.rsplit_once(&format!("{token}:"))?;
            Some(why.to_owned())
        };
        // Without separate streams it is all in stdout.
        match marked(response.stderr.tail())
            .or_else(|| marked(response.stderr.head()))
            .or_else(|| marked(response.stdout.bytes()))
            .as_deref()
        {
            None => Ok(response),
            Some("cwd") => Err(Error::new(
                ErrorKind::NotFound,
                "the command's cwd is not a directory that can be entered",
            )),
            Some(what) => Err(Error::new(
                ErrorKind::Unexpected,
                "what was uploaded for the command is not there",
            )
            .with("what", what)),
        }
    }
}

/// 128 bits that user code can't guess.
pub(crate) fn random_token() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    // Each `RandomState` has keys of its own, seeded by the operating system.
    let word = || RandomState::new().hash_one(std::time::SystemTime::now());
    format!("{:016x}{:016x}", word(), word())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_backend_takes_is_passed_on_untouched() {
        let text = "echo 'a' # note";
        let l = lower(Command::shell(text), &Capabilities::none()).unwrap();
        assert_eq!(l.command, Command::shell(text));
        assert!(l.uploads.is_empty() && l.token.is_none());
    }

    #[test]
    fn what_it_lacks_becomes_shell_text_and_uploads() {
        let c = Command::new("printf")
            .arg("it's")
            .cwd("/w")
            .env("A", "x\ny")
            .stdin("in");
        let l = lower(c, &Capabilities::none()).unwrap();
        let Program::Shell(text) = &l.command.program else {
            panic!("{l:?}")
        };
        assert!(
            text.ends_with(
                r"'A=x
y' printf 'it'\''s'"
            ),
            "{text}"
        );
        assert_eq!(l.uploads.len(), 1);
        let kind = lower(Command::shell("id").user("1000"), &Capabilities::none())
            .unwrap_err()
            .kind();
        assert_eq!(kind, ErrorKind::Unsupported);
    }

    #[test]
    fn text_beyond_the_limit_travels_as_a_file() {
        let caps = Capabilities::none().with(|c| c.execute_max_text = Some(4000));
        let l = lower(Command::shell("x".repeat(4001)), &caps).unwrap();
        assert_eq!(l.uploads[0].content.len(), 4001);
        let long = Command::new("echo").arg("x".repeat(4001));
        assert_eq!(lower(long, &caps).unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn only_the_token_makes_an_error_of_exit_125() {
        let l = lower(Command::shell("x").cwd("/none"), &Capabilities::none()).unwrap();
        let own = ExecuteResponse::new(Status::Exited(125), "", "cwd");
        assert!(l.raise(own).is_ok());
        let token = l.token.clone().unwrap();
        let ours = ExecuteResponse::new(Status::Exited(125), "", format!("{token}:cwd"));
        assert_eq!(l.raise(ours).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
