//! `wc`.

use std::fmt::Write as _;

use super::getopt;
use super::io::{Io, Run, Source};
use crate::vfs::{FileKind, Last};

#[derive(Default, Clone, Copy)]
struct Counts {
    lines: u64,
    words: u64,
    chars: u64,
    bytes: u64,
    longest: u64,
}

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("bytes", 'c'),
        ("chars", 'm'),
        ("lines", 'l'),
        ("words", 'w'),
        ("max-line-length", 'L'),
    ];
    let parsed = getopt::options(io, "cmlwL", &long, 1).await?;
    let mut wanted: Vec<char> = parsed.options.iter().map(|(option, _)| *option).collect();
    if wanted.is_empty() {
        wanted = vec!['l', 'w', 'c'];
    }
    let utf8 = is_utf8(io);
    let operands = if parsed.operands.is_empty() {
        vec![String::new()]
    } else {
        parsed.operands
    };
    let mut rows = Vec::new();
    let mut total = Counts::default();
    // GNU's width: digits of the byte total of the files named; 7 when one is
    // not a regular file; 1 for a single number of a single file.
    let mut size = 0;
    let mut irregular = false;
    for operand in &operands {
        let name = if operand.is_empty() {
            "-"
        } else {
            operand.as_str()
        };
        let source = match io.open(name).await? {
            Ok(source) => source,
            Err(why) => {
                io.complain(format!("{operand}: {why}")).await?;
                if why == "Is a directory" {
                    rows.push((Counts::default(), operand.as_str()));
                    irregular = true;
                }
                continue;
            }
        };
        let regular = io
            .stat(name, Last::Follow)
            .is_ok_and(|stat| stat.kind == FileKind::File);
        irregular |= name == "-" || !regular;
        let counts = count(source, utf8, wanted.iter().any(|w| *w != 'c')).await?;
        size += counts.bytes;
        total.lines += counts.lines;
        total.words += counts.words;
        total.chars += counts.chars;
        total.bytes += counts.bytes;
        total.longest = total.longest.max(counts.longest);
        rows.push((counts, operand));
        io.release();
    }
    let mut kinds = wanted.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let width = if operands.len() == 1 && kinds.len() == 1 {
        1
    } else if irregular {
        7
    } else {
        size.to_string().len()
    };
    if operands.len() > 1 {
        rows.push((total, "total"));
    }
    for (counts, name) in rows {
        let mut line = String::new();
        let columns = [
            ('l', counts.lines),
            ('w', counts.words),
            ('m', counts.chars),
            ('c', counts.bytes),
            ('L', counts.longest),
        ];
        for (kind, value) in columns {
            if wanted.contains(&kind) {
                if !line.is_empty() {
                    line.push(' ');
                }
                let _ = write!(line, "{value:width$}");
            }
        }
        if !name.is_empty() {
            line.push(' ');
            line.push_str(name);
        }
        line.push('\n');
        io.write(line.as_bytes()).await?;
    }
    Ok(0)
}

/// Whether the environment asks for UTF-8; without it a character is a byte.
pub(super) fn is_utf8(io: &Io) -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| io.env.get(*name).filter(|value| !value.is_empty()))
        .is_some_and(|value| value.to_lowercase().replace('-', "").contains("utf8"))
}

async fn count(mut source: Source, utf8: bool, look: bool) -> Run<Counts> {
    let mut counts = Counts::default();
    let mut in_word = false;
    let mut width = 0;
    while let Some(chunk) = source.next().await? {
        counts.bytes += chunk.len() as u64;
        if !look {
            continue;
        }
        for &byte in &chunk {
            if !utf8 || byte & 0xc0 != 0x80 {
                counts.chars += 1;
                width += 1;
            }
            let space = byte.is_ascii_whitespace() || byte == 0x0b;
            if byte == b'\n' {
                counts.lines += 1;
                counts.longest = counts.longest.max(width - 1);
                width = 0;
            } else if byte == b'\t' {
                width = (width - 1) / 8 * 8 + 8;
            }
            if space {
                in_word = false;
            } else if !in_word {
                in_word = true;
                counts.words += 1;
            }
        }
    }
    counts.longest = counts.longest.max(width);
    Ok(counts)
}
