//! Who made a sandbox, so that what a dead owner left can be told from what a living one has.

use std::fs;

/// A process, named so that it can't be taken for another: a process id alone means nothing on
/// another machine, after a restart, or once it is used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    machine: String,
    boot: String,
    pid: u32,
    start: u64,
}

impl Owner {
    /// This process; `None` where the system does not tell.
    pub(crate) fn current() -> Option<Self> {
        let pid = std::process::id();
        Some(Self {
            machine: machine()?,
            boot: boot()?,
            pid,
            start: start_of(pid)?,
        })
    }

    /// As a label has it.
    pub(crate) fn to_label(&self) -> String {
        format!("{}/{}/{}/{}", self.machine, self.boot, self.pid, self.start)
    }

    /// From a label.
    pub(crate) fn from_label(label: &str) -> Option<Self> {
        let mut parts = label.split('/');
        let owner = Self {
            machine: parts.next()?.to_owned(),
            boot: parts.next()?.to_owned(),
            pid: parts.next()?.parse().ok()?,
            start: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(owner)
    }

    /// True only if this owner was on this machine and is no more.
    pub(crate) fn is_dead(&self) -> bool {
        let (Some(machine), Some(boot)) = (machine(), boot()) else {
            return false;
        };
        if self.machine != machine {
            return false;
        }
        self.boot != boot || start_of(self.pid) != Some(self.start)
    }
}

fn machine() -> Option<String> {
    // In a container the file may be missing or copied: the host's name tells those apart.
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    // The processes that can be seen belong to a name space: in another, a pid is another's.
    let space = fs::read_link("/proc/self/ns/pid").ok()?;
    let clean = |s: &str| s.trim().replace('/', "_");
    Some(format!(
        "{}.{}.{}",
        clean(&id),
        clean(&host),
        clean(&space.to_string_lossy())
    ))
}

fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// The start of a process in clock ticks since the boot.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_one_with_another_start_does_not() {
        let me = Owner::current().unwrap();
        assert_eq!(Owner::from_label(&me.to_label()).unwrap(), me);
        assert!(!me.is_dead());
        let reused = Owner {
            start: me.start + 1,
            ..me.clone()
        };
        assert!(reused.is_dead());
        let rebooted = Owner {
            boot: "other".into(),
            ..me.clone()
        };
        assert!(rebooted.is_dead());
        let elsewhere = Owner {
            machine: "other".into(),
            ..me
        };
        assert!(!elsewhere.is_dead());
        assert!(Owner::from_label("1/2/x/4").is_none());
    }
}
