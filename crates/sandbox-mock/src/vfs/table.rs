//! The inode table: path resolution, permission checks and the memory budget.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::{FsError, FsResult};
use super::node::{Cred, FileKind, Ino, Kind, Node, ROOT, Stat};

/// Links followed in one lookup before it fails, as on Linux.
const MAX_LINKS: usize = 40;

/// The longest name of one entry in bytes, as on Linux.
const MAX_NAME: usize = 255;

/// All inodes of a sandbox. Cloning shares them, and what is changed after is copied: that is what
/// makes a new sandbox and a snapshot cheap.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    nodes: Vec<Option<Arc<Node>>>,
    free: Vec<Ino>,
    /// What the inodes beyond the image are charged.
    used: u64,
    limit: u64,
}

/// Where a path leads: an entry of a directory, which need not exist.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: Ino,
    /// The entry's name; empty for the root and for a path that ends in `.` or `..`.
    pub(crate) name: Arc<str>,
    pub(crate) ino: Option<Ino>,
}

/// Whether a link that a path ends at is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    Follow,
    Keep,
}

impl Table {
    /// A table with nothing but `/`.
    pub(crate) fn new() -> Self {
        let root = Node::new(Kind::Dir(BTreeMap::new()), 0o755, Cred::ROOT);
        Self {
            nodes: vec![Some(Arc::new(root))],
            free: Vec::new(),
            used: 0,
            limit: u64::MAX,
        }
    }

    /// This table as an image: what is in it costs nothing, what comes may cost `limit` bytes.
    pub(crate) fn with_limit(mut self, limit: u64) -> Self {
        self.used = 0;
        self.limit = limit;
        self
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// How many inodes there are.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    pub(crate) fn node(&self, ino: Ino) -> FsResult<&Node> {
        match self.nodes.get(ino) {
            Some(Some(node)) => Ok(node),
            _ => Err(FsError::NotFound),
        }
    }

    /// An inode to change in place; the charge for its content is the caller's matter.
    pub(crate) fn node_mut(&mut self, ino: Ino) -> FsResult<&mut Node> {
        match self.nodes.get_mut(ino) {
            Some(Some(node)) => Ok(Arc::make_mut(node)),
            _ => Err(FsError::NotFound),
        }
    }

    pub(crate) fn stat(&self, ino: Ino) -> FsResult<Stat> {
        Ok(self.node(ino)?.stat(ino))
    }

    /// Finds where `path` leads, with search permission checked on the way.
    pub(crate) fn walk(&self, path: &str, cred: Cred, last: Last) -> FsResult<Place> {
        let mut stack = vec![ROOT];
        let mut pending: Vec<String> = components(path);
        let must_be_dir = path.len() > 1 && path.ends_with('/');
        let mut links = 0;
        while let Some(name) = pending.pop() {
            if name == ".." {
                if stack.len() > 1 {
                    stack.pop();
                }
                continue;
            }
            let dir = *stack.last().unwrap_or(&ROOT);
            let node = self.node(dir)?;
            let Kind::Dir(entries) = &node.kind else {
                return Err(FsError::NotADirectory);
            };
            if !node.permits(cred, 1) {
                return Err(FsError::Denied);
            }
            if name.len() > MAX_NAME {
                return Err(FsError::NameTooLong);
            }
            let is_last = pending.is_empty();
            let Some(&ino) = entries.get(name.as_str()) else {
                if !is_last {
                    return Err(FsError::NotFound);
                }
                return Ok(Place {
                    dir,
                    name: name.into(),
                    ino: None,
                });
            };
            if let Kind::Symlink(target) = &self.node(ino)?.kind
                && (!is_last || last == Last::Follow || must_be_dir)
            {
                links += 1;
                if links > MAX_LINKS {
                    return Err(FsError::TooManyLinks);
                }
                if target.starts_with('/') {
                    stack.truncate(1);
                }
                pending.extend(components(target));
            } else if is_last {
                return Ok(Place {
                    dir,
                    name: name.into(),
                    ino: Some(ino),
                });
            } else {
                stack.push(ino);
            }
        }
        let here = *stack.last().unwrap_or(&ROOT);
        Ok(Place {
            dir: here,
            name: "".into(),
            ino: Some(here),
        })
    }

    /// The inode at `path`, which must exist.
    pub(crate) fn find(&self, path: &str, cred: Cred, last: Last) -> FsResult<Ino> {
        self.walk(path, cred, last)?.ino.ok_or(FsError::NotFound)
    }

    /// The path of what is at `path`, without links.
    pub(crate) fn real_path(&self, path: &str, cred: Cred) -> FsResult<String> {
        let mut real: Vec<String> = Vec::new();
        let mut pending = components(path);
        let mut links = 0;
        while let Some(name) = pending.pop() {
            if name == ".." {
                real.pop();
                continue;
            }
            real.push(name);
            let here = format!("/{}", real.join("/"));
            let ino = self.find(&here, cred, Last::Keep)?;
            if let Kind::Symlink(target) = &self.node(ino)?.kind {
                links += 1;
                if links > MAX_LINKS {
                    return Err(FsError::TooManyLinks);
                }
                real.pop();
                if target.starts_with('/') {
                    real.clear();
                }
                pending.extend(components(target));
            }
        }
        Ok(format!("/{}", real.join("/")))
    }

    /// Whether `cred` may add and remove entries of `dir`.
    pub(crate) fn check_writable_dir(&self, dir: Ino, cred: Cred) -> FsResult<()> {
        let node = self.node(dir)?;
        if !matches!(node.kind, Kind::Dir(_)) {
            return Err(FsError::NotADirectory);
        }
        if node.permits(cred, 3) {
            Ok(())
        } else {
            Err(FsError::Denied)
        }
    }

    /// Whether `cred` may remove `ino` from `dir`: in a sticky one only what is one's own.
    pub(crate) fn check_removable(&self, dir: Ino, ino: Ino, cred: Cred) -> FsResult<()> {
        self.check_writable_dir(dir, cred)?;
        let (dir, node) = (self.node(dir)?, self.node(ino)?);
        if dir.mode & 0o1000 != 0 && cred.uid != dir.uid && cred.uid != node.uid {
            return Err(FsError::NotPermitted);
        }
        Ok(())
    }

    /// Takes `bytes` more of the budget.
    pub(crate) fn charge(&mut self, bytes: u64) -> FsResult<()> {
        let used = self.used.saturating_add(bytes);
        if used > self.limit {
            return Err(FsError::NoSpace);
        }
        self.used = used;
        Ok(())
    }

    /// Gives `bytes` back. What belonged to the image was never charged.
    pub(crate) fn credit(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Puts a new inode into a directory.
    pub(crate) fn insert(&mut self, dir: Ino, name: &str, node: Node) -> FsResult<Ino> {
        if name.is_empty() {
            return Err(FsError::Exists);
        }
        if self.node(dir)?.nlink == 0 {
            // Someone's current directory that was removed.
            return Err(FsError::NotFound);
        }
        self.charge(node.cost() + name.len() as u64)?;
        let is_dir = matches!(node.kind, Kind::Dir(_));
        let ino = self.free.pop().unwrap_or(self.nodes.len());
        if ino == self.nodes.len() {
            self.nodes.push(None);
        }
        self.nodes[ino] = Some(Arc::new(node));
        self.attach(dir, name, ino)?;
        if is_dir {
            self.node_mut(dir)?.nlink += 1;
        }
        Ok(ino)
    }

    /// Adds an entry for an inode that is there; its link count is the caller's matter.
    pub(crate) fn attach(&mut self, dir: Ino, name: &str, ino: Ino) -> FsResult<()> {
        let node = self.node_mut(dir)?;
        let Kind::Dir(entries) = &mut node.kind else {
            return Err(FsError::NotADirectory);
        };
        entries.insert(name.into(), ino);
        node.modified = std::time::SystemTime::now();
        Ok(())
    }

    /// Takes an entry out of a directory; the inode stays.
    pub(crate) fn detach(&mut self, dir: Ino, name: &str) -> FsResult<()> {
        let node = self.node_mut(dir)?;
        let Kind::Dir(entries) = &mut node.kind else {
            return Err(FsError::NotADirectory);
        };
        entries.remove(name);
        node.modified = std::time::SystemTime::now();
        Ok(())
    }

    /// Removes an entry, and its inode with the last link.
    pub(crate) fn unlink(&mut self, dir: Ino, name: &str, ino: Ino) -> FsResult<()> {
        self.detach(dir, name)?;
        let is_dir = self.stat(ino)?.kind == FileKind::Dir;
        if is_dir {
            let parent = self.node_mut(dir)?;
            parent.nlink = parent.nlink.saturating_sub(1);
        }
        let node = self.node_mut(ino)?;
        node.nlink = if is_dir {
            0
        } else {
            node.nlink.saturating_sub(1)
        };
        let (gone, cost) = (node.nlink == 0, node.cost());
        self.credit(name.len() as u64);
        if gone {
            self.credit(cost);
            self.nodes[ino] = None;
            self.free.push(ino);
        }
        Ok(())
    }

    /// What one more entry for an inode that is there costs.
    pub(crate) fn charge_entry(&mut self, name: &str) -> FsResult<()> {
        self.charge(name.len() as u64)
    }
}

/// The components of a path, last first, without empty ones and `.`.
fn components(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .rev()
        .map(str::to_owned)
        .collect()
}
