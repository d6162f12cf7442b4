//! As much of PNG as it takes to see whether a chart shows something.

use std::collections::HashMap;
use std::io::Read as _;

use flate2::Crc;
use flate2::read::ZlibDecoder;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The most pixels that are looked at.
const PIXELS: usize = 64 << 20;

/// Pixels of 8 bits a channel, as red, green, blue and maybe more.
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    channels: usize,
    pixels: Vec<u8>,
}

impl Picture {
    /// Reads a PNG to its end; checksums count.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut rest = bytes.strip_prefix(SIGNATURE).ok_or("no PNG")?;
        let (mut head, mut packed, mut ended) = (None, Vec::new(), false);
        while !rest.is_empty() && !ended {
            let (name, content);
            (name, content, rest) = chunk(rest).ok_or("a broken chunk")?;
            match name {
                b"IHDR" => head = Some(content),
                b"IDAT" => packed.extend_from_slice(content),
                b"IEND" => ended = true,
                _ => {}
            }
        }
        let head = head.filter(|_| ended && rest.is_empty()).ok_or("cut off")?;
        let (width, height) = (number(head, 0)?, number(head, 4)?);
        let channels = match head[8..] {
            [8, 2, 0, 0, 0] => 3,
            [8, 6, 0, 0, 0] => 4,
            _ => return Err("not the kind of PNG that plotting libraries write"),
        };
        if width.saturating_mul(height) > PIXELS {
            return Err("too large");
        }
        let line = width * channels;
        let mut filtered = Vec::new();
        let most = (line + 1) * height;
        ZlibDecoder::new(&packed[..])
            .take(most as u64 + 1)
            .read_to_end(&mut filtered)
            .map_err(|_| "broken data")?;
        if filtered.len() != most || most == 0 {
            return Err("another number of pixels than it says");
        }
        let pixels = unfilter(&filtered, line, channels)?;
        Ok(Self {
            width,
            height,
            channels,
            pixels,
        })
    }

    /// The share of pixels that have not the most common colour.
    pub(crate) fn drawn(&self) -> f64 {
        let mut counts: HashMap<&[u8], u32> = HashMap::new();
        for pixel in self.pixels.chunks(self.channels) {
            *counts.entry(&pixel[..3]).or_default() += 1;
        }
        let all: u32 = counts.values().sum();
        let most = counts.values().max().copied().unwrap_or(0);
        f64::from(all - most) / f64::from(all.max(1))
    }
}

fn number(bytes: &[u8], at: usize) -> Result<usize, &'static str> {
    let four = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    let number = u32::from_be_bytes(four.ok_or("cut off")?);
    usize::try_from(number).map_err(|_| "too large")
}

/// The name and the content of the first chunk, and what follows it.
fn chunk(bytes: &[u8]) -> Option<(&[u8; 4], &[u8], &[u8])> {
    let length = number(bytes, 0).ok()?;
    let (chunk, rest) = bytes.get(4..)?.split_at_checked(length.checked_add(8)?)?;
    let (covered, sum) = chunk.split_at(length + 4);
    let mut crc = Crc::new();
    crc.update(covered);
    let (name, content) = covered.split_first_chunk()?;
    (crc.sum().to_be_bytes() == sum).then_some((name, content, rest))
}

/// Undoes the filters of the lines: each byte is told by those to the left and above.
fn unfilter(filtered: &[u8], line: usize, channels: usize) -> Result<Vec<u8>, &'static str> {
    let mut pixels: Vec<u8> = Vec::with_capacity(filtered.len());
    for (y, filtered) in filtered.chunks(line + 1).enumerate() {
        let begin = y * line;
        for (x, byte) in filtered[1..].iter().enumerate() {
            let left = if x < channels {
                0
            } else {
                pixels[begin + x - channels]
            };
            let above = if y == 0 { 0 } else { pixels[begin - line + x] };
            let corner = if y == 0 || x < channels {
                0
            } else {
                pixels[begin - line + x - channels]
            };
            let guess = match filtered[0] {
                0 => 0,
                1 => left,
                2 => above,
                3 => left.midpoint(above),
                4 => paeth(left, above, corner),
                _ => return Err("an unknown filter"),
            };
            pixels.push(byte.wrapping_add(guess));
        }
    }
    Ok(pixels)
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let [a, b, c] = [left, above, corner].map(i16::from);
    let guess = a + b - c;
    let [da, db, dc] = [a, b, c].map(|v| (guess - v).abs());
    if da <= db && da <= dc {
        left
    } else if db <= dc {
        above
    } else {
        corner
    }
}
