//! A container of no backend's making.

use testcontainers::core::ContainerRequest;
use testcontainers::runners::SyncRunner as _;
use testcontainers::{GenericImage, ImageExt as _};

use super::guard::Guard;
use super::{docker, lines};

/// What every name begins with; the id of the program that made it follows.
const PREFIX: &str = "sandbox-testkit-";

/// A container that a test needs running, by testcontainers. Removed when this is dropped.
#[derive(Debug)]
pub struct Container {
    /// Dropped before the guard, which then finds nothing to remove.
    running: Option<testcontainers::Container<GenericImage>>,
    id: String,
    _guard: Guard,
}

impl Container {
    /// Starts one. Blocks until its ready conditions are met; works inside a runtime too.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub fn start(request: ContainerRequest<GenericImage>) -> Result<Self, String> {
        Self::named(&unique_name(), request)
    }

    pub(super) fn named(
        name: &str,
        request: ContainerRequest<GenericImage>,
    ) -> Result<Self, String> {
        let owned = name.to_owned();
        // Before it is there: it may be half made. And on a signal nothing is dropped.
        let guard = Guard::new(move || remove(&owned));
        let request = request.with_container_name(name);
        let container = apart(|| request.start()).map_err(|e| e.to_string())?;
        Ok(Self {
            id: container.id().to_owned(),
            running: Some(container),
            _guard: guard,
        })
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let running = self.running.take();
        apart(|| drop(running));
    }
}

/// An image as testcontainers wants it; without a tag, the latest.
pub fn image(name: &str) -> ContainerRequest<GenericImage> {
    let (name, tag) = name.rsplit_once(':').unwrap_or((name, "latest"));
    GenericImage::new(name, tag).into()
}

/// Runs something that waits on a thread of its own: on a runtime's it would panic.
fn apart<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    let done = std::thread::scope(|scope| scope.spawn(what).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
