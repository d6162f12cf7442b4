//! Files by one program in the container and its stdin and stdout, with the rights of the
//! sandbox's user. The engine's archive API is not used: it acts with the daemon's rights.

use std::time::Duration;

use bytes::Bytes;
use sandbox_core::{
    Error, ErrorKind, FileDownload, FileUpload, Result, Stream, call, defaults, shell,
};

use crate::container::Container;
use crate::error;
use crate::running::Sink;

const UPLOAD: &str = include_str!("scripts/upload.sh");
const DOWNLOAD: &str = include_str!("scripts/download.sh");
const DOWNLOAD_MANY: &str = include_str!("scripts/download_many.sh");

/// What the arguments of one call may take: well below the system's limit.
const ARGUMENTS: usize = 1 << 20;

/// The least bytes a second that a transfer is expected to make.
const SLOWEST: u64 = 256 << 10;

/// The most that the `head` of `BusyBox` takes as a number.
const HEAD_LIMIT: u64 = 4_000_000_000;

/// What one record of a script may take: a path and words.
const RECORD: usize = 16 << 10;

/// How long a transfer may take.
fn limit(bytes: u64) -> Duration {
    defaults::INTERNAL_TIME + Duration::from_secs(bytes / SLOWEST)
}

/// Writes files, in one call unless their names are very many.
pub(crate) async fn upload(container: &Container, files: &[FileUpload]) -> Vec<Result<()>> {
    let mut results = Vec::with_capacity(files.len());
    while results.len() < files.len() {
        let rest = &files[results.len()..];
        let batch = &rest[..fitting(rest.iter().map(|f| f.path.as_str().len()))];
        let before = results.len();
        let failed = upload_batch(container, batch, &mut results).await.err();
        if results.len() == before {
            // Nothing was done: the same will happen again.
            let e = failed.unwrap_or_else(|| error::garbled("write files"));
            results.extend(rest.iter().map(|_| Err(copy(&e))));
        }
    }
    results
}

async fn upload_batch(
    container: &Container,
    batch: &[FileUpload],
    results: &mut Vec<Result<()>>,
) -> Result<()> {
    let args = batch
        .iter()
        .flat_map(|f| [f.path.as_str().to_owned(), f.content.len().to_string()]);
    let input: Vec<Bytes> = batch.iter().map(|f| f.content.clone()).collect();
    let bytes = input.iter().map(|b| b.len() as u64).sum();
    let mut records = Records::new(batch.len());
    let ran = container
        .script(UPLOAD, args, input, &mut records, limit(bytes))
        .await;
    results.extend(records.whole.iter().map(|words| match words.as_str() {
        "" => Ok(()),
        words => Err(refused(words, "written")),
    }));
    match ran? {
        0 | 9 => Ok(()),
        _ => Err(refused(&records.words(), "written")),
    }
}

/// Reads files, in one call unless their names are very many or one changes while it is read.
pub(crate) async fn download(container: &Container, files: &[FileDownload]) -> Vec<Result<Bytes>> {
    let mut results = Vec::with_capacity(files.len());
    while results.len() < files.len() {
        let rest = &files[results.len()..];
        if let [only] = rest {
            results.push(download_one(container, only).await);
            break;
        }
        let batch = &rest[..fitting(rest.iter().map(|f| f.path.as_str().len()))];
        let before = results.len();
        let failed = download_batch(container, batch, &mut results).await.err();
        match failed {
            Some(e) if results.len() == before => {
                results.extend(rest.iter().map(|_| Err(copy(&e))));
            }
            _ if results.len() < before + batch.len() => {
                // The next one is not what its size said: alone it needs no size.
                results.push(download_one(container, &rest[results.len() - before]).await);
            }
            _ => {}
        }
    }
    results
}

async fn download_batch(
    container: &Container,
    batch: &[FileDownload],
    results: &mut Vec<Result<Bytes>>,
) -> Result<()> {
    let token = shell::command_id();
    let args = std::iter::once(token.clone()).chain(batch.iter().flat_map(|f| {
        [
            f.path.as_str().to_owned(),
            f.limit.min(HEAD_LIMIT).to_string(),
        ]
    }));
    let mut frames = Frames::new(token, batch);
    let bytes = batch.iter().map(|f| f.limit).fold(0, u64::saturating_add);
    let ran = container
        .script(DOWNLOAD_MANY, args, Vec::new(), &mut frames, limit(bytes))
        .await;
    if !frames.complete {
        frames.lose();
    }
    results.append(&mut frames.done);
    match ran {
        Ok(0) => Ok(()),
        // It was stopped there.
        Err(_) if frames.over => Ok(()),
        Err(e) => Err(e),
        Ok(_) => Err(refused(&String::from_utf8_lossy(&frames.stderr), "read")),
    }
}

/// Reads one file: whatever comes until the end is its content.
async fn download_one(container: &Container, file: &FileDownload) -> Result<Bytes> {
    let most = file.limit.min(HEAD_LIMIT);
    let args = [file.path.as_str().to_owned(), (most + 1).to_string()];
    let mut whole = Whole {
        most: usize::try_from(most).unwrap_or(usize::MAX - 1) + 1,
        ..Whole::default()
    };
    let code = container
        .script(DOWNLOAD, args, Vec::new(), &mut whole, limit(most))
        .await;
    if whole.content.len() as u64 > most {
        return Err(call::too_large(whole.content.len() as u64, most));
    }
    if code? != 0 {
        return Err(refused(&String::from_utf8_lossy(&whole.stderr), "read"));
    }
    Ok(whole.content.into())
}

/// How many of the paths go into one call; at least one.
fn fitting(lengths: impl Iterator<Item = usize>) -> usize {
    let mut sum = 0;
    lengths
        .take_while(|length| {
            // The size and the pointers, too.
            sum += length + 40;
            sum <= ARGUMENTS
        })
        .count()
        .max(1)
}

/// A script's words about one file.
fn refused(words: &str, done: &str) -> Error {
    if words.trim() == "not a regular file" {
        return Error::new(
            ErrorKind::Unsupported,
            format!("only regular files are {done}: this is a FIFO, a socket or a device"),
        );
    }
    let kind = error::kind_of_words(words);
    Error::new(kind, format!("the file could not be {done}")).with("why", error::shorten(words))
}

/// The same error for another file of the batch.
fn copy(e: &Error) -> Error {
    Error::new(e.kind(), e.message().to_owned()).retry(e.retry_advice())
}

/// Keeps the first bytes of what a script complains about.
fn complain(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = RECORD.saturating_sub(kept.len());
    kept.extend_from_slice(&bytes[..room.min(bytes.len())]);
}

/// Records ended by NUL on stdout.
struct Records {
    whole: Vec<String>,
    most: usize,
    part: Vec<u8>,
    stderr: Vec<u8>,
}

impl Records {
    fn new(most: usize) -> Self {
        Self {
            whole: Vec::new(),
            most,
            part: Vec::new(),
            stderr: Vec::new(),
        }
    }

    fn words(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

impl Sink for Records {
    async fn ready(&mut self) -> bool {
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
struct Whole {
    content: Vec<u8>,
    most: usize,
    stderr: Vec<u8>,
}

impl Sink for Whole {
    async fn ready(&mut self) -> bool {
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
struct Frames<'a> {
    token: String,
    batch: &'a [FileDownload],
    done: Vec<Result<Bytes>>,
    header: Vec<u8>,
    /// Of the file that is being read: its content and how much is to come.
    file: Option<(Vec<u8>, usize)>,
    over: bool,
    /// The end was seen: without it, the last content may hold what follows it.
    complete: bool,
    stderr: Vec<u8>,
}

impl<'a> Frames<'a> {
    fn new(token: String, batch: &'a [FileDownload]) -> Self {
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
    fn lose(&mut self) {
        if !std::mem::replace(&mut self.over, true)
            && matches!(self.done.last(), Some(Ok(content)) if !content.is_empty())
        {
            self.done.pop();
        }
    }
}

impl Sink for Frames<'_> {
    async fn ready(&mut self) -> bool {
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
    use sandbox_core::SandboxPath;

    use super::*;

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
