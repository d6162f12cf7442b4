//! What anyone on the network can do, said where it can't be missed.

use crate::config::OpenSandboxConfig;
use crate::origin::Origin;

/// What there is to say about a server and one of its sandboxes.
pub(crate) fn warnings(config: &OpenSandboxConfig, server: &Origin, exposed: bool) -> Vec<String> {
    let mut found = Vec::new();
    if config.key.is_none() {
        found.push(
            "no key is set for the OpenSandbox server: if the server asks for none, anyone who \
             reaches it can make sandboxes, run commands in all of them and, where its \
             `storage.allowed_host_paths` allows, read and write its host's files. Set \
             `server.api_key` in the server's file and OPEN_SANDBOX_API_KEY here"
                .to_owned(),
        );
    } else if !server.is_tls() && !server.is_loopback() {
        found.push(
            "the OpenSandbox server's key travels unencrypted: anyone on the way can read it and \
             use the server. Put TLS in front of the server and name it with `https://` \
             (`tls=on`), or reach it through a tunnel"
                .to_owned(),
        );
    }
    if exposed && config.execd_token.is_none() {
        found.push(
            "the sandbox's daemon is published at an address other than loopback, without a key: \
             anyone who reaches it can run commands in the sandbox, as root. Set \
             `docker.publish_host = \"127.0.0.1\"` (or an address of a private network) in the \
             server's file"
                .to_owned(),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(server: &str, key: bool, exposed: bool) -> usize {
        let mut config = OpenSandboxConfig::new(server);
        if key {
            config = config.api_key("k3y");
        }
        let origin = config.origin().unwrap();
        let found = warnings(&config, &origin, exposed);
        assert!(found.iter().all(|w| !w.contains("k3y")));
        found.len()
    }

    #[test]
    fn each_risk_is_said_and_none_where_there_is_none() {
        assert_eq!(count("127.0.0.1:1", true, false), 0);
        assert_eq!(count("127.0.0.1:1", false, false), 1);
        assert_eq!(count("10.0.0.1:1", true, false), 1);
        assert_eq!(count("10.0.0.1:1", true, true), 2);
        assert_eq!(count("https://boxes.example", true, false), 0);
        assert_eq!(count("https://boxes.example", true, true), 1);
    }
}
