//! A client that hides nothing: an answer is what came over the connection, broken ones too.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// What came back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Without the chunks' framing.
    pub(crate) body: Vec<u8>,
    /// Whether the body ended as its framing says.
    pub(crate) complete: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|it| it.0.eq_ignore_ascii_case(name))
            .map(|it| it.1.as_str())
    }
}

/// When to stop reading.
#[derive(Debug, Clone, Default)]
pub(crate) struct Until {
    /// After so long.
    pub(crate) time: Option<Duration>,
    /// When this was seen.
    pub(crate) seen: Option<String>,
}

/// Sends `request` over a connection of its own and reads the answer, showing each state of the
/// body to `watch`.
pub(crate) fn exchange(
    address: SocketAddr,
    request: &[u8],
    until: &Until,
    mut watch: impl FnMut(&[u8]),
) -> std::io::Result<Answer> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    stream.set_write_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(request)?;
    let limit = until.time.unwrap_or(Duration::from_mins(1));
    let mut raw = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    let is_head = request.starts_with(b"HEAD ");
    // A long answer is looked at now and then only, or reading it would take the square of its
    // length.
    let mut look_at = 0;
    loop {
        if raw.len() < look_at
            && let Ok(length @ 1..) = stream.read(&mut buffer)
        {
            raw.extend_from_slice(&buffer[..length]);
            continue;
        }
        look_at = raw.len() + raw.len() / 4;
        let answer = parse(&raw, false, is_head);
        watch(&answer.body);
        let seen = until
            .seen
            .as_ref()
            .is_some_and(|it| contains(&answer.body, it.as_bytes()));
        if answer.complete || seen {
            return Ok(answer);
        }
        if begun.elapsed() > limit {
            return if until.time.is_some() {
                Ok(answer)
            } else {
                Err(std::io::Error::new(
                    ErrorKind::TimedOut,
                    format!("no end of {answer:.200?}"),
                ))
            };
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(parse(&raw, true, is_head)),
            Ok(length) => raw.extend_from_slice(&buffer[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                return Ok(parse(&raw, true, is_head));
            }
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|it| it == part)
}

/// Reads as much of an answer as is there.
fn parse(raw: &[u8], ended: bool, is_head: bool) -> Answer {
    let mut answer = Answer::default();
    let Some(end) = raw.windows(4).position(|it| it == b"\r\n\r\n") else {
        return answer;
    };
    let head = String::from_utf8_lossy(&raw[..end]);
    let mut lines = head.split("\r\n");
    answer.status = lines
        .next()
        .and_then(|it| it.split(' ').nth(1))
        .and_then(|it| it.parse().ok())
        .unwrap_or(0);
    answer.headers = lines
        .filter_map(|it| it.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let rest = &raw[end + 4..];
    if is_head {
        answer.complete = true;
    } else if answer.header("transfer-encoding").is_some() {
        (answer.body, answer.complete) = chunks(rest);
    } else if let Some(length) = answer.header("content-length") {
        let length: usize = length.parse().unwrap_or(usize::MAX);
        answer.body = rest[..rest.len().min(length)].to_vec();
        answer.complete = rest.len() >= length;
    } else {
        answer.body = rest.to_vec();
        answer.complete = ended;
    }
    answer
}

fn chunks(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|it| it == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..end]);
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else {
            break;
        };
        rest = &rest[end + 2..];
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&rest[..rest.len().min(size)]);
        let Some(next) = rest.get(size + 2..) else {
            break;
        };
        rest = next;
    }
    (body, false)
}
