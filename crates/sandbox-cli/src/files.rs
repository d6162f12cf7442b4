//! Files of a sandbox: listing, printing, copying.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sandbox::files::{EntryKind, Gap, TreeReport};
use sandbox::{Error, ErrorKind, Sandbox, SandboxPath, Stream};
use serde_json::json;
use tokio::fs;

use crate::args::Place;
use crate::life::Backend;
use crate::output::{self, Outcome};
use crate::progress::Counted;

pub(crate) async fn ls(at: &Backend, id: &str, path: &str) -> Outcome {
    let listing = at.pick_up(id).await?.ls(path).await?;
    if at.json {
        let entries: Vec<_> = listing
            .entries
            .iter()
            .map(|e| {
                let modified = e.modified.duration_since(UNIX_EPOCH).ok();
                json!({
                    "path": e.path.as_str(),
                    "kind": kind(e.kind),
                    "size": e.size,
                    "modified": modified.map(|d| d.as_secs()),
                })
            })
            .collect();
        let gaps: Vec<_> = listing.gaps.iter().map(Gap::to_string).collect();
        output::line(json!({ "entries": entries, "missing": gaps }))?;
        return Ok(0);
    }
    for e in &listing.entries {
        let path = output::plain(e.path.as_str());
        output::line(format!("{:<7} {:>12} {path}", kind(e.kind), e.size))?;
    }
    for gap in &listing.gaps {
        output::say(format!("warning: the list is not complete: {gap}"));
    }
    Ok(0)
}

fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Dir => "dir",
        EntryKind::Symlink => "symlink",
        _ => "other",
    }
}

pub(crate) async fn cat(at: &Backend, id: &str, paths: &[String]) -> Outcome {
    let sandbox = at.pick_up(id).await?;
    let mut out =
        output::raw(Stream::Stdout).map_err(|e| output::local("stdout is not usable", e))?;
    for path in paths {
        sandbox.download_to(path, &mut out).await?;
    }
    Ok(0)
}

pub(crate) async fn cp(at: &Backend, from: &str, to: &str) -> Outcome {
    match (Place::parse(from), Place::parse(to)) {
        (Place::Local(local), Place::Sandbox { id, path }) => {
            upload(&at.pick_up(&id).await?, &local, &path).await?;
        }
        (Place::Sandbox { id, path }, Place::Local(local)) => {
            download(&at.pick_up(&id).await?, &path, &local).await?;
        }
        _ => {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "exactly one of the two is in a sandbox: write it as ID:/PATH",
            )
            .into());
        }
    }
    Ok(0)
}

/// Copies a local file to `remote`, or a directory's content into it.
pub(crate) async fn upload(sandbox: &Sandbox, local: &Path, remote: &str) -> Outcome<()> {
    let failed = |e: io::Error| output::local(format!("{} can't be read", local.display()), e);
    if fs::metadata(local).await.map_err(failed)?.is_dir() {
        left_out(&sandbox.upload_dir(local, remote).await?);
        return Ok(());
    }
    let file = fs::File::open(local).await.map_err(failed)?;
    let mut file = Counted::new(file, local.display().to_string());
    sandbox.upload_from(remote, &mut file).await?;
    Ok(())
}

/// Copies a file of the sandbox to `local`, or a directory's content into it. A file goes into a
/// local directory that is there.
pub(crate) async fn download(sandbox: &Sandbox, remote: &str, local: &Path) -> Outcome<()> {
    // A path that can't be is refused before anything is touched here.
    let path = SandboxPath::new(remote)?;
    let is_dir = fs::metadata(local).await.is_ok_and(|m| m.is_dir());
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    let target = if is_dir && !name.is_empty() {
        local.join(name)
    } else {
        local.to_owned()
    };
    let unusable =
        |e: io::Error| output::local(format!("{} can't be written", target.display()), e);
    let part = Part::beside(&target).await.map_err(unusable)?;
    let copied = {
        let file = part.open().await.map_err(unusable)?;
        let mut file = Counted::new(file, remote);
        sandbox.download_to(remote, &mut file).await
    };
    match copied {
        Err(e) if e.kind() == ErrorKind::IsADirectory => {
            drop(part);
            left_out(&sandbox.download_dir(remote, local).await?);
            Ok(())
        }
        Err(e) => Err(e.into()),
        Ok(_) => part.keep(&target).await.map_err(unusable),
    }
}

fn left_out(report: &TreeReport) {
    for what in &report.skipped {
        output::say(format!("warning: left out: {what}"));
    }
}

/// A file on its way: under a name of its own until it is whole, and removed if it never is.
/// A device or a FIFO is written to as it is.
enum Part {
    Beside(PathBuf),
    Itself(PathBuf),
}

impl Part {
    async fn beside(target: &Path) -> io::Result<Self> {
        // What a link leads to is replaced, not the link.
        let target = fs::canonicalize(target).await.unwrap_or(target.to_owned());
        if fs::metadata(&target).await.is_ok_and(|m| !m.is_file()) {
            return Ok(Self::Itself(target));
        }
        let mut name = OsString::from(".");
        name.push(target.file_name().ok_or(io::ErrorKind::InvalidInput)?);
        name.push(format!(".{}.part", std::process::id()));
        Ok(Self::Beside(target.with_file_name(name)))
    }

    async fn open(&self) -> io::Result<fs::File> {
        match self {
            Self::Beside(part) => fs::File::create_new(part).await,
            Self::Itself(target) => fs::OpenOptions::new().write(true).open(target).await,
        }
    }

    async fn keep(self, target: &Path) -> io::Result<()> {
        let target = fs::canonicalize(target).await.unwrap_or(target.to_owned());
        match &self {
            Self::Beside(part) => fs::rename(part, &target).await,
            Self::Itself(_) => Ok(()),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Self::Beside(part) = self {
            // Gone already where it was kept.
            let _ = std::fs::remove_file(part);
        }
    }
}
