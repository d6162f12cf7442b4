//! `head` and `tail`.

use bytes::Bytes;

use super::getopt;
use super::io::{Io, Records, Run, Source};

/// How much of a file, and from which end.
#[derive(Clone, Copy)]
struct Part {
    /// Bytes, not lines.
    bytes: bool,
    count: u64,
    /// `head -n -N`, `tail -n +N`: counted from the other end.
    opposite: bool,
    delimiter: u8,
}

/// When to write `==> name <==` before a file.
#[derive(Clone, Copy, PartialEq)]
enum Titles {
    IfMany,
    Never,
    Always,
}

pub(super) async fn head(io: &mut Io) -> Run<i32> {
    let (part, titles, operands) = arguments(io, '-', "n:c:qvz").await?;
    each(io, part, titles, &operands, End::Head).await
}

pub(super) async fn tail(io: &mut Io) -> Run<i32> {
    let (part, titles, operands) = arguments(io, '+', "n:c:qvzf").await?;
    each(io, part, titles, &operands, End::Tail).await
}

/// Reads the options; `sign` is the one that counts from the other end.
async fn arguments(io: &mut Io, sign: char, short: &str) -> Run<(Part, Titles, Vec<String>)> {
    // The obsolete `-5` and `tail +5` forms.
    if let Some(first) = io.args.first().cloned() {
        let digits = first
            .strip_prefix('-')
            .filter(|d| d.starts_with(|c: char| c.is_ascii_digit()));
        if let Some(digits) = digits {
            let (number, letters) = digits.split_at(
                digits
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(digits.len()),
            );
            let option = if letters.starts_with('c') { "-c" } else { "-n" };
            io.args.splice(0..1, [option.to_owned(), number.to_owned()]);
        }
    }
    let long = [
        ("lines", 'n'),
        ("bytes", 'c'),
        ("quiet", 'q'),
        ("silent", 'q'),
        ("verbose", 'v'),
        ("zero-terminated", 'z'),
    ];
    let parsed = getopt::options(io, short, &long, 1).await?;
    let mut part = Part {
        bytes: false,
        count: 10,
        opposite: false,
        delimiter: b'\n',
    };
    let mut titles = Titles::IfMany;
    for (option, value) in &parsed.options {
        match option {
            'n' | 'c' => {
                part.bytes = *option == 'c';
                part.opposite = value.starts_with(sign);
                let number = value.trim_start_matches(['-', '+']);
                let Some(count) = getopt::size(number) else {
                    let unit = if part.bytes { "bytes" } else { "lines" };
                    return io
                        .fail(format!("invalid number of {unit}: '{value}'"), 1)
                        .await;
                };
                part.count = count;
            }
            'q' => titles = Titles::Never,
            'v' => titles = Titles::Always,
            'z' => part.delimiter = 0,
            // Nothing can grow here while `tail` waits for it.
            'f' => return io.fail("following a file is not supported here", 1).await,
            _ => {}
        }
    }
    Ok((part, titles, parsed.operands))
}

#[derive(Clone, Copy)]
enum End {
    Head,
    Tail,
}

async fn each(io: &mut Io, part: Part, titles: Titles, operands: &[String], end: End) -> Run<i32> {
    let stdin = ["-".to_owned()];
    let operands = if operands.is_empty() {
        &stdin
    } else {
        operands
    };
    let titled = titles == Titles::Always || (titles == Titles::IfMany && operands.len() > 1);
    let mut first = true;
    for operand in operands {
        let source = match io.open(operand).await? {
            Ok(source) => source,
            Err(why) if why == "Is a directory" => {
                if titled {
                    title(io, operand, &mut first).await?;
                }
                io.complain(format!("error reading '{operand}': {why}"))
                    .await?;
                continue;
            }
            Err(why) => {
                io.complain(format!("cannot open '{operand}' for reading: {why}"))
                    .await?;
                continue;
            }
        };
        if titled {
            title(io, operand, &mut first).await?;
        }
        match (end, part.opposite) {
            (End::Head, false) => leading(io, source, part).await?,
            (End::Tail, true) => skipping(io, source, part).await?,
            (End::Head, true) => {
                let all = io.drain(source).await?;
                let kept = all.len() - trailing(&all, part);
                io.write(&all[..kept]).await?;
            }
            (End::Tail, false) => {
                let window = last(io, source, part).await?;
                let from = window.len() - trailing(&window, part);
                io.write(&window[from..]).await?;
            }
        }
        io.flush().await?;
        io.release();
    }
    Ok(0)
}

async fn title(io: &mut Io, operand: &str, first: &mut bool) -> Run {
    let gap = if std::mem::replace(first, false) {
        ""
    } else {
        "\n"
    };
    let name = if operand == "-" {
        "standard input"
    } else {
        operand
    };
    io.write(format!("{gap}==> {name} <==\n").as_bytes()).await
}

/// The first `count` bytes or lines.
async fn leading(io: &mut Io, mut source: Source, part: Part) -> Run {
    let mut left = part.count;
    while left > 0 {
        let Some(chunk) = source.next().await? else {
            break;
        };
        let taken = if part.bytes {
            let taken = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            left -= taken as u64;
            taken
        } else {
            let mut taken = chunk.len();
            for at in memchr::memchr_iter(part.delimiter, &chunk) {
                left -= 1;
                if left == 0 {
                    taken = at + 1;
                    break;
                }
            }
            taken
        };
        io.write(&chunk[..taken]).await?;
        io.flush().await?;
    }
    Ok(())
}

/// All from the `count`th byte or line on.
async fn skipping(io: &mut Io, mut source: Source, part: Part) -> Run {
    let mut left = part.count.saturating_sub(1);
    while let Some(chunk) = source.next().await? {
        let mut from = 0;
        if left > 0 && part.bytes {
            from = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            left -= from as u64;
        } else if left > 0 {
            from = chunk.len();
            for at in memchr::memchr_iter(part.delimiter, &chunk) {
                left -= 1;
                if left == 0 {
                    from = at + 1;
                    break;
                }
            }
        }
        io.write(&chunk[from..]).await?;
    }
    Ok(())
}

/// At least the last `count` bytes or lines of a source, without keeping all.
async fn last(io: &mut Io, mut source: Source, part: Part) -> Run<Bytes> {
    if let Source::Bytes { data, .. } = source {
        return Ok(data);
    }
    let mut window: Vec<u8> = Vec::new();
    let mut held = 0;
    while let Some(chunk) = source.next().await? {
        window.extend_from_slice(&chunk);
        if window.len() > held.max(super::io::CHUNK) * 2 {
            let kept = trailing(&window, part);
            window.drain(..window.len() - kept);
            if window.len() > held {
                io.hold(window.len() - held).await?;
                held = window.len();
            }
        }
    }
    Ok(window.into())
}

/// How many bytes at the end of `data` are its last `count` bytes or lines.
fn trailing(data: &[u8], part: Part) -> usize {
    if part.bytes {
        return usize::try_from(part.count)
            .unwrap_or(usize::MAX)
            .min(data.len());
    }
    if part.count == 0 {
        return 0;
    }
    let body = data.strip_suffix(&[part.delimiter]).unwrap_or(data);
    let mut left = part.count;
    for at in memchr::memrchr_iter(part.delimiter, body) {
        left -= 1;
        if left == 0 {
            return data.len() - at - 1;
        }
    }
    data.len()
}

/// `tac`: the lines of each file, last first.
pub(super) async fn tac(io: &mut Io) -> Run<i32> {
    let parsed = getopt::options(io, "", &[], 1).await?;
    let operands = if parsed.operands.is_empty() {
        vec!["-".to_owned()]
    } else {
        parsed.operands
    };
    for operand in &operands {
        let data = match io.slurp(operand).await? {
            Ok(data) => data,
            Err(why) => {
                io.complain(format!("failed to open '{operand}' for reading: {why}"))
                    .await?;
                continue;
            }
        };
        let mut end = data.len();
        while end > 0 {
            let from = memchr::memrchr(b'\n', &data[..end - 1]).map_or(0, |at| at + 1);
            io.write(&data[from..end]).await?;
            end = from;
        }
        io.flush().await?;
        io.release();
    }
    Ok(0)
}

/// `rev`: the characters of each line, last first. Bytes that are no
/// character stay where they are in the reversed order.
pub(super) async fn rev(io: &mut Io) -> Run<i32> {
    let parsed = getopt::options(io, "", &[], 1).await?;
    let operands = if parsed.operands.is_empty() {
        vec!["-".to_owned()]
    } else {
        parsed.operands
    };
    for operand in &operands {
        let source = match io.open(operand).await? {
            Ok(source) => source,
            Err(why) => {
                io.complain(format!("cannot open {operand}: {why}")).await?;
                continue;
            }
        };
        let mut lines = Records::new(source, b'\n');
        while let Some(line) = lines.next(io).await? {
            let (body, end): (&[u8], &[u8]) = match line.strip_suffix(b"\n") {
                Some(body) => (body, b"\n"),
                None => (&line, b""),
            };
            let mut reversed = Vec::with_capacity(line.len());
            for piece in body.utf8_chunks().collect::<Vec<_>>().into_iter().rev() {
                reversed.extend(piece.invalid().iter().rev());
                reversed.extend(piece.valid().chars().rev().collect::<String>().into_bytes());
            }
            reversed.extend_from_slice(end);
            io.write(&reversed).await?;
        }
        io.flush().await?;
        io.release();
    }
    Ok(0)
}
