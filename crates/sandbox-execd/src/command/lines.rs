//! Output cut into lines the way the protocol wants it.
//!
//! A line ends at `\n`, `\r` or `\r\n`, and its end is not told. One without an end is held back
//! until the command has ended, so it is bounded here: a longer one is handed out in parts.

/// A piece of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A line, without its end. It is empty only where it is the end of one handed out in parts.
    Line(&'a [u8]),
    /// A line with nothing in it.
    Blank,
    /// The beginning, or a part, of a line that is longer than the limit.
    Part(&'a [u8]),
}

/// Cuts a stream.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    pending: Vec<u8>,
    limit: usize,
    after_return: bool,
    /// Whether parts of the current line went out already.
    in_parts: bool,
}

impl LineSplitter {
    /// Holds back no more than `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            pending: Vec::new(),
            limit: limit.max(1),
            after_return: false,
            in_parts: false,
        }
    }

    /// Takes what came and hands out what is complete.
    pub(crate) fn push(&mut self, mut data: &[u8], mut emit: impl FnMut(Piece<'_>)) {
        while let Some(at) = memchr::memchr2(b'\n', b'\r', data) {
            let (line, end) = (&data[..at], data[at]);
            data = &data[at + 1..];
            let second_half = end == b'\n' && self.after_return && line.is_empty();
            self.after_return = end == b'\r';
            if second_half && self.pending.is_empty() && !self.in_parts {
                continue;
            }
            self.hold(line, &mut emit);
            if !self.pending.is_empty() || self.in_parts {
                emit(Piece::Line(&self.pending));
            } else {
                emit(Piece::Blank);
            }
            self.pending.clear();
            self.in_parts = false;
        }
        if !data.is_empty() {
            self.after_return = false;
            self.hold(data, &mut emit);
        }
    }

    fn hold(&mut self, mut data: &[u8], emit: &mut impl FnMut(Piece<'_>)) {
        while self.pending.len() + data.len() > self.limit {
            let room = self.limit - self.pending.len();
            self.pending.extend_from_slice(&data[..room]);
            data = &data[room..];
            // A part ends between two characters where it can.
            let kept = incomplete_tail(&self.pending);
            let whole = self.pending.len() - kept;
            let whole = if whole == 0 {
                self.pending.len()
            } else {
                whole
            };
            emit(Piece::Part(&self.pending[..whole]));
            self.pending.drain(..whole);
            self.in_parts = true;
        }
        self.pending.extend_from_slice(data);
    }

    /// Hands out what was held back.
    pub(crate) fn finish(&mut self, mut emit: impl FnMut(Piece<'_>)) {
        if !self.pending.is_empty() {
            emit(Piece::Line(&self.pending));
        }
        self.pending = Vec::new();
        self.in_parts = false;
    }
}

/// How many bytes at the end of `bytes` may be the beginning of a character.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let window = &bytes[bytes.len().saturating_sub(3)..];
    let Some(at) = window.iter().rposition(|&byte| byte & 0xC0 != 0x80) else {
        return 0;
    };
    let length = match window[at] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    let have = window.len() - at;
    if have < length { have } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of `chunks`, as `text|`, `-` for a blank line and `text+` for a part.
    fn pieces(limit: usize, chunks: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut splitter = LineSplitter::new(limit);
        let mut take = |piece: Piece<'_>| match piece {
            Piece::Line(line) => {
                out.extend_from_slice(line);
                out.push(b'|');
            }
            Piece::Blank => out.push(b'-'),
            Piece::Part(part) => {
                out.extend_from_slice(part);
                out.push(b'+');
            }
        };
        for chunk in chunks {
            splitter.push(chunk, &mut take);
        }
        splitter.finish(&mut take);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_are_those_recorded() {
        for (text, cut) in [
            (&b"a\n\nb\n"[..], "a|-b|"),
            (b"\n\na\n\n\n", "--a|--"),
            (b"a\r\nb\rc\r\rd\n\r\ne", "a|b|c|-d|-e|"),
            (b"abc", "abc|"),
            (b"", ""),
            (b"\r\n", "-"),
            (b"\n\r", "--"),
        ] {
            assert_eq!(pieces(100, &[text]), cut);
            // The same however it arrives.
            let bytes: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(pieces(100, &bytes), cut);
        }
    }

    #[test]
    fn a_line_over_the_limit_comes_in_parts() {
        assert_eq!(pieces(4, &[b"abcdefghij\nk\n"]), "abcd+efgh+ij|k|");
        assert_eq!(pieces(4, &[b"abcd\n\n"]), "abcd|-");
        assert_eq!(
            pieces(4, &[b"abcdefgh", b"i", b"\r\n\r\n"]),
            "abcd+efgh+i|-"
        );
        assert_eq!(pieces(4, &[b"abcdefgh"]), "abcd+efgh|");
    }

    #[test]
    fn parts_do_not_cut_characters() {
        let text = "aé☃😀é☃😀".as_bytes();
        for limit in 4..10 {
            let cut = pieces(limit, &[text]);
            assert_eq!(cut.replace(['+', '|'], "").as_bytes(), text, "{limit}");
        }
        // What is no character at all is still handed out.
        let mut splitter = LineSplitter::new(2);
        let mut seen = 0;
        splitter.push(&[0xE2; 9], |piece| {
            if let Piece::Part(part) = piece {
                seen += part.len();
            }
        });
        assert!(seen >= 7 && splitter.pending.len() <= 2);
    }
}
