//! Whole trees between the host and the virtual files, in the form core packs and reads: a tar.

use std::io::{self, Read as _};

use sandbox_core::{Error, ErrorKind, Result, SandboxPath};
use tar::{Archive, Builder, EntryType, Header};

use crate::vfs::{Cred, FileKind, FsError, How, Last, Leaf, Vfs};

/// Unpacks a tar of [`sandbox_core::derive::pack_tree`] into a directory, which is made. What is
/// in the way of a file or a link is replaced, as `tar` does.
pub(crate) fn unpack(vfs: &Vfs, cred: Cred, root: &SandboxPath, tar: &[u8]) -> Result<()> {
    match vfs.mkdir(root.as_str(), cred, 0o755, true) {
        Err(FsError::Exists) => return Err(FsError::NotADirectory.into()),
        result => result?,
    }
    for entry in Archive::new(tar).entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let name = entry.path().map_err(broken)?;
        let name = name.to_str().ok_or_else(|| broken("a name"))?;
        let path = root.join(name)?;
        let at = |e: FsError| Error::from(e).with("path", &path);
        let mode = entry.header().mode().map_err(broken)? & 0o777;
        let kind = entry.header().entry_type();
        if kind == EntryType::Directory {
            match vfs.mkdir(path.as_str(), cred, mode, false) {
                Err(FsError::Exists) => vfs.list(path.as_str(), cred).map(|_| ()).map_err(at)?,
                result => result.map_err(at)?,
            }
            continue;
        }
        match vfs.stat(path.as_str(), cred, Last::Keep) {
            Ok(stat) if stat.kind == FileKind::Dir => return Err(at(FsError::IsADirectory)),
            Ok(_) => vfs.remove(path.as_str(), cred, false).map_err(at)?,
            Err(FsError::NotFound) => {}
            Err(e) => return Err(at(e)),
        }
        if kind == EntryType::Symlink {
            let target = entry.link_name().map_err(broken)?;
            let target = target.as_ref().and_then(|t| t.to_str());
            let target = target.ok_or_else(|| broken("a link's target"))?;
            vfs.symlink(target, path.as_str(), cred).map_err(at)?;
        } else {
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(broken)?;
            vfs.write(path.as_str(), cred, content.into(), How::CreateNew, mode)
                .map_err(at)?;
        }
    }
    Ok(())
}

/// Packs a directory for [`sandbox_core::derive::unpack_tree`]. Gives a line for each thing that
/// could not be read.
pub(crate) fn pack(vfs: &Vfs, cred: Cred, root: &SandboxPath) -> Result<(Vec<u8>, Vec<String>)> {
    if vfs.stat(root.as_str(), cred, Last::Follow)?.kind != FileKind::Dir {
        return Err(FsError::NotADirectory.into());
    }
    let tree = vfs.tree(root.as_str(), cred)?;
    let denied = |path: &str| format!("{path}: {}", FsError::Denied.strerror());
    let mut unread: Vec<String> = tree.unreadable.iter().map(|p| denied(p)).collect();
    let mut builder = Builder::new(Vec::new());
    for leaf in &tree.leaves {
        if leaf.path.is_empty() {
            continue;
        }
        if leaf.kind == FileKind::File && leaf.content.is_none() {
            unread.push(denied(&leaf.path));
            continue;
        }
        append(&mut builder, leaf).map_err(broken)?;
    }
    Ok((builder.into_inner().map_err(broken)?, unread))
}

fn append(builder: &mut Builder<Vec<u8>>, leaf: &Leaf) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(leaf.mode);
    header.set_size(0);
    header.set_mtime(0);
    match leaf.kind {
        FileKind::File => {
            let content = leaf.content.as_deref().unwrap_or_default();
            header.set_entry_type(EntryType::Regular);
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, &leaf.path, content)
        }
        FileKind::Symlink => {
            header.set_entry_type(EntryType::Symlink);
            let target = leaf.target.as_deref().unwrap_or_default();
            builder.append_link(&mut header, &leaf.path, target)
        }
        kind => {
            header.set_entry_type(match kind {
                FileKind::Dir => EntryType::Directory,
                FileKind::Fifo => EntryType::Fifo,
                _ => EntryType::Char,
            });
            builder.append_data(&mut header, &leaf.path, io::empty())
        }
    }
}

fn broken(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Unexpected, "the tree can't be packed").because(source)
}
