//! A container of no backend's making.

use super::guard::Guard;
use super::{docker, lines};

/// What every name begins with; the id of the program that made it follows.
const PREFIX: &str = "sandbox-testkit-";

/// A container that a test needs running. Removed when this is dropped.
#[derive(Debug)]
pub struct Container {
    id: String,
    _guard: Guard,
}

impl Container {
    /// Starts one. `options` are those of `docker run`, `command` its first process.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub fn start(options: &[&str], image: &str, command: &[&str]) -> Result<Self, String> {
        let name = unique_name();
        Self::named(&name, options, image, command)
    }

    pub(super) fn named(
        name: &str,
        options: &[&str],
        image: &str,
        command: &[&str],
    ) -> Result<Self, String> {
        let owned = name.to_owned();
        // Before it is there: it may be half made.
        let guard = Guard::new(move || remove(&owned));
        let mut args = vec!["run", "--detach", "--name", name];
        args.extend(options);
        args.push(image);
        args.extend(command);
        Ok(Self {
            id: docker(&args)?,
            _guard: guard,
        })
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// A name that no other container or network has.
pub(super) fn unique_name() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{PREFIX}{}-{n}", std::process::id())
}

/// Removes a container if it is there. What can't be removed is said.
pub(super) fn remove(name: &str) {
    if let Err(why) = docker(&["rm", "--force", "--volumes", name])
        && !why.contains("No such container")
    {
        eprintln!("a container is left: {why}");
    }
}

/// Names of containers and networks whose program has ended without removing them.
pub(super) fn orphans(list: &[&str]) -> Vec<String> {
    let mut args = list.to_vec();
    let filter = format!("name={PREFIX}");
    args.extend(["--filter", &filter, "--format"]);
    args.push(if list[0] == "ps" {
        "{{.Names}}"
    } else {
        "{{.Name}}"
    });
    lines(&args)
        .into_iter()
        .filter(|name| {
            let pid = name
                .strip_prefix(PREFIX)
                .and_then(|rest| rest.split('-').next());
            pid.is_some_and(|pid| !std::path::Path::new("/proc").join(pid).exists())
        })
        .collect()
}
