//! Quoting, escapes and padding as GNU tools do them.

/// Reads backslash escapes, as `printf` and `stat --printf` do.
pub(super) fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let Some(&escaped) = bytes.get(at + 1).filter(|_| bytes[at] == b'\\') else {
            out.push(bytes[at]);
            at += 1;
            continue;
        };
        at += 2;
        let (base, most) = match escaped {
            b'x' => (16, 2),
            b'0'..=b'7' => {
                at -= 1;
                (8, 3)
            }
            _ => {
                match escaped {
                    b'a' => out.push(7),
                    b'b' => out.push(8),
                    b'e' => out.push(27),
                    b'f' => out.push(12),
                    b'n' => out.push(b'\n'),
                    b'r' => out.push(b'\r'),
                    b't' => out.push(b'\t'),
                    b'v' => out.push(11),
                    b'\\' => out.push(b'\\'),
                    other => out.extend_from_slice(&[b'\\', other]),
                }
                continue;
            }
        };
        let digits = bytes[at..]
            .iter()
            .take(most)
            .take_while(|b| char::from(**b).is_digit(base))
            .count();
        let value = bytes[at..at + digits].iter().fold(0, |value, b| {
            value * base + char::from(*b).to_digit(base).unwrap_or(0)
        });
        out.push((value & 0xff).to_le_bytes()[0]);
        at += digits;
    }
    out
}

/// `'name'`, the way the shell would read it back.
pub(super) fn quote(name: &str) -> String {
    if name.contains('\'') && !name.contains(['"', '$', '`', '\\', '!']) {
        format!("\"{name}\"")
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}

/// Pads with the flags and width of a `%` directive: `-10`, `04`.
pub(super) fn pad(value: &str, flags: &str) -> String {
    let width: usize = flags
        .trim_start_matches(['-', '+', ' ', '#', '0', '\''])
        .split('.')
        .next()
        .and_then(|w| w.parse().ok())
        .unwrap_or(0);
    let width = width.min(4096);
    if flags.contains('-') {
        format!("{value:<width$}")
    } else if flags.starts_with('0') {
        format!("{value:0>width$}")
    } else {
        format!("{value:>width$}")
    }
}

/// A size for people: `1.5K`, `12M`, rounded up as GNU does.
pub(super) fn human(size: u64) -> String {
    const UNITS: [char; 6] = ['K', 'M', 'G', 'T', 'P', 'E'];
    if size < 1024 {
        return size.to_string();
    }
    let mut unit = 0;
    let mut scale: u64 = 1024;
    while unit + 1 < UNITS.len() && size.div_ceil(scale) >= 1024 {
        scale = scale.saturating_mul(1024);
        unit += 1;
    }
    let tenths = (u128::from(size) * 10).div_ceil(u128::from(scale));
    if tenths < 100 {
        format!("{}.{}{}", tenths / 10, tenths % 10, UNITS[unit])
    } else {
        format!("{}{}", size.div_ceil(scale), UNITS[unit])
    }
}

fn octal(c: char) -> String {
    format!("\\{:03o}", u32::from(c))
}

/// A name in a list, as GNU writes it where no other line may come of it: a backslash and control
/// characters escaped.
pub(super) fn escape_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '\\' => out.push_str(r"\\"),
            '\n' => out.push_str(r"\n"),
            '\r' => out.push_str(r"\r"),
            '\t' => out.push_str(r"\t"),
            '\x07' => out.push_str(r"\a"),
            '\x08' => out.push_str(r"\b"),
            '\x0b' => out.push_str(r"\v"),
            '\x0c' => out.push_str(r"\f"),
            c if c.is_ascii_control() => out.push_str(&octal(c)),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_padding_sizes() {
        assert_eq!(unescape(r"a\n\0b\x41\101\q"), b"a\n\0bAA\\q");
        assert_eq!(pad("7", "04"), "0007");
        assert_eq!(pad("7", "-3"), "7  ");
        assert_eq!(human(1023), "1023");
        assert_eq!(human(1025), "1.1K");
        assert_eq!(human(10 << 20), "10M");
        assert_eq!(quote("it's"), "\"it's\"");
        assert_eq!(escape_name("a\\b\n\u{1b}\u{e9}"), "a\\\\b\\n\\033\u{e9}");
    }
}
