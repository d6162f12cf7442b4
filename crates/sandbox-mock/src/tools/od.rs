//! `od`.

use std::fmt::Write as _;

use super::getopt;
use super::io::{Io, Run};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Named,
    Chars,
    Hex,
    Octal,
    Unsigned,
    Signed,
    Float,
}

/// One way of showing, `x1z`: what, of how many bytes, with the text behind.
#[derive(Clone, Copy)]
struct Format {
    kind: Kind,
    size: usize,
    text: bool,
}

struct Od {
    formats: Vec<Format>,
    address: Option<u32>,
    skip: u64,
    most: u64,
    all: bool,
    width: usize,
}

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("address-radix", 'A'),
        ("format", 't'),
        ("read-bytes", 'N'),
        ("skip-bytes", 'j'),
        ("output-duplicates", 'v'),
        ("width", 'w'),
        ("endian", 'E'),
    ];
    let parsed = getopt::options(io, "A:t:N:j:vw::abcdfiloshxBDFHIOXE:", &long, 1).await?;
    let mut od = Od {
        formats: Vec::new(),
        address: Some(8),
        skip: 0,
        most: u64::MAX,
        all: false,
        width: 16,
    };
    for (option, value) in &parsed.options {
        if let Err(why) = od.take(*option, value) {
            return io.fail(why, 1).await;
        }
    }
    if od.formats.is_empty() {
        od.formats.push(Format {
            kind: Kind::Octal,
            size: 2,
            text: false,
        });
    }
    let operands = if parsed.operands.is_empty() {
        vec!["-".to_owned()]
    } else {
        parsed.operands
    };
    let (mut skip, mut left) = (od.skip, od.most);
    let mut address = od.skip;
    let mut line: Vec<u8> = Vec::with_capacity(od.width);
    let mut last: Option<Vec<u8>> = None;
    let mut starred = false;
    for operand in &operands {
        let mut source = match io.open(operand).await? {
            Ok(source) => source,
            Err(why) => {
                io.complain(format!("{operand}: {why}")).await?;
                continue;
            }
        };
        while left > 0 {
            let Some(mut chunk) = source.next().await? else {
                break;
            };
            let skipped = usize::try_from(skip).unwrap_or(usize::MAX).min(chunk.len());
            skip -= skipped as u64;
            chunk = chunk.slice(skipped..);
            chunk.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            left -= chunk.len() as u64;
            let mut rest = &chunk[..];
            while !rest.is_empty() {
                let taken = (od.width - line.len()).min(rest.len());
                line.extend_from_slice(&rest[..taken]);
                rest = &rest[taken..];
                if line.len() == od.width {
                    if !od.all && last.as_ref() == Some(&line) {
                        if !std::mem::replace(&mut starred, true) {
                            io.write(b"*\n").await?;
                        }
                    } else {
                        starred = false;
                        let shown = od.line(address, &line);
                        io.write(shown.as_bytes()).await?;
                        last = Some(line.clone());
                    }
                    address += line.len() as u64;
                    line.clear();
                }
            }
        }
    }
    if skip > 0 {
        return io.fail("cannot skip past end of combined input", 1).await;
    }
    if !line.is_empty() {
        let shown = od.line(address, &line);
        io.write(shown.as_bytes()).await?;
        address += line.len() as u64;
    }
    if od.address.is_some() {
        let end = format!("{}\n", od.place(address));
        io.write(end.as_bytes()).await?;
    }
    Ok(0)
}

impl Od {
    fn take(&mut self, option: char, value: &str) -> Result<(), String> {
        let mut add = |kind, size| {
            self.formats.push(Format {
                kind,
                size,
                text: false,
            });
        };
        let count = |value: &str| {
            let number = match value.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok(),
                None if value.len() > 1 && value.starts_with('0') => {
                    u64::from_str_radix(value, 8).ok()
                }
                None => getopt::size(value),
            };
            number.ok_or_else(|| format!("invalid -{option} argument '{value}'"))
        };
        match option {
            'A' => {
                self.address = match value {
                    "d" => Some(10),
                    "o" => Some(8),
                    "x" => Some(16),
                    "n" => None,
                    _ => {
                        return Err(format!(
                            "invalid output address radix '{value}'; it must be one character from [doxn]"
                        ));
                    }
                }
            }
            't' => self.formats.extend(formats(value)?),
            'N' => self.most = count(value)?,
            'j' => self.skip = count(value)?,
            'v' => self.all = true,
            'w' if value.is_empty() => self.width = 32,
            'w' => self.width = usize::try_from(count(value)?).unwrap_or(0).clamp(1, 4096),
            'a' => add(Kind::Named, 1),
            'b' => add(Kind::Octal, 1),
            'c' => add(Kind::Chars, 1),
            'd' => add(Kind::Unsigned, 2),
            'f' | 'F' => add(Kind::Float, 8),
            'i' | 'D' => add(Kind::Signed, 4),
            'l' | 'I' => add(Kind::Signed, 8),
            'o' | 'B' => add(Kind::Octal, 2),
            's' => add(Kind::Signed, 2),
            'x' | 'h' => add(Kind::Hex, 2),
            'X' | 'H' => add(Kind::Hex, 4),
            'O' => add(Kind::Octal, 4),
            _ => return Err(format!("-{option} is not supported here")),
        }
        Ok(())
    }

    fn place(&self, address: u64) -> String {
        match self.address {
            Some(10) => format!("{address:07}"),
            Some(16) => format!("{address:06x}"),
            Some(_) => format!("{address:07o}"),
            None => String::new(),
        }
    }

    fn line(&self, address: u64, bytes: &[u8]) -> String {
        // Columns of all formats are as wide as the widest needs.
        let per_byte = self
            .formats
            .iter()
            .map(|f| f.width().div_ceil(f.size))
            .max()
            .unwrap_or(1);
        let mut out = String::new();
        for (at, format) in self.formats.iter().enumerate() {
            let place = self.place(address);
            if at == 0 {
                out.push_str(&place);
            } else {
                out.push_str(&" ".repeat(place.len()));
            }
            let width = if self.formats.len() == 1 {
                format.width()
            } else {
                per_byte * format.size
            };
            for piece in bytes.chunks(format.size) {
                let mut whole = [0; 8];
                whole[..piece.len()].copy_from_slice(piece);
                let shown = format.show(u64::from_le_bytes(whole));
                let _ = write!(out, "{shown:>width$}");
            }
            if format.text {
                let missing = (self.width - bytes.len()) / format.size;
                out.push_str(&" ".repeat(missing * width));
                let text: String = bytes
                    .iter()
                    .map(|b| {
                        if (32..127).contains(b) {
                            char::from(*b)
                        } else {
                            '.'
                        }
                    })
                    .collect();
                let _ = write!(out, "  >{text}<");
            }
            out.push('\n');
        }
        out
    }
}

/// Reads `x1`, `xCz`, `d4`, `c`.
fn formats(text: &str) -> Result<Vec<Format>, String> {
    let invalid = || format!("invalid type string '{text}'");
    let mut formats = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(letter) = chars.next() {
        let (kind, usual) = match letter {
            'a' => (Kind::Named, 1),
            'c' => (Kind::Chars, 1),
            'd' => (Kind::Signed, 4),
            'u' => (Kind::Unsigned, 4),
            'o' => (Kind::Octal, 4),
            'x' => (Kind::Hex, 4),
            'f' => (Kind::Float, 8),
            _ => return Err(invalid()),
        };
        let mut size = usual;
        if !matches!(kind, Kind::Named | Kind::Chars) {
            size = match chars.peek().copied() {
                Some('C' | '1') => 1,
                Some('S' | '2') => 2,
                Some('I' | 'F' | '4') => 4,
                Some('L' | 'D' | '8') => 8,
                Some(digit) if digit.is_ascii_digit() => return Err(invalid()),
                _ => 0,
            };
            if size == 0 {
                size = usual;
            } else {
                chars.next();
            }
        }
        if kind == Kind::Float && size < 4 {
            return Err(invalid());
        }
        let marked = chars.next_if_eq(&'z').is_some();
        formats.push(Format {
            kind,
            size,
            text: marked,
        });
    }
    Ok(formats)
}

impl Format {
    /// The width of one value and the space before it.
    fn width(self) -> usize {
        match (self.kind, self.size) {
            (Kind::Named | Kind::Chars, _) => 4,
            (Kind::Hex, size) => size * 2 + 1,
            (Kind::Octal, size) => [4, 7, 12, 23][size.trailing_zeros() as usize],
            (Kind::Unsigned, size) => [4, 6, 11, 21][size.trailing_zeros() as usize],
            (Kind::Signed, size) => [5, 7, 12, 21][size.trailing_zeros() as usize],
            (Kind::Float, 4) => 16,
            (Kind::Float, _) => 25,
        }
    }

    fn show(self, value: u64) -> String {
        let bits = self.size * 8;
        let byte = value.to_le_bytes()[0];
        match self.kind {
            Kind::Hex => format!("{value:0width$x}", width = self.size * 2),
            Kind::Octal => format!(
                "{value:0width$o}",
                width = [3, 6, 11, 22][self.size.trailing_zeros() as usize]
            ),
            Kind::Unsigned => value.to_string(),
            Kind::Signed => {
                let shift = 64 - bits;
                ((value << shift).cast_signed() >> shift).to_string()
            }
            Kind::Float if self.size == 4 => {
                f32::from_bits(u32::try_from(value & 0xffff_ffff).unwrap_or(0)).to_string()
            }
            Kind::Float => f64::from_bits(value).to_string(),
            Kind::Chars => match byte {
                0 => r"\0".to_owned(),
                7 => r"\a".to_owned(),
                8 => r"\b".to_owned(),
                9 => r"\t".to_owned(),
                10 => r"\n".to_owned(),
                11 => r"\v".to_owned(),
                12 => r"\f".to_owned(),
                13 => r"\r".to_owned(),
                32..=126 => char::from(byte).to_string(),
                _ => format!("{byte:03o}"),
            },
            Kind::Named => {
                const NAMES: [&str; 33] = [
                    "nul", "soh", "stx", "etx", "eot", "enq", "ack", "bel", "bs", "ht", "nl", "vt",
                    "ff", "cr", "so", "si", "dle", "dc1", "dc2", "dc3", "dc4", "nak", "syn", "etb",
                    "can", "em", "sub", "esc", "fs", "gs", "rs", "us", "sp",
                ];
                match byte & 0x7f {
                    127 => "del".to_owned(),
                    low => NAMES
                        .get(usize::from(low))
                        .map_or_else(|| char::from(low).to_string(), |n| (*n).to_owned()),
                }
            }
        }
    }
}
