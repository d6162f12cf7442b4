//! `ls`, in GNU's formats for output that is not a terminal.

use std::fmt::Write as _;
use std::time::SystemTime;

use super::getopt;
use super::io::{Io, Run};
use super::mode;
use super::text;
use super::time;
use super::walk::join;
use crate::vfs::{FileKind, Last, Stat};

#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Name,
    Size,
    Time,
    Extension,
    None,
}

#[derive(Clone, Copy, PartialEq)]
enum Hidden {
    No,
    /// All but `.` and `..`.
    Almost,
    All,
}

/// What is put behind a name.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    None,
    Slash,
    Types,
    Classify,
}

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the tool"
)]
struct Style {
    long: bool,
    hidden: Hidden,
    mark: Mark,
    sort: Sort,
    reverse: bool,
    recursive: bool,
    itself: bool,
    follow: bool,
    inode: bool,
    blocks: bool,
    human: bool,
    numeric: bool,
    owner: bool,
    group: bool,
    dirs_first: bool,
    separator: &'static str,
    quote: bool,
    time: Option<String>,
}

struct Entry {
    name: String,
    stat: Stat,
    target: Option<String>,
}

#[allow(clippy::too_many_lines, reason = "one arm an option, then one pass")]
pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("all", 'a'),
        ("almost-all", 'A'),
        ("directory", 'd'),
        ("classify", 'F'),
        ("file-type", 'y'),
        ("human-readable", 'h'),
        ("inode", 'i'),
        ("dereference", 'L'),
        ("numeric-uid-gid", 'n'),
        ("no-group", 'G'),
        ("reverse", 'r'),
        ("recursive", 'R'),
        ("size", 's'),
        ("sort", 'O'),
        ("time-style", 'W'),
        ("full-time", 'e'),
        ("group-directories-first", 'D'),
        ("color", 'K'),
        ("quote-name", 'Q'),
        ("indicator-style", 'I'),
        ("format", 'Y'),
        ("time", 'j'),
        ("literal", 'N'),
        ("zero", '0'),
    ];
    let short = "aAdF::yhiLHnGrRsO:W:eDK::QI:Y:j:N0logptSXUfcu1Cxmbqkv";
    let parsed = getopt::options(io, short, &long, 2).await?;
    let mut style = Style {
        long: false,
        hidden: Hidden::No,
        mark: Mark::None,
        sort: Sort::Name,
        reverse: false,
        recursive: false,
        itself: false,
        follow: false,
        inode: false,
        blocks: false,
        human: false,
        numeric: false,
        owner: true,
        group: true,
        dirs_first: false,
        separator: "\n",
        quote: false,
        time: None,
    };
    for (option, value) in &parsed.options {
        if let Err(why) = style.take(*option, value) {
            return io.fail(why, 2).await;
        }
    }
    let operands = if parsed.operands.is_empty() {
        vec![".".to_owned()]
    } else {
        parsed.operands
    };
    let mut lister = Lister {
        style,
        status: 0,
        first: true,
    };
    let (mut files, mut dirs) = (Vec::new(), Vec::new());
    for operand in &operands {
        // Without -l a link on the command line is followed, if it leads anywhere.
        let follow = lister.style.follow
            || !(lister.style.long || lister.style.itself || lister.style.mark == Mark::Classify);
        let found = match io.stat(
            operand,
            if follow || operand.ends_with('/') {
                Last::Follow
            } else {
                Last::Keep
            },
        ) {
            Err(_) if follow => io.stat(operand, Last::Keep),
            found => found,
        };
        match found {
            Ok(stat) if stat.kind == FileKind::Dir && !lister.style.itself => {
                dirs.push((operand.clone(), stat));
            }
            Ok(stat) => files.push(lister.entry(io, operand.clone(), operand, stat)),
            Err(error) => {
                let why = error.strerror();
                io.complain_with(format!("cannot access '{operand}': {why}"), 2)
                    .await?;
                lister.status = 2;
            }
        }
    }
    let titled = operands.len() > 1 || lister.style.recursive;
    if !files.is_empty() {
        lister.sort(&mut files);
        lister.print(io, &files).await?;
        lister.first = false;
    }
    dirs.sort_by(|a, b| lister.compare((&a.0, &a.1), (&b.0, &b.1)));
    let mut pending: Vec<String> = dirs.into_iter().map(|(name, _)| name).rev().collect();
    while let Some(dir) = pending.pop() {
        let below = lister.directory(io, &dir, titled).await?;
        if lister.style.recursive {
            pending.extend(below.into_iter().rev());
        }
        tokio::task::yield_now().await;
    }
    Ok(lister.status)
}

impl Style {
    fn take(&mut self, option: char, value: &str) -> Result<(), String> {
        let bad = |what: &str| Err(format!("invalid argument '{value}' for '--{what}'"));
        match option {
            'a' => self.hidden = Hidden::All,
            'A' => self.hidden = Hidden::Almost,
            'd' => self.itself = true,
            'F' => self.mark = Mark::Classify,
            'p' => self.mark = Mark::Slash,
            'y' => self.mark = Mark::Types,
            'I' => match value {
                "none" => self.mark = Mark::None,
                "slash" => self.mark = Mark::Slash,
                "file-type" => self.mark = Mark::Types,
                "classify" => self.mark = Mark::Classify,
                _ => return bad("indicator-style"),
            },
            'h' => self.human = true,
            'i' => self.inode = true,
            'L' | 'H' => self.follow = true,
            'l' => self.long = true,
            'n' => (self.long, self.numeric) = (true, true),
            'g' => (self.long, self.owner) = (true, false),
            'o' => (self.long, self.group) = (true, false),
            'G' => self.group = false,
            'r' => self.reverse = true,
            'R' => self.recursive = true,
            's' => self.blocks = true,
            't' => self.sort = Sort::Time,
            'S' => self.sort = Sort::Size,
            'X' => self.sort = Sort::Extension,
            'U' => self.sort = Sort::None,
            'f' => (self.sort, self.hidden) = (Sort::None, Hidden::All),
            'O' => match value {
                "size" => self.sort = Sort::Size,
                "time" => self.sort = Sort::Time,
                "none" => self.sort = Sort::None,
                "extension" => self.sort = Sort::Extension,
                "name" | "version" => self.sort = Sort::Name,
                _ => return bad("sort"),
            },
            'e' => (self.long, self.time) = (true, Some("full-iso".to_owned())),
            'W' => self.time = Some(value.to_owned()),
            'D' => self.dirs_first = true,
            'Q' => self.quote = true,
            'm' => self.separator = ", ",
            '0' => self.separator = "\0",
            'Y' if value == "long" => self.long = true,
            // Columns, colours and the quoting of a terminal: none here.
            _ => {}
        }
        Ok(())
    }
}

struct Lister {
    style: Style,
    status: i32,
    first: bool,
}

impl Lister {
    fn entry(&self, io: &Io, name: String, path: &str, stat: Stat) -> Entry {
        let target = (stat.kind == FileKind::Symlink && self.style.long)
            .then(|| io.vfs().read_link(&io.path(path), io.cred()).ok())
            .flatten()
            .map(|target| target.to_string());
        Entry { name, stat, target }
    }

    /// Lists a directory; gives the directories in it.
    async fn directory(&mut self, io: &mut Io, dir: &str, titled: bool) -> Run<Vec<String>> {
        let listed = match io.vfs().list(&io.path(dir), io.cred()) {
            Ok(listed) => listed,
            Err(error) => {
                let why = error.strerror();
                io.complain_with(format!("cannot open directory '{dir}': {why}"), 2)
                    .await?;
                self.status = 2;
                return Ok(Vec::new());
            }
        };
        let mut entries = Vec::new();
        if self.style.hidden == Hidden::All {
            for name in [".", ".."] {
                if let Ok(stat) = io.stat(&join(dir, name), Last::Follow) {
                    entries.push(self.entry(io, name.to_owned(), dir, stat));
                }
            }
        }
        for (name, stat) in listed {
            if self.style.hidden == Hidden::No && name.starts_with('.') {
                continue;
            }
            let path = join(dir, &name);
            let stat = if self.style.follow {
                io.stat(&path, Last::Follow).unwrap_or(stat)
            } else {
                stat
            };
            entries.push(self.entry(io, name.to_string(), &path, stat));
        }
        self.sort(&mut entries);
        if titled {
            let gap = if self.first { "" } else { "\n" };
            io.write(format!("{gap}{dir}:\n").as_bytes()).await?;
        }
        self.first = false;
        if self.style.long || self.style.blocks {
            let blocks: u64 = entries.iter().map(|entry| blocks(&entry.stat)).sum();
            let total = if self.style.human {
                text::human(blocks * 1024)
            } else {
                blocks.to_string()
            };
            io.write(format!("total {total}\n").as_bytes()).await?;
        }
        self.print(io, &entries).await?;
        let dirs = entries
            .iter()
            .filter(|e| e.stat.kind == FileKind::Dir && e.name != "." && e.name != "..");
        Ok(dirs.map(|entry| join(dir, &entry.name)).collect())
    }

    fn compare(&self, a: (&str, &Stat), b: (&str, &Stat)) -> std::cmp::Ordering {
        let extension = |name: &str| {
            name.rfind('.')
                .map_or(String::new(), |at| name[at..].to_owned())
        };
        let ordering = match self.style.sort {
            Sort::Name => a.0.cmp(b.0),
            Sort::Size => b.1.size.cmp(&a.1.size).then_with(|| a.0.cmp(b.0)),
            Sort::Time => b.1.modified.cmp(&a.1.modified).then_with(|| a.0.cmp(b.0)),
            Sort::Extension => extension(a.0)
                .cmp(&extension(b.0))
                .then_with(|| a.0.cmp(b.0)),
            Sort::None => std::cmp::Ordering::Equal,
        };
        let ordering = if self.style.reverse {
            ordering.reverse()
        } else {
            ordering
        };
        if self.style.dirs_first {
            let dir = |stat: &Stat| stat.kind == FileKind::Dir;
            dir(b.1).cmp(&dir(a.1)).then(ordering)
        } else {
            ordering
        }
    }

    fn sort(&self, entries: &mut [Entry]) {
        entries.sort_by(|a, b| self.compare((&a.name, &a.stat), (&b.name, &b.stat)));
    }

    async fn print(&self, io: &mut Io, entries: &[Entry]) -> Run {
        let style = &self.style;
        let now = SystemTime::now();
        let rows: Vec<Vec<(String, bool)>> = entries
            .iter()
            .map(|entry| self.columns(entry, now))
            .collect();
        let columns = rows.first().map_or(0, Vec::len);
        let widths: Vec<usize> = (0..columns)
            .map(|at| {
                rows.iter()
                    .map(|row| row[at].0.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        for (at, (entry, row)) in entries.iter().zip(&rows).enumerate() {
            let mut line = String::new();
            for ((value, left), width) in row.iter().zip(&widths) {
                if *left {
                    let _ = write!(line, "{value:<width$} ");
                } else {
                    let _ = write!(line, "{value:>width$} ");
                }
            }
            let shown = |name: &str| {
                if style.quote {
                    format!("\"{}\"", name.replace('"', "\\\""))
                } else {
                    name.to_owned()
                }
            };
            line.push_str(&shown(&entry.name));
            if let Some(target) = &entry.target {
                line.push_str(" -> ");
                line.push_str(&shown(target));
            } else if let Some(mark) = self.mark(&entry.stat) {
                line.push(mark);
            }
            let last = at + 1 == entries.len();
            line.push_str(if last && style.separator == ", " {
                "\n"
            } else {
                style.separator
            });
            io.write(line.as_bytes()).await?;
        }
        Ok(())
    }

    /// What stands before the name, each with whether it is aligned left.
    fn columns(&self, entry: &Entry, now: SystemTime) -> Vec<(String, bool)> {
        let (style, stat) = (&self.style, &entry.stat);
        let account = |id: u32| {
            if style.numeric {
                (id.to_string(), false)
            } else {
                (mode::account(id), true)
            }
        };
        let mut row = Vec::new();
        if style.inode {
            row.push(((stat.ino + 1).to_string(), false));
        }
        if style.blocks {
            let blocks = blocks(stat);
            row.push((
                if style.human {
                    text::human(blocks * 1024)
                } else {
                    blocks.to_string()
                },
                false,
            ));
        }
        if style.long {
            row.push((mode::text(stat), true));
            row.push((stat.nlink.to_string(), false));
            if style.owner {
                row.push(account(stat.uid));
            }
            if style.group {
                row.push(account(stat.gid));
            }
            row.push((
                if style.human {
                    text::human(stat.size)
                } else {
                    stat.size.to_string()
                },
                false,
            ));
            row.push((date(style.time.as_deref(), stat.modified, now), true));
        }
        row
    }

    fn mark(&self, stat: &Stat) -> Option<char> {
        let mark = self.style.mark;
        match stat.kind {
            FileKind::Dir if mark != Mark::None => Some('/'),
            FileKind::Symlink if matches!(mark, Mark::Types | Mark::Classify) => Some('@'),
            FileKind::Fifo if matches!(mark, Mark::Types | Mark::Classify) => Some('|'),
            FileKind::File if mark == Mark::Classify && stat.mode & 0o111 != 0 => Some('*'),
            _ => None,
        }
    }
}

/// Kilobytes on disk, by blocks of 4 KiB.
fn blocks(stat: &Stat) -> u64 {
    match stat.kind {
        FileKind::File | FileKind::Dir => stat.size.div_ceil(4096) * 4,
        _ => 0,
    }
}

fn date(style: Option<&str>, modified: SystemTime, now: SystemTime) -> String {
    const HALF_A_YEAR: i64 = 31_556_952 / 2;
    let (seconds, nanos) = time::since_epoch(modified);
    let now = time::since_epoch(now).0;
    let recent = seconds <= now && seconds > now - HALF_A_YEAR;
    let format = match style {
        Some("full-iso") => "%Y-%m-%d %H:%M:%S.%N %z",
        Some("long-iso") => "%Y-%m-%d %H:%M",
        Some("iso") if recent => "%m-%d %H:%M",
        Some("iso") => "%Y-%m-%d ",
        Some(custom) if custom.starts_with('+') => &custom[1..],
        _ if recent => "%b %e %H:%M",
        _ => "%b %e  %Y",
    };
    time::format(format, seconds, nanos)
}
