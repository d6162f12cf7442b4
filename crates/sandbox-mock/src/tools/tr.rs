//! `tr`, on bytes, as GNU's.

use super::getopt;
use super::io::{Io, Run};

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("complement", 'c'),
        ("delete", 'd'),
        ("squeeze-repeats", 's'),
        ("truncate-set1", 't'),
    ];
    let parsed = getopt::options(io, "+cCdst", &long, 1).await?;
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    let (delete, squeeze, truncate) = (has('d'), has('s'), has('t'));
    let complement = has('c') || has('C');
    let sets = &parsed.operands;
    let hint = "\nTry 'tr --help' for more information.";
    let most = if delete && !squeeze { 1 } else { 2 };
    let least = if (delete && !squeeze) || (squeeze && !delete) {
        1
    } else {
        2
    };
    if sets.is_empty() {
        return io.fail(format!("missing operand{hint}"), 1).await;
    }
    if sets.len() < least {
        let why = if delete {
            "deleting and squeezing repeats"
        } else {
            "translating"
        };
        let message = format!(
            "missing operand after '{}'\nTwo strings must be given when {why}.{hint}",
            sets[0]
        );
        return io.fail(message, 1).await;
    }
    if sets.len() > most {
        return io
            .fail(format!("extra operand '{}'{hint}", sets[most]), 1)
            .await;
    }
    let first = match expand(&sets[0], None) {
        Ok(set) => set,
        Err(why) => return io.fail(why, 1).await,
    };
    let first = if complement {
        (0..=255).filter(|byte| !first.contains(byte)).collect()
    } else {
        first
    };
    let second = match sets.get(1).map(|set| expand(set, Some(first.len()))) {
        Some(Ok(set)) => Some(set),
        Some(Err(why)) => return io.fail(why, 1).await,
        None => None,
    };
    let translates = !delete && second.is_some();
    if translates && second.as_ref().is_some_and(Vec::is_empty) && !truncate {
        return io
            .fail("when not truncating set1, string2 must be non-empty", 1)
            .await;
    }
    let mut filter = Filter {
        map: std::array::from_fn(|at| u8::try_from(at).unwrap_or(0)),
        ..Filter::default()
    };
    if delete {
        for &byte in &first {
            filter.drop[usize::from(byte)] = true;
        }
    } else if let Some(second) = &second {
        for (at, &byte) in first.iter().enumerate() {
            match second
                .get(at)
                .or(if truncate { None } else { second.last() })
            {
                Some(&to) => filter.map[usize::from(byte)] = to,
                None => break,
            }
        }
    }
    if squeeze {
        for &byte in second.as_ref().unwrap_or(&first) {
            filter.squeeze[usize::from(byte)] = true;
        }
    }
    let Ok(mut source) = io.open("-").await? else {
        return Ok(1);
    };
    while let Some(chunk) = source.next().await? {
        let out = filter.apply(&chunk);
        io.write(&out).await?;
        io.flush().await?;
    }
    Ok(0)
}

struct Filter {
    map: [u8; 256],
    drop: [bool; 256],
    squeeze: [bool; 256],
    last: Option<u8>,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            map: [0; 256],
            drop: [false; 256],
            squeeze: [false; 256],
            last: None,
        }
    }
}

impl Filter {
    fn apply(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if self.drop[usize::from(byte)] {
                continue;
            }
            let to = self.map[usize::from(byte)];
            if self.squeeze[usize::from(to)] && self.last == Some(to) {
                continue;
            }
            self.last = Some(to);
            out.push(to);
        }
        out
    }
}

/// The bytes a set stands for. `fill` is how long the first set is, which
/// `[c*]` in the second fills up to.
fn expand(text: &str, fill: Option<usize>) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut set = Vec::new();
    let mut star = None;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at.min(text.len())..];
        if bytes[at] == b'[' {
            if let Some((class, len)) = bracketed(rest, ":]", "[:") {
                set.extend(class_bytes(class)?);
                at += len;
                continue;
            }
            if let Some((equal, len)) = bracketed(rest, "=]", "[=") {
                set.extend(equal.bytes());
                at += len;
                continue;
            }
            if let (Some(fill), Some((byte, count, len))) = (fill, repeat(bytes, at)) {
                match count {
                    Some(count) => set.extend(std::iter::repeat_n(byte, count.min(256))),
                    None => star = Some((set.len(), byte, fill)),
                }
                at += len;
                continue;
            }
        }
        let (from, next) = one(bytes, at);
        at = next;
        if bytes.get(at) == Some(&b'-') && at + 1 < bytes.len() {
            let (to, next) = one(bytes, at + 1);
            if to < from {
                let (from, to) = (char::from(from), char::from(to));
                return Err(format!(
                    "range-endpoints of '{from}-{to}' are in reverse collating sequence order"
                ));
            }
            set.extend(from..=to);
            at = next;
        } else {
            set.push(from);
        }
    }
    if let Some((at, byte, fill)) = star {
        let missing = fill.saturating_sub(set.len());
        set.splice(at..at, std::iter::repeat_n(byte, missing));
    }
    Ok(set)
}

fn bracketed<'a>(text: &'a str, close: &str, open: &str) -> Option<(&'a str, usize)> {
    let inner = text.strip_prefix(open)?;
    let end = inner.find(close)?;
    Some((&inner[..end], open.len() + end + close.len()))
}

/// `[c*n]` at `at`: the byte, the count if there is one, the length.
fn repeat(bytes: &[u8], at: usize) -> Option<(u8, Option<usize>, usize)> {
    if at + 1 >= bytes.len() {
        return None;
    }
    let (byte, next) = one(bytes, at + 1);
    let rest = bytes[next..].strip_prefix(b"*")?;
    let end = memchr::memchr(b']', rest)?;
    let digits = std::str::from_utf8(&rest[..end]).ok()?;
    let count = match digits {
        "" => None,
        _ if digits.starts_with('0') => usize::from_str_radix(digits, 8).ok().filter(|n| *n > 0),
        _ => Some(digits.parse().ok()?),
    };
    Some((byte, count, next + 1 + end + 1 - at))
}

/// One byte at `at`, escapes read, and where the next begins.
fn one(bytes: &[u8], at: usize) -> (u8, usize) {
    let Some(&escaped) = bytes.get(at + 1).filter(|_| bytes[at] == b'\\') else {
        return (bytes[at], at + 1);
    };
    let simple = match escaped {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'0'..=b'7' => {
            let mut value = 0_u32;
            let mut end = at + 1;
            while end < bytes.len() && end < at + 4 && (b'0'..=b'7').contains(&bytes[end]) {
                let next = value * 8 + u32::from(bytes[end] - b'0');
                if next > 255 {
                    break;
                }
                value = next;
                end += 1;
            }
            return (u8::try_from(value).unwrap_or(0), end);
        }
        other => other,
    };
    (simple, at + 2)
}

fn class_bytes(name: &str) -> Result<Vec<u8>, String> {
    let is: fn(&u8) -> bool = match name {
        "alpha" => u8::is_ascii_alphabetic,
        "digit" => u8::is_ascii_digit,
        "alnum" => u8::is_ascii_alphanumeric,
        "upper" => u8::is_ascii_uppercase,
        "lower" => u8::is_ascii_lowercase,
        "space" => |b| b.is_ascii_whitespace() || *b == 11,
        "blank" => |b| matches!(b, b' ' | b'\t'),
        "punct" => u8::is_ascii_punctuation,
        "cntrl" => u8::is_ascii_control,
        "print" => |b| (32..127).contains(b),
        "graph" => u8::is_ascii_graphic,
        "xdigit" => u8::is_ascii_hexdigit,
        _ => return Err(format!("invalid character class '{name}'")),
    };
    Ok((0..=255).filter(is).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_as_gnu_reads_them() {
        assert_eq!(expand("a-c", None).as_deref(), Ok(&b"abc"[..]));
        assert_eq!(
            expand(r"\n\\\060\xff", None).as_deref(),
            Ok(&b"\n\\0xff"[..])
        );
        assert_eq!(expand("[:digit:]", None).map(|s| s.len()), Ok(10));
        assert_eq!(expand("[x*3]y", Some(9)).as_deref(), Ok(&b"xxxy"[..]));
        assert_eq!(expand("a[x*]b", Some(5)).as_deref(), Ok(&b"axxxb"[..]));
        assert!(expand("z-a", None).is_err());
        assert!(expand("[:nope:]", None).is_err());
    }

    #[test]
    fn high_bytes_pass() {
        let mut filter = Filter {
            map: std::array::from_fn(|at| u8::try_from(at).unwrap_or(0)),
            ..Filter::default()
        };
        assert_eq!(filter.apply(b"\xff\x80\0"), b"\xff\x80\0");
    }
}
