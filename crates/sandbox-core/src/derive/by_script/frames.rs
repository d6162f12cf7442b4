//! What the scripts print, read as hostile input.

use bytes::Bytes;

use super::ScriptOutput;
use super::words::refused;
use crate::{FileDownload, Result, Stream, call};

/// What one record of a script may take: a path and words.
const RECORD: usize = 16 << 10;

/// Keeps the first bytes of what a script complains about.
fn complain(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = RECORD.saturating_sub(kept.len());
    kept.extend_from_slice(&bytes[..room.min(bytes.len())]);
}

/// Records ended by NUL on stdout.
pub(super) struct Records {
    pub(super) whole: Vec<String>,
    pub(super) most: usize,
    part: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl Records {
    pub(super) fn new(most: usize) -> Self {
        Self {
            whole: Vec::new(),
            most,
            part: Vec::new(),
            stderr: Vec::new(),
        }
    }

    pub(super) fn words(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

impl ScriptOutput for Records {
    fn wants_more(&self) -> bool {
        true
    }

    fn put(&mut self, stream: Stream, bytes: Bytes) {
        if stream == Stream::Stderr {
            return complain(&mut self.stderr, &bytes);
        }
        for piece in bytes.split_inclusive(|b| *b == 0) {
            if self.whole.len() == self.most {
                return;
            }
            match piece.split_last() {
                Some((0, piece)) => {
                    complain(&mut self.part, piece);
                    let record = std::mem::take(&mut self.part);
                    self.whole
                        .push(String::from_utf8_lossy(&record).into_owned());
                }
                _ => complain(&mut self.part, piece),
            }
        }
    }
}

/// One file on stdout.
#[derive(Default)]
pub(super) struct Whole {
    pub(super) content: Vec<u8>,
    pub(super) most: usize,
    pub(super) stderr: Vec<u8>,
}

impl ScriptOutput for Whole {
    fn wants_more(&self) -> bool {
        // Enough to know that it is too much: what reads the file may be hostile and never end.
        self.content.len() < self.most
    }

    fn put(&mut self, stream: Stream, bytes: Bytes) {
        if stream == Stream::Stderr {
            return complain(&mut self.stderr, &bytes);
        }
        let room = self.most - self.content.len();
        self.content
            .extend_from_slice(&bytes[..room.min(bytes.len())]);
    }
}

/// Files on stdout, each behind a header. What does not add up is left out, and all after it.
pub(super) struct Frames<'a> {
    token: String,
    batch: &'a [FileDownload],
    pub(super) done: Vec<Result<Bytes>>,
    header: Vec<u8>,
    /// Of the file that is being read: its content and how much is to come.
    file: Option<(Vec<u8>, usize)>,
    pub(super) over: bool,
    /// The end was seen: without it, the last content may hold what follows it.
    pub(super) complete: bool,
    pub(super) stderr: Vec<u8>,
}

impl<'a> Frames<'a> {
    pub(super) fn new(token: String, batch: &'a [FileDownload]) -> Self {
        Self {
            token,
            batch,
            done: Vec::new(),
            header: Vec::new(),
            file: None,
            over: false,
            complete: false,
            stderr: Vec::new(),
        }
    }

    /// A whole header; false if it is none.
    fn header(&mut self) -> bool {
        let header = std::mem::take(&mut self.header);
        let header = String::from_utf8_lossy(&header);
        let Some((letter, word)) = header
            .strip_prefix(&self.token)
            .and_then(|h| h.strip_prefix(' '))
            .and_then(|h| h.split_once(' '))
        else {
            return false;
        };
        let Some(file) = self.batch.get(self.done.len()) else {
            self.complete = letter == "z";
            return self.complete;
        };
        let size = word.trim().parse::<u64>();
        match (letter, size) {
            ("e", _) => self.done.push(Err(refused(word, "read"))),
            ("l", Ok(size)) => self.done.push(Err(call::too_large(size, file.limit))),
            ("f", Ok(0)) => self.done.push(Ok(Bytes::new())),
            ("f", Ok(size)) if size <= file.limit => {
                let Ok(size) = usize::try_from(size) else {
                    return false;
                };
                self.file = Some((Vec::new(), size));
            }
            _ => return false,
        }
        true
    }

    /// Something does not add up: the last content was not what its header said.
    pub(super) fn lose(&mut self) {
        if !std::mem::replace(&mut self.over, true)
            && matches!(self.done.last(), Some(Ok(content)) if !content.is_empty())
        {
            self.done.pop();
        }
    }
}

impl ScriptOutput for Frames<'_> {
    fn wants_more(&self) -> bool {
        !self.over
    }

    fn put(&mut self, stream: Stream, bytes: Bytes) {
        if stream == Stream::Stderr {
            return complain(&mut self.stderr, &bytes);
        }
        let mut bytes = &bytes[..];
        while !bytes.is_empty() && !self.over {
            if let Some((mut content, left)) = self.file.take() {
                let (now, rest) = bytes.split_at(left.min(bytes.len()));
                content.extend_from_slice(now);
                bytes = rest;
                match left - now.len() {
                    0 => self.done.push(Ok(content.into())),
                    left => self.file = Some((content, left)),
                }
                continue;
            }
            let end = memchr(bytes);
            let (now, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.header.extend_from_slice(now);
            bytes = rest;
            // A header begins with the token: what does not is content that grew.
            let known = self.token.len().min(self.header.len());
            if self.header.len() > RECORD || self.header[..known] != self.token.as_bytes()[..known]
            {
                self.lose();
            } else if end.is_some() {
                bytes = &bytes[1..];
                if !self.header() {
                    self.lose();
                }
            }
        }
    }
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|b| *b == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, SandboxPath};

    fn files(n: usize) -> Vec<FileDownload> {
        (0..n)
            .map(|i| FileDownload::new(SandboxPath::new(format!("/{i}")).unwrap()))
            .collect()
    }

    fn parse(text: &[u8], n: usize, chunk: usize) -> Vec<Result<Bytes>> {
        let batch = files(n);
        let mut frames = Frames::new("T".into(), &batch);
        for part in text.chunks(chunk) {
            frames.put(Stream::Stdout, Bytes::copy_from_slice(part));
        }
        if !frames.complete {
            frames.lose();
        }
        frames.done
    }

    #[test]
    fn frames_are_read_however_they_are_cut() {
        let text = b"T f 3\0a\0bT e sh: cannot open /1: No such file\0T f 0\0T l 999\0T z \0";
        for chunk in 1..text.len() {
            let done = parse(text, 4, chunk);
            assert_eq!(done[0].as_ref().unwrap(), &b"a\0b"[..]);
            assert_eq!(done[1].as_ref().unwrap_err().kind(), ErrorKind::NotFound);
            assert_eq!(done[2].as_ref().unwrap(), &b""[..]);
            assert_eq!(done[3].as_ref().unwrap_err().kind(), ErrorKind::TooLarge);
            assert_eq!(done.len(), 4);
        }
    }

    #[test]
    fn a_file_that_shrank_or_grew_is_not_believed_and_neither_is_what_follows() {
        // The second says 9 bytes and has 3; the first is whole.
        let shrank = b"T f 1\0aT f 9\0bcdT f 1\0eT z \0";
        let done = parse(shrank, 3, 5);
        assert_eq!(done.len(), 1);
        let grew = b"T f 1\0aT f 1\0bcdT f 1\0eT z \0";
        assert_eq!(parse(grew, 3, 5).len(), 1);
        let swallows_the_end = b"T f 6\0aT z \0";
        assert!(parse(swallows_the_end, 1, 5).is_empty());
        assert!(parse(b"T f 999999999999\0x", 1, 5).is_empty());
        assert!(parse(&vec![b'T'; 1 << 17], 1, 1 << 12).is_empty());
    }

    #[test]
    fn records_are_bounded_in_number_and_length() {
        let mut records = Records::new(2);
        records.put(Stream::Stdout, Bytes::from_static(b"a\0"));
        records.put(Stream::Stdout, Bytes::from(vec![b'x'; 1 << 20]));
        records.put(Stream::Stdout, Bytes::from_static(b"\0c\0d\0"));
        assert_eq!(records.whole.len(), 2);
        assert_eq!(records.whole[1].len(), RECORD);
    }
}
