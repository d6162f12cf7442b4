//! Forms in `multipart/form-data`, taken apart as they arrive.

use memchr::memmem;

/// The largest head of a part.
const HEAD_LIMIT: usize = 16 * 1024;
/// How many parts a form may have: the limit of the real daemon's library.
const PART_LIMIT: usize = 1000;

/// What comes next in a form.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A part begins.
    Part {
        name: String,
        /// Whether it has a file name; what it is doesn't matter.
        is_file: bool,
    },
    /// Bytes of the part that began last.
    Data(Vec<u8>),
    /// The form has ended; what follows is ignored.
    End,
}

/// The form is not one, or is cut short.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

#[derive(Debug, PartialEq, Eq)]
enum State {
    Preamble,
    Head,
    Data,
    End,
}

/// Takes a form apart. Keeps no more than one head of a part, or a little more than one boundary,
/// of what it was fed beyond the last event it gave.
#[derive(Debug)]
pub(super) struct Parser {
    /// What separates the parts, with the line end before it.
    delimiter: Vec<u8>,
    buffer: Vec<u8>,
    state: State,
    /// Whether nothing of the current part was seen, so that its boundary may follow directly.
    at_start: bool,
    parts: usize,
}

impl Parser {
    /// For a form of this content type.
    ///
    /// # Errors
    ///
    /// When it is no form's.
    pub(super) fn new(content_type: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(content_type).map_err(|_| Malformed)?;
        let (kind, parameters) = text.split_once(';').ok_or(Malformed)?;
        let kind = kind.trim().to_ascii_lowercase();
        if kind != "multipart/form-data" && kind != "multipart/mixed" {
            return Err(Malformed);
        }
        let boundary = parameter(parameters, "boundary").ok_or(Malformed)?;
        if boundary.is_empty() || boundary.len() > 200 {
            return Err(Malformed);
        }
        Ok(Self {
            delimiter: format!("\r\n--{boundary}").into_bytes(),
            // The first boundary may be the very first thing.
            buffer: b"\r\n".to_vec(),
            state: State::Preamble,
            at_start: false,
            parts: 0,
        })
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.state != State::End {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// What comes next; `None` when more must be fed first.
    ///
    /// # Errors
    ///
    /// When what was fed can't be the beginning of a form.
    pub(super) fn next(&mut self) -> Result<Option<Event>, Malformed> {
        loop {
            match self.state {
                State::End => return Ok(None),
                State::Head => return self.head(),
                State::Preamble | State::Data => {}
            }
            let in_data = self.state == State::Data;
            let short = &self.delimiter[2..];
            let (found, length) = if in_data && self.at_start && self.buffer.starts_with(short) {
                (Some(0), short.len())
            } else {
                (
                    memmem::find(&self.buffer, &self.delimiter),
                    self.delimiter.len(),
                )
            };
            let Some(at) = found else {
                // All but what may be the beginning of a delimiter.
                let safe = self.buffer.len().saturating_sub(self.delimiter.len() - 1);
                return Ok(self.take(safe, in_data));
            };
            if at > 0 && in_data {
                return Ok(self.take(at, true));
            }
            self.buffer.drain(..at);
            match Tail::of(&self.buffer[length..]) {
                Tail::Incomplete => return Ok(None),
                Tail::Last => {
                    self.state = State::End;
                    self.buffer = Vec::new();
                    return Ok(Some(Event::End));
                }
                Tail::Next(more) => {
                    self.buffer.drain(..length + more);
                    self.state = State::Head;
                }
                Tail::None => {
                    // It only looked like a delimiter: its first byte, at least, is content.
                    if let Some(event) = self.take(1, in_data) {
                        return Ok(Some(event));
                    }
                }
            }
        }
    }

    fn take(&mut self, length: usize, give: bool) -> Option<Event> {
        if length == 0 {
            return None;
        }
        self.at_start = false;
        let bytes: Vec<u8> = self.buffer.drain(..length).collect();
        give.then_some(Event::Data(bytes))
    }

    fn head(&mut self) -> Result<Option<Event>, Malformed> {
        let (head, length) = if self.buffer.starts_with(b"\r\n") {
            (0, 2)
        } else {
            match memmem::find(&self.buffer, b"\r\n\r\n") {
                Some(at) => (at, at + 4),
                None if self.buffer.len() > HEAD_LIMIT => return Err(Malformed),
                None => return Ok(None),
            }
        };
        if head > HEAD_LIMIT {
            return Err(Malformed);
        }
        let text = String::from_utf8_lossy(&self.buffer[..head]).into_owned();
        self.buffer.drain(..length);
        self.state = State::Data;
        self.at_start = true;
        self.parts += 1;
        if self.parts > PART_LIMIT {
            return Err(Malformed);
        }
        let disposition = text
            .split("\r\n")
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("content-disposition"))
            .map(|(_, value)| value.trim())
            .and_then(|value| value.split_once(';'))
            .filter(|(kind, _)| kind.trim().eq_ignore_ascii_case("form-data"))
            .map_or("", |it| it.1);
        let name = parameter(disposition, "name").unwrap_or_default();
        let file =
            parameter(disposition, "filename").or_else(|| parameter(disposition, "filename*"));
        Ok(Some(Event::Part {
            name,
            is_file: file.is_some_and(|it| !it.is_empty()),
        }))
    }
}

/// What follows a delimiter.
enum Tail {
    Incomplete,
    Last,
    /// Another part, after so many bytes.
    Next(usize),
    None,
}

impl Tail {
    fn of(bytes: &[u8]) -> Self {
        if bytes.starts_with(b"--") {
            return Self::Last;
        }
        let padding = bytes
            .iter()
            .take_while(|it| matches!(it, b' ' | b'\t'))
            .count();
        match &bytes[padding..] {
            [b'\r', b'\n', ..] => Self::Next(padding + 2),
            [] | [b'\r'] if padding < 128 => Self::Incomplete,
            [b'-'] if padding == 0 => Self::Incomplete,
            _ => Self::None,
        }
    }
}

/// The value of a header's parameter, its quotes taken off.
fn parameter(text: &str, name: &str) -> Option<String> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let (value, after) = if let Some(quoted) = after.strip_prefix('"') {
            let mut value = String::new();
            let mut signs = quoted.char_indices();
            let end = loop {
                match signs.next()? {
                    (_, '\\') => value.push(signs.next()?.1),
                    (at, '"') => break at + 1,
                    (_, other) => value.push(other),
                }
            };
            (value, &quoted[end..])
        } else {
            let end = after.find(';').unwrap_or(after.len());
            (after[..end].trim().to_owned(), &after[end..])
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a form fed in chunks of `size`: name, whether a file, content.
    fn parts(form: &[u8], size: usize) -> Result<Vec<(String, bool, Vec<u8>)>, Malformed> {
        let mut parser = Parser::new(b"multipart/form-data; boundary=X")?;
        let mut out: Vec<(String, bool, Vec<u8>)> = Vec::new();
        let mut ended = false;
        for chunk in form.chunks(size) {
            parser.feed(chunk);
            while let Some(event) = parser.next()? {
                match event {
                    Event::Part { name, is_file } => out.push((name, is_file, Vec::new())),
                    Event::Data(data) => out.last_mut().unwrap().2.extend(data),
                    Event::End => ended = true,
                }
            }
            assert!(parser.buffer.len() <= size + HEAD_LIMIT);
        }
        if ended { Ok(out) } else { Err(Malformed) }
    }

    #[test]
    fn parts_come_out_however_they_arrive() {
        let form = b"preamble\r\n--X\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"m\"\r\n\
            Content-Type: application/json\r\n\r\n{}\r\n--X  \r\ncontent-disposition: form-data; name=file; \
            filename=\"a;\\\"b\"\r\n\r\nline\r\n--Xtra\r\n-- \r\n\r\n--X\r\nContent-Disposition: form-data; \
            name=\"value\"\r\n\r\n--X--\r\nepilogue";
        let expected = vec![
            ("metadata".to_owned(), true, b"{}".to_vec()),
            (
                "file".to_owned(),
                true,
                b"line\r\n--Xtra\r\n-- \r\n".to_vec(),
            ),
            ("value".to_owned(), false, Vec::new()),
        ];
        for size in 1..form.len() {
            assert_eq!(parts(form, size).unwrap(), expected, "{size}");
        }
    }

    #[test]
    fn empty_parts_and_parts_without_a_head() {
        let form = b"--X\r\nContent-Disposition: form-data; name=\"a\"; filename=\"\"\r\n\r\n\r\n--X\r\n\r\nx\r\n--X--";
        let expected = vec![
            ("a".to_owned(), false, vec![]),
            (String::new(), false, b"x".to_vec()),
        ];
        assert_eq!(parts(form, 1000).unwrap(), expected);
        assert_eq!(parts(form, 1).unwrap(), expected);
    }

    #[test]
    fn what_is_no_form_is_refused() {
        for kind in [
            "",
            "application/json",
            "multipart/form-data",
            "multipart/form-data; boundary=",
        ] {
            assert!(Parser::new(kind.as_bytes()).is_err(), "{kind}");
        }
        assert!(parts(b"", 10).is_err());
        assert!(parts(b"no boundary at all", 3).is_err());
        assert!(
            parts(
                b"--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\ncut",
                10
            )
            .is_err()
        );
        let endless_head = [b"--X\r\n".to_vec(), vec![b'a'; HEAD_LIMIT * 2]].concat();
        assert!(parts(&endless_head, 1000).is_err());
    }

    #[test]
    fn a_thousand_parts_and_no_more() {
        let form = |count: usize| {
            let mut form = b"--X\r\n\r\nx\r\n".repeat(count);
            form.extend_from_slice(b"--X--");
            parts(&form, 4096)
        };
        assert_eq!(form(1000).unwrap().len(), 1000);
        assert!(form(1001).is_err());
    }

    #[test]
    fn parameters() {
        assert_eq!(parameter("; a=1; b=\"x;y\\\"\"", "b").unwrap(), "x;y\"");
        assert_eq!(parameter(" BOUNDARY = q ", "boundary").unwrap(), "q");
        assert_eq!(parameter("a=\"open", "a"), None);
        assert_eq!(parameter("a", "a"), None);
    }
}
