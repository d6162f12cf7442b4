//! The part of a server's own configuration that a client on the same machine needs.

/// What a server's file says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServerFile {
    /// As `HOST:PORT`.
    pub(crate) address: String,
    pub(crate) key: Option<String>,
}

/// Reads `host`, `port` and `api_key` of the table `[server]`. `None` if one of them can't be
/// read; of TOML, nothing but strings and numbers on one line is understood there.
pub(crate) fn read(text: &str) -> Option<ServerFile> {
    let mut table = "";
    let (mut host, mut port, mut key) = ("127.0.0.1".to_owned(), 8080, None);
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            table = name.split(']').next().unwrap_or_default().trim();
            continue;
        }
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let value = value.trim();
        match (table, name.trim()) {
            ("server", "host") => host = string(value)?,
            ("server", "port") => {
                port = value.split('#').next()?.trim().parse::<u16>().ok()?;
            }
            ("server", "api_key") => key = Some(string(value)?).filter(|k| !k.is_empty()),
            _ => {}
        }
    }
    // What listens everywhere listens here too.
    if host.is_empty() || host == "0.0.0.0" || host == "::" {
        "127.0.0.1".clone_into(&mut host);
    }
    let address = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    Some(ServerFile { address, key })
}

/// A TOML string on one line, what follows it but a comment refused.
fn string(value: &str) -> Option<String> {
    let quote = value.chars().next().filter(|c| "\"'".contains(*c))?;
    let mut text = String::new();
    let mut rest = value[1..].chars();
    loop {
        match rest.next()? {
            c if c == quote => break,
            '\\' if quote == '"' => match rest.next()? {
                c @ ('"' | '\\') => text.push(c),
                't' => text.push('\t'),
                'n' => text.push('\n'),
                // Unicode by number: no key has it.
                _ => return None,
            },
            c => text.push(c),
        }
    }
    let after = rest.as_str().trim_start();
    (after.is_empty() || after.starts_with('#')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(address: &str, key: Option<&str>) -> ServerFile {
        ServerFile {
            address: address.into(),
            key: key.map(Into::into),
        }
    }

    #[test]
    fn reads_what_a_server_was_started_with() {
        let text = "# x\n[server]\nhost = \"0.0.0.0\" # all\nport = 8090  # any\n\
                    api_key = \"k\\\"1\"\n[runtime]\nhost = 7\nport = \"no\"\n";
        assert_eq!(read(text).unwrap(), file("127.0.0.1:8090", Some("k\"1")));
        assert_eq!(
            read("[server]\nhost='::1'\n").unwrap(),
            file("[::1]:8080", None)
        );
        assert_eq!(read("").unwrap(), file("127.0.0.1:8080", None));
        assert_eq!(
            read("[server]\napi_key = ''").unwrap(),
            file("127.0.0.1:8080", None)
        );
        for bad in [
            "[server]\nport = x",
            "[server]\nhost = a",
            "[server]\napi_key = \"a\" b",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
