//! Reading files.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap,
    HeaderValue, LAST_MODIFIED, RANGE,
};
use hyper::{Response, StatusCode};
use rustix::fs::OFlags;

use super::failure::Failure;
use super::range::{self, Range};
use crate::clock::Instant;
use crate::daemon::{Daemon, blocking};
use crate::query::{Query, percent_encode_segment};
use crate::respond::{ApiError, Body, TEXT, empty, plain_error, whole};
use crate::stream::Feeder;

/// Bytes read at once.
const PIECE: usize = 128 * 1024;
/// The most that is answered to a question for lines.
const LARGEST_LINES: usize = 32 << 20;

/// `GET /files/download?path=`: all of a file, the part a `Range` header asks for, or some lines.
pub(crate) async fn download(
    daemon: &Arc<Daemon>,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, ApiError> {
    let asked = query
        .path()
        .ok_or_else(|| ApiError::missing_query("path"))?;
    let range = headers.get(RANGE).filter(|it| !it.is_empty()).cloned();
    let (offset, limit) = (query.text("offset"), query.text("limit"));
    let lines = !offset.is_empty() || !limit.is_empty();
    if lines && range.is_some() {
        return Err(ApiError::invalid(
            "line-based reading (offset/limit) and byte range (Range header) are mutually exclusive",
        ));
    }
    let stock = daemon.options.profile.is_stock();
    let daemon = daemon.clone();
    let path = blocking(move || {
        daemon
            .environment
            .path(&asked)
            .map_err(|why| Failure::said(why).runtime("error resolving file path: ", &asked))
    })
    .await?;
    if lines {
        let (offset, limit) = (positive("offset", &offset)?, positive("limit", &limit)?);
        return read_lines(path, offset.unwrap_or(1), limit).await;
    }
    let file = blocking(move || Source::open(&path, stock)).await?;
    Ok(
        match range.map(|it| range::parse(it.as_bytes(), file.size)) {
            Some(Range::Part { start, length }) => file.part(start, length),
            Some(Range::Bad) => file.bad_range(stock),
            Some(Range::Outside) if file.size > 0 => file.outside(),
            None | Some(Range::Outside) => file.all(),
        },
    )
}

/// A parameter that counts from 1.
fn positive(name: &str, value: &str) -> Result<Option<u64>, ApiError> {
    if value.is_empty() {
        return Ok(None);
    }
    let number = value.parse().ok().filter(|&it: &u64| it >= 1);
    number
        .map(Some)
        .ok_or_else(|| ApiError::invalid(format!("invalid query parameter '{name}': {value}")))
}

/// Opens without waiting for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or(0);
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// A file about to be sent.
struct Source {
    file: File,
    name: Vec<u8>,
    metadata: Metadata,
    /// What it says it has; whether there is less is seen when it is read.
    size: u64,
    /// It does not know its own size: what it has is sent until it ends.
    unsized_: bool,
    /// What the real daemon answers instead of its content.
    broken: Option<Broken>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// It can't be sought in.
    NoSeek,
    /// A directory, whose end is far away.
    Endless,
}

impl Source {
    fn open(path: &Path, stock: bool) -> Result<Self, ApiError> {
        let mut file = open(path).map_err(|it| Failure::io("open", path, &it).into_api())?;
        let metadata = file.metadata().map_err(|it| {
            Failure::io("stat", path, &it)
                .runtime("error getting file stat info: ", path.as_os_str())
        })?;
        let name = path
            .file_name()
            .unwrap_or(path.as_os_str())
            .as_bytes()
            .to_vec();
        let kind = metadata.file_type();
        let end = file
            .seek(SeekFrom::End(0))
            .and_then(|end| file.rewind().map(|()| end));
        let mut it = Self {
            file,
            name,
            size: metadata.len(),
            metadata,
            unsized_: false,
            broken: None,
        };
        if stock {
            match end {
                Err(_) => it.broken = Some(Broken::NoSeek),
                Ok(_) if kind.is_dir() => it.broken = Some(Broken::Endless),
                Ok(end) => it.size = end,
            }
            return Ok(it);
        }
        if kind.is_dir() {
            let error = io::Error::from(rustix::io::Errno::ISDIR);
            return Err(Failure::io("read", path, &error).into_api());
        }
        if kind.is_fifo() || kind.is_socket() {
            return Err(Failure::named("not a regular file: ", path.as_os_str()).into_api());
        }
        // The kernel's files say 0 or a page, whatever they have.
        let made_up = end.is_err() || is_made_up(&it.file);
        it.unsized_ = kind.is_file() && made_up;
        Ok(it)
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        );
        headers.insert(CONTENT_DISPOSITION, disposition(&self.name));
        headers
    }

    fn last_modified(&self) -> HeaderValue {
        let modified = Instant {
            seconds: self.metadata.mtime(),
            nanos: 0,
        };
        HeaderValue::from_str(&modified.http_date())
            .unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    fn respond(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    fn all(self) -> Response<Body> {
        let mut headers = self.headers();
        match self.broken {
            Some(Broken::NoSeek) => {
                let disposition = headers.remove(CONTENT_DISPOSITION);
                let mut response =
                    plain_error(StatusCode::INTERNAL_SERVER_ERROR, "seeker can't seek");
                if let Some(disposition) = disposition {
                    response
                        .headers_mut()
                        .insert(CONTENT_DISPOSITION, disposition);
                }
                return response;
            }
            Some(Broken::Endless) => {
                headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
                headers.insert(LAST_MODIFIED, self.last_modified());
                headers.insert(CONTENT_LENGTH, HeaderValue::from(i64::MAX));
                return Self::respond(StatusCode::OK, headers, cut(Bytes::new()));
            }
            None => {}
        }
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(LAST_MODIFIED, self.last_modified());
        let (size, exact) = if self.unsized_ {
            (u64::MAX, false)
        } else {
            (self.size, true)
        };
        if exact {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
        }
        let body = if size == 0 {
            whole(Bytes::new())
        } else {
            send(self.file, size, exact)
        };
        Self::respond(StatusCode::OK, headers, body)
    }

    fn part(mut self, start: u64, length: u64) -> Response<Body> {
        let mut headers = self.headers();
        let range = format!("bytes {start}-{}/{}", start + length - 1, self.size);
        if let Ok(range) = HeaderValue::from_str(&range) {
            headers.insert(CONTENT_RANGE, range);
        }
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        let body = match self.file.seek(SeekFrom::Start(start)) {
            Ok(_) => send(self.file, length, true),
            Err(_) => cut(Bytes::new()),
        };
        Self::respond(StatusCode::PARTIAL_CONTENT, headers, body)
    }

    fn outside(self) -> Response<Body> {
        let status = StatusCode::RANGE_NOT_SATISFIABLE;
        let mut response = plain_error(status, "invalid range: failed to overlap");
        let headers = response.headers_mut();
        headers.insert(CONTENT_DISPOSITION, disposition(&self.name));
        if let Ok(range) = HeaderValue::from_str(&format!("bytes */{}", self.size)) {
            headers.insert(CONTENT_RANGE, range);
        }
        response
    }

    fn bad_range(self, stock: bool) -> Response<Body> {
        const ANSWER: &[u8] = br#"{"code":"UNKNOWN"}"#;
        let status = StatusCode::RANGE_NOT_SATISFIABLE;
        if !stock {
            return crate::respond::with_type(status, crate::respond::JSON, ANSWER);
        }
        // The length is the file's; an answer that is longer than it is not sent at all.
        let mut headers = self.headers();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(self.size));
        let answer = if self.size >= ANSWER.len() as u64 {
            ANSWER
        } else {
            b""
        };
        Self::respond(status, headers, cut(Bytes::from_static(answer)))
    }
}

/// Whether the kernel makes the file up as it is read.
fn is_made_up(file: &File) -> bool {
    const PROC: i64 = 0x9fa0;
    const SYSFS: i64 = 0x6265_6572;
    const CGROUP: i64 = 0x0027_e0eb;
    const CGROUP2: i64 = 0x6367_7270;
    const DEBUGFS: i64 = 0x6462_6720;
    const TRACEFS: i64 = 0x7472_6163;
    rustix::fs::fstatfs(file)
        .is_ok_and(|it| [PROC, SYSFS, CGROUP, CGROUP2, DEBUGFS, TRACEFS].contains(&it.f_type))
}

/// A body that is `bytes` and then a cut connection.
fn cut(bytes: Bytes) -> Body {
    let (feeder, body) = Feeder::open(2);
    tokio::spawn(async move {
        if !bytes.is_empty() {
            feeder.send(bytes).await;
        }
        feeder.fail(io::ErrorKind::UnexpectedEof.into()).await;
    });
    body
}

/// A body with the next `length` bytes of `file`. Where there are fewer, the connection is cut if
/// they were promised.
fn send(file: File, length: u64, promised: bool) -> Body {
    let (feeder, body) = Feeder::open(2);
    tokio::spawn(async move {
        let file = Arc::new(file);
        let mut left = length;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let reading = file.clone();
            let read = tokio::task::spawn_blocking(move || {
                let mut piece = vec![0; most];
                let read = (&*reading).read(&mut piece)?;
                piece.truncate(read);
                io::Result::Ok(piece)
            });
            match read.await {
                Ok(Ok(piece)) if piece.is_empty() => break,
                Ok(Ok(piece)) => {
                    left -= piece.len() as u64;
                    if !feeder.send(piece).await {
                        return;
                    }
                }
                Ok(Err(error)) => return feeder.fail(error).await,
                Err(_) => return feeder.fail(io::ErrorKind::Other.into()).await,
            }
        }
        if promised && left > 0 {
            feeder.fail(io::ErrorKind::UnexpectedEof.into()).await;
        }
    });
    body
}

/// The header with the file's name, which no client should read: quotes in it are not escaped.
fn disposition(name: &[u8]) -> HeaderValue {
    let text = if name.is_ascii() {
        // A header has no room for line ends.
        let name: String = name
            .iter()
            .map(|&it| {
                if it.is_ascii_control() {
                    ' '
                } else {
                    char::from(it)
                }
            })
            .collect();
        format!("attachment; filename=\"{name}\"")
    } else {
        let name = percent_encode_segment(name);
        format!("attachment; filename=\"{name}\"; filename*=UTF-8''{name}")
    };
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

/// Up to `limit` lines from line `offset` on, without their ends, joined by `\n`.
async fn read_lines(
    path: PathBuf,
    offset: u64,
    limit: Option<u64>,
) -> Result<Response<Body>, ApiError> {
    let text = blocking(move || {
        let failed = |operation, error: &io::Error| Failure::io(operation, &path, error).into_api();
        let file = open(&path).map_err(|it| failed("open", &it))?;
        if !file.metadata().is_ok_and(|it| it.is_file()) {
            return Err(Failure::named("not a regular file: ", path.as_os_str()).into_api());
        }
        lines(BufReader::new(file), offset, limit).map_err(|it| failed("read", &it))
    })
    .await?;
    let mut response = empty();
    *response.body_mut() = whole(text);
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    Ok(response)
}

fn lines(mut reader: impl io::BufRead, offset: u64, limit: Option<u64>) -> io::Result<Vec<u8>> {
    let too_large = || {
        Err(io::Error::other(
            "the lines are too many or too long; ask for fewer with limit",
        ))
    };
    let mut out = Vec::new();
    let (mut number, mut taken) = (0_u64, 0_u64);
    let mut line = Vec::new();
    while limit.is_none_or(|limit| taken < limit) {
        line.clear();
        let most = LARGEST_LINES as u64 + 1;
        let wanted = number + 1 >= offset;
        let read = io::BufRead::read_until(&mut (&mut reader).take(most), b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        if line.len() > LARGEST_LINES {
            return too_large();
        }
        number += 1;
        if !wanted {
            continue;
        }
        let end = line
            .iter()
            .rposition(|it| !matches!(it, b'\n' | b'\r'))
            .map_or(0, |it| it + 1);
        if taken > 0 {
            out.push(b'\n');
        }
        if out.len() + end > LARGEST_LINES {
            return too_large();
        }
        out.extend_from_slice(&line[..end]);
        taken += 1;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_headers_are_as_recorded() {
        let of = |name: &str| disposition(name.as_bytes()).to_str().unwrap().to_owned();
        assert_eq!(of("a.txt"), "attachment; filename=\"a.txt\"");
        assert_eq!(
            of("new\nline\"q.txt"),
            "attachment; filename=\"new line\"q.txt\""
        );
        let name = "sp%20ace%20%C3%A9%20%E2%98%83.txt";
        assert_eq!(
            of("sp ace é ☃.txt"),
            format!("attachment; filename=\"{name}\"; filename*=UTF-8''{name}")
        );
        assert!(!disposition(b"\xff\x00").is_empty());
    }

    #[test]
    fn lines_are_counted_from_one() {
        let text = &b"one\r\ntwo\n\nfour"[..];
        assert_eq!(lines(text, 1, None).unwrap(), b"one\ntwo\n\nfour");
        assert_eq!(lines(text, 2, Some(2)).unwrap(), b"two\n");
        assert_eq!(lines(text, 4, Some(1)).unwrap(), b"four");
        assert_eq!(lines(text, 5, None).unwrap(), b"");
        let endless = BufReader::new(io::repeat(b'x'));
        assert!(lines(endless, 1, None).is_err());
    }
}
