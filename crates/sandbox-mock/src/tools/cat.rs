//! `cat`.

use super::getopt;
use super::io::{ENDLESS, Io, NO_MEMORY, Run};

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the tool"
)]
#[derive(Default)]
struct Show {
    number: bool,
    number_filled: bool,
    squeeze: bool,
    ends: bool,
    tabs: bool,
    unprintable: bool,
}

impl Show {
    fn nothing(&self) -> bool {
        !(self.number
            || self.number_filled
            || self.squeeze
            || self.ends
            || self.tabs
            || self.unprintable)
    }
}

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("number", 'n'),
        ("number-nonblank", 'b'),
        ("squeeze-blank", 's'),
        ("show-ends", 'E'),
        ("show-tabs", 'T'),
        ("show-nonprinting", 'v'),
        ("show-all", 'A'),
    ];
    let parsed = getopt::options(io, "nbsETvAetu", &long, 1).await?;
    let mut show = Show::default();
    for (option, _) in &parsed.options {
        match option {
            'n' => show.number = true,
            'b' => show.number_filled = true,
            's' => show.squeeze = true,
            'E' => show.ends = true,
            'T' => show.tabs = true,
            'v' => show.unprintable = true,
            'e' => (show.ends, show.unprintable) = (true, true),
            't' => (show.tabs, show.unprintable) = (true, true),
            'A' => (show.ends, show.tabs, show.unprintable) = (true, true, true),
            _ => {}
        }
    }
    let mut operands = parsed.operands;
    if operands.is_empty() {
        operands.push("-".to_owned());
    }
    let mut lines = Lines {
        show,
        at_start: true,
        number: 0,
        blank: 0,
    };
    for operand in &operands {
        let mut source = match io.open(operand).await? {
            Ok(source) => source,
            Err(why) => {
                io.complain(format!("{operand}: {why}")).await?;
                continue;
            }
        };
        let mut left = ENDLESS;
        while let Some(chunk) = source.next().await? {
            if source.is_endless() {
                left = left.saturating_sub(chunk.len());
                if left == 0 {
                    return io.fail(format!("write error: {NO_MEMORY}"), 1).await;
                }
            }
            if lines.show.nothing() {
                io.write(&chunk).await?;
                io.flush().await?;
            } else {
                let shown = lines.render(&chunk);
                io.write(&shown).await?;
            }
        }
        io.release();
    }
    Ok(0)
}

/// Numbers and marks lines across files.
struct Lines {
    show: Show,
    at_start: bool,
    number: u64,
    blank: u32,
}

impl Lines {
    fn render(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 4);
        for &byte in bytes {
            if self.at_start {
                let empty = byte == b'\n';
                self.blank = if empty { self.blank + 1 } else { 0 };
                if self.show.squeeze && self.blank > 1 {
                    continue;
                }
                if (self.show.number_filled && !empty)
                    || (self.show.number && !self.show.number_filled)
                {
                    self.number += 1;
                    out.extend_from_slice(format!("{:6}\t", self.number).as_bytes());
                }
            }
            self.at_start = byte == b'\n';
            match byte {
                b'\n' if self.show.ends => out.extend_from_slice(b"$\n"),
                b'\t' if self.show.tabs => out.extend_from_slice(b"^I"),
                b'\n' | b'\t' => out.push(byte),
                _ if self.show.unprintable => caret(byte, &mut out),
                _ => out.push(byte),
            }
        }
        out
    }
}

/// The `M-^A` way of writing a byte.
fn caret(byte: u8, out: &mut Vec<u8>) {
    if byte >= 128 {
        out.extend_from_slice(b"M-");
    }
    match byte & 0x7f {
        low @ 0..=31 => out.extend_from_slice(&[b'^', low + 64]),
        127 => out.extend_from_slice(b"^?"),
        low => out.push(low),
    }
}
