//! `cmp`.

use bytes::Bytes;

use super::getopt;
use super::io::{Io, Run, Source};
use crate::vfs::Last;

#[allow(clippy::too_many_lines, reason = "one arm an option, then one pass")]
pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("verbose", 'l'),
        ("quiet", 's'),
        ("silent", 's'),
        ("print-bytes", 'b'),
        ("bytes", 'n'),
        ("ignore-initial", 'i'),
    ];
    let parsed = getopt::options(io, "lsbn:i:", &long, 2).await?;
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    let (verbose, silent) = (has('l'), has('s'));
    let mut skip = [0, 0];
    let mut most = u64::MAX;
    for (option, value) in &parsed.options {
        let number = |text: &str| {
            getopt::size(text).ok_or_else(|| {
                format!(
                    "invalid --{} value '{value}'",
                    if *option == 'n' {
                        "bytes"
                    } else {
                        "ignore-initial"
                    }
                )
            })
        };
        let taken = match option {
            'n' => number(value).map(|n| most = n),
            'i' => {
                let (first, second) = value.split_once(':').unwrap_or((value, value));
                number(first)
                    .and_then(|a| Ok([a, number(second)?]))
                    .map(|both| skip = both)
            }
            _ => Ok(()),
        };
        if let Err(why) = taken {
            return io.fail(why, 2).await;
        }
    }
    let mut operands = parsed.operands;
    // The obsolete skips behind the names.
    for at in (2..operands.len().min(4)).rev() {
        if let Some(count) = getopt::size(&operands[at]) {
            skip[at - 2] = count;
            operands.truncate(at);
        }
    }
    match operands.len() {
        0 => {
            return io
                .fail(
                    "missing operand after 'cmp'\ncmp: Try 'cmp --help' for more information.",
                    2,
                )
                .await;
        }
        1 => operands.push("-".to_owned()),
        2 => {}
        _ => return io.fail(format!("extra operand '{}'", operands[2]), 2).await,
    }
    // One file is equal to itself, a directory too: it is not read.
    let ino = |operand: &String| io.stat(operand, Last::Follow).map(|stat| stat.ino).ok();
    if skip[0] == skip[1] && ino(&operands[0]).is_some_and(|i| ino(&operands[1]) == Some(i)) {
        return Ok(0);
    }
    let mut sides = Vec::new();
    for (operand, skip) in operands.iter().zip(skip) {
        match io.open(operand).await? {
            Ok(source) => sides.push(Side {
                source,
                pending: Bytes::new(),
                skip,
            }),
            Err(why) if silent => {
                let _ = why;
                return Ok(2);
            }
            Err(why) => return io.fail(format!("{operand}: {why}"), 2).await,
        }
    }
    let (mut at, mut line, mut last) = (0_u64, 1_u64, b'\n');
    let mut differs = false;
    loop {
        for side in &mut sides {
            side.fill().await?;
        }
        let length = sides[0].pending.len().min(sides[1].pending.len());
        let length = length.min(usize::try_from(most - at).unwrap_or(usize::MAX));
        if length == 0 {
            break;
        }
        let a = sides[0].pending.split_to(length);
        let b = sides[1].pending.split_to(length);
        if a != b {
            for (offset, (x, y)) in a.iter().zip(b.iter()).enumerate() {
                if x != y {
                    let place = at + offset as u64 + 1;
                    if silent {
                        return Ok(1);
                    }
                    if !verbose {
                        let line = line + memchr::memchr_iter(b'\n', &a[..offset]).count() as u64;
                        let names = format!("{} {}", operands[0], operands[1]);
                        io.write(format!("{names} differ: char {place}, line {line}\n").as_bytes())
                            .await?;
                        return Ok(1);
                    }
                    io.write(format!("{place} {x:3o} {y:3o}\n").as_bytes())
                        .await?;
                    differs = true;
                }
            }
        }
        line += memchr::memchr_iter(b'\n', &a).count() as u64;
        last = a.last().copied().unwrap_or(last);
        at += length as u64;
    }
    if at == most || sides[0].pending.is_empty() == sides[1].pending.is_empty() {
        return Ok(i32::from(differs));
    }
    if !silent {
        let shorter = &operands[usize::from(!sides[0].pending.is_empty())];
        let place = match (at, last) {
            (0, _) => " which is empty".to_owned(),
            (_, b'\n') => format!(" after byte {at}, line {}", line - 1),
            _ => format!(" after byte {at}, in line {line}"),
        };
        io.flush().await?;
        io.complain(format!("EOF on {shorter}{place}")).await?;
    }
    Ok(1)
}

/// One of the two, with what has been read and not compared.
struct Side {
    source: Source,
    pending: Bytes,
    skip: u64,
}

impl Side {
    async fn fill(&mut self) -> Run {
        while self.pending.is_empty() {
            let Some(chunk) = self.source.next().await? else {
                break;
            };
            let skipped = usize::try_from(self.skip)
                .unwrap_or(usize::MAX)
                .min(chunk.len());
            self.skip -= skipped as u64;
            self.pending = chunk.slice(skipped..);
        }
        Ok(())
    }
}
