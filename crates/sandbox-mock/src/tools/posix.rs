//! POSIX regular expressions, basic and extended with GNU's additions, in the
//! syntax of the `regex` crate. Matching is on bytes and never backtracks.
//!
//! References inside a pattern (`\(a\)\1`) are not regular; they are an error.

use std::fmt::Write as _;

use ::regex::bytes::{Regex, RegexBuilder};

/// The longest compiled expression in bytes.
const SIZE: usize = 4 << 20;

/// Compiles; the error says what is wrong with it.
pub(super) fn compile(
    pattern: &str,
    extended: bool,
    fold: bool,
    multiline: bool,
) -> Result<Regex, String> {
    let translated = rewrite(pattern, extended, multiline)?;
    RegexBuilder::new(&translated)
        .unicode(false)
        .case_insensitive(fold)
        .dot_matches_new_line(true)
        .multi_line(multiline)
        .size_limit(SIZE)
        .build()
        .map_err(|_| "Invalid preceding regular expression".to_owned())
}

/// One expression in the other syntax, for lines.
pub(super) fn translate(pattern: &str, extended: bool) -> Result<String, String> {
    rewrite(pattern, extended, false)
}

fn rewrite(pattern: &str, extended: bool, multiline: bool) -> Result<String, String> {
    let bytes = pattern.as_bytes();
    let mut out = String::new();
    let mut at = 0;
    let mut depth = 0;
    // Whether a `*` here has nothing before it to repeat.
    let mut start = true;
    while at < bytes.len() {
        let byte = bytes[at];
        at += 1;
        let was_start = std::mem::replace(&mut start, false);
        match byte {
            b'\\' => {
                let Some(&next) = bytes.get(at) else {
                    return Err("Trailing backslash".to_owned());
                };
                at += 1;
                match next {
                    b'(' | b')' | b'{' | b'}' | b'|' | b'+' | b'?' if !extended => {
                        at =
                            operator(bytes, at, next, &mut out, &mut depth, &mut start, was_start)?;
                    }
                    b'1'..=b'9' => return Err("Invalid back reference".to_owned()),
                    b'n' => out.push_str("\\n"),
                    b't' => out.push_str("\\t"),
                    b'r' => out.push_str("\\r"),
                    b'f' => out.push_str("\\f"),
                    b'v' => out.push_str("\\v"),
                    b'a' => out.push_str("\\x07"),
                    b'w' => out.push_str("[A-Za-z0-9_]"),
                    b'W' => out.push_str("[^A-Za-z0-9_]"),
                    b's' => out.push_str("[ \\t\\n\\r\\f\\v]"),
                    b'S' => out.push_str("[^ \\t\\n\\r\\f\\v]"),
                    b'b' => out.push_str("\\b"),
                    b'B' => out.push_str("\\B"),
                    b'<' => out.push_str("\\b{start}"),
                    b'>' => out.push_str("\\b{end}"),
                    b'`' => out.push_str("\\A"),
                    b'\'' => out.push_str("\\z"),
                    b'x' | b'o' | b'd' => {
                        let (base, most) = match next {
                            b'x' => (16, 2),
                            b'o' => (8, 3),
                            _ => (10, 3),
                        };
                        let digits = bytes[at..]
                            .iter()
                            .take(most)
                            .take_while(|b| char::from(**b).is_digit(base))
                            .count();
                        let value = u32::from_str_radix(&pattern[at..at + digits], base)
                            .map_err(|_| "Invalid escape".to_owned())?;
                        at += digits;
                        literal(value.to_le_bytes()[0], &mut out);
                    }
                    _ => literal(next, &mut out),
                }
            }
            b'[' => at = bracket(bytes, at, &mut out)?,
            b'.' => out.push('.'),
            b'*' if was_start => out.push_str("\\*"),
            b'*' => {
                // More of them mean no more.
                if !out.ends_with('*') || out.ends_with("\\*") {
                    out.push('*');
                }
            }
            b'^' if extended || was_start => {
                out.push_str(if multiline { "(?m:^)" } else { "^" });
                start = true;
            }
            b'$' if extended
                || at == bytes.len()
                || bytes[at..].starts_with(b"\\)")
                || bytes[at..].starts_with(b"\\|") =>
            {
                out.push_str(if multiline { "(?m:$)" } else { "$" });
            }
            b'(' | b')' | b'{' | b'|' | b'+' | b'?' if extended => {
                at = operator(bytes, at, byte, &mut out, &mut depth, &mut start, was_start)?;
            }
            128.. => {
                // A character of several bytes is repeated as one.
                let text = &pattern[at - 1..];
                let length = text.chars().next().map_or(1, char::len_utf8);
                out.push_str("(?:");
                for byte in &bytes[at - 1..at - 1 + length] {
                    literal(*byte, &mut out);
                }
                out.push(')');
                at += length - 1;
            }
            _ => literal(byte, &mut out),
        }
    }
    if depth > 0 {
        return Err("Unmatched ( or \\(".to_owned());
    }
    Ok(out)
}

/// A group, an alternative or a repetition; gives where the next begins.
fn operator(
    bytes: &[u8],
    at: usize,
    byte: u8,
    out: &mut String,
    depth: &mut usize,
    start: &mut bool,
    was_start: bool,
) -> Result<usize, String> {
    match byte {
        b'(' => {
            *depth += 1;
            if *depth > 200 {
                return Err("Regular expression too big".to_owned());
            }
            out.push('(');
            *start = true;
        }
        b')' if *depth == 0 => return Err("Unmatched ) or \\)".to_owned()),
        b')' => {
            *depth -= 1;
            out.push(')');
        }
        b'|' => {
            out.push('|');
            *start = true;
        }
        b'+' | b'?' if was_start => literal(byte, out),
        b'+' | b'?' => out.push(char::from(byte)),
        b'{' => {
            let Some(end) = memchr::memchr(b'}', &bytes[at..]) else {
                return Err("Unmatched { or \\{".to_owned());
            };
            let inner = bytes[at..at + end]
                .strip_suffix(b"\\")
                .unwrap_or(&bytes[at..at + end]);
            let text = std::str::from_utf8(inner).unwrap_or_default();
            let (low, high) = text.split_once(',').unwrap_or((text, text));
            let low = if low.is_empty() {
                Some(0)
            } else {
                low.parse::<u16>().ok()
            };
            let high_ok = high.is_empty() || high.parse::<u16>().is_ok();
            let (Some(low), true) = (low, high_ok) else {
                return Err("Invalid content of \\{\\}".to_owned());
            };
            if text.contains(',') {
                let _ = write!(out, "{{{low},{high}}}");
            } else {
                let _ = write!(out, "{{{low}}}");
            }
            return Ok(at + end + 1);
        }
        _ => literal(byte, out),
    }
    Ok(at)
}

/// A bracket expression from behind its `[`; gives where it ends.
fn bracket(bytes: &[u8], from: usize, out: &mut String) -> Result<usize, String> {
    const UNMATCHED: &str = "unterminated address regex";
    let mut at = from;
    out.push('[');
    if bytes.get(at) == Some(&b'^') {
        out.push('^');
        at += 1;
    }
    let first = at;
    loop {
        let Some(&byte) = bytes.get(at) else {
            return Err(UNMATCHED.to_owned());
        };
        match byte {
            b']' if at > first => {
                out.push(']');
                return Ok(at + 1);
            }
            b'[' if matches!(bytes.get(at + 1), Some(b':' | b'.' | b'=')) => {
                let close = [bytes[at + 1], b']'];
                let Some(end) = memchr::memmem::find(&bytes[at + 2..], &close) else {
                    return Err(UNMATCHED.to_owned());
                };
                let name = std::str::from_utf8(&bytes[at + 2..at + 2 + end]).unwrap_or_default();
                if bytes[at + 1] == b':' {
                    let _ = write!(out, "[:{name}:]");
                } else {
                    name.bytes().for_each(|byte| literal(byte, out));
                }
                at += end + 4;
            }
            b'-' if at > first && bytes.get(at + 1) != Some(&b']') => {
                out.push('-');
                at += 1;
            }
            // GNU reads these escapes in brackets too.
            b'\\' if matches!(bytes.get(at + 1), Some(b'n' | b't' | b'r' | b'f' | b'v')) => {
                out.push('\\');
                out.push(char::from(bytes[at + 1]));
                at += 2;
            }
            _ => {
                literal(byte, out);
                at += 1;
            }
        }
    }
}

fn literal(byte: u8, out: &mut String) {
    if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b' ' {
        out.push(char::from(byte));
    } else {
        let _ = write!(out, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(pattern: &str, extended: bool, text: &[u8]) -> Option<(usize, usize)> {
        let regex = compile(pattern, extended, false, false).expect(pattern);
        regex.find(text).map(|found| (found.start(), found.end()))
    }

    #[test]
    fn basic_and_extended() {
        assert_eq!(finds(r"a\(b*\)c", false, b"xabbc"), Some((1, 5)));
        assert_eq!(finds("a+", false, b"aa+"), Some((1, 3)));
        assert_eq!(finds("a+", true, b"xaa"), Some((1, 3)));
        assert_eq!(finds(r"a\{2\}", false, b"aaa"), Some((0, 2)));
        assert_eq!(finds("*a", false, b"*a"), Some((0, 2)));
        assert_eq!(finds("a^b$c", false, b"a^b$c"), Some((0, 5)));
        assert_eq!(finds("[]a]x", false, b"]x"), Some((0, 2)));
        assert_eq!(finds(r"[^[:space:]-]\+", false, b" -ab"), Some((2, 4)));
        assert_eq!(finds(r"[\n]", false, b"a\n"), Some((1, 2)));
        assert_eq!(finds(r"\<b", false, b"ab b"), Some((3, 4)));
        assert_eq!(finds("é*x", true, "ééx".as_bytes()), Some((0, 5)));
        assert_eq!(finds(r"\xff", false, b"a\xff"), Some((1, 2)));
        assert_eq!(finds(r"foo\|bar", false, b"xbar"), Some((1, 4)));
        assert!(compile(r"\(a", false, false, false).is_err());
        assert!(compile(r"\(a\)\1", false, false, false).is_err());
        assert!(compile("a)", true, false, false).is_err());
    }
}
