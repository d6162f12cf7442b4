//! File operations on the tree itself, without a shell.

use std::path::Path;

use sandbox_core::derive::Pattern;
use sandbox_core::files::{
    EditReport, Entry, EntryKind, Gap, GlobMatches, GrepMatch, GrepMatches, GrepOptions, Listing,
    ReadOptions, ReadPage, TreeReport, WriteMode,
};
use sandbox_core::{
    Bytes, Error, ErrorKind, NativeFiles, Operation, Result, SandboxPath, async_trait, defaults,
    derive,
};

use crate::backend::{MockSandbox, readable_kind, writable_kind};
use crate::tree;
use crate::vfs::{FileKind, FsError, How, Last};

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
            writable_kind(vfs, path.as_str(), cred)?;
            match vfs.write(path.as_str(), cred, content, how, 0o644) {
                Err(FsError::Exists)
                    if vfs.stat(path.as_str(), cred, Last::Keep)?.kind == FileKind::Dir =>
                {
                    Err(FsError::IsADirectory.into())
                }
                other => Ok(other?),
            }
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
        self.around(Operation::Glob, pattern, async |_| {
            let pattern = Pattern::new(pattern)?;
            let (vfs, cred) = (&self.machine.vfs, self.machine.account.cred);
            let stat = vfs.stat(path.as_str(), cred, Last::Follow)?;
            if stat.kind != FileKind::Dir {
                return Err(FsError::NotADirectory.into());
            }
            let (mut found, gaps) = self.files(path, Some(&pattern))?;
            let limit = usize::try_from(defaults::GLOB_MATCHES).unwrap_or(usize::MAX);
            let more = found.len() > limit;
            found.truncate(limit);
            let paths = found.into_iter().map(|(path, _)| path).collect();
            let mut matches = GlobMatches::new(paths, gaps);
            if more {
                let gap = Gap::MatchLimit(defaults::GLOB_MATCHES);
                matches.gaps.insert(0, gap);
            }
            Ok(matches)
        })
        .await
    }

    async fn grep(
        &self,
        text: &str,
        path: &SandboxPath,
        options: &GrepOptions,
    ) -> Result<GrepMatches> {
        self.around(Operation::Grep, text, async |_| {
            let pattern = options.glob.as_deref().map(Pattern::new).transpose()?;
            let (files, mut gaps) = self.files(path, pattern.as_ref())?;
            let mut matches = Vec::new();
            let mut unreadable = 0;
            for (path, content) in files {
                let Some(content) = content else {
                    unreadable += 1;
                    continue;
                };
                // One more tells whether there are more.
                let left = options.max_count.saturating_add(1) - matches.len() as u64;
                if left == 0 {
                    break;
                }
                for (line, text, cut) in derive::matching_lines(&content, text, left) {
                    matches.push(GrepMatch::new(path.clone(), line, text, cut));
                }
            }
            for gap in &mut gaps {
                if let Gap::Unreadable(n) = gap {
                    unreadable += *n;
                }
            }
            gaps.retain(|gap| !matches!(gap, Gap::Unreadable(_)));
            if unreadable > 0 {
                gaps.push(Gap::Unreadable(unreadable));
            }
            if matches.len() as u64 > options.max_count {
                matches.pop();
                gaps.push(Gap::MatchLimit(options.max_count));
            }
            Ok(GrepMatches::new(matches, gaps))
        })
        .await
    }

    async fn delete(&self, path: &SandboxPath) -> Result<()> {
        self.around(Operation::Delete, path.as_str(), async |_| {
            let cred = self.machine.account.cred;
            Ok(self.machine.vfs.remove(path.as_str(), cred, true)?)
        })
        .await
    }

    async fn upload_dir(&self, local: &Path, path: &SandboxPath) -> Result<TreeReport> {
        self.around(Operation::UploadDir, path.as_str(), async |_| {
            let (machine, local, path) = (self.machine.clone(), local.to_owned(), path.clone());
            blocking(move || {
                let (tar, report) = derive::pack_tree(&local)?;
                tree::unpack(&machine.vfs, machine.account.cred, &path, &tar)?;
                Ok(report)
            })
            .await
        })
        .await
    }

    async fn download_dir(&self, path: &SandboxPath, local: &Path) -> Result<TreeReport> {
        self.around(Operation::DownloadDir, path.as_str(), async |_| {
            let (machine, local, path) = (self.machine.clone(), local.to_owned(), path.clone());
            blocking(move || {
                let (tar, unread) = tree::pack(&machine.vfs, machine.account.cred, &path)?;
                let mut report = derive::unpack_tree(&tar, &local)?;
                report.skipped.extend(unread);
                Ok(report)
            })
            .await
        })
        .await
    }
}

/// Runs what touches the host's files off the caller's threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(e) => {
            Err(Error::new(ErrorKind::Unexpected, "the work on local files was stopped").because(e))
        }
    }
}

/// A regular file of a tree, with its content if it may be read.
type Found = (SandboxPath, Option<Bytes>);

impl MockSandbox {
    /// The regular files below a directory that a pattern finds, or the file itself: sorted, and
    /// what could not be looked at.
    fn files(
        &self,
        root: &SandboxPath,
        pattern: Option<&Pattern>,
    ) -> Result<(Vec<Found>, Vec<Gap>)> {
        let cred = self.machine.account.cred;
        let tree = self.machine.vfs.tree(root.as_str(), cred)?;
        let mut files = Vec::new();
        for leaf in tree.leaves {
            match leaf.kind {
                FileKind::File if leaf.path.is_empty() => files.push((root.clone(), leaf.content)),
                FileKind::File if pattern.is_none_or(|p| p.matches(&leaf.path)) => {
                    files.push((root.join(&leaf.path)?, leaf.content));
                }
                FileKind::Fifo | FileKind::Device if leaf.path.is_empty() => {
                    return Err(crate::error::not_regular());
                }
                _ => {}
            }
        }
        files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let unreadable = tree.unreadable.iter();
        let unreadable = unreadable.filter(|dir| pattern.is_none_or(|p| p.searches(dir)));
        let gaps = match unreadable.count() {
            0 => Vec::new(),
            n => vec![Gap::Unreadable(n as u64)],
        };
        Ok((files, gaps))
    }

    /// All of a regular file.
    fn content(&self, path: &SandboxPath) -> Result<Bytes> {
        let (vfs, cred) = (&self.machine.vfs, self.machine.account.cred);
        let stat = vfs.stat(path.as_str(), cred, Last::Follow)?;
        readable_kind(stat.kind)?;
        Ok(vfs.read(path.as_str(), cred)?)
    }
}
