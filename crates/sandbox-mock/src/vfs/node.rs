//! Inodes: what a file, directory, link or device is made of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

/// The number of an inode: its place in the table.
pub(crate) type Ino = usize;

/// The inode of `/`.
pub(crate) const ROOT: Ino = 0;

/// What one inode is charged besides its content: about what it takes in memory.
pub(crate) const NODE_COST: u64 = 256;

/// Who does something. Nobody has capabilities: number 0 is no exception anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cred {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Cred {
    pub(crate) const ROOT: Self = Self { uid: 0, gid: 0 };
}

/// An inode. Cloning shares the content.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// The permission bits with set-id and sticky, 0o7777 at most.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) nlink: u32,
    pub(crate) modified: SystemTime,
}

/// What an inode is, with its content.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    File(Bytes),
    Dir(BTreeMap<Arc<str>, Ino>),
    Symlink(Arc<str>),
    Fifo(Bytes),
    Device(Device),
}

/// The devices of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    Null,
    Zero,
    Full,
    Random,
}

/// What `stat` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) ino: Ino,
    pub(crate) kind: FileKind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) nlink: u32,
    pub(crate) modified: SystemTime,
}

/// [`Kind`] without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    File,
    Dir,
    Symlink,
    Fifo,
    Device,
}

impl Node {
    pub(crate) fn new(kind: Kind, mode: u32, cred: Cred) -> Self {
        let nlink = if matches!(kind, Kind::Dir(_)) { 2 } else { 1 };
        Self {
            kind,
            mode,
            uid: cred.uid,
            gid: cred.gid,
            nlink,
            modified: SystemTime::now(),
        }
    }

    /// Whether `cred` has all of `bits` (4 read, 2 write, 1 search or execute).
    pub(crate) fn permits(&self, cred: Cred, bits: u32) -> bool {
        let shift = if cred.uid == self.uid {
            6
        } else if cred.gid == self.gid {
            3
        } else {
            0
        };
        (self.mode >> shift) & bits == bits
    }

    /// Bytes of content, as `stat` tells it.
    pub(crate) fn size(&self) -> u64 {
        match &self.kind {
            Kind::File(content) => content.len() as u64,
            Kind::Symlink(target) => target.len() as u64,
            Kind::Dir(_) => 4096,
            Kind::Fifo(_) | Kind::Device(_) => 0,
        }
    }

    /// What it is charged.
    pub(crate) fn cost(&self) -> u64 {
        let content = match &self.kind {
            Kind::File(content) | Kind::Fifo(content) => content.len(),
            Kind::Symlink(target) => target.len(),
            Kind::Dir(_) | Kind::Device(_) => 0,
        };
        NODE_COST + content as u64
    }

    pub(crate) fn stat(&self, ino: Ino) -> Stat {
        Stat {
            ino,
            kind: match self.kind {
                Kind::File(_) => FileKind::File,
                Kind::Dir(_) => FileKind::Dir,
                Kind::Symlink(_) => FileKind::Symlink,
                Kind::Fifo(_) => FileKind::Fifo,
                Kind::Device(_) => FileKind::Device,
            },
            size: self.size(),
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            nlink: self.nlink,
            modified: self.modified,
        }
    }
}
