//! Where the engine is: as told, by `DOCKER_HOST`, by the current context of the `docker` command,
//! or in one of the usual places.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use sandbox_core::{Error, ErrorKind, Result};

/// The address of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// Plain TCP, as `tcp://HOST:PORT`.
    Tcp(String),
}

impl Address {
    /// Reads an address as it stands in `DOCKER_HOST`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let bad = |why: &'static str| Err(Error::new(ErrorKind::Config, why).with("host", text));
        if let Some(path) = text.strip_prefix("unix://") {
            if !path.starts_with('/') {
                return bad("the path of the engine's socket must be absolute");
            }
            return Ok(Self::Unix(path.into()));
        }
        if text.starts_with('/') {
            return Ok(Self::Unix(text.into()));
        }
        let rest = text
            .strip_prefix("tcp://")
            .or_else(|| text.strip_prefix("http://"));
        match rest {
            Some("") => bad("the engine's address has no host"),
            Some(rest) => Ok(Self::Tcp(format!("tcp://{}", rest.trim_end_matches('/')))),
            None => bad(
                "an engine is reached by unix:// or tcp://; for ssh, forward its socket: \
                 ssh -L /tmp/docker.sock:/var/run/docker.sock HOST",
            ),
        }
    }

    /// The path of the socket, if it is one on this machine.
    pub(crate) fn socket(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Tcp(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(url) => f.write_str(url),
        }
    }
}

/// What the choice depends on, apart from the file system.
pub(crate) struct Surroundings<'a> {
    pub(crate) var: &'a dyn Fn(&str) -> Option<String>,
}

impl Surroundings<'_> {
    /// Those of this process.
    pub(crate) fn of_process() -> Self {
        Self {
            var: &|name| std::env::var(name).ok().filter(|v| !v.is_empty()),
        }
    }

    /// The address of the engine to use.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] for an address or a context that can't be used.
    pub(crate) fn address(&self) -> Result<Address> {
        if let Some(host) = (self.var)("DOCKER_HOST") {
            if (self.var)("DOCKER_TLS_VERIFY").is_some() {
                return Err(Error::new(
                    ErrorKind::Config,
                    "DOCKER_TLS_VERIFY is set and TLS is not supported: use a Unix socket",
                ));
            }
            return Address::parse(&host);
        }
        if let Some(host) = self.context()? {
            return Address::parse(&host);
        }
        let places = self.usual_places();
        Ok(places
            .iter()
            .find(|p| p.exists())
            .or_else(|| places.first())
            .map_or_else(
                || Address::Unix("/var/run/docker.sock".into()),
                |p| Address::Unix(p.clone()),
            ))
    }

    /// The engine of the current context of the `docker` command, unless that is the default one.
    fn context(&self) -> Result<Option<String>> {
        let Some(dir) = (self.var)("DOCKER_CONFIG")
            .map(PathBuf::from)
            .or_else(|| (self.var)("HOME").map(|home| Path::new(&home).join(".docker")))
        else {
            return Ok(None);
        };
        let read = |path: &Path| -> Option<serde_json::Value> {
            serde_json::from_slice(&fs::read(path).ok()?).ok()
        };
        let name = (self.var)("DOCKER_CONTEXT").or_else(|| {
            read(&dir.join("config.json"))?["currentContext"]
                .as_str()
                .map(str::to_owned)
        });
        let Some(name) = name.filter(|n| !n.is_empty() && n != "default") else {
            return Ok(None);
        };
        // The directories are named by a hash: the name stands inside.
        for entry in fs::read_dir(dir.join("contexts/meta"))
            .into_iter()
            .flatten()
            .flatten()
        {
            if let Some(meta) = read(&entry.path().join("meta.json"))
                && meta["Name"].as_str() == Some(&name)
                && let Some(host) = meta["Endpoints"]["docker"]["Host"].as_str()
            {
                return Ok(Some(host.to_owned()));
            }
        }
        Err(Error::new(
            ErrorKind::Config,
            "the current Docker context does not exist: `docker context ls`",
        )
        .with("context", name))
    }

    /// The sockets of Docker, Docker Desktop, rootless Docker and podman.
    fn usual_places(&self) -> Vec<PathBuf> {
        let mut places = vec![PathBuf::from("/var/run/docker.sock")];
        let run = (self.var)("XDG_RUNTIME_DIR").map(PathBuf::from);
        if let Some(run) = &run {
            places.push(run.join("docker.sock"));
        }
        if let Some(home) = (self.var)("HOME").map(PathBuf::from) {
            places.push(home.join(".docker/run/docker.sock"));
            places.push(home.join(".docker/desktop/docker.sock"));
            places.push(home.join(".colima/default/docker.sock"));
        }
        if let Some(run) = &run {
            places.push(run.join("podman/podman.sock"));
        }
        places.push("/run/podman/podman.sock".into());
        places
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn address(vars: &[(&str, &str)]) -> Result<Address> {
        let vars: HashMap<_, _> = vars.iter().copied().collect();
        let var = |name: &str| vars.get(name).map(|v| (*v).to_owned());
        Surroundings { var: &var }.address()
    }

    #[test]
    fn the_variable_comes_first_and_a_bad_one_is_refused() {
        assert_eq!(
            address(&[("DOCKER_HOST", "unix:///run/x.sock")]).unwrap(),
            Address::Unix("/run/x.sock".into())
        );
        assert_eq!(
            address(&[("DOCKER_HOST", "tcp://h:2375/")]).unwrap(),
            Address::Tcp("tcp://h:2375".into())
        );
        for bad in ["ssh://u@h", "npipe:////./pipe/x", "unix://rel", "tcp://"] {
            assert_eq!(
                address(&[("DOCKER_HOST", bad)]).unwrap_err().kind(),
                ErrorKind::Config,
                "{bad}"
            );
        }
        let tls = [("DOCKER_HOST", "tcp://h:2376"), ("DOCKER_TLS_VERIFY", "1")];
        assert_eq!(address(&tls).unwrap_err().kind(), ErrorKind::Config);
    }

    #[test]
    fn the_current_context_comes_next() {
        let dir = tempfile::tempdir().unwrap();
        let meta = dir.path().join("contexts/meta/0123");
        fs::create_dir_all(&meta).unwrap();
        fs::write(
            meta.join("meta.json"),
            r#"{"Name":"desk","Endpoints":{"docker":{"Host":"unix:///desk.sock"}}}"#,
        )
        .unwrap();
        fs::write(
            dir.path().join("config.json"),
            r#"{"currentContext":"desk"}"#,
        )
        .unwrap();
        let config = dir.path().to_str().unwrap();
        let desk = Address::Unix("/desk.sock".into());
        assert_eq!(address(&[("DOCKER_CONFIG", config)]).unwrap(), desk);
        let other = [("DOCKER_CONFIG", config), ("DOCKER_CONTEXT", "none")];
        assert_eq!(address(&other).unwrap_err().kind(), ErrorKind::Config);
        let default = [("DOCKER_CONFIG", config), ("DOCKER_CONTEXT", "default")];
        assert_ne!(address(&default).unwrap(), desk);
    }

    #[test]
    fn the_first_of_the_usual_places_that_exists_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("podman/podman.sock");
        fs::create_dir_all(socket.parent().unwrap()).unwrap();
        fs::write(&socket, "").unwrap();
        let vars = [("XDG_RUNTIME_DIR", dir.path().to_str().unwrap())];
        let found = address(&vars).unwrap();
        if !Path::new("/var/run/docker.sock").exists() {
            assert_eq!(found, Address::Unix(socket));
        }
    }
}
