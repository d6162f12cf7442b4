//! `df`: the one file system there is, of the sandbox's memory.

use super::getopt;
use super::io::{Io, Run};
use super::text;
use crate::vfs::Last;

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("human-readable", 'h'),
        ("block-size", 'B'),
        ("all", 'a'),
        ("portability", 'P'),
        ("print-type", 'T'),
    ];
    let parsed = getopt::options(io, "hkmB:aPTl", &long, 1).await?;
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    for operand in &parsed.operands {
        if let Err(error) = io.stat(operand, Last::Follow) {
            io.complain(format!("{operand}: {}", error.strerror()))
                .await?;
            return Ok(1);
        }
    }
    let unit = if has('m') { 1 << 20 } else { 1 << 10 };
    let (used, limit, _) = io.vfs().usage();
    let free = limit.saturating_sub(used);
    let size = |bytes: u64| {
        if has('h') {
            text::human(bytes)
        } else {
            bytes.div_ceil(unit).to_string()
        }
    };
    let percent = format!(
        "{}%",
        (u128::from(used) * 100).div_ceil(u128::from(limit.max(1)))
    );
    let (name, width) = match (has('h'), has('m'), has('P')) {
        (true, ..) => ("Size", 5),
        (_, true, _) => ("1M-blocks", 9),
        (.., true) => ("1024-blocks", 11),
        _ => ("1K-blocks", 9),
    };
    let kind = |text: &str| {
        if has('T') {
            format!("{text:<7} ")
        } else {
            String::new()
        }
    };
    let available = if has('h') { "Avail" } else { "Available" };
    let last = available.len();
    let capacity = if has('P') { "Capacity" } else { "Use%" };
    let columns = capacity.len();
    let table = format!(
        "{:<10} {}{name:>width$} {:>8} {available} {capacity} Mounted on\n{:<10} {}{:>width$} {:>8} {:>last$} {percent:>columns$} /\n",
        "Filesystem",
        kind("Type"),
        "Used",
        "overlay",
        kind("overlay"),
        size(limit),
        size(used),
        size(free),
    );
    io.write(table.as_bytes()).await?;
    Ok(0)
}
