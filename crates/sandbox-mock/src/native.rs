//! File operations on the tree itself, without a shell.

use std::path::Path;

use sandbox_core::files::{
    EditReport, Entry, EntryKind, GlobMatches, GrepMatches, GrepOptions, Listing, ReadOptions,
    ReadPage, TreeReport, WriteMode,
};
use sandbox_core::{Bytes, NativeFiles, Operation, Result, SandboxPath, async_trait, derive};

use crate::backend::MockSandbox;
use crate::vfs::{FileKind, How, Last};

#[async_trait]
impl NativeFiles for MockSandbox {
    async fn ls(&self, path: &SandboxPath) -> Result<Listing> {
        self.around(Operation::Ls, path.as_str(), async |_| {
            let (vfs, cred) = (&self.machine.vfs, self.machine.account.cred);
            let entries = vfs.list(path.as_str(), cred)?;
            vfs.access(path.as_str(), cred, 1)?;
            let entries = entries.into_iter().map(|(name, stat)| {
                let kind = match stat.kind {
                    FileKind::File => EntryKind::File,
                    FileKind::Dir => EntryKind::Dir,
                    FileKind::Symlink => EntryKind::Symlink,
                    FileKind::Fifo | FileKind::Device => EntryKind::Other,
                };
                let path = path.join(&name)?;
                Ok(Entry::new(path, kind, stat.size, stat.modified))
            });
            Ok(Listing::new(
                entries.collect::<Result<Vec<_>>>()?,
                Vec::new(),
            ))
        })
        .await
    }

    async fn read(&self, path: &SandboxPath, options: ReadOptions) -> Result<ReadPage> {
        self.around(Operation::Read, path.as_str(), async |_| {
            derive::page(path, &self.content(path)?, options)
        })
        .await
    }

    async fn write(&self, path: &SandboxPath, content: Bytes, mode: WriteMode) -> Result<()> {
        self.around(Operation::Write, path.as_str(), async |_| {
            let (vfs, cred) = (&self.machine.vfs, self.machine.account.cred);
            let how = match mode {
                WriteMode::CreateNew => How::CreateNew,
                _ => How::Truncate,
            };
            vfs.mkdir_parents(path.as_str(), cred, 0o755)?;
            Ok(vfs.write(path.as_str(), cred, content, how, 0o644)?)
        })
        .await
    }

    async fn edit(
        &self,
        path: &SandboxPath,
        old: &str,
        new: &str,
        replace_all: bool,
    ) -> Result<EditReport> {
        self.around(Operation::Edit, path.as_str(), async |_| {
            let (vfs, cred) = (&self.machine.vfs, self.machine.account.cred);
            // One call under one lock: no other edit comes between.
            vfs.update(path.as_str(), cred, |content| {
                let (content, replaced) = derive::apply(content, old, new, replace_all)?;
                Ok((content.into(), EditReport::new(replaced)))
            })
        })
        .await
    }

    async fn glob(&self, pattern: &str, path: &SandboxPath) -> Result<GlobMatches> {
        derive::glob(self, pattern, path).await
    }

    async fn grep(
        &self,
        text: &str,
        path: &SandboxPath,
        options: &GrepOptions,
    ) -> Result<GrepMatches> {
        derive::grep(self, text, path, options).await
    }

    async fn delete(&self, path: &SandboxPath) -> Result<()> {
        self.around(Operation::Delete, path.as_str(), async |_| {
            let cred = self.machine.account.cred;
            Ok(self.machine.vfs.remove(path.as_str(), cred, true)?)
        })
        .await
    }

    async fn upload_dir(&self, local: &Path, path: &SandboxPath) -> Result<TreeReport> {
        derive::upload_dir(self, local, path).await
    }

    async fn download_dir(&self, path: &SandboxPath, local: &Path) -> Result<TreeReport> {
        derive::download_dir(self, path, local).await
    }
}

impl MockSandbox {
    /// All of a regular file.
    fn content(&self, path: &SandboxPath) -> Result<Bytes> {
        let (vfs, cred) = (&self.machine.vfs, self.machine.account.cred);
        let stat = vfs.stat(path.as_str(), cred, Last::Follow)?;
        if matches!(stat.kind, FileKind::Fifo | FileKind::Device) {
            return Err(crate::error::not_regular());
        }
        Ok(vfs.read(path.as_str(), cred)?)
    }
}
