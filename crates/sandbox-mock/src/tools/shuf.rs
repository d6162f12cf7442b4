//! `shuf`: of lines, of arguments, of a range as large as one likes.

use super::getopt;
use super::io::{Io, Run};
use super::lines::Lines;

/// `shuf`: of lines, of arguments, of a range as large as one likes.
pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("head-count", 'n'),
        ("input-range", 'i'),
        ("echo", 'e'),
        ("repeat", 'r'),
        ("output", 'o'),
        ("zero-terminated", 'z'),
    ];
    let parsed = getopt::options(io, "n:i:ero:z", &long, 1).await?;
    let (mut most, mut range, mut echo, mut repeat, mut end) =
        (u64::MAX, None, false, false, b'\n');
    for (option, value) in &parsed.options {
        match option {
            'n' => match value.parse() {
                Ok(count) => most = count,
                Err(_) => return io.fail(format!("invalid line count: '{value}'"), 1).await,
            },
            'i' => {
                let ends = value
                    .split_once('-')
                    .and_then(|(a, b)| Some((a.parse::<u64>().ok()?, b.parse::<u64>().ok()?)));
                match ends {
                    Some((low, high)) if low <= high => range = Some((low, high)),
                    _ => return io.fail(format!("invalid input range: '{value}'"), 1).await,
                }
            }
            'e' => echo = true,
            'r' => repeat = true,
            'z' => end = 0,
            'o' => return io.fail("use a redirection in place of -o", 1).await,
            _ => {}
        }
    }
    let lines = if echo || range.is_some() {
        None
    } else {
        Some(Lines::read(io, &parsed.operands, end).await?)
    };
    let (low, count) = match (range, &lines) {
        (Some((low, high)), _) => (low, (high - low).saturating_add(1)),
        (None, Some(lines)) => (0, lines.len() as u64),
        (None, None) => (0, parsed.operands.len() as u64),
    };
    let most = if repeat { most } else { most.min(count) };
    // What a swap has moved, of a permutation that is never written out: a pick
    // from a range costs by the numbers taken, not by the range.
    let mut moved = std::collections::HashMap::new();
    let mut picked = 0;
    while picked < most && count > 0 {
        let at = if repeat { 0 } else { picked };
        let other = at + random(io) % (count - at);
        let pick = if repeat {
            other
        } else {
            *moved.get(&other).unwrap_or(&other)
        };
        if !repeat {
            let here = *moved.get(&at).unwrap_or(&at);
            moved.insert(other, here);
            moved.remove(&at);
            if picked % 1024 == 0 {
                io.hold(1024 * 48).await?;
            }
        }
        let index = usize::try_from(pick).unwrap_or(usize::MAX);
        match &lines {
            Some(lines) => io.write(lines.get(index)).await?,
            None if echo => io.write(parsed.operands[index].as_bytes()).await?,
            None => io.write((low + pick).to_string().as_bytes()).await?,
        }
        io.write(&[end]).await?;
        picked += 1;
    }
    Ok(0)
}

fn random(io: &Io) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&io.vfs().random(8));
    u64::from_le_bytes(bytes)
}
