//! What the daemon is told by its flags and its environment.

use std::ffi::OsString;
use std::time::Duration;

use crate::token::AccessToken;

/// Where the access token is looked for, and what is kept from every command.
pub(crate) const TOKEN_VARIABLE: &str = "EXECD_ACCESS_TOKEN";

/// How the daemon behaves where the real one is surprising.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The protocol without the surprises.
    Default,
    /// The real one's surprises as well, to prove a client against them.
    Stock,
}

impl Profile {
    pub(crate) fn is_stock(self) -> bool {
        self == Self::Stock
    }
}

/// The daemon's settings.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) port: u16,
    pub(crate) token: Option<AccessToken>,
    /// The token comes on stdin, from this program's earlier self.
    pub(crate) token_on_stdin: bool,
    pub(crate) profile: Profile,
    /// How long a stream is held open after its last event; only the stock profile does.
    pub(crate) grace: Duration,
    /// 0 (nothing) to 7 (debugging), as syslog counts.
    pub(crate) log_level: u8,
    pub(crate) log_file: Option<OsString>,
    /// In the stock profile, of how many runs through `/proxy/44772` one is lost; 0 for none.
    pub(crate) lose_one_of: u32,
    /// The program this daemon, as process 1, starts and ends with.
    pub(crate) init: Option<Vec<OsString>>,
}

/// What to print when a setting can't be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadOption(pub(crate) String);

impl Options {
    /// Reads the settings. Flags are written as `-name value`, `--name value` or `--name=value`
    /// and win over the environment; what follows the first argument that is none is ignored.
    /// `variable` looks up the environment.
    ///
    /// # Errors
    ///
    /// A message that names the setting and what it may be.
    pub(crate) fn read(
        arguments: impl IntoIterator<Item = OsString>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, BadOption> {
        let text = |name: &str| -> Result<Option<String>, BadOption> {
            match variable(name).map(OsString::into_string) {
                None => Ok(None),
                Some(Ok(value)) if value.is_empty() => Ok(None),
                Some(Ok(value)) => Ok(Some(value)),
                Some(Err(_)) => Err(BadOption(format!("{name} is not UTF-8"))),
            }
        };
        let mut options = Self {
            port: 44_772,
            token: text(TOKEN_VARIABLE)?.map(AccessToken::new).transpose()?,
            token_on_stdin: false,
            profile: text("EXECD_PROFILE")?.map_or(Ok(Profile::Default), |it| profile(&it))?,
            grace: text("EXECD_API_GRACE_SHUTDOWN")?
                .map_or(Ok(Duration::from_secs(1)), |it| duration(&it))?,
            log_level: 5,
            log_file: variable("EXECD_LOG_FILE").filter(|path| !path.is_empty()),
            lose_one_of: text("EXECD_STOCK_LOSE_ONE_OF")?
                .map_or(Ok(100), |it| number("EXECD_STOCK_LOSE_ONE_OF", &it))?,
            init: None,
        };
        if let Some(host) = text("JUPYTER_HOST")? {
            jupyter_host(&host)?;
        }
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                options.init_command(arguments.collect())?;
                break;
            }
            let argument = argument
                .into_string()
                .map_err(|it| BadOption(format!("flag {} is not UTF-8", it.display())))?;
            let Some(flag) = argument
                .strip_prefix("--")
                .or_else(|| argument.strip_prefix('-'))
            else {
                // A server starts the daemon's own image with `tail -f /dev/null` as arguments.
                break;
            };
            let (name, given) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            match name {
                "init" => options.init = Some(Vec::new()),
                "token-on-stdin" => options.token_on_stdin = true,
                _ => {
                    let value = match given {
                        Some(value) => value,
                        None => arguments
                            .next()
                            .and_then(|it| it.into_string().ok())
                            .ok_or_else(|| BadOption(format!("flag needs a value: --{name}")))?,
                    };
                    options.set(name, value)?;
                }
            }
        }
        if options.init.as_ref().is_some_and(Vec::is_empty) {
            return Err(BadOption(
                "--init needs a program: --init -- PROGRAM [ARGUMENT...]".into(),
            ));
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), BadOption> {
        match name {
            "port" => self.port = number(name, &value)?,
            "access-token" => {
                self.token = if value.is_empty() {
                    None
                } else {
                    Some(AccessToken::new(value)?)
                };
            }
            "profile" => self.profile = profile(&value)?,
            "graceful-shutdown-timeout" => self.grace = duration(&value)?,
            "log-level" => self.log_level = number(name, &value)?,
            "stock-lose-one-of" => self.lose_one_of = number(name, &value)?,
            "jupyter-host" => jupyter_host(&value)?,
            // Taken because a server may pass them; there is no Jupyter behind this daemon.
            "jupyter-token" => {}
            "jupyter-idle-poll-interval" => drop(duration(&value)?),
            _ => return Err(BadOption(format!("unknown flag --{name}: {USAGE}"))),
        }
        Ok(())
    }

    fn init_command(&mut self, command: Vec<OsString>) -> Result<(), BadOption> {
        match &mut self.init {
            Some(init) => {
                *init = command;
                Ok(())
            }
            None => Err(BadOption(
                "a program to run is taken with --init only".into(),
            )),
        }
    }
}

const USAGE: &str = "the flags are --port, --access-token, --profile default|stock, \
    --graceful-shutdown-timeout, --log-level, --stock-lose-one-of, --jupyter-host, \
    --jupyter-token, --jupyter-idle-poll-interval, --init -- PROGRAM [ARGUMENT...]";

fn profile(value: &str) -> Result<Profile, BadOption> {
    match value {
        "default" => Ok(Profile::Default),
        "stock" => Ok(Profile::Stock),
        _ => Err(BadOption(format!(
            "profile {value:?} is neither `default` nor `stock`"
        ))),
    }
}

fn number<N: std::str::FromStr>(name: &str, value: &str) -> Result<N, BadOption> {
    value
        .parse()
        .map_err(|_| BadOption(format!("{name}: {value:?} is not a number in its range")))
}

fn jupyter_host(value: &str) -> Result<(), BadOption> {
    if value.is_empty() || value.starts_with("http://") || value.starts_with("https://") {
        return Ok(());
    }
    Err(BadOption(format!(
        "Jupyter host {value:?} does not begin with http:// or https://"
    )))
}

/// A duration as Go writes it: `1.5s`, `200ms`, `1m30s`, `0`.
fn duration(value: &str) -> Result<Duration, BadOption> {
    let bad = || BadOption(format!("duration {value:?} is not like 200ms, 1.5s or 0"));
    if value == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = value.strip_prefix('+').unwrap_or(value);
    if rest.is_empty() {
        return Err(bad());
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|it: char| !it.is_ascii_digit() && it != '.')
            .ok_or_else(bad)?;
        let amount: f64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = &rest[digits..];
        let unit = rest
            .find(|it: char| it.is_ascii_digit() || it == '.')
            .unwrap_or(rest.len());
        seconds += amount
            * match &rest[..unit] {
                "ns" => 1e-9,
                "us" | "µs" | "μs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return Err(bad()),
            };
        rest = &rest[unit..];
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Options, BadOption> {
        Options::read(arguments.iter().map(OsString::from), |name| {
            variables
                .iter()
                .find(|it| it.0 == name)
                .map(|it| it.1.into())
        })
    }

    #[test]
    fn defaults_are_those_of_the_real_one() {
        let options = read(&[], &[]).unwrap();
        assert_eq!(options.port, 44_772);
        assert_eq!(options.profile, Profile::Default);
        assert_eq!(options.grace, Duration::from_secs(1));
        assert!(options.token.is_none() && options.init.is_none());
    }

    #[test]
    fn flags_win_over_the_environment() {
        let options = read(
            &[
                "--port=8000",
                "-profile",
                "default",
                "--access-token",
                "flag",
            ],
            &[("EXECD_ACCESS_TOKEN", "env"), ("EXECD_PROFILE", "stock")],
        )
        .unwrap();
        assert_eq!(options.port, 8000);
        assert_eq!(options.profile, Profile::Default);
        assert!(options.token.unwrap().matches(b"flag"));
    }

    #[test]
    fn what_is_no_flag_ends_the_flags() {
        let options = read(&["--port=8000", "tail", "-f", "--port=1"], &[]).unwrap();
        assert_eq!(options.port, 8000);
    }

    #[test]
    fn init_takes_the_rest() {
        let options = read(&["--init", "--", "tail", "-f", "--port"], &[]).unwrap();
        assert_eq!(options.init.unwrap(), ["tail", "-f", "--port"]);
        assert!(read(&["--init"], &[]).is_err());
        assert!(read(&["--init", "--"], &[]).is_err());
        assert!(read(&["--", "tail"], &[]).is_err());
    }

    #[test]
    fn durations() {
        assert_eq!(duration("0").unwrap(), Duration::ZERO);
        assert_eq!(duration("0s").unwrap(), Duration::ZERO);
        assert_eq!(duration("200ms").unwrap(), Duration::from_millis(200));
        assert_eq!(duration("1m1.5s").unwrap(), Duration::from_millis(61_500));
        for bad in ["", "5", "s", "1x", "1.2.3s", "-1s", "1e9999s", "+"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_bad_setting_is_named() {
        for (arguments, variables, word) in [
            (&["--port", "70000"][..], &[][..], "port"),
            (&["--port"][..], &[][..], "port"),
            (&["--nope", "1"][..], &[][..], "nope"),
            (&["--profile", "x"][..], &[][..], "profile"),
            (&[][..], &[("EXECD_API_GRACE_SHUTDOWN", "soon")][..], "soon"),
            (&[][..], &[("JUPYTER_HOST", "nohttp")][..], "nohttp"),
            (&["--access-token=a\nb"][..], &[][..], "token"),
        ] {
            let BadOption(text) = read(arguments, variables).unwrap_err();
            assert!(text.contains(word), "{text}");
        }
    }
}
