//! `uniq`: one pass, one line of a group in memory.

use bytes::BytesMut;

use super::getopt;
use super::io::{Io, Records, Run};
use super::lines::end_of_word;
use crate::vfs::How;

/// `uniq`.
#[allow(clippy::too_many_lines, reason = "one arm an option, then one pass")]
pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("count", 'c'),
        ("repeated", 'd'),
        ("unique", 'u'),
        ("ignore-case", 'i'),
        ("skip-fields", 'f'),
        ("skip-chars", 's'),
        ("check-chars", 'w'),
        ("zero-terminated", 'z'),
        ("all-repeated", 'D'),
    ];
    let parsed = getopt::options(io, "cduif:s:w:zD", &long, 1).await?;
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    let (count, repeated, single, all) = (has('c'), has('d'), has('u'), has('D'));
    let fold = has('i');
    let end = if has('z') { 0 } else { b'\n' };
    let mut numbers = [0, 0, usize::MAX];
    for (slot, letter) in ['f', 's', 'w'].iter().enumerate() {
        if let Some((_, value)) = parsed.options.iter().find(|(option, _)| option == letter) {
            match value.parse() {
                Ok(number) => numbers[slot] = number,
                Err(_) => {
                    return io
                        .fail(format!("{value}: invalid number of bytes to skip"), 1)
                        .await;
                }
            }
        }
    }
    let [skip_fields, skip_chars, width] = numbers;
    let key = |line: &[u8]| -> Vec<u8> {
        let mut at = 0;
        for _ in 0..skip_fields {
            at = end_of_word(line, at);
        }
        let at = (at + skip_chars).min(line.len());
        let key = &line[at..at.saturating_add(width).min(line.len())];
        if fold {
            key.to_ascii_lowercase()
        } else {
            key.to_vec()
        }
    };
    let name = parsed
        .operands
        .first()
        .cloned()
        .unwrap_or_else(|| "-".to_owned());
    let source = match io.open(&name).await? {
        Ok(source) => source,
        Err(why) => return io.fail(format!("{name}: {why}"), 1).await,
    };
    let mut lines = Records::new(source, end);
    let mut output = parsed.operands.get(1).map(|_| BytesMut::new());
    let mut group: Option<(Vec<u8>, Vec<u8>, u64)> = None;
    loop {
        let mut line = lines.next(io).await?;
        if let Some(line) = &mut line
            && line.last() == Some(&end)
        {
            line.pop();
        }
        if let (Some(line), Some((_, first, seen))) = (&line, &mut group)
            && key(line) == *first
        {
            *seen += 1;
            if all {
                let (text, seen) = (line.clone(), *seen);
                if seen == 2
                    && let Some((kept, ..)) = &group
                {
                    let kept = kept.clone();
                    put(io, &mut output, &kept, end).await?;
                }
                put(io, &mut output, &text, end).await?;
            }
            continue;
        }
        if let Some((text, _, seen)) = group.take()
            && !all
            && !(repeated && seen < 2)
            && !(single && seen > 1)
        {
            let mut shown = if count {
                format!("{seen:7} ").into_bytes()
            } else {
                Vec::new()
            };
            shown.extend_from_slice(&text);
            put(io, &mut output, &shown, end).await?;
        }
        match line {
            Some(line) => group = Some((line.clone(), key(&line), 1)),
            None => break,
        }
    }
    if let (Some(whole), Some(name)) = (output, parsed.operands.get(1))
        && let Err(error) = io.write_file(name, whole.freeze(), How::Truncate)
    {
        return io.fail(format!("{name}: {}", error.strerror()), 1).await;
    }
    Ok(0)
}

async fn put(io: &mut Io, output: &mut Option<BytesMut>, line: &[u8], end: u8) -> Run {
    if let Some(whole) = output {
        io.hold(line.len() + 1).await?;
        whole.extend_from_slice(line);
        whole.extend_from_slice(&[end]);
    } else {
        io.write(line).await?;
        io.write(&[end]).await?;
    }
    Ok(())
}
