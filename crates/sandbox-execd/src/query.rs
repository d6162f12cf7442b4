//! Paths and query strings of requests, as bytes: a file's name need not be UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Decodes `%41`; `None` where an escape is broken.
pub(crate) fn percent_decode(text: &str, plus_is_space: bool) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    Some(out)
}

/// Encodes what is neither a letter, a digit nor one of a few signs that need no escape in one
/// segment of a path.
pub(crate) fn percent_encode_segment(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+:=@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The parameters of a query string. Pairs that can't be decoded are left out.
#[derive(Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.contains(';'))
            .filter_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((percent_decode(key, true)?, percent_decode(value, true)?))
            })
            .collect();
        Self { pairs }
    }

    /// The first value of `name`; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &[u8] {
        let found = self.pairs.iter().find(|(key, _)| key == name.as_bytes());
        found.map_or(&[], |(_, value)| value)
    }

    /// The first value of `name` as text, for values that have to be.
    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(self.get(name)).into_owned()
    }

    /// Every value of `name`, in order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.pairs
            .iter()
            .filter(move |(key, _)| key == name.as_bytes())
            .map(|(_, value)| value.as_slice())
    }

    /// Every value of `path`.
    pub(crate) fn paths(&self) -> Vec<OsString> {
        self.all("path")
            .map(|it| OsString::from_vec(it.to_vec()))
            .collect()
    }

    /// The first value of `path`, if it is not empty.
    pub(crate) fn path(&self) -> Option<OsString> {
        let path = self.get("path");
        (!path.is_empty()).then(|| OsStr::from_bytes(path).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bytes() {
        let query = Query::parse(Some("path=%2Ftmp%2Fa+b%FF&path=%&path=c&x;y=1&empty=&flag"));
        let paths: Vec<&[u8]> = query.all("path").collect();
        assert_eq!(paths, [&b"/tmp/a b\xff"[..], b"c"]);
        assert_eq!(query.get("empty"), b"");
        assert_eq!(query.get("flag"), b"");
        assert!(query.path().is_some());
        assert!(Query::parse(None).path().is_none());
        assert!(Query::parse(Some("path=")).path().is_none());
    }

    #[test]
    fn broken_escapes_are_refused() {
        for broken in ["%", "%1", "%zz", "a%2"] {
            assert_eq!(percent_decode(broken, false), None, "{broken}");
        }
        assert_eq!(percent_decode("a+%2B", false).unwrap(), b"a++");
    }

    #[test]
    fn segments_are_escaped_as_recorded() {
        assert_eq!(
            percent_encode_segment("sp ace é ☃.txt".as_bytes()),
            "sp%20ace%20%C3%A9%20%E2%98%83.txt"
        );
    }
}
