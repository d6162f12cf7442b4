//! `cp`, `mv` and `ln`.

use super::getopt;
use super::io::{Io, Run, absolute, base_name, parent, real_path};
use super::readlink::relative;
use super::text::quote;
use super::walk::join;
use crate::vfs::{FileKind, FsError, How, Last, Stat};

/// What `cp` does besides copying bytes.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the tool"
)]
#[derive(Default)]
struct Copy {
    recursive: bool,
    mode: bool,
    times: bool,
    /// Links are copied as links.
    keep_links: bool,
    /// Links on the command line are followed even so.
    follow_operands: bool,
    no_clobber: bool,
    update: bool,
    force: bool,
    verbose: bool,
    /// `-l` and `-s`.
    hard: bool,
    symbolic: bool,
    parents: bool,
}

/// Where operands go: `-t`, `-T`.
#[derive(Default)]
struct Target {
    directory: Option<String>,
    plain: bool,
}

pub(super) async fn cp(io: &mut Io) -> Run<i32> {
    let long = [
        ("recursive", 'R'),
        ("archive", 'a'),
        ("preserve", 'P'),
        ("no-preserve", 'N'),
        ("no-dereference", 'D'),
        ("dereference", 'L'),
        ("no-clobber", 'n'),
        ("interactive", 'i'),
        ("force", 'f'),
        ("update", 'u'),
        ("verbose", 'v'),
        ("link", 'l'),
        ("symbolic-link", 's'),
        ("target-directory", 't'),
        ("no-target-directory", 'T'),
        ("parents", 'q'),
        ("reflink", 'y'),
        ("sparse", 'z'),
    ];
    let parsed = getopt::options(io, "RrapP::N:dDLHnifuvlst:Tqxy::z:", &long, 1).await?;
    let mut copy = Copy::default();
    let mut target = Target::default();
    for (option, value) in parsed.options {
        match option {
            'R' | 'r' => {
                copy.recursive = true;
                copy.keep_links = true;
            }
            'a' => {
                (copy.recursive, copy.keep_links, copy.mode, copy.times) = (true, true, true, true);
            }
            'p' => (copy.mode, copy.times) = (true, true),
            'P' if value.is_empty()
                && io.args.iter().any(|arg| {
                    arg.starts_with('-') && !arg.starts_with("--") && arg.contains('P')
                }) =>
            {
                copy.keep_links = true;
            }
            'P' => {
                let all = value.is_empty() || value.contains("all");
                copy.mode |= all || value.contains("mode");
                copy.times |= all || value.contains("timestamps");
            }
            'd' | 'D' => copy.keep_links = true,
            'L' => (copy.keep_links, copy.follow_operands) = (false, true),
            'H' => copy.follow_operands = true,
            'n' => copy.no_clobber = true,
            'u' => copy.update = true,
            'f' => copy.force = true,
            'v' => copy.verbose = true,
            'l' => copy.hard = true,
            's' => copy.symbolic = true,
            't' => target.directory = Some(value),
            'T' => target.plain = true,
            'q' => copy.parents = true,
            _ => {}
        }
    }
    let Some((sources, into, dir)) = sources(io, parsed.operands, &target).await? else {
        return Ok(1);
    };
    for source in &sources {
        let destination = match (&dir, copy.parents) {
            (Some(dir), true) => {
                let below = join(dir, source.trim_start_matches('/'));
                let mode = 0o777 & !io.view.umask();
                if let Err(error) = io.vfs().mkdir_parents(&io.path(&below), io.cred(), mode) {
                    let why = error.strerror();
                    io.complain(format!("cannot make directory '{}': {why}", parent(&below)))
                        .await?;
                    continue;
                }
                below
            }
            (Some(dir), false) => join(dir, base_name(source)),
            (None, _) => into.clone(),
        };
        copy.tree(io, source, &destination).await?;
    }
    Ok(0)
}

/// Splits the operands into sources and target; the third is the target if it is
/// a directory that the sources go into.
async fn sources(
    io: &mut Io,
    mut operands: Vec<String>,
    target: &Target,
) -> Run<Option<(Vec<String>, String, Option<String>)>> {
    let hint = format!("Try '{} --help' for more information.", io.name);
    if operands.is_empty() {
        io.complain(format!("missing file operand\n{hint}")).await?;
        return Ok(None);
    }
    if let Some(directory) = &target.directory {
        if !io
            .stat(directory, Last::Follow)
            .is_ok_and(|stat| stat.kind == FileKind::Dir)
        {
            io.complain(format!(
                "target directory '{directory}': No such file or directory"
            ))
            .await?;
            return Ok(None);
        }
        return Ok(Some((operands, directory.clone(), Some(directory.clone()))));
    }
    let Some(into) = operands.pop().filter(|_| !operands.is_empty()) else {
        let only = io.args.last().cloned().unwrap_or_default();
        io.complain(format!(
            "missing destination file operand after '{only}'\n{hint}"
        ))
        .await?;
        return Ok(None);
    };
    let found = io.stat(&into, Last::Follow);
    let is_dir = !target.plain && found.as_ref().is_ok_and(|stat| stat.kind == FileKind::Dir);
    if operands.len() > 1 && !is_dir {
        let why = match found {
            Ok(_) => "Not a directory",
            Err(error) => error.strerror(),
        };
        io.complain(format!("target '{into}': {why}")).await?;
        return Ok(None);
    }
    let dir = is_dir.then(|| into.clone());
    Ok(Some((operands, into, dir)))
}

impl Copy {
    /// Copies `source` and, if asked, what is below it.
    #[allow(clippy::too_many_lines, reason = "one arm an option, then one pass")]
    async fn tree(&self, io: &mut Io, source: &str, destination: &str) -> Run {
        let last = if self.keep_links && !self.follow_operands {
            Last::Keep
        } else {
            Last::Follow
        };
        let stat = match io.stat(source, last) {
            Ok(stat) => stat,
            Err(error) => {
                let why = error.strerror();
                return io.complain(format!("cannot stat '{source}': {why}")).await;
            }
        };
        if stat.kind != FileKind::Dir {
            return self.leaf(io, source, destination, &stat).await;
        }
        if !self.recursive {
            return io
                .complain(format!("-r not specified; omitting directory '{source}'"))
                .await;
        }
        let (from, to) = (io.real(source), io.real(destination));
        if to == from || to.starts_with(&format!("{}/", from.trim_end_matches('/'))) {
            return io
                .complain(format!(
                    "cannot copy a directory, '{source}', into itself, '{destination}'"
                ))
                .await;
        }
        // Directories to copy, parents first; their modes are set from the leaves
        // up at the end, so that one without rights can be filled.
        let mut pending = vec![(source.to_owned(), destination.to_owned(), stat)];
        let mut made = Vec::new();
        while let Some((source, destination, stat)) = pending.pop() {
            tokio::task::yield_now().await;
            let exists = io.stat(&destination, Last::Follow);
            match exists {
                Ok(there) if there.kind != FileKind::Dir => {
                    io.complain(format!(
                        "cannot overwrite non-directory '{destination}' with directory '{source}'"
                    ))
                    .await?;
                    continue;
                }
                Ok(_) => {}
                Err(_) => {
                    let mode = (stat.mode & 0o777 & !io.view.umask()) | 0o700;
                    if let Err(error) =
                        io.vfs()
                            .mkdir(&io.path(&destination), io.cred(), mode, false)
                    {
                        let why = error.strerror();
                        io.complain(format!("cannot create directory '{destination}': {why}"))
                            .await?;
                        continue;
                    }
                }
            }
            if self.verbose {
                io.write(format!("{} -> {}\n", quote(&source), quote(&destination)).as_bytes())
                    .await?;
            }
            let entries = match io.vfs().list(&io.path(&source), io.cred()) {
                Ok(entries) => entries,
                Err(error) => {
                    let why = error.strerror();
                    io.complain(format!("cannot access '{source}': {why}"))
                        .await?;
                    continue;
                }
            };
            made.push((destination.clone(), stat, exists.is_err()));
            for (name, below) in entries {
                let (from, to) = (join(&source, &name), join(&destination, &name));
                let below = if self.keep_links {
                    below
                } else {
                    io.stat(&from, Last::Follow).unwrap_or(below)
                };
                if below.kind == FileKind::Dir {
                    pending.push((from, to, below));
                } else {
                    self.leaf(io, &from, &to, &below).await?;
                }
            }
        }
        for (path, stat, new) in made.into_iter().rev() {
            let mode = if self.mode {
                stat.mode
            } else {
                stat.mode & 0o777 & !io.view.umask()
            };
            if self.mode || new {
                io.vfs().chmod(&io.path(&path), io.cred(), mode).ok();
            }
            if self.times {
                io.vfs()
                    .set_modified(&io.path(&path), io.cred(), stat.modified)
                    .ok();
            }
        }
        Ok(())
    }

    async fn leaf(&self, io: &mut Io, source: &str, destination: &str, stat: &Stat) -> Run {
        let there = io.stat(destination, Last::Follow).ok();
        if self.no_clobber && (there.is_some() || io.stat(destination, Last::Keep).is_ok()) {
            return Ok(());
        }
        if let Some(there) = &there {
            if there.kind == FileKind::Dir {
                return io
                    .complain(format!(
                        "cannot overwrite directory '{destination}' with non-directory '{source}'"
                    ))
                    .await;
            }
            if there.ino == stat.ino && stat.kind != FileKind::Symlink {
                return io
                    .complain(format!("'{source}' and '{destination}' are the same file"))
                    .await;
            }
            if self.update && there.modified >= stat.modified {
                return Ok(());
            }
        } else if io
            .stat(destination, Last::Keep)
            .is_ok_and(|s| s.kind == FileKind::Symlink)
            && stat.kind != FileKind::Symlink
        {
            return io
                .complain(format!(
                    "not writing through dangling symlink '{destination}'"
                ))
                .await;
        }
        if let Err(error) = self.write(io, source, destination, stat) {
            let why = error.strerror();
            let message = match io
                .stat(source, Last::Keep)
                .and_then(|_| io.vfs().access(&io.path(source), io.cred(), 4))
            {
                Err(_) if stat.kind == FileKind::File => {
                    format!("cannot open '{source}' for reading: {why}")
                }
                _ if stat.kind == FileKind::Symlink => {
                    format!("cannot create symbolic link '{destination}': {why}")
                }
                _ => format!("cannot create regular file '{destination}': {why}"),
            };
            return io.complain(message).await;
        }
        if self.verbose {
            io.write(format!("{} -> {}\n", quote(source), quote(destination)).as_bytes())
                .await?;
        }
        Ok(())
    }

    fn write(&self, io: &Io, source: &str, destination: &str, stat: &Stat) -> Result<(), FsError> {
        let (vfs, cred) = (io.vfs(), io.cred());
        let (from, to) = (io.path(source), io.path(destination));
        if self.hard {
            return vfs.link(&from, &to, cred);
        }
        if self.symbolic {
            return vfs.symlink(source, &to, cred);
        }
        match stat.kind {
            FileKind::Symlink => {
                if vfs.stat(&to, cred, Last::Keep).is_ok() {
                    vfs.remove(&to, cred, false)?;
                }
                return vfs.symlink(&vfs.read_link(&from, cred)?, &to, cred);
            }
            FileKind::Fifo if self.recursive => return vfs.mkfifo(&to, cred, stat.mode),
            _ => {}
        }
        let content = vfs.read(&from, cred)?;
        let mode = stat.mode & 0o777 & !io.view.umask();
        match vfs.write(&to, cred, content.clone(), How::Truncate, mode) {
            Err(FsError::Denied) if self.force && vfs.stat(&to, cred, Last::Keep).is_ok() => {
                vfs.remove(&to, cred, false)?;
                vfs.write(&to, cred, content, How::Truncate, mode)?;
            }
            done => done?,
        }
        if self.mode {
            vfs.chmod(&to, cred, stat.mode).ok();
        }
        if self.times {
            vfs.set_modified(&to, cred, stat.modified).ok();
        }
        Ok(())
    }
}

pub(super) async fn mv(io: &mut Io) -> Run<i32> {
    let long = [
        ("force", 'f'),
        ("interactive", 'i'),
        ("no-clobber", 'n'),
        ("update", 'u'),
        ("verbose", 'v'),
        ("target-directory", 't'),
        ("no-target-directory", 'T'),
    ];
    let parsed = getopt::options(io, "finuvt:T", &long, 1).await?;
    let mut target = Target::default();
    let (mut no_clobber, mut update, mut verbose) = (false, false, false);
    for (option, value) in parsed.options {
        match option {
            'f' | 'i' => no_clobber = false,
            'n' => no_clobber = true,
            'u' => update = true,
            'v' => verbose = true,
            't' => target.directory = Some(value),
            'T' => target.plain = true,
            _ => {}
        }
    }
    let Some((sources, into, dir)) = sources(io, parsed.operands, &target).await? else {
        return Ok(1);
    };
    for source in &sources {
        let destination = dir
            .as_ref()
            .map_or_else(|| into.clone(), |dir| join(dir, base_name(source)));
        let stat = match io.stat(source.trim_end_matches('/'), Last::Keep) {
            Ok(stat) => stat,
            Err(error) => {
                let why = error.strerror();
                io.complain(format!("cannot stat '{source}': {why}"))
                    .await?;
                continue;
            }
        };
        if let Ok(there) = io.stat(&destination, Last::Keep) {
            if no_clobber || (update && there.modified >= stat.modified) {
                continue;
            }
            let why = match (stat.kind == FileKind::Dir, there.kind == FileKind::Dir) {
                _ if stat.ino == there.ino => {
                    Some(format!("'{source}' and '{destination}' are the same file"))
                }
                (true, false) => Some(format!(
                    "cannot overwrite non-directory '{destination}' with directory '{source}'"
                )),
                (false, true) => Some(format!(
                    "cannot overwrite directory '{destination}' with non-directory '{source}'"
                )),
                _ => None,
            };
            if let Some(why) = why {
                io.complain(why).await?;
                continue;
            }
        }
        match io
            .vfs()
            .rename(&io.path(source), &io.path(&destination), io.cred())
        {
            Ok(()) if verbose => {
                io.write(
                    format!("renamed {} -> {}\n", quote(source), quote(&destination)).as_bytes(),
                )
                .await?;
            }
            Ok(()) => {}
            Err(FsError::Invalid) => {
                io.complain(format!(
                    "cannot move '{source}' to a subdirectory of itself, '{destination}'"
                ))
                .await?;
            }
            Err(error) => {
                let why = error.strerror();
                io.complain(format!("cannot move '{source}' to '{destination}': {why}"))
                    .await?;
            }
        }
    }
    Ok(0)
}

pub(super) async fn ln(io: &mut Io) -> Run<i32> {
    let long = [
        ("symbolic", 's'),
        ("force", 'f'),
        ("no-dereference", 'n'),
        ("relative", 'r'),
        ("verbose", 'v'),
        ("target-directory", 't'),
        ("no-target-directory", 'T'),
        ("logical", 'L'),
        ("physical", 'P'),
    ];
    let parsed = getopt::options(io, "sfnrvt:TLPi", &long, 1).await?;
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    let (symbolic, force, follow) = (has('s'), has('f'), has('L'));
    let target = Target {
        directory: parsed
            .options
            .iter()
            .find(|(option, _)| *option == 't')
            .map(|(_, dir)| dir.clone()),
        plain: has('T'),
    };
    let mut operands = parsed.operands.clone();
    if operands.len() == 1 && target.directory.is_none() {
        operands.push(".".to_owned());
    }
    // With -n a link to a directory is the name to replace, not where to go.
    if has('n')
        && operands.last().is_some_and(|into| {
            io.stat(into, Last::Keep)
                .is_ok_and(|s| s.kind == FileKind::Symlink)
        })
    {
        return link_all(io, operands, None, &parsed, (symbolic, force, follow)).await;
    }
    let Some((sources, into, dir)) = sources(io, operands, &target).await? else {
        return Ok(1);
    };
    let all = sources.into_iter().chain([into]).collect();
    link_all(io, all, dir, &parsed, (symbolic, force, follow)).await
}

/// Links all but the last of `operands` to the last, or into `dir`.
async fn link_all(
    io: &mut Io,
    mut operands: Vec<String>,
    dir: Option<String>,
    parsed: &getopt::Parsed,
    (symbolic, force, follow): (bool, bool, bool),
) -> Run<i32> {
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    let into = operands.pop().unwrap_or_default();
    for source in &operands {
        let name = dir
            .as_ref()
            .map_or_else(|| into.clone(), |dir| join(dir, base_name(source)));
        let (vfs, cred, path) = (io.vfs(), io.cred(), io.path(&name));
        if !symbolic {
            match io.stat(source, if follow { Last::Follow } else { Last::Keep }) {
                Ok(stat) if stat.kind == FileKind::Dir => {
                    io.complain(format!("{source}: hard link not allowed for directory"))
                        .await?;
                    continue;
                }
                Ok(_) => {}
                Err(error) => {
                    let why = error.strerror();
                    io.complain(format!("failed to access '{source}': {why}"))
                        .await?;
                    continue;
                }
            }
        }
        if force
            && vfs
                .stat(&path, cred, Last::Keep)
                .is_ok_and(|stat| stat.kind != FileKind::Dir)
        {
            vfs.remove(&path, cred, false).ok();
        }
        let target = if has('r') {
            relative(
                parent(&real_path(vfs, cred, &path)),
                &real_path(vfs, cred, &absolute(&io.cwd, source)),
            )
        } else {
            source.clone()
        };
        let linked = if symbolic {
            vfs.symlink(&target, &path, cred)
        } else if follow {
            vfs.link(&real_path(vfs, cred, &io.path(source)), &path, cred)
        } else {
            vfs.link(&io.path(source), &path, cred)
        };
        if let Err(error) = linked {
            let kind = if symbolic { "symbolic" } else { "hard" };
            let why = error.strerror();
            io.complain(format!("failed to create {kind} link '{name}': {why}"))
                .await?;
        } else if has('v') {
            let arrow = if symbolic { "->" } else { "=>" };
            io.write(format!("{} {arrow} {}\n", quote(&name), quote(&target)).as_bytes())
                .await?;
        }
    }
    Ok(0)
}
