//! The sandboxes of this process.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use sandbox_core::{Result, SandboxId};

use crate::machine::Machine;

#[derive(Debug, Default)]
struct Registry {
    machines: HashMap<SandboxId, Arc<Machine>>,
    names: HashMap<String, SandboxId>,
    made: u64,
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);

fn lock() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a sandbox with an id that no other has, and keeps it until it ends. `make` gets the id.
/// If one of that name lives, it is that one. The flag says whether it was made.
///
/// With a seed the ids are the same in every run, as long as only one provider of the process
/// has it.
pub(crate) fn insert(
    name: Option<&str>,
    seed: Option<(u64, u64)>,
    make: impl FnOnce(SandboxId) -> Result<Arc<Machine>>,
) -> Result<(Arc<Machine>, bool)> {
    let mut registry = lock();
    if let Some(machine) = name
        .and_then(|name| registry.names.get(name))
        .and_then(|id| registry.machines.get(id))
    {
        return Ok((machine.clone(), false));
    }
    let id = loop {
        registry.made += 1;
        let id = match seed {
            Some((seed, n)) if !registry.machines.contains_key(&seeded(seed, n, 0)) => {
                seeded(seed, n, 0)
            }
            Some((seed, n)) => seeded(seed, n, registry.made),
            None => SandboxId::new(format!("mock-{}", &token()[..20])),
        };
        if !registry.machines.contains_key(&id) {
            break id;
        }
    };
    let machine = make(id.clone())?;
    if let Some(name) = name {
        registry.names.insert(name.to_owned(), id.clone());
    }
    registry.machines.insert(id, machine.clone());
    Ok((machine, true))
}

fn seeded(seed: u64, n: u64, twin: u64) -> SandboxId {
    let twin = if twin == 0 {
        String::new()
    } else {
        format!("-{twin}")
    };
    SandboxId::new(format!("mock-{seed:x}-{n}{twin}"))
}

/// The living sandbox of that id.
pub(crate) fn get(id: &SandboxId) -> Option<Arc<Machine>> {
    lock().machines.get(id).cloned()
}

/// All living sandboxes.
pub(crate) fn all() -> Vec<Arc<Machine>> {
    lock().machines.values().cloned().collect()
}

/// Forgets an ended sandbox.
pub(crate) fn remove(id: &SandboxId) {
    let mut registry = lock();
    let machine = registry.machines.remove(id);
    if let Some(name) = machine.as_ref().and_then(|m| m.name.as_ref())
        && registry.names.get(name) == Some(id)
    {
        registry.names.remove(name);
    }
    drop(registry);
    // Perhaps the last handle: its end is not under the lock.
    drop(machine);
}

/// 128 bits that nobody can guess.
pub(crate) fn token() -> String {
    // Each `RandomState` has keys of its own, seeded by the operating system.
    let word = || RandomState::new().hash_one(std::time::SystemTime::now());
    format!("{:016x}{:016x}", word(), word())
}
