//! The grammar of backend URLs: `mock:`, `docker://IMAGE`, `opensandbox://HOST:PORT[/IMAGE]`,
//! options as query.

use std::fmt;
use std::time::Duration;

use crate::{Error, ErrorKind, Result};

/// A backend URL taken apart: `scheme:` or `scheme://rest`, then `?key=value&…`.
///
/// Values are percent-decoded. Nothing else is interpreted here: each provider reads what it knows
/// and refuses the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendUrl {
    scheme: String,
    rest: String,
    query: Vec<(String, String)>,
}

impl BackendUrl {
    /// Takes `url` apart.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if it is no URL, or an option is given twice.
    pub fn parse(url: &str) -> Result<Self> {
        let bad = |why: &'static str| Error::new(ErrorKind::Config, why).with("url", redact(url));
        let (scheme, after) = url
            .split_once(':')
            .ok_or_else(|| bad("a backend URL begins with its scheme, as in `mock:`"))?;
        if scheme.is_empty()
            || !scheme
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        {
            return Err(bad("the scheme of a backend URL is lower-case letters"));
        }
        let (rest, query) = match after.split_once('?') {
            Some((rest, query)) => (rest, query),
            None => (after, ""),
        };
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let mut options: Vec<(String, String)> = Vec::new();
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode =
                |s: &str| decode(s).ok_or_else(|| bad("an option is not percent-encoded UTF-8"));
            let (key, value) = (decode(key)?, decode(value)?);
            if options.iter().any(|(k, _)| *k == key) {
                return Err(bad("an option is given twice").with("option", key));
            }
            options.push((key, value));
        }
        Ok(Self {
            scheme: scheme.to_owned(),
            rest: rest.to_owned(),
            query: options,
        })
    }

    /// A URL without options.
    pub fn new(scheme: impl Into<String>, rest: impl Into<String>) -> Self {
        Self {
            scheme: scheme.into(),
            rest: rest.into(),
            query: Vec::new(),
        }
    }

    /// Sets an option.
    pub fn with_option(mut self, key: &str, value: impl Into<String>) -> Self {
        self.query.retain(|(k, _)| k != key);
        self.query.push((key.to_owned(), value.into()));
        self
    }

    /// The backend's name.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// What stands between the scheme and the query.
    pub fn rest(&self) -> &str {
        &self.rest
    }

    /// The options in order.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.query.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// The value of an option.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }

    /// The value of an option as `parse` reads it; `what` says what it takes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] naming the option, if `parse` gives nothing.
    pub fn read<T>(
        &self,
        key: &str,
        what: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.option(key) else {
            return Ok(None);
        };
        match parse(value) {
            Some(value) => Ok(Some(value)),
            None => Err(
                Error::new(ErrorKind::Config, format!("the option `{key}` is {what}"))
                    .with("value", value),
            ),
        }
    }

    /// The value of an option that is one of these words.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let names: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        self.read(key, &names.join(" or "), |value| {
            let found = words.iter().find(|(word, _)| *word == value);
            found.map(|(_, meaning)| *meaning)
        })
    }

    /// A number above 0.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_number(&self, key: &str) -> Result<Option<u64>> {
        self.read(key, "a number above 0", positive)
    }

    /// A time in seconds, above 0.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_seconds(&self, key: &str) -> Result<Option<Duration>> {
        self.read(key, "a number of seconds", |value| {
            positive(value).map(Duration::from_secs)
        })
    }

    /// Bytes, plain or with `k`, `m` or `g` for powers of 1,024.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_bytes(&self, key: &str) -> Result<Option<u64>> {
        self.read(key, "bytes, as `512m`", bytes)
    }

    /// A number of CPUs to the thousandth, as thousandths.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_milli_cpus(&self, key: &str) -> Result<Option<u64>> {
        self.read(key, "a number of CPUs, as `1.5`", milli_cpus)
    }

    /// Sets an option where there is a value for it.
    pub fn with_some(self, key: &str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.with_option(key, value),
            None => self,
        }
    }

    /// Refuses what the backend does not know.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] naming the first unknown option and those that exist.
    pub fn allow_options(&self, known: &[&str]) -> Result<()> {
        match self
            .query
            .iter()
            .find(|(k, _)| !known.contains(&k.as_str()))
        {
            None => Ok(()),
            Some((key, _)) => Err(Error::new(
                ErrorKind::Config,
                format!(
                    "`{}:` has no such option; it has: {}",
                    self.scheme,
                    known.join(", ")
                ),
            )
            .with("option", key)),
        }
    }
}

impl fmt::Display for BackendUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.scheme)?;
        if !self.rest.is_empty() {
            write!(f, "//{}", self.rest)?;
        }
        for (i, (key, value)) in self.query.iter().enumerate() {
            write!(
                f,
                "{}{}={}",
                if i == 0 { '?' } else { '&' },
                encode(key),
                encode(value)
            )?;
        }
        Ok(())
    }
}

/// What stands before an `@` may be a password.
fn redact(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, host)) => format!("***@{host}"),
        None => url.to_owned(),
    }
}

fn positive(text: &str) -> Option<u64> {
    text.parse().ok().filter(|n| *n > 0)
}

fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let (number, unit) = match text.char_indices().last()? {
        (i, 'k') => (&text[..i], 1 << 10),
        (i, 'm') => (&text[..i], 1 << 20),
        (i, 'g') => (&text[..i], 1 << 30),
        _ => (text.as_str(), 1),
    };
    positive(number)?.checked_mul(unit)
}

fn milli_cpus(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.is_empty() || part.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = format!("{part:0<3}").parse().ok()?;
    whole
        .checked_mul(1000)?
        .checked_add(part)
        .filter(|n| *n > 0)
}

fn decode(s: &str) -> Option<String> {
    let bytes = s.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'%' {
            let hex = bytes
                .get(i + 1..i + 3)
                .and_then(|h| std::str::from_utf8(h).ok())?;
            out.push(u8::from_str_radix(hex, 16).ok()?);
            i += 3;
        } else {
            out.push(bytes[i]);
            i += 1;
        }
    }
    String::from_utf8(out).ok()
}

fn encode(s: &str) -> String {
    use fmt::Write as _;
    let mut out = String::with_capacity(s.len());
    for b in s.bytes() {
        if b.is_ascii_alphanumeric() || b"-._~:/@,".contains(&b) {
            out.push(char::from(b));
        } else {
            let _ = write!(out, "%{b:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn takes_the_three_forms_and_refuses_the_rest() {
        let url = BackendUrl::parse("docker://python:3.12?user=1000&env=A%3D1").unwrap();
        assert_eq!((url.scheme(), url.rest()), ("docker", "python:3.12"));
        assert_eq!(
            (url.option("user"), url.option("env")),
            (Some("1000"), Some("A=1"))
        );
        assert_eq!(BackendUrl::parse("mock:").unwrap().to_string(), "mock:");
        assert!(
            url.allow_options(&["user"])
                .unwrap_err()
                .to_string()
                .contains("env")
        );
        for bad in [
            "",
            "mock",
            ":",
            "Mock:",
            "mock:?a=1&a=2",
            "mock:?a=%zz",
            "mock:?a=%ff",
        ] {
            assert_eq!(
                BackendUrl::parse(bad).unwrap_err().kind(),
                ErrorKind::Config,
                "{bad}"
            );
        }
        let secret = BackendUrl::parse("BAD://user:hunter2@host").unwrap_err();
        assert!(!format!("{secret:?}").contains("hunter2"));
    }

    #[test]
    fn numbers_of_all_kinds_are_read_and_bad_ones_refused_by_name() {
        let url = BackendUrl::parse("x:?a=512m&b=1.5&c=60&d=2&e=on").unwrap();
        assert_eq!(url.read_bytes("a").unwrap(), Some(512 << 20));
        assert_eq!(url.read_milli_cpus("b").unwrap(), Some(1500));
        assert_eq!(url.read_seconds("c").unwrap(), Some(Duration::from_mins(1)));
        assert_eq!(url.read_number("d").unwrap(), Some(2));
        assert_eq!(url.read_number("z").unwrap(), None);
        assert_eq!(
            url.read_word("e", &[("off", 0), ("on", 1)]).unwrap(),
            Some(1)
        );
        let bad = BackendUrl::parse("x:?a=0&b=99999999999g&c=-1&d=1.2345&e=maybe").unwrap();
        for refused in [
            bad.read_number("a").unwrap_err(),
            bad.read_bytes("b").unwrap_err(),
            bad.read_seconds("c").unwrap_err(),
            bad.read_milli_cpus("d").unwrap_err(),
            bad.read_word("e", &[("off", 0), ("on", 1)]).unwrap_err(),
        ] {
            assert_eq!(refused.kind(), ErrorKind::Config);
        }
    }

    proptest! {
        #[test]
        fn options_survive_the_way_out_and_back(value in "\\PC{0,20}") {
            let url = BackendUrl::new("mock", "").with_option("k", value);
            prop_assert_eq!(BackendUrl::parse(&url.to_string()).unwrap(), url);
        }
    }
}
