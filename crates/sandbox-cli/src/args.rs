//! What the command line takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

/// Runs commands in sandboxes, and looks after sandboxes.
///
/// A sandbox is named by its backend and its id: `--backend URL` and `ID`.
#[derive(Debug, Parser)]
#[command(name = "sandbox", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// The backend: `mock:` (a shell inside this process, no isolation) `docker://IMAGE`, or
    /// `opensandbox://HOST:PORT/IMAGE`.
    #[arg(long, value_name = "URL", default_value = "mock:", global = true)]
    pub(crate) backend: String,
    /// Results as JSON on stdout, errors as JSON on stderr.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) task: Task,
}

const EXIT_CODES: &str = "Exit codes: that of the command, 124 when its time was over, 128+N when \
signal N ended it or `sandbox` itself; 125 when `sandbox` failed, 2 for arguments that can't be.";

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Run one command in a new sandbox, and end the sandbox.
    Run(Run),
    /// Make a sandbox that lives on, and print its id.
    Create(New),
    /// Run a command in a sandbox.
    Exec(Exec),
    /// List a directory of a sandbox.
    Ls {
        /// The sandbox.
        id: String,
        /// The directory.
        #[arg(default_value = "/workspace")]
        path: String,
    },
    /// Print files of a sandbox.
    Cat {
        /// The sandbox.
        id: String,
        /// The files.
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Copy a file or a directory into a sandbox or out of one.
    Cp {
        /// `ID:/PATH`, or a local path.
        from: String,
        /// `ID:/PATH`, or a local path.
        to: String,
    },
    /// List the living sandboxes of a backend.
    List {
        /// Only those with this label; may be given more than once.
        #[arg(long = "label", value_name = "NAME=VALUE", value_parser = pair)]
        labels: Vec<(String, String)>,
    },
    /// End sandboxes.
    Kill {
        /// The sandboxes.
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Remove what is left of sandboxes that have ended or whose owner has.
    Gc,
    /// Try what works on this machine; for what does not, say why and what to do.
    Doctor,
    /// Print the completions of a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// What a new sandbox is like.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// Who runs commands, by name or number; else the image's user.
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Let the sandbox reach the network.
    #[arg(long)]
    pub(crate) network: bool,
    /// How long the sandbox lives at most, as `90s`, `5m`, `2h` [default: 30m].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) lifetime: Option<Duration>,
    /// A label to find the sandbox by; may be given more than once.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,
}

/// A command and its surroundings.
#[derive(Debug, Args)]
pub(crate) struct Command {
    /// Kill the command after this time, as `500ms`, `90s`, `5m`, `2h`; seconds without a unit.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// A variable of the command; may be given more than once.
    #[arg(short, long = "env", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) env: Vec<(String, String)>,
    /// Where the command starts.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) workdir: Option<String>,
    /// Give the command no input. Else stdin is read to its end first, unless it is a terminal.
    #[arg(short = 'n', long)]
    pub(crate) no_stdin: bool,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) argv: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) new: New,
    /// Copy a local file or directory to the sandbox first; may be given more than once.
    #[arg(long = "upload", value_name = "LOCAL:PATH", value_parser = upload)]
    pub(crate) uploads: Vec<Copy>,
    /// Copy a file or directory of the sandbox to this machine afterwards, however the command
    /// ended; may be given more than once.
    #[arg(long = "download", value_name = "PATH:LOCAL", value_parser = download)]
    pub(crate) downloads: Vec<Copy>,
    #[command(flatten)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// The sandbox.
    pub(crate) id: String,
    /// Who runs the command; else the sandbox's user.
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) command: Command,
}

/// One thing to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) local: PathBuf,
    pub(crate) remote: String,
}

/// `LOCAL:PATH`. The local part may hold colons.
fn upload(text: &str) -> Result<Copy, String> {
    copy(text.rsplit_once(':'), "LOCAL:PATH")
}

/// `PATH:LOCAL`. The local part may hold colons.
fn download(text: &str) -> Result<Copy, String> {
    copy(text.split_once(':').map(|(r, l)| (l, r)), "PATH:LOCAL")
}

fn copy(parts: Option<(&str, &str)>, form: &str) -> Result<Copy, String> {
    match parts {
        Some((local, remote)) if !local.is_empty() && remote.starts_with('/') => Ok(Copy {
            local: local.into(),
            remote: remote.to_owned(),
        }),
        _ => Err(format!("the form is {form}, and PATH is absolute")),
    }
}

/// What `cp` is told: a place in a sandbox, or a local path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Sandbox { id: String, path: String },
    Local(PathBuf),
}

impl Place {
    /// A local path with a colon is one that begins with `/` or `.`.
    pub(crate) fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some((id, path)) if !id.is_empty() && !text.starts_with(['/', '.']) => Self::Sandbox {
                id: id.to_owned(),
                path: path.to_owned(),
            },
            _ => Self::Local(text.into()),
        }
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("the form is NAME=VALUE".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("the units are ms, s, m and h".to_owned()),
    };
    number
        .parse::<f64>()
        .ok()
        .and_then(|n| Duration::try_from_secs_f64(n * seconds).ok())
        .filter(|d| !d.is_zero())
        .ok_or_else(|| "it is a number above zero, as 90s or 1.5h".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn clap_finds_no_fault_in_it() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_have_units_and_zero_is_none() {
        for (text, millis) in [
            ("500ms", 500),
            ("2", 2000),
            ("1.5s", 1500),
            ("1h", 3_600_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in [
            "",
            "s",
            "0",
            "-1",
            "1d",
            "1.2.3",
            "99999999999999999999999h",
            "NaN",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn local_paths_may_hold_colons() {
        let to = |local: &str| Copy {
            local: local.into(),
            remote: "/r".to_owned(),
        };
        assert_eq!(upload("a:b:/r"), Ok(to("a:b")));
        assert_eq!(download("/r:a:b"), Ok(to("a:b")));
        for bad in ["", "a", ":/r", "a:", "a:r"] {
            assert!(upload(bad).is_err(), "{bad}");
        }
        assert!(download("r:a").is_err());
        assert_eq!(Place::parse("./a:b"), Place::Local("./a:b".into()));
        assert_eq!(Place::parse("a"), Place::Local("a".into()));
        let inside = Place::Sandbox {
            id: "x".to_owned(),
            path: "/a:b".to_owned(),
        };
        assert_eq!(Place::parse("x:/a:b"), inside);
    }
}
