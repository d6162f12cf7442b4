//! What every sandbox begins with: the tree of a small container, made once a process and shared.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use bytes::Bytes;
use sandbox_core::{Error, ErrorKind, Result};

use super::error::FsResult;
use super::node::{Cred, Device, Kind, Node};
use super::table::{Last, Table};

/// A user of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) cred: Cred,
    pub(crate) home: String,
}

/// The users of the image: `/etc/passwd`.
#[derive(Debug)]
pub(crate) struct Accounts;

const ACCOUNTS: [(&str, u32, &str); 4] = [
    ("root", 0, "/root"),
    ("daemon", 1, "/usr/sbin"),
    ("sandbox", 1000, "/home/sandbox"),
    ("nobody", 65534, "/nonexistent"),
];

/// The host name of every sandbox.
pub(crate) const HOSTNAME: &str = "sandbox";

impl Accounts {
    /// A user by name or number. Any number will do, as for a container.
    pub(crate) fn find(user: &str) -> Result<Account> {
        let (user, group) = match user.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (user, None),
        };
        let number = user.parse::<u32>().ok();
        let known = ACCOUNTS
            .iter()
            .find(|(name, uid, _)| *name == user || number == Some(*uid));
        let mut account = match (known, number) {
            (Some((name, uid, home)), _) => Account {
                name: (*name).to_owned(),
                cred: Cred {
                    uid: *uid,
                    gid: *uid,
                },
                home: (*home).to_owned(),
            },
            // Without an entry the group is 0, as a container gives it.
            (None, Some(uid)) => Account {
                name: uid.to_string(),
                cred: Cred { uid, gid: 0 },
                home: "/".to_owned(),
            },
            (None, None) => return Err(Self::missing("user", user)),
        };
        if let Some(group) = group {
            account.cred.gid = match group.parse::<u32>() {
                Ok(gid) => gid,
                Err(_) => Self::gid(group).ok_or_else(|| Self::missing("group", group))?,
            };
        }
        Ok(account)
    }

    /// The name of a user number.
    pub(crate) fn name(uid: u32) -> Option<&'static str> {
        ACCOUNTS.iter().find(|a| a.1 == uid).map(|a| a.0)
    }

    /// The number of a user name; groups have the same names and numbers.
    pub(crate) fn gid(name: &str) -> Option<u32> {
        ACCOUNTS.iter().find(|a| a.0 == name).map(|a| a.1)
    }

    fn missing(what: &'static str, name: &str) -> Error {
        Error::new(
            ErrorKind::NotFound,
            format!("the sandbox has no such {what}: use a name of /etc/passwd or a number"),
        )
        .with(what, name)
    }
}

/// Builtins of a shell that are no programs: they have no file.
const NO_PROGRAMS: &[&str] = &[
    ".",
    ":",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// The image, with a file in `/usr/bin` for each of `commands`. Only the first call's count.
pub(crate) fn base(commands: impl FnOnce() -> Vec<String>) -> &'static Table {
    static IMAGE: OnceLock<Table> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let mut table = Table::new();
        match build(&mut table, &commands()) {
            Ok(()) => table,
            // Nothing here can fail: the table is empty and without a limit.
            Err(e) => unreachable!("the image can't be built: {e:?}"),
        }
    })
}

fn build(t: &mut Table, commands: &[String]) -> FsResult<()> {
    for (path, mode) in [
        ("/dev", 0o755),
        ("/etc", 0o755),
        ("/home", 0o755),
        ("/mnt", 0o755),
        ("/opt", 0o755),
        ("/proc", 0o555),
        ("/proc/self", 0o555),
        ("/root", 0o700),
        ("/run", 0o755),
        ("/srv", 0o755),
        ("/sys", 0o555),
        ("/tmp", 0o1777),
        ("/usr", 0o755),
        ("/usr/bin", 0o755),
        ("/usr/lib", 0o755),
        ("/usr/sbin", 0o755),
        ("/usr/share", 0o755),
        ("/usr/local", 0o755),
        ("/usr/local/bin", 0o755),
        ("/usr/local/lib", 0o755),
        ("/usr/local/sbin", 0o755),
        ("/var", 0o755),
        ("/var/tmp", 0o1777),
    ] {
        add(t, path, Kind::Dir(BTreeMap::new()), mode, Cred::ROOT)?;
    }
    let user = Cred {
        uid: 1000,
        gid: 1000,
    };
    add(t, "/home/sandbox", Kind::Dir(BTreeMap::new()), 0o755, user)?;
    for (link, target) in [
        ("/bin", "usr/bin"),
        ("/sbin", "usr/sbin"),
        ("/lib", "usr/lib"),
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
    ] {
        add(t, link, Kind::Symlink(target.into()), 0o777, Cred::ROOT)?;
    }
    for (name, device) in [
        ("null", Device::Null),
        ("zero", Device::Zero),
        ("full", Device::Full),
        ("random", Device::Random),
        ("urandom", Device::Random),
    ] {
        add(
            t,
            &format!("/dev/{name}"),
            Kind::Device(device),
            0o666,
            Cred::ROOT,
        )?;
    }
    for (path, text) in texts() {
        let mode = if path.starts_with("/proc") {
            0o444
        } else {
            0o644
        };
        add(t, path, Kind::File(Bytes::from(text)), mode, Cred::ROOT)?;
    }
    for name in commands {
        if NO_PROGRAMS.contains(&name.as_str()) || name.contains('/') || name.starts_with("__") {
            continue;
        }
        // The engine knows its own builtin by this text when the file is run by its path.
        let stub = format!("#!/bin/sh\n# bashkit builtin: {name}\nexec {name} \"$@\"\n");
        let path = format!("/usr/bin/{name}");
        add(t, &path, Kind::File(stub.into()), 0o755, Cred::ROOT)?;
    }
    Ok(())
}

fn texts() -> Vec<(&'static str, String)> {
    let mut passwd = String::new();
    let mut group = String::new();
    for (name, id, home) in ACCOUNTS {
        let shell = if id == 0 || id == 1000 {
            "/bin/sh"
        } else {
            "/usr/sbin/nologin"
        };
        let _ = writeln!(passwd, "{name}:x:{id}:{id}:{name}:{home}:{shell}");
        let _ = writeln!(group, "{name}:x:{id}:");
    }
    let os = "PRETTY_NAME=\"sandbox-mock\"\nNAME=\"sandbox-mock\"\nID=sandbox-mock\n";
    vec![
        ("/etc/passwd", passwd),
        ("/etc/group", group),
        ("/etc/hostname", format!("{HOSTNAME}\n")),
        (
            "/etc/hosts",
            format!("127.0.0.1\tlocalhost\n127.0.0.1\t{HOSTNAME}\n"),
        ),
        ("/etc/resolv.conf", String::new()),
        ("/etc/os-release", os.to_owned()),
        ("/etc/shells", "/bin/sh\n/bin/bash\n".to_owned()),
        ("/etc/profile", String::new()),
        (
            "/proc/cpuinfo",
            "processor\t: 0\nmodel name\t: virtual\n\n".to_owned(),
        ),
        ("/proc/mounts", "overlay / overlay rw 0 0\n".to_owned()),
        ("/proc/uptime", "1.00 1.00\n".to_owned()),
        (
            "/proc/version",
            "Linux version 6.1.0 (sandbox-mock)\n".to_owned(),
        ),
    ]
}

fn add(t: &mut Table, path: &str, kind: Kind, mode: u32, cred: Cred) -> FsResult<()> {
    let place = t.walk(path, Cred::ROOT, Last::Keep)?;
    t.insert(place.dir, &place.name, Node::new(kind, mode, cred))?;
    Ok(())
}
