//! The operations: each one call under one lock, with the caller's rights.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use sandbox_core::Result;

use super::error::{FsError, FsResult};
use super::node::{Cred, Device, FileKind, Ino, Kind, Node, Stat};
use super::table::{Last, Table};

/// What one read of an endless device gives: no read is endless here.
const DEVICE_READ: usize = 1 << 20;

/// The files of one sandbox.
#[derive(Debug)]
pub(crate) struct Vfs {
    table: Mutex<Table>,
    random: Mutex<u64>,
}

/// What lies below a directory, each directory before what is in it.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) leaves: Vec<Leaf>,
    /// Directories below the root that may not be listed and searched.
    pub(crate) unreadable: Vec<String>,
}

/// Something in a tree.
#[derive(Debug)]
pub(crate) struct Leaf {
    /// Below the root; empty for the root itself.
    pub(crate) path: String,
    pub(crate) kind: FileKind,
    pub(crate) mode: u32,
    /// Of a regular file that may be read.
    pub(crate) content: Option<Bytes>,
    /// Of a symbolic link.
    pub(crate) target: Option<Arc<str>>,
}

/// The longest path, as on Linux.
const MAX_PATH: usize = 4095;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Truncate,
    Append,
    /// Fails if there is anything, a dangling link included.
    CreateNew,
}

impl Vfs {
    /// Files that begin as `image`. `seed` is what `/dev/urandom` begins with.
    pub(crate) fn new(image: Table, seed: u64) -> Self {
        Self {
            table: Mutex::new(image),
            random: Mutex::new(seed | 1),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All files as they are now.
    pub(crate) fn snapshot(&self) -> Table {
        self.lock().clone()
    }

    /// Puts all files back.
    pub(crate) fn restore(&self, table: Table) {
        // The old ones are dropped outside the lock.
        drop(std::mem::replace(&mut *self.lock(), table));
    }

    /// Bytes used, bytes at most, and the number of inodes.
    pub(crate) fn usage(&self) -> (u64, u64, usize) {
        let table = self.lock();
        (table.used(), table.limit(), table.count())
    }

    pub(crate) fn stat(&self, path: &str, cred: Cred, last: Last) -> FsResult<Stat> {
        let table = self.lock();
        let ino = table.find(path, cred, last)?;
        let stat = table.stat(ino)?;
        if path.len() > 1 && path.ends_with('/') && stat.kind != FileKind::Dir {
            return Err(FsError::NotADirectory);
        }
        Ok(stat)
    }

    /// Whether `cred` has all of `bits` at the end of `path` (4 read, 2 write, 1 search).
    pub(crate) fn access(&self, path: &str, cred: Cred, bits: u32) -> FsResult<()> {
        let table = self.lock();
        let ino = table.find(path, cred, Last::Follow)?;
        if table.node(ino)?.permits(cred, bits) {
            Ok(())
        } else {
            Err(FsError::Denied)
        }
    }

    /// The content of a file. What a FIFO holds is taken out of it.
    pub(crate) fn read(&self, path: &str, cred: Cred) -> FsResult<Bytes> {
        let mut table = self.lock();
        let ino = table.find(path, cred, Last::Follow)?;
        let node = table.node(ino)?;
        if !node.permits(cred, 4) {
            return Err(FsError::Denied);
        }
        match &node.kind {
            Kind::File(content) => Ok(content.clone()),
            Kind::Dir(_) => Err(FsError::IsADirectory),
            Kind::Symlink(_) => Err(FsError::TooManyLinks),
            Kind::Device(Device::Null) => Ok(Bytes::new()),
            Kind::Device(Device::Zero | Device::Full) => Ok(vec![0; DEVICE_READ].into()),
            Kind::Device(Device::Random) => Ok(self.random(DEVICE_READ).into()),
            Kind::Fifo(content) => {
                let content = content.clone();
                table.credit(content.len() as u64);
                table.node_mut(ino)?.kind = Kind::Fifo(Bytes::new());
                Ok(content)
            }
        }
    }

    /// The next `n` bytes of `/dev/urandom`.
    pub(crate) fn random(&self, n: usize) -> Vec<u8> {
        let mut state = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = Vec::with_capacity(n + 8);
        while out.len() < n {
            // xorshift64*: good enough for files of noise, and a seed gives the same again.
            *state ^= *state >> 12;
            *state ^= *state << 25;
            *state ^= *state >> 27;
            out.extend_from_slice(&state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes());
        }
        out.truncate(n);
        out
    }

    /// Writes a file. An existing one keeps mode, owner and links; a new one has `mode`.
    pub(crate) fn write(
        &self,
        path: &str,
        cred: Cred,
        content: Bytes,
        how: How,
        mode: u32,
    ) -> FsResult<()> {
        let mut table = self.lock();
        let last = match how {
            How::CreateNew => Last::Keep,
            How::Truncate | How::Append => Last::Follow,
        };
        let place = table.walk(path, cred, last)?;
        let Some(ino) = place.ino else {
            if path.ends_with('/') {
                return Err(FsError::IsADirectory);
            }
            table.check_writable_dir(place.dir, cred)?;
            let node = Node::new(Kind::File(content), mode, cred);
            table.insert(place.dir, &place.name, node)?;
            return Ok(());
        };
        if how == How::CreateNew {
            return Err(FsError::Exists);
        }
        let node = table.node(ino)?;
        if matches!(node.kind, Kind::Dir(_)) {
            return Err(FsError::IsADirectory);
        }
        if !node.permits(cred, 2) {
            return Err(FsError::Denied);
        }
        write_node(&mut table, ino, content, how)
    }

    /// Changes the content of a regular file by a function of it, in one step.
    pub(crate) fn update<T>(
        &self,
        path: &str,
        cred: Cred,
        change: impl FnOnce(&[u8]) -> Result<(Bytes, T)>,
    ) -> Result<T> {
        let mut table = self.lock();
        let ino = table.find(path, cred, Last::Follow)?;
        let node = table.node(ino)?;
        let content = match &node.kind {
            Kind::File(content) => content.clone(),
            Kind::Dir(_) => return Err(FsError::IsADirectory.into()),
            _ => return Err(crate::error::not_regular()),
        };
        if !node.permits(cred, 6) {
            return Err(FsError::Denied.into());
        }
        let (content, answer) = change(&content)?;
        write_node(&mut table, ino, content, How::Truncate)?;
        Ok(answer)
    }

    /// Makes a directory. With `parents`, those that are missing too, and one that is there is
    /// no error.
    pub(crate) fn mkdir(&self, path: &str, cred: Cred, mode: u32, parents: bool) -> FsResult<()> {
        let mut table = self.lock();
        if !parents {
            return mkdir_one(&mut table, path, cred, mode);
        }
        let mut end = 0;
        loop {
            end = path[end..]
                .find(|c| c != '/')
                .map_or(path.len(), |i| end + i);
            if end == path.len() {
                return Ok(());
            }
            end = path[end..].find('/').map_or(path.len(), |i| end + i);
            let prefix = &path[..end];
            match table.find(prefix, cred, Last::Follow) {
                Ok(ino) if table.stat(ino)?.kind == FileKind::Dir => {}
                Ok(_) if end == path.len() => return Err(FsError::Exists),
                Ok(_) => return Err(FsError::NotADirectory),
                Err(FsError::NotFound) => mkdir_one(&mut table, prefix, cred, mode)?,
                Err(e) => return Err(e),
            }
        }
    }

    /// Makes the parents of `path` that are missing.
    pub(crate) fn mkdir_parents(&self, path: &str, cred: Cred, mode: u32) -> FsResult<()> {
        match path.rfind('/') {
            None | Some(0) => Ok(()),
            Some(i) => match self.mkdir(&path[..i], cred, mode, true) {
                Err(FsError::Exists) => Err(FsError::NotADirectory),
                result => result,
            },
        }
    }

    /// Makes the directory where commands start, and gives it to their user.
    pub(crate) fn make_workdir(&self, path: &str, cred: Cred) -> FsResult<()> {
        match self.mkdir(path, Cred::ROOT, 0o755, true) {
            // A link to a directory will do as well.
            Ok(()) | Err(FsError::Exists) => {}
            Err(e) => return Err(e),
        }
        let mut table = self.lock();
        let ino = table.find(path, Cred::ROOT, Last::Follow)?;
        if table.stat(ino)?.kind != FileKind::Dir {
            return Err(FsError::NotADirectory);
        }
        let node = table.node_mut(ino)?;
        // The image's own directories stay whose they are.
        if node.mode & 0o1000 == 0 && path != "/" && node.uid == 0 {
            node.uid = cred.uid;
            node.gid = cred.gid;
        }
        Ok(())
    }

    /// Removes a file or an empty directory; with `tree`, a directory with all that is in it.
    pub(crate) fn remove(&self, path: &str, cred: Cred, tree: bool) -> FsResult<()> {
        let mut table = self.lock();
        let place = table.walk(path, cred, Last::Keep)?;
        let ino = place.ino.ok_or(FsError::NotFound)?;
        if place.name.is_empty() {
            return Err(FsError::Busy);
        }
        if tree {
            remove_below(&mut table, ino, cred)?;
        }
        remove_entry(&mut table, place.dir, &place.name, ino, cred)
    }

    pub(crate) fn list(&self, path: &str, cred: Cred) -> FsResult<Vec<(Arc<str>, Stat)>> {
        let table = self.lock();
        let node = table.node(table.find(path, cred, Last::Follow)?)?;
        let Kind::Dir(entries) = &node.kind else {
            return Err(FsError::NotADirectory);
        };
        if !node.permits(cred, 4) {
            return Err(FsError::Denied);
        }
        entries
            .iter()
            .map(|(name, ino)| Ok((name.clone(), table.stat(*ino)?)))
            .collect()
    }

    /// All that lies below `root`, or what is there itself. Links are not followed, but `root` is.
    pub(crate) fn tree(&self, root: &str, cred: Cred) -> FsResult<Tree> {
        let table = self.lock();
        let top = table.find(root, cred, Last::Follow)?;
        let room = MAX_PATH.saturating_sub(root.len());
        let mut tree = Tree::default();
        let mut pending = vec![(String::new(), top)];
        while let Some((path, ino)) = pending.pop() {
            let node = table.node(ino)?;
            if let Kind::Dir(entries) = &node.kind {
                if !node.permits(cred, 5) {
                    if path.is_empty() {
                        return Err(FsError::Denied);
                    }
                    tree.unreadable.push(path);
                    continue;
                }
                for (name, ino) in entries {
                    let slash = if path.is_empty() { "" } else { "/" };
                    if path.len() + name.len() + 2 > room {
                        // No path leads there.
                        tree.unreadable.push(path.clone());
                    } else {
                        pending.push((format!("{path}{slash}{name}"), *ino));
                    }
                }
            }
            let content = match &node.kind {
                Kind::File(content) if node.permits(cred, 4) => Some(content.clone()),
                _ => None,
            };
            if path.is_empty() && content.is_none() && matches!(node.kind, Kind::File(_)) {
                return Err(FsError::Denied);
            }
            let target = match &node.kind {
                Kind::Symlink(target) => Some(target.clone()),
                _ => None,
            };
            let stat = node.stat(ino);
            tree.leaves.push(Leaf {
                path,
                kind: stat.kind,
                mode: stat.mode,
                content,
                target,
            });
        }
        Ok(tree)
    }

    /// Renames, replacing what is there as rename(2) does.
    pub(crate) fn rename(&self, from: &str, to: &str, cred: Cred) -> FsResult<()> {
        let mut table = self.lock();
        let source = table.walk(from, cred, Last::Keep)?;
        let target = table.walk(to, cred, Last::Keep)?;
        let ino = source.ino.ok_or(FsError::NotFound)?;
        if source.name.is_empty() || target.name.is_empty() {
            return Err(FsError::Busy);
        }
        table.check_removable(source.dir, ino, cred)?;
        table.check_writable_dir(target.dir, cred)?;
        if target.ino == Some(ino) {
            return Ok(());
        }
        let is_dir = table.stat(ino)?.kind == FileKind::Dir;
        if is_dir && (ino == target.dir || contains(&table, ino, target.dir)?) {
            return Err(FsError::Invalid);
        }
        if let Some(old) = target.ino {
            let old_is_dir = table.stat(old)?.kind == FileKind::Dir;
            match (is_dir, old_is_dir) {
                (true, false) => return Err(FsError::NotADirectory),
                (false, true) => return Err(FsError::IsADirectory),
                _ => remove_entry(&mut table, target.dir, &target.name, old, cred)?,
            }
        }
        table.detach(source.dir, &source.name)?;
        table.credit(source.name.len() as u64);
        table.charge_entry(&target.name)?;
        table.attach(target.dir, &target.name, ino)?;
        if is_dir && source.dir != target.dir {
            let old = table.node_mut(source.dir)?;
            old.nlink = old.nlink.saturating_sub(1);
            table.node_mut(target.dir)?.nlink += 1;
        }
        Ok(())
    }

    /// Makes a hard link; a symbolic link at `from` is linked itself.
    pub(crate) fn link(&self, from: &str, to: &str, cred: Cred) -> FsResult<()> {
        let mut table = self.lock();
        let ino = table.find(from, cred, Last::Keep)?;
        if table.stat(ino)?.kind == FileKind::Dir {
            return Err(FsError::NotPermitted);
        }
        let place = table.walk(to, cred, Last::Keep)?;
        if place.ino.is_some() {
            return Err(FsError::Exists);
        }
        table.check_writable_dir(place.dir, cred)?;
        table.charge_entry(&place.name)?;
        table.attach(place.dir, &place.name, ino)?;
        table.node_mut(ino)?.nlink += 1;
        Ok(())
    }

    pub(crate) fn symlink(&self, target: &str, link: &str, cred: Cred) -> FsResult<()> {
        if target.is_empty() {
            return Err(FsError::NotFound);
        }
        self.make(link, cred, Kind::Symlink(target.into()), 0o777)
    }

    pub(crate) fn mkfifo(&self, path: &str, cred: Cred, mode: u32) -> FsResult<()> {
        self.make(path, cred, Kind::Fifo(Bytes::new()), mode)
    }

    fn make(&self, path: &str, cred: Cred, kind: Kind, mode: u32) -> FsResult<()> {
        let mut table = self.lock();
        let place = table.walk(path, cred, Last::Keep)?;
        if place.ino.is_some() {
            return Err(FsError::Exists);
        }
        table.check_writable_dir(place.dir, cred)?;
        table.insert(place.dir, &place.name, Node::new(kind, mode, cred))?;
        Ok(())
    }

    pub(crate) fn read_link(&self, path: &str, cred: Cred) -> FsResult<Arc<str>> {
        let table = self.lock();
        let ino = table.find(path, cred, Last::Keep)?;
        match &table.node(ino)?.kind {
            Kind::Symlink(target) => Ok(target.clone()),
            _ => Err(FsError::Invalid),
        }
    }

    /// The path of what is at `path`, without links.
    pub(crate) fn real_path(&self, path: &str, cred: Cred) -> FsResult<String> {
        self.lock().real_path(path, cred)
    }

    pub(crate) fn chmod(&self, path: &str, cred: Cred, mode: u32) -> FsResult<()> {
        self.change(path, cred, Last::Follow, |node| {
            node.mode = mode & 0o7777;
            Ok(())
        })
    }

    /// Changes owner and group, as far as a process without capabilities may: not the owner, and
    /// the group only to its own.
    pub(crate) fn chown(
        &self,
        path: &str,
        cred: Cred,
        last: Last,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> FsResult<()> {
        self.change(path, cred, last, |node| {
            if uid.is_some_and(|uid| uid != node.uid)
                || gid.is_some_and(|gid| gid != node.gid && gid != cred.gid)
            {
                return Err(FsError::NotPermitted);
            }
            node.gid = gid.unwrap_or(node.gid);
            Ok(())
        })
    }

    pub(crate) fn set_modified(&self, path: &str, cred: Cred, to: SystemTime) -> FsResult<()> {
        self.change(path, cred, Last::Follow, |node| {
            node.modified = to;
            Ok(())
        })
    }

    /// Changes what only the owner may.
    fn change(
        &self,
        path: &str,
        cred: Cred,
        last: Last,
        change: impl FnOnce(&mut Node) -> FsResult<()>,
    ) -> FsResult<()> {
        let mut table = self.lock();
        let ino = table.find(path, cred, last)?;
        if table.node(ino)?.uid != cred.uid {
            return Err(FsError::NotPermitted);
        }
        change(table.node_mut(ino)?)
    }
}

/// Replaces or extends the content of an inode that may be written.
fn write_node(table: &mut Table, ino: Ino, content: Bytes, how: How) -> FsResult<()> {
    let node = table.node(ino)?;
    let (old, appends) = match &node.kind {
        Kind::File(old) => (old.len() as u64, how == How::Append),
        // What is written to a FIFO waits there for a reader.
        Kind::Fifo(old) => (old.len() as u64, true),
        Kind::Device(Device::Full) if !content.is_empty() => return Err(FsError::NoSpace),
        Kind::Device(_) => return Ok(()),
        Kind::Dir(_) => return Err(FsError::IsADirectory),
        Kind::Symlink(_) => return Err(FsError::TooManyLinks),
    };
    if appends {
        table.charge(content.len() as u64)?;
    } else {
        let new = content.len() as u64;
        table.charge(new.saturating_sub(old))?;
        table.credit(old.saturating_sub(new));
    }
    let node = table.node_mut(ino)?;
    node.modified = SystemTime::now();
    if let Kind::File(slot) | Kind::Fifo(slot) = &mut node.kind {
        *slot = if appends && !slot.is_empty() {
            append(std::mem::take(slot), &content)
        } else {
            content
        };
    }
    Ok(())
}

/// `old` with `more` behind it: in place where nothing else shares the bytes.
fn append(old: Bytes, more: &[u8]) -> Bytes {
    let mut buffer = old.try_into_mut().unwrap_or_else(|shared| {
        let mut copy = BytesMut::with_capacity(shared.len() + more.len());
        copy.extend_from_slice(&shared);
        copy
    });
    buffer.extend_from_slice(more);
    buffer.freeze()
}

fn mkdir_one(table: &mut Table, path: &str, cred: Cred, mode: u32) -> FsResult<()> {
    let place = table.walk(path.trim_end_matches('/'), cred, Last::Keep)?;
    if place.ino.is_some() {
        return Err(FsError::Exists);
    }
    table.check_writable_dir(place.dir, cred)?;
    let node = Node::new(Kind::Dir(BTreeMap::new()), mode, cred);
    table.insert(place.dir, &place.name, node)?;
    Ok(())
}

fn remove_entry(table: &mut Table, dir: Ino, name: &str, ino: Ino, cred: Cred) -> FsResult<()> {
    table.check_removable(dir, ino, cred)?;
    if matches!(&table.node(ino)?.kind, Kind::Dir(entries) if !entries.is_empty()) {
        return Err(FsError::NotEmpty);
    }
    table.unlink(dir, name, ino)
}

/// A name in a directory.
type Entry = (Ino, Arc<str>);

/// Empties a directory, without recursion. What can't be removed stays, and is the error.
fn remove_below(table: &mut Table, top: Ino, cred: Cred) -> FsResult<()> {
    // Directories in the order they were found; emptied in the opposite one.
    let mut found: Vec<(Ino, Option<Entry>)> = vec![(top, None)];
    let mut next = 0;
    let mut failed = None;
    while next < found.len() {
        let dir = found[next].0;
        next += 1;
        let node = table.node(dir)?;
        let Kind::Dir(entries) = &node.kind else {
            continue;
        };
        if entries.is_empty() {
            continue;
        }
        if !node.permits(cred, 7) {
            failed = Some(FsError::Denied);
            continue;
        }
        let entries = entries.clone();
        for (name, ino) in entries {
            if table.stat(ino)?.kind == FileKind::Dir {
                found.push((ino, Some((dir, name))));
            } else if let Err(e) = remove_entry(table, dir, &name, ino, cred) {
                failed = Some(e);
            }
        }
    }
    for (ino, entry) in found.into_iter().rev() {
        if let Some((dir, name)) = entry
            && let Err(e) = remove_entry(table, dir, &name, ino, cred)
        {
            failed.get_or_insert(e);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Whether `inner` is somewhere below the directory `outer`.
fn contains(table: &Table, outer: Ino, inner: Ino) -> FsResult<bool> {
    let mut pending = vec![outer];
    while let Some(dir) = pending.pop() {
        if let Kind::Dir(entries) = &table.node(dir)?.kind {
            for ino in entries.values() {
                if *ino == inner {
                    return Ok(true);
                }
                if table.stat(*ino)?.kind == FileKind::Dir {
                    pending.push(*ino);
                }
            }
        }
    }
    Ok(false)
}
