//! Where a server or a daemon is, checked before it is used.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sandbox_core::{Error, ErrorKind, Result};

/// Scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    tls: bool,
    /// In brackets if it is an IPv6 address.
    host: String,
    port: u16,
}

impl Origin {
    /// Reads `[http://|https://]HOST[:PORT]`. Without a scheme, `tls` says which.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] for anything else.
    pub(crate) fn parse(text: &str, tls: bool) -> Result<Self> {
        match split(text, tls) {
            Some((origin, "")) => Ok(origin),
            _ => Err(Error::new(
                ErrorKind::Config,
                "the server's address is `HOST:PORT`, with `http://` or `https://` before it if \
                 need be",
            )),
        }
    }

    /// Whether the connection is encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        self.tls
    }

    /// Host and port.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Whether nothing but this machine can be at the other end.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost") || self.ip().is_some_and(|ip| ip.is_loopback())
    }

    fn ip(&self) -> Option<IpAddr> {
        let bare = self
            .host
            .strip_prefix('[')
            .and_then(|h| h.strip_suffix(']'));
        match bare {
            Some(v6) => v6.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            None => self.host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// Where the server says that a port of a sandbox is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) origin: Origin,
    /// Empty, or beginning with a slash and without one at the end.
    pub(crate) path: String,
}

impl Endpoint {
    /// Reads `HOST[:PORT][/PATH]`, as the server writes it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Protocol`] for what is none, and for addresses that no sandbox is at.
    pub(crate) fn parse(text: &str, tls: bool) -> Result<Self> {
        let bad = || {
            Error::new(
                ErrorKind::Protocol,
                "the server names an endpoint that can't be used",
            )
            .with("endpoint", crate::error::shorten(text))
        };
        let (origin, path) = split(text, tls).ok_or_else(bad)?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/%".contains(&b);
        let strange = !path.bytes().all(plain) || path.split('/').any(|part| part == "..");
        let nowhere = match origin.ip() {
            Some(IpAddr::V4(ip)) => {
                ip.is_unspecified() || ip.is_link_local() || ip.is_multicast() || ip.is_broadcast()
            }
            Some(IpAddr::V6(ip)) => {
                ip.is_unspecified() || ip.is_unicast_link_local() || ip.is_multicast()
            }
            None => false,
        };
        if strange || nowhere {
            return Err(bad());
        }
        Ok(Self {
            origin,
            path: path.trim_end_matches('/').to_owned(),
        })
    }

    /// What requests to it begin with.
    pub(crate) fn base(&self) -> String {
        format!("{}{}", self.origin, self.path)
    }

    /// The daemon's own address, where this one leads through the daemon itself: such a way costs
    /// the daemon two file descriptors for each request, and may lose one.
    pub(crate) fn bare(&self, port: u16) -> Option<Self> {
        (self.path == format!("/proxy/{port}")).then(|| Self {
            origin: self.origin.clone(),
            path: String::new(),
        })
    }
}

/// Takes scheme, host and port off the front.
fn split(text: &str, tls: bool) -> Option<(Origin, &str)> {
    let (tls, rest) = if let Some(rest) = text.strip_prefix("http://") {
        (false, rest)
    } else if let Some(rest) = text.strip_prefix("https://") {
        (true, rest)
    } else {
        (tls, text)
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = if authority.starts_with('[') {
        let (host, after) = authority.split_at(authority.find(']')? + 1);
        host[1..host.len() - 1].parse::<Ipv6Addr>().ok()?;
        match after {
            "" => (host, None),
            after => (host, Some(after.strip_prefix(':')?)),
        }
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if host.is_empty() || !(host.starts_with('[') || host.bytes().all(plain)) {
        return None;
    }
    let port = match port {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().ok().filter(|p| *p > 0)?
        }
        Some(_) => return None,
        None if tls => 443,
        None => 80,
    };
    let host = host.to_owned();
    Some((Origin { tls, host, port }, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_and_anything_else_is_refused() {
        for (text, want, loopback) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080", true),
            ("localhost", "http://localhost:80", true),
            ("https://boxes.example", "https://boxes.example:443", false),
            ("[::1]:1", "http://[::1]:1", true),
            ("10.0.0.1:8080", "http://10.0.0.1:8080", false),
            (
                "127.0.0.1.evil.example:1",
                "http://127.0.0.1.evil.example:1",
                false,
            ),
        ] {
            let origin = Origin::parse(text, false).unwrap();
            assert_eq!(origin.to_string(), want);
            assert_eq!(origin.is_loopback(), loopback, "{text}");
        }
        for bad in [
            "", ":80", "a b", "u:p@h:1", "h:0", "h:99999", "h:+1", "h/x", "[::1", "h?x",
        ] {
            assert!(Origin::parse(bad, false).is_err(), "{bad}");
        }
    }

    #[test]
    fn endpoints_are_checked() {
        let given = Endpoint::parse("127.0.0.1:4/proxy/44772/", false).unwrap();
        assert_eq!(given.base(), "http://127.0.0.1:4/proxy/44772");
        assert_eq!(given.bare(44772).unwrap().base(), "http://127.0.0.1:4");
        assert_eq!(given.bare(8080), None);
        for bad in [
            "h:1/../x",
            "h:1/a b",
            "h:1/x?y",
            "169.254.169.254/latest",
            "0.0.0.0:1",
            "k@h:1",
            "ftp://h:1",
            "//h:1",
        ] {
            let e = Endpoint::parse(bad, false).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Protocol, "{bad}");
        }
    }
}
