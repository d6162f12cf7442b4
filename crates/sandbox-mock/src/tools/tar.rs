//! `tar`: create, list and extract, with modes, links and times.
//!
//! An archive is hostile input. A name is taken without its leading `/`; one
//! with `..` in it is refused; a link is made as it stands, and nothing is
//! written through one: what lies in the way of a file is removed first.

use std::io::{Cursor, Write};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Archive, Builder, EntryType, Header};

use super::getopt;
use super::gzip;
use super::io::{Io, MEMORY, NO_MEMORY, Run, absolute, real_path};
use super::mode;
use super::text;
use super::time;
use super::walk::join;
use crate::vfs::{FileKind, FsError, How, Last, Stat};

const LAST_WORDS: &str = "Error is not recoverable: exiting now";

#[derive(Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the tool"
)]
struct Tar {
    action: Option<char>,
    file: Option<String>,
    gzip: bool,
    verbose: bool,
    to_stdout: bool,
    keep_old: bool,
    preserve: bool,
    no_times: bool,
    dereference: bool,
    strip: usize,
    exclude: Vec<String>,
    /// Operands, each with the directory it is seen from.
    members: Vec<(String, String)>,
}

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let Some(tar) = arguments(io).await? else {
        return Ok(2);
    };
    let ended = match tar.action {
        Some('c') => tar.create(io).await?,
        Some('t' | 'x') => tar.read(io).await?,
        Some('r' | 'u' | 'A') => Err("adding to an archive is not supported here".to_owned()),
        _ => {
            let message = "You must specify one of the '-Acdtrux', '--delete' or '--test-label' options\nTry 'tar --help' or 'tar --usage' for more information.";
            return io.fail(message, 2).await;
        }
    };
    match ended {
        Ok(()) => {
            if io.failed() && tar.action == Some('c') {
                io.complain_with("Exiting with failure status due to previous errors", 2)
                    .await?;
            }
            Ok(0)
        }
        Err(why) => {
            io.complain_with(why, 2).await?;
            io.fail(LAST_WORDS, 2).await
        }
    }
}

#[allow(clippy::too_many_lines, reason = "one arm an option, then one pass")]
async fn arguments(io: &mut Io) -> Run<Option<Tar>> {
    // The old way, letters without a dash: their values follow in order.
    if let Some(letters) = io
        .args
        .first()
        .cloned()
        .filter(|first| !first.starts_with('-'))
    {
        let mut rest = io.args.split_off(1).into_iter();
        let mut args = Vec::new();
        for letter in letters.chars() {
            args.push(format!("-{letter}"));
            if "fCX".contains(letter) {
                args.extend(rest.next());
            }
        }
        args.extend(rest);
        io.args = args;
    }
    let long = [
        ("create", 'c'),
        ("list", 't'),
        ("extract", 'x'),
        ("get", 'x'),
        ("append", 'r'),
        ("file", 'f'),
        ("directory", 'C'),
        ("gzip", 'z'),
        ("gunzip", 'z'),
        ("auto-compress", 'a'),
        ("verbose", 'v'),
        ("to-stdout", 'O'),
        ("keep-old-files", 'k'),
        ("preserve-permissions", 'p'),
        ("same-permissions", 'p'),
        ("touch", 'm'),
        ("dereference", 'h'),
        ("strip-components", 'S'),
        ("exclude", 'E'),
        ("no-same-owner", 'o'),
        ("same-owner", 'o'),
        ("numeric-owner", 'o'),
        ("overwrite", 'o'),
        ("no-recursion", 'N'),
        ("files-from", 'T'),
        ("null", 'o'),
        ("sort", 'G'),
        ("owner", 'G'),
        ("group", 'G'),
        ("format", 'G'),
        ("bzip2", 'j'),
        ("xz", 'J'),
        ("absolute-names", 'P'),
    ];
    let short = "ctxruAf:C:zavOkpmhS:E:oNT:G:jJPwlbBiW";
    let parsed = match in_order(&io.args, short, &long) {
        Ok(parsed) => parsed,
        Err(why) => {
            let message = format!("{why}\nTry 'tar --help' or 'tar --usage' for more information.");
            return io.fail(message, 64).await;
        }
    };
    let mut tar = Tar::default();
    let mut from = ".".to_owned();
    let mut by_name = false;
    for (option, value) in parsed {
        match option {
            None => tar.members.push((from.clone(), value)),
            Some('C') => {
                from = if value.starts_with('/') {
                    value
                } else {
                    absolute(&from, &value)
                }
            }
            Some(action @ ('c' | 't' | 'x' | 'r' | 'u' | 'A')) => tar.action = Some(action),
            Some('f') => tar.file = Some(value),
            Some('z') => tar.gzip = true,
            Some('a') => by_name = true,
            Some('v') => tar.verbose = true,
            Some('O') => tar.to_stdout = true,
            Some('k') => tar.keep_old = true,
            Some('p') => tar.preserve = true,
            Some('m') => tar.no_times = true,
            Some('h') => tar.dereference = true,
            Some('S') => match value.parse() {
                Ok(count) => tar.strip = count,
                Err(_) => {
                    return io
                        .fail(format!("{value}: Invalid number of elements"), 2)
                        .await;
                }
            },
            Some('E') => tar.exclude.push(value),
            Some(letter @ ('T' | 'j' | 'J' | 'N')) => {
                return io.fail(format!("-{letter} is not supported here"), 2).await;
            }
            Some(_) => {}
        }
    }
    if tar.action != Some('c') {
        // Where an extraction goes is the last `-C`.
        tar.members
            .iter_mut()
            .for_each(|member| member.0.clone_from(&from));
        if tar.members.is_empty() {
            tar.members.push((from, String::new()));
        }
    }
    // `-a` takes the compression from the name.
    let compressed = |name: &str| {
        name.rsplit('.')
            .next()
            .is_some_and(|end| matches!(end, "tgz" | "gz"))
    };
    tar.gzip |= by_name && tar.file.as_deref().is_some_and(compressed);
    Ok(Some(tar))
}

/// Options and operands in the order they stood: a `-C` is for what follows it.
fn in_order(
    args: &[String],
    short: &str,
    long: &[(&str, char)],
) -> Result<Vec<(Option<char>, String)>, String> {
    let mut found = Vec::new();
    let mut rest = args;
    let stop = format!("+{short}");
    while !rest.is_empty() {
        let parsed = getopt::parse(rest, &stop, long)?;
        let left = parsed.operands.len();
        let ended = rest[..rest.len() - left]
            .last()
            .is_some_and(|arg| arg == "--");
        found.extend(
            parsed
                .options
                .into_iter()
                .map(|(option, value)| (Some(option), value)),
        );
        if ended {
            found.extend(parsed.operands.into_iter().map(|operand| (None, operand)));
            break;
        }
        rest = &rest[rest.len() - left..];
        if let Some((operand, after)) = rest.split_first() {
            found.push((None, operand.clone()));
            rest = after;
        }
    }
    Ok(found)
}

/// `-C`: ends the tool if that is no directory.
async fn enter(io: &mut Io, dir: &str) -> Run {
    let why = match io.stat(dir, Last::Follow) {
        Ok(stat) if stat.kind == FileKind::Dir => return Ok(()),
        Ok(_) => "Not a directory",
        Err(error) => error.strerror(),
    };
    let end = "tar: Error is not recoverable: exiting now";
    io.fail(format!("{dir}: Cannot open: {why}\n{end}"), 2)
        .await
}

/// Why an operation ended, for the caller to say; a tool's own end passes.
type Done = Result<(), String>;

impl Tar {
    async fn create(&self, io: &mut Io) -> Run<Done> {
        if self.members.is_empty() {
            return io.fail("Cowardly refusing to create an empty archive\nTry 'tar --help' or 'tar --usage' for more information.", 2).await;
        }
        let mut archive = Builder::new(Vec::new());
        let mut inodes = std::collections::HashMap::new();
        let mut removed = false;
        for (from, member) in &self.members {
            enter(io, from).await?;
            let stored = member.trim_start_matches('/');
            if stored.len() < member.len() && !std::mem::replace(&mut removed, true) {
                io.report("tar: Removing leading `/' from member names\n")
                    .await?;
            }
            let mut pending = vec![(
                absolute(&io.path(from), member),
                if stored.is_empty() { "." } else { stored }.to_owned(),
            )];
            while let Some((path, name)) = pending.pop() {
                tokio::task::yield_now().await;
                if self.excludes(&name) {
                    continue;
                }
                let last = if self.dereference {
                    Last::Follow
                } else {
                    Last::Keep
                };
                let stat = match io.stat(&path, last) {
                    Ok(stat) => stat,
                    Err(error) => {
                        io.complain_with(format!("{name}: Cannot stat: {}", error.strerror()), 2)
                            .await?;
                        continue;
                    }
                };
                if stat.kind == FileKind::Dir {
                    match io.vfs().list(&path, io.cred()) {
                        Ok(entries) => {
                            let below = entries
                                .into_iter()
                                .rev()
                                .map(|(entry, _)| (join(&path, &entry), join(&name, &entry)));
                            pending.extend(below);
                        }
                        Err(error) => {
                            io.complain_with(
                                format!("{name}: Cannot open: {}", error.strerror()),
                                2,
                            )
                            .await?;
                        }
                    }
                }
                if self.verbose {
                    let slash = if stat.kind == FileKind::Dir && !name.ends_with('/') {
                        "/"
                    } else {
                        ""
                    };
                    let line = format!("{}{slash}\n", text::escape_name(&name));
                    if self.archive_is_stdout() {
                        io.report(&line).await?;
                    } else {
                        io.write(line.as_bytes()).await?;
                    }
                }
                if let Err(why) = add(io, &mut archive, &mut inodes, &path, &name, &stat) {
                    io.complain_with(format!("{name}: {why}"), 2).await?;
                }
                if archive.get_ref().len() > MEMORY {
                    return io.fail(NO_MEMORY, 2).await;
                }
            }
        }
        let Ok(mut bytes) = archive.into_inner() else {
            return Ok(Err(NO_MEMORY.to_owned()));
        };
        // Whole records of 10 KiB, as GNU writes them.
        bytes.resize(bytes.len().next_multiple_of(10 * 1024), 0);
        if self.gzip {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            for chunk in bytes.chunks(256 * 1024) {
                if encoder.write_all(chunk).is_err() {
                    return Ok(Err(NO_MEMORY.to_owned()));
                }
                tokio::task::yield_now().await;
            }
            bytes = encoder.finish().unwrap_or_default();
        }
        if self.archive_is_stdout() {
            io.write(&bytes).await?;
            return Ok(Ok(()));
        }
        let file = self.file.as_deref().unwrap_or("-");
        let written = io.write_file(file, bytes.into(), How::Truncate);
        Ok(written.map_err(|error| format!("{file}: Cannot open: {}", error.strerror())))
    }

    fn archive_is_stdout(&self) -> bool {
        matches!(self.file.as_deref(), None | Some("-"))
    }

    fn excludes(&self, name: &str) -> bool {
        self.exclude.iter().any(|pattern| {
            let matches = |text: &str| {
                globset::Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(text))
            };
            matches(name) || name.split('/').any(matches) || name == pattern
        })
    }

    async fn read(&self, io: &mut Io) -> Run<Done> {
        let file = self.file.clone().unwrap_or_else(|| "-".to_owned());
        let bytes = match io.slurp(&file).await? {
            Ok(bytes) => bytes,
            Err(why) => return Ok(Err(format!("{file}: Cannot open: {why}"))),
        };
        let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
            match gzip::inflate(io, &bytes).await? {
                Ok(bytes) => bytes,
                Err(why) => {
                    io.report(&format!("\ngzip: stdin: {why}\n")).await?;
                    return Ok(Err("Child returned status 1".to_owned()));
                }
            }
        } else {
            bytes
        };
        if bytes.is_empty() {
            return Ok(Err("This does not look like a tar archive".to_owned()));
        }
        let mut archive = Archive::new(Cursor::new(bytes.clone()));
        let Ok(entries) = archive.entries() else {
            return Ok(Err("This does not look like a tar archive".to_owned()));
        };
        let mut extraction = Extraction {
            dirs: Vec::new(),
            found: vec![false; self.members.len()],
        };
        let mut members: Vec<Member> = Vec::new();
        let mut broken = false;
        for entry in entries {
            let Ok(entry) = entry else {
                broken = true;
                break;
            };
            members.push(Member::of(&entry, &bytes));
        }
        for member in &members {
            tokio::task::yield_now().await;
            self.member(io, &mut extraction, member).await?;
        }
        for (path, member) in extraction.dirs.iter().rev() {
            let mode = self.mode(io, member.mode);
            io.vfs().chmod(path, io.cred(), mode).ok();
            if !self.no_times {
                io.vfs()
                    .set_modified(
                        path,
                        io.cred(),
                        UNIX_EPOCH + Duration::from_secs(member.mtime),
                    )
                    .ok();
            }
        }
        for ((_, operand), found) in self.members.iter().zip(&extraction.found) {
            if !operand.is_empty() && !found {
                io.complain_with(format!("{operand}: Not found in archive"), 2)
                    .await?;
            }
        }
        if broken {
            let why = if members.is_empty() {
                "This does not look like a tar archive"
            } else {
                "Unexpected EOF in archive"
            };
            return Ok(Err(why.to_owned()));
        }
        if extraction.found.contains(&false) && self.members.iter().any(|m| !m.1.is_empty()) {
            io.complain_with("Exiting with failure status due to previous errors", 2)
                .await?;
        }
        Ok(Ok(()))
    }

    fn mode(&self, io: &Io, mode: u32) -> u32 {
        // Without -p the umask has a say, and so has it for root here.
        if self.preserve || io.cred().uid == 0 {
            mode & 0o7777
        } else {
            mode & 0o777 & !io.view.umask()
        }
    }

    async fn member(&self, io: &mut Io, extraction: &mut Extraction, member: &Member) -> Run {
        let wanted = |operand: &str| {
            let operand = operand.trim_end_matches('/');
            let name = member.name.trim_end_matches('/');
            operand.is_empty()
                || name == operand
                || name
                    .strip_prefix(operand)
                    .is_some_and(|rest| rest.starts_with('/'))
        };
        let Some(at) = self.members.iter().position(|(_, operand)| wanted(operand)) else {
            return Ok(());
        };
        extraction.found[at] = true;
        if self.excludes(member.name.trim_end_matches('/')) {
            return Ok(());
        }
        if self.action == Some('t') {
            let line = if self.verbose {
                member.long()
            } else {
                text::escape_name(&member.name)
            };
            return io.write(format!("{line}\n").as_bytes()).await;
        }
        if self.verbose {
            let line = format!("{}\n", text::escape_name(&member.name));
            if self.to_stdout {
                io.report(&line).await?;
            } else {
                io.write(line.as_bytes()).await?;
            }
        }
        if self.to_stdout {
            return io.write(&member.content).await;
        }
        let parts: Vec<&str> = member
            .name
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        if parts.contains(&"..") {
            return io
                .complain_with(format!("{}: Member name contains '..'", member.name), 2)
                .await;
        }
        if parts.len() < self.strip.max(1) + usize::from(self.strip > 0)
            && !(self.strip == 0 && parts.is_empty())
        {
            return Ok(());
        }
        let below = parts[self.strip.min(parts.len())..].join("/");
        let into = io.path(&self.members[at].0);
        let path = if below.is_empty() {
            into.clone()
        } else {
            join(&into, &below)
        };
        if let Err(error) = self.extract(io, extraction, member, &into, &path) {
            io.complain_with(
                format!("{}: Cannot open: {}", member.name, error.strerror()),
                2,
            )
            .await?;
        }
        Ok(())
    }

    fn extract(
        &self,
        io: &Io,
        extraction: &mut Extraction,
        member: &Member,
        into: &str,
        path: &str,
    ) -> Result<(), FsError> {
        let (vfs, cred) = (io.vfs(), io.cred());
        // A link on the way must not lead out of where the archive goes.
        let parent = super::io::parent(path);
        let (root, real) = (real_path(vfs, cred, into), real_path(vfs, cred, parent));
        if root != "/" && real != root && !real.starts_with(&format!("{root}/")) {
            return Err(FsError::Denied);
        }
        vfs.mkdir_parents(path, cred, 0o777 & !io.view.umask())?;
        let there = vfs.stat(path, cred, Last::Keep);
        if let Ok(there) = &there {
            if self.keep_old && there.kind != FileKind::Dir {
                return Err(FsError::Exists);
            }
            if there.kind != FileKind::Dir || member.kind != EntryType::Directory {
                vfs.remove(path, cred, false)?;
            }
        }
        match member.kind {
            EntryType::Directory => {
                if !there.is_ok_and(|stat| stat.kind == FileKind::Dir) {
                    vfs.mkdir(path, cred, 0o700, false)?;
                    extraction.dirs.push((path.to_owned(), member.clone()));
                }
                return Ok(());
            }
            EntryType::Symlink => return vfs.symlink(&member.link, path, cred),
            EntryType::Link => {
                let link = member.link.trim_start_matches('/');
                if link.split('/').any(|part| part == "..") {
                    return Err(FsError::Denied);
                }
                return vfs.link(&join(into, link), path, cred);
            }
            EntryType::Fifo => return vfs.mkfifo(path, cred, self.mode(io, member.mode)),
            _ => {}
        }
        vfs.write(path, cred, member.content.clone(), How::CreateNew, 0o600)?;
        vfs.chmod(path, cred, self.mode(io, member.mode))?;
        if !self.no_times {
            vfs.set_modified(path, cred, UNIX_EPOCH + Duration::from_secs(member.mtime))?;
        }
        Ok(())
    }
}

/// Adds one member.
fn add(
    io: &Io,
    archive: &mut Builder<Vec<u8>>,
    inodes: &mut std::collections::HashMap<usize, String>,
    path: &str,
    name: &str,
    stat: &Stat,
) -> Result<(), String> {
    let mut header = Header::new_gnu();
    header.set_mode(stat.mode & 0o7777);
    header.set_uid(u64::from(stat.uid));
    header.set_gid(u64::from(stat.gid));
    header.set_mtime(u64::try_from(time::since_epoch(stat.modified).0).unwrap_or(0));
    header.set_username(&mode::account(stat.uid)).ok();
    header.set_groupname(&mode::account(stat.gid)).ok();
    header.set_size(0);
    let said = |error: std::io::Error| error.to_string();
    match stat.kind {
        FileKind::Dir => {
            header.set_entry_type(EntryType::Directory);
            let name = if name.ends_with('/') {
                name.to_owned()
            } else {
                format!("{name}/")
            };
            append(archive, &mut header, &name, &[]).map_err(said)
        }
        FileKind::Symlink => {
            header.set_entry_type(EntryType::Symlink);
            let target = io
                .vfs()
                .read_link(path, io.cred())
                .map_err(|e| e.strerror().to_owned())?;
            link(archive, &mut header, name, &target).map_err(said)
        }
        FileKind::Fifo => {
            header.set_entry_type(EntryType::Fifo);
            append(archive, &mut header, name, &[]).map_err(said)
        }
        FileKind::Device => Err("a device; not added".to_owned()),
        FileKind::File => {
            if stat.nlink > 1
                && let Some(first) = inodes.insert(stat.ino, name.to_owned())
            {
                inodes.insert(stat.ino, first.clone());
                header.set_entry_type(EntryType::Link);
                return link(archive, &mut header, name, &first).map_err(said);
            }
            let content = io
                .vfs()
                .read(path, io.cred())
                .map_err(|e| format!("Cannot open: {}", e.strerror()))?;
            header.set_entry_type(EntryType::Regular);
            header.set_size(content.len() as u64);
            append(archive, &mut header, name, &content).map_err(said)
        }
    }
}

/// What an extraction remembers: directories, whose rights are set at the end,
/// and which operands had a member.
struct Extraction {
    dirs: Vec<(String, Member)>,
    found: Vec<bool>,
}

/// A member of an archive.
#[derive(Clone)]
struct Member {
    name: String,
    kind: EntryType,
    mode: u32,
    mtime: u64,
    size: u64,
    owner: String,
    link: String,
    content: Bytes,
}

impl Member {
    fn of(entry: &tar::Entry<'_, Cursor<Bytes>>, archive: &Bytes) -> Self {
        let header = entry.header();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let who = |name: Option<&[u8]>, id: std::io::Result<u64>| match name {
            Some(name) if !name.is_empty() => text(name),
            _ => id.unwrap_or(0).to_string(),
        };
        let start = usize::try_from(entry.raw_file_position())
            .unwrap_or(usize::MAX)
            .min(archive.len());
        let end = start
            .saturating_add(usize::try_from(entry.size()).unwrap_or(usize::MAX))
            .min(archive.len());
        let has_content =
            header.entry_type().is_file() || header.entry_type() == EntryType::Continuous;
        Self {
            name: text(&entry.path_bytes()),
            kind: header.entry_type(),
            mode: header.mode().unwrap_or(0o644),
            // A year a file system can hold.
            mtime: header.mtime().unwrap_or(0).min(u64::from(u32::MAX) * 2),
            size: entry.size(),
            owner: format!(
                "{}/{}",
                who(header.username_bytes(), header.uid()),
                who(header.groupname_bytes(), header.gid())
            ),
            link: entry
                .link_name_bytes()
                .map_or_else(String::new, |name| text(&name)),
            content: if has_content {
                archive.slice(start..end)
            } else {
                Bytes::new()
            },
        }
    }

    /// A line of `tar tv`.
    fn long(&self) -> String {
        let kind = match self.kind {
            EntryType::Directory => FileKind::Dir,
            EntryType::Symlink => FileKind::Symlink,
            EntryType::Fifo => FileKind::Fifo,
            _ => FileKind::File,
        };
        let mut rights = mode::rights(kind, self.mode);
        if self.kind == EntryType::Link {
            rights.replace_range(..1, "h");
        }
        let when = time::format("%Y-%m-%d %H:%M", i64::try_from(self.mtime).unwrap_or(0), 0);
        let link = match self.kind {
            EntryType::Symlink => format!(" -> {}", text::escape_name(&self.link)),
            EntryType::Link => format!(" link to {}", text::escape_name(&self.link)),
            _ => String::new(),
        };
        let size = text::pad(
            &self.size.to_string(),
            &19_usize.saturating_sub(self.owner.len() + 1).to_string(),
        );
        let name = text::escape_name(&self.name);
        format!("{rights} {} {size} {when} {name}{link}", self.owner)
    }
}

/// Adds a link to `target`.
fn link(
    archive: &mut Builder<Vec<u8>>,
    header: &mut Header,
    name: &str,
    target: &str,
) -> std::io::Result<()> {
    if header.set_link_name_literal(target).is_ok() {
        return append(archive, header, name, &[]);
    }
    archive.append_link(header, name, target)
}

/// Adds a member; a name that is too long for its field gets one of its own.
fn append(
    archive: &mut Builder<Vec<u8>>,
    header: &mut Header,
    name: &str,
    content: &[u8],
) -> std::io::Result<()> {
    // The crate drops a leading `./`, which GNU keeps.
    let field = header.as_old_mut();
    if name.len() < field.name.len() {
        field.name = [0; 100];
        field.name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        return archive.append(header, content);
    }
    archive.append_data(header, name, content)
}
