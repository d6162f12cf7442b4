//! The file system as one command sees it: with its user's rights and its umask, in the terms of
//! the engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use bashkit::{
    DirEntry, FileSystem, FileSystemExt, FileType, FsLimits, FsUsage, Metadata, Result, async_trait,
};
use bytes::Bytes;

use super::error::{FsError, FsResult};
use super::node::{Cred, FileKind, Stat};
use super::ops::{How, Vfs};
use super::table::{Last, Table};

/// The mask of a new shell.
const UMASK: u32 = 0o022;

/// The files of a sandbox with one user's rights. One a command: the umask is its own.
#[derive(Debug)]
pub(crate) struct View {
    vfs: Arc<Vfs>,
    cred: Cred,
    umask: AtomicU32,
}

impl View {
    pub(crate) fn new(vfs: Arc<Vfs>, cred: Cred) -> Self {
        Self {
            vfs,
            cred,
            umask: AtomicU32::new(UMASK),
        }
    }

    /// A view of nothing.
    pub(crate) fn empty() -> Self {
        Self::new(Arc::new(Vfs::new(Table::new(), 1)), Cred::ROOT)
    }

    pub(crate) fn vfs(&self) -> &Vfs {
        &self.vfs
    }

    pub(crate) fn cred(&self) -> Cred {
        self.cred
    }

    pub(crate) fn umask(&self) -> u32 {
        self.umask.load(Ordering::Relaxed)
    }

    pub(crate) fn set_umask(&self, mask: u32) {
        self.umask.store(mask & 0o777, Ordering::Relaxed);
    }

    fn masked(&self, mode: u32) -> u32 {
        mode & !self.umask()
    }

    fn write(&self, path: &Path, content: &[u8], how: How) -> Result<()> {
        let content = Bytes::copy_from_slice(content);
        let mode = self.masked(0o666);
        Ok(self.vfs.write(text(path)?, self.cred, content, how, mode)?)
    }
}

/// Names are UTF-8 here, in commands and in calls alike.
fn text(path: &Path) -> FsResult<&str> {
    path.to_str().ok_or(FsError::Invalid)
}

fn metadata(stat: &Stat) -> Metadata {
    Metadata {
        file_type: match stat.kind {
            FileKind::File => FileType::File,
            FileKind::Dir => FileType::Directory,
            FileKind::Symlink => FileType::Symlink,
            // The engine has no type of its own for devices; regular files they are not.
            FileKind::Fifo | FileKind::Device => FileType::Fifo,
        },
        size: stat.size,
        mode: stat.mode,
        modified: stat.modified,
        created: stat.modified,
    }
}

#[async_trait]
impl FileSystemExt for View {
    fn usage(&self) -> FsUsage {
        let (used, _, nodes) = self.vfs.usage();
        FsUsage::new(used, nodes as u64, 0)
    }

    fn limits(&self) -> FsLimits {
        let (_, limit, _) = self.vfs.usage();
        // The tree keeps the budget itself; these are what the engine checks of paths.
        FsLimits::unlimited()
            .max_total_bytes(limit)
            .max_filename_length(255)
            .max_path_length(4095)
            .max_path_depth(2048)
    }

    async fn mkfifo(&self, path: &Path, mode: u32) -> Result<()> {
        let mode = self.masked(mode);
        Ok(self.vfs.mkfifo(text(path)?, self.cred, mode)?)
    }

    fn backend_kind(&self) -> &'static str {
        "sandbox-mock"
    }
}

/// The engine follows links above this layer and takes `stat` for one that does not; files and
/// parents are followed here all the same.
#[async_trait]
impl FileSystem for View {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        Ok(self.vfs.read(text(path)?, self.cred)?.to_vec())
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.write(path, content, How::Truncate)
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.write(path, content, How::Append)
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        let mode = self.masked(0o777);
        Ok(self.vfs.mkdir(text(path)?, self.cred, mode, recursive)?)
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        Ok(self.vfs.remove(text(path)?, self.cred, recursive)?)
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        Ok(metadata(&self.vfs.stat(
            text(path)?,
            self.cred,
            Last::Keep,
        )?))
    }

    async fn lstat(&self, path: &Path) -> Result<Metadata> {
        self.stat(path).await
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let entries = self.vfs.list(text(path)?, self.cred)?;
        Ok(entries
            .into_iter()
            .map(|(name, stat)| DirEntry {
                name: name.to_string(),
                metadata: metadata(&stat),
            })
            .collect())
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.vfs.stat(text(path)?, self.cred, Last::Follow).is_ok())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        Ok(self.vfs.rename(text(from)?, text(to)?, self.cred)?)
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let from = text(from)?;
        let mode = self.vfs.stat(from, self.cred, Last::Follow)?.mode;
        let content = self.vfs.read(from, self.cred)?;
        let mode = self.masked(mode & 0o777);
        Ok(self
            .vfs
            .write(text(to)?, self.cred, content, How::Truncate, mode)?)
    }

    async fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        Ok(self.vfs.symlink(text(target)?, text(link)?, self.cred)?)
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        let target = self.vfs.read_link(text(path)?, self.cred)?;
        Ok(PathBuf::from(&*target))
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        Ok(self.vfs.chmod(text(path)?, self.cred, mode)?)
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Result<()> {
        Ok(self.vfs.set_modified(text(path)?, self.cred, time)?)
    }
}
