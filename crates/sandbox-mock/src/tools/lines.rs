//! Lines in memory, bounded: kept in one buffer and referred to by their ends,
//! a few bytes a line, so that many short lines cost little more than their bytes.

use bytes::{Bytes, BytesMut};

use super::io::{Io, Run};

/// All lines of some files.
pub(super) struct Lines {
    bytes: Bytes,
    /// Where each line ends; its delimiter is not kept.
    ends: Vec<u32>,
}

impl Lines {
    pub(super) async fn read(io: &mut Io, operands: &[String], end: u8) -> Run<Self> {
        let stdin = ["-".to_owned()];
        let operands = if operands.is_empty() {
            &stdin
        } else {
            operands
        };
        let mut bytes = BytesMut::new();
        let mut ends = Vec::new();
        for operand in operands {
            let mut source = match io.open(operand).await? {
                Ok(source) => source,
                Err(why) => {
                    let what = if why == "Is a directory" {
                        "read failed"
                    } else {
                        "cannot read"
                    };
                    return io.fail(format!("{what}: {operand}: {why}"), 2).await;
                }
            };
            let mut open = false;
            while let Some(chunk) = source.next().await? {
                let mut from = 0;
                let before = ends.len();
                for at in memchr::memchr_iter(end, &chunk) {
                    bytes.extend_from_slice(&chunk[from..at]);
                    ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
                    from = at + 1;
                }
                bytes.extend_from_slice(&chunk[from..]);
                open = from < chunk.len();
                // Bytes, ends, and what sorting needs of them.
                io.hold(chunk.len() + (ends.len() - before) * 20).await?;
            }
            if open {
                ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
            }
        }
        Ok(Self {
            bytes: bytes.freeze(),
            ends,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, at: usize) -> &[u8] {
        let from = if at == 0 {
            0
        } else {
            self.ends[at - 1] as usize
        };
        &self.bytes[from..self.ends[at] as usize]
    }
}

/// How many blanks a text begins with.
pub(super) fn blanks(text: &[u8]) -> usize {
    text.iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count()
}

/// Where the word that begins at `from`, after blanks, ends.
pub(super) fn end_of_word(line: &[u8], from: usize) -> usize {
    let start = from + blanks(&line[from..]);
    start
        + line[start..]
            .iter()
            .take_while(|b| !matches!(b, b' ' | b'\t'))
            .count()
}
