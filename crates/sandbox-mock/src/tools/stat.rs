//! `stat`.

use std::time::{SystemTime, UNIX_EPOCH};

use super::getopt;
use super::io::{Io, Run};
use super::mode;
use super::text;
use super::time;
use crate::vfs::{FileKind, Last, Stat};

const DEFAULT: &str = "  File: {}\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %d\tInode: %-11i Links: %h\nAccess: (%04a/%A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\nAccess: %x\nModify: %y\nChange: %z\n Birth: %w\n";
const TERSE: &str = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o\n";
/// Bytes of a block as `%b` counts them.
const BLOCK: u64 = 512;

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("format", 'c'),
        ("printf", 'p'),
        ("dereference", 'L'),
        ("terse", 't'),
        ("file-system", 'f'),
        ("cached", 'C'),
    ];
    let parsed = getopt::options(io, "c:p:LtfC:", &long, 1).await?;
    let (mut format, mut last) = (DEFAULT.as_bytes().to_vec(), Last::Keep);
    for (option, value) in &parsed.options {
        match option {
            'c' => format = format!("{value}\n").into_bytes(),
            'p' => format = text::unescape(value),
            't' => format = TERSE.as_bytes().to_vec(),
            'L' => last = Last::Follow,
            'f' => return io.fail("-f is not supported here", 1).await,
            _ => {}
        }
    }
    if parsed.operands.is_empty() {
        return io
            .fail(
                "missing operand\nTry 'stat --help' for more information.",
                1,
            )
            .await;
    }
    for operand in &parsed.operands {
        match io.stat(operand, last) {
            Ok(stat) => match render(io, &named(io, &format, operand), operand, &stat) {
                Ok(line) => io.write(&line).await?,
                Err(letter) => return io.fail(format!("%{letter}: invalid directive"), 1).await,
            },
            Err(error) => {
                let why = error.strerror();
                io.complain(format!("cannot statx '{operand}': {why}"))
                    .await?;
            }
        }
    }
    Ok(0)
}

/// The usual format says the name, and of a link where it leads, unquoted.
fn named(io: &Io, format: &[u8], name: &str) -> Vec<u8> {
    if format != DEFAULT.as_bytes() {
        return format.to_vec();
    }
    let mut shown = name.to_owned();
    if let Ok(target) = io.vfs().read_link(&io.path(name), io.cred()) {
        shown.push_str(" -> ");
        shown.push_str(&target);
    }
    DEFAULT
        .replace("{}", &shown.replace('%', "%%"))
        .into_bytes()
}

fn render(io: &Io, format: &[u8], name: &str, stat: &Stat) -> Result<Vec<u8>, char> {
    let mut out = Vec::new();
    let mut rest = format;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            out.push(first);
            continue;
        }
        let end = rest
            .iter()
            .position(|b| !matches!(b, b'0'..=b'9' | b'-' | b'+' | b' ' | b'#' | b'.' | b'\''))
            .unwrap_or(rest.len());
        let Some(&letter) = rest.get(end) else {
            out.push(b'%');
            continue;
        };
        let flags = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        if letter == b'%' {
            out.push(b'%');
            continue;
        }
        let value = directive(io, char::from(letter), name, stat).ok_or(char::from(letter))?;
        out.extend_from_slice(text::pad(&value, &flags).as_bytes());
    }
    Ok(out)
}

fn directive(io: &Io, letter: char, name: &str, stat: &Stat) -> Option<String> {
    let blocks = stat.size.div_ceil(4096) * 4096 / BLOCK;
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    Some(match letter {
        'n' => name.to_owned(),
        'N' => match io.vfs().read_link(&io.path(name), io.cred()) {
            Ok(target) if stat.kind == FileKind::Symlink => {
                format!("{} -> {}", text::quote(name), text::quote(&target))
            }
            _ => text::quote(name),
        },
        's' => stat.size.to_string(),
        'a' => format!("{:o}", stat.mode & 0o7777),
        'A' => mode::text(stat),
        'f' => format!("{:x}", stat.mode & 0o7777 | kind_bits(stat.kind)),
        'F' => kind(stat).to_owned(),
        'u' => stat.uid.to_string(),
        'U' => mode::account(stat.uid),
        'g' => stat.gid.to_string(),
        'G' => mode::account(stat.gid),
        'h' => stat.nlink.to_string(),
        'i' => (stat.ino + 1).to_string(),
        'b' => blocks.to_string(),
        'B' => BLOCK.to_string(),
        'o' => "4096".to_owned(),
        'd' | 'D' => "1".to_owned(),
        't' | 'T' | 'W' => "0".to_owned(),
        'm' => "/".to_owned(),
        // Only one time is kept: the last change.
        'X' | 'Y' | 'Z' => seconds(stat.modified).to_string(),
        'x' | 'y' | 'z' => time::full(stat.modified),
        'w' => "-".to_owned(),
        _ => return None,
    })
}

fn kind(stat: &Stat) -> &'static str {
    match stat.kind {
        FileKind::File if stat.size == 0 => "regular empty file",
        FileKind::File => "regular file",
        FileKind::Dir => "directory",
        FileKind::Symlink => "symbolic link",
        FileKind::Fifo => "fifo",
        FileKind::Device => "character special file",
    }
}

fn kind_bits(kind: FileKind) -> u32 {
    match kind {
        FileKind::File => 0o100_000,
        FileKind::Dir => 0o040_000,
        FileKind::Symlink => 0o120_000,
        FileKind::Fifo => 0o010_000,
        FileKind::Device => 0o020_000,
    }
}
