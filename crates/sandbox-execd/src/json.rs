//! JSON as the real daemon writes it: object keys in a fixed order, `<`, `>`, `&` and the two
//! Unicode line separators escaped, and each byte that is not UTF-8 turned into `\ufffd`.
//!
//! Its answers are a handful of small fixed shapes, so they are written directly.

use std::fmt::Write as _;

/// Appends `text` as a JSON string, quotes included.
///
/// Bytes that are not UTF-8 become `\ufffd` each; the caller that must not lose them sends them
/// beside the text.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends `text` escaped for the inside of a JSON string, without quotes.
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for chunk in text.utf8_chunks() {
        push_valid(out, chunk.valid());
        for _ in chunk.invalid() {
            out.extend_from_slice(b"\\ufffd");
        }
    }
}

fn push_valid(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            8 => b"\\b",
            12 => b"\\f",
            b'<' => b"\\u003c",
            b'>' => b"\\u003e",
            b'&' => b"\\u0026",
            0..=31 => {
                out.extend_from_slice(&bytes[start..at]);
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                start = at + 1;
                continue;
            }
            // U+2028 and U+2029 are E2 80 A8 and E2 80 A9.
            0xE2 if bytes[at..].starts_with(&[0xE2, 0x80, 0xA8]) => b"\\u2028",
            0xE2 if bytes[at..].starts_with(&[0xE2, 0x80, 0xA9]) => b"\\u2029",
            _ => continue,
        };
        out.extend_from_slice(&bytes[start..at]);
        out.extend_from_slice(escape);
        start = at + if byte == 0xE2 { 3 } else { 1 };
    }
    out.extend_from_slice(&bytes[start..]);
}

/// An object under construction. Keys are constants of this program, so they are not escaped.
#[derive(Debug, Default)]
pub(crate) struct Object {
    out: Vec<u8>,
}

impl Object {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn key(&mut self, key: &str) {
        self.out.push(if self.out.is_empty() { b'{' } else { b',' });
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    pub(crate) fn str(mut self, key: &str, value: impl AsRef<[u8]>) -> Self {
        self.key(key);
        push_string(&mut self.out, value.as_ref());
        self
    }

    pub(crate) fn int(self, key: &str, value: impl Into<i64>) -> Self {
        let text = value.into().to_string();
        self.raw(key, text.as_bytes())
    }

    pub(crate) fn float(self, key: &str, value: f64) -> Self {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = write!(text, "{value}");
        self.raw(key, text.as_bytes())
    }

    pub(crate) fn bool(self, key: &str, value: bool) -> Self {
        self.raw(key, if value { b"true" } else { b"false" })
    }

    /// A value that is JSON already.
    pub(crate) fn raw(mut self, key: &str, value: &[u8]) -> Self {
        self.key(key);
        self.out.extend_from_slice(value);
        self
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.out.is_empty() {
            self.out.push(b'{');
        }
        self.out.push(b'}');
        self.out
    }
}

/// Base64 of `bytes`, with padding.
pub(crate) fn base64(bytes: &[u8]) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, &byte| word << 8 | u32::from(byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place <= chunk.len() {
                out.push(ALPHABET[(word >> (18 - 6 * place) & 63) as usize]);
            } else {
                out.push(b'=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &[u8]) -> String {
        let mut out = Vec::new();
        push_string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_as_the_recordings_do() {
        assert_eq!(
            quoted(b"<a>&\x1b[31mred\x1b[0m\t\x08"),
            r#""\u003ca\u003e\u0026\u001b[31mred\u001b[0m\t\b""#
        );
        assert_eq!(quoted("\u{2028}u2028".as_bytes()), r#""\u2028u2028""#);
        assert_eq!(quoted("\u{2029}\u{2027}".as_bytes()), "\"\\u2029\u{2027}\"");
        assert_eq!(quoted(b"a\0b"), r#""a\u0000b""#);
        assert_eq!(quoted(b"x\xff\xfey\xc3"), r#""x\ufffd\ufffdy\ufffd""#);
        assert_eq!(quoted(b"cut \xe2\x80"), r#""cut \ufffd\ufffd""#);
    }

    #[test]
    fn what_is_written_can_be_parsed_back() {
        let every: String = ('\0'..'\u{3000}').collect();
        let back: String = serde_json::from_str(&quoted(every.as_bytes())).unwrap();
        assert_eq!(back, every);
    }

    #[test]
    fn objects_keep_their_order() {
        assert_eq!(Object::new().finish(), b"{}");
        let out = Object::new()
            .str("b", "x")
            .int("a", 1)
            .float("c", 2.0)
            .bool("d", true)
            .finish();
        assert_eq!(out, br#"{"b":"x","a":1,"c":2,"d":true}"#);
    }

    #[test]
    fn base64_of_every_length() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text.as_bytes());
        }
        assert_eq!(base64(&[0xff, 0xfe]), b"//4=");
    }
}
