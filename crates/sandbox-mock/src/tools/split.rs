//! `split`.

use bytes::{Bytes, BytesMut};

use super::getopt;
use super::io::{Io, Records, Run};
use crate::vfs::How;

/// Where one file ends and the next begins.
#[derive(Clone, Copy)]
enum By {
    Lines(u64),
    Bytes(u64),
}

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("lines", 'l'),
        ("bytes", 'b'),
        ("suffix-length", 'a'),
        ("numeric-suffixes", 'd'),
        ("additional-suffix", 'A'),
        ("number", 'n'),
        ("line-bytes", 'C'),
    ];
    let parsed = getopt::options(io, "l:b:a:dA:n:C:", &long, 1).await?;
    let (mut by, mut length, mut digits, mut suffix) = (By::Lines(1000), 2, false, String::new());
    for (option, value) in parsed.options {
        let number = getopt::size(&value).filter(|number| *number > 0);
        match (option, number) {
            ('l', Some(count)) => by = By::Lines(count),
            ('b', Some(count)) => by = By::Bytes(count),
            ('a', Some(count)) => length = usize::try_from(count).unwrap_or(2).min(16),
            ('l', None) => {
                return io
                    .fail(format!("invalid number of lines: '{value}'"), 1)
                    .await;
            }
            ('b', None) => {
                return io
                    .fail(format!("invalid number of bytes: '{value}'"), 1)
                    .await;
            }
            ('a', None) => {
                return io
                    .fail(format!("invalid suffix length: '{value}'"), 1)
                    .await;
            }
            ('d', _) => digits = true,
            ('A', _) => suffix = value,
            (letter, _) => {
                return io.fail(format!("-{letter} is not supported here"), 1).await;
            }
        }
    }
    let input = parsed.operands.first().map_or("-", String::as_str);
    let prefix = parsed.operands.get(1).map_or("x", String::as_str);
    let mut source = match io.open(input).await? {
        Ok(source) => source,
        Err(why) => {
            let message = format!("cannot open '{input}' for reading: {why}");
            return io.fail(message, 1).await;
        }
    };
    let mut pieces = Pieces {
        prefix,
        suffix: &suffix,
        length,
        digits,
        next: 0,
        name: String::new(),
    };
    match by {
        By::Bytes(size) => {
            let mut left = 0;
            while let Some(mut chunk) = source.next().await? {
                while !chunk.is_empty() {
                    if left == 0 {
                        pieces.begin(io).await?;
                        left = size;
                    }
                    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
                    left -= taken as u64;
                    pieces.put(io, chunk.split_to(taken)).await?;
                }
            }
        }
        By::Lines(count) => {
            let mut lines = Records::new(source, b'\n');
            let mut gathered = BytesMut::new();
            let mut number = 0;
            while let Some(line) = lines.next(io).await? {
                if number % count == 0 {
                    pieces.put(io, gathered.split().freeze()).await?;
                    pieces.begin(io).await?;
                }
                number += 1;
                gathered.extend_from_slice(&line);
                if gathered.len() > super::io::CHUNK {
                    pieces.put(io, gathered.split().freeze()).await?;
                }
            }
            pieces.put(io, gathered.freeze()).await?;
        }
    }
    Ok(0)
}

/// The files, one after another.
struct Pieces<'a> {
    prefix: &'a str,
    suffix: &'a str,
    length: usize,
    digits: bool,
    next: u64,
    name: String,
}

impl Pieces<'_> {
    async fn begin(&mut self, io: &mut Io) -> Run {
        let (base, first) = if self.digits { (10, b'0') } else { (26, b'a') };
        let mut rest = self.next;
        let mut letters = vec![first; self.length];
        for letter in letters.iter_mut().rev() {
            *letter += (rest % base).to_le_bytes()[0];
            rest /= base;
        }
        if rest > 0 {
            return io.fail("output file suffixes exhausted", 1).await;
        }
        self.next += 1;
        let letters = String::from_utf8_lossy(&letters);
        self.name = format!("{}{letters}{}", self.prefix, self.suffix);
        self.write(io, Bytes::new(), How::Truncate).await
    }

    async fn put(&mut self, io: &mut Io, bytes: Bytes) -> Run {
        if bytes.is_empty() {
            return Ok(());
        }
        self.write(io, bytes, How::Append).await
    }

    async fn write(&mut self, io: &mut Io, bytes: Bytes, how: How) -> Run {
        match io.write_file(&self.name, bytes, how) {
            Ok(()) => Ok(()),
            Err(error) => {
                let message = format!("{}: {}", self.name, error.strerror());
                io.fail(message, 1).await
            }
        }
    }
}
