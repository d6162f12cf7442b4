//! Mounts, and the one that is refused.

use std::path::{Component, Path, PathBuf};

use bollard::models::{Mount as EngineMount, MountType};
use sandbox_core::{Error, ErrorKind, Mount, Result, SandboxPath};

/// Sockets by which engines are owned, whatever this client's own is.
const SOCKETS: &[&str] = &[
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
];

/// The engine's terms for the mounts of a spec.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`] for one that can't be, or that holds an engine's socket and is
/// not forced.
pub(crate) fn mounts(
    mounts: &[Mount],
    socket: Option<&Path>,
    forced: bool,
) -> Result<Vec<EngineMount>> {
    mounts.iter().map(|m| mount(m, socket, forced)).collect()
}

fn mount(mount: &Mount, socket: Option<&Path>, forced: bool) -> Result<EngineMount> {
    let invalid = |why: &'static str| {
        Error::new(ErrorKind::InvalidArgument, why)
            .with("field", "mounts")
            .with("source", &mount.source)
    };
    let target = SandboxPath::new(&mount.target).map_err(|e| e.with("field", "mounts"))?;
    if target.is_root() {
        return Err(invalid("nothing can be mounted at `/`"));
    }
    let bind = mount.source.starts_with('/');
    if bind {
        let source = Path::new(&mount.source);
        if source.components().any(|c| c == Component::ParentDir) {
            return Err(invalid("the source holds `..`: give the path it leads to"));
        }
        if !forced && holds_socket(source, socket) {
            return Err(invalid(
                "the source holds an engine's socket, and who can write to it owns the host: \
                 mount something below, or force it with `allow_engine_socket`",
            ));
        }
    } else {
        let mut chars = mount.source.chars();
        let named = chars.next().is_some_and(|c| c.is_ascii_alphanumeric())
            && chars.all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
        if !named {
            return Err(invalid(
                "the source is an absolute path of the engine's host or the name of a volume",
            ));
        }
    }
    Ok(EngineMount {
        target: Some(target.as_str().to_owned()),
        source: Some(mount.source.clone()),
        typ: Some(if bind {
            MountType::BIND
        } else {
            MountType::VOLUME
        }),
        read_only: Some(mount.read_only),
        ..EngineMount::default()
    })
}

/// Whether an engine's socket is at or below `source`, by name or through links of this machine.
fn holds_socket(source: &Path, socket: Option<&Path>) -> bool {
    let real = |p: &Path| -> PathBuf { p.canonicalize().unwrap_or_else(|_| p.to_owned()) };
    let real_source = real(source);
    SOCKETS
        .iter()
        .map(Path::new)
        .chain(socket)
        .any(|s| s.starts_with(source) || real(s).starts_with(&real_source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(m: Mount) -> Option<ErrorKind> {
        mounts(&[m], Some(Path::new("/opt/e.sock")), false)
            .err()
            .map(|e| e.kind())
    }

    #[test]
    fn an_engine_s_socket_is_refused_however_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/var/run", &link).unwrap();
        for source in [
            "/",
            "/var/run",
            "/var/run/docker.sock",
            "/run",
            "/var/run/",
            "/opt",
            "/opt/e.sock",
            link.to_str().unwrap(),
            "/tmp/../var/run",
            "../x",
            "",
        ] {
            let refused = kind(Mount::read_only(source, "/m"));
            assert_eq!(refused, Some(ErrorKind::InvalidArgument), "{source}");
        }
        assert_eq!(kind(Mount::writable("/srv/data", "/data")), None);
        assert_eq!(kind(Mount::writable("cache", "/cache")), None);
        let forced = Mount::writable("/var/run/docker.sock", "/var/run/docker.sock");
        assert!(mounts(&[forced], None, true).is_ok());
    }

    #[test]
    fn a_target_is_an_absolute_path_below_the_root() {
        assert_eq!(
            kind(Mount::writable("cache", "/")),
            Some(ErrorKind::InvalidArgument)
        );
        assert_eq!(
            kind(Mount::writable("cache", "rel")),
            Some(ErrorKind::InvalidPath)
        );
    }
}
