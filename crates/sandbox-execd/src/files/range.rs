//! The `Range` header.

/// What part of a file is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// From a byte, so many.
    Part { start: u64, length: u64 },
    /// None of what was asked for lies within the file.
    Outside,
    /// Not a range.
    Bad,
}

/// The first range of `header` that lies within a file of `size` bytes.
pub(super) fn parse(header: &[u8], size: u64) -> Range {
    let Some(list) = std::str::from_utf8(header)
        .ok()
        .and_then(|it| it.strip_prefix("bytes="))
    else {
        return Range::Bad;
    };
    let mut first = Range::Outside;
    for range in list.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let Some((start, end)) = range.split_once('-') else {
            return Range::Bad;
        };
        let number = |text: &str| -> Option<u64> {
            let text = text.trim();
            text.bytes()
                .all(|it| it.is_ascii_digit())
                .then(|| text.parse().ok())?
        };
        let (start, length) = if start.trim().is_empty() {
            let Some(last) = number(end) else {
                return Range::Bad;
            };
            let length = last.min(size);
            (size - length, length)
        } else {
            let Some(start) = number(start) else {
                return Range::Bad;
            };
            let length = if end.trim().is_empty() {
                size.saturating_sub(start)
            } else {
                match number(end) {
                    Some(end) if end >= start => (end - start).saturating_add(1),
                    _ => return Range::Bad,
                }
            };
            (start, length.min(size.saturating_sub(start)))
        };
        if start < size && first == Range::Outside {
            first = Range::Part { start, length };
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let part = |start, length| Range::Part { start, length };
        for (header, range) in [
            ("bytes=0-9", part(0, 10)),
            ("bytes=10-", part(10, 6)),
            ("bytes=10-999", part(10, 6)),
            ("bytes=-4", part(12, 4)),
            ("bytes=-99", part(0, 16)),
            ("bytes=0-1,4-5", part(0, 2)),
            ("bytes=99-,4-5", part(4, 2)),
            ("bytes=100-200", Range::Outside),
            ("bytes=16-", Range::Outside),
            ("bytes=-0", Range::Outside),
            ("bytes=", Range::Outside),
            ("bytes=9-2", Range::Bad),
            ("lines=1-2", Range::Bad),
            ("bytes=a-", Range::Bad),
            ("bytes=-", Range::Bad),
            ("bytes=+1-2", Range::Bad),
            ("bytes=5", Range::Bad),
            ("bytes=0-18446744073709551615", part(0, 16)),
            ("bytes=0-99999999999999999999", Range::Bad),
        ] {
            assert_eq!(parse(header.as_bytes(), 16), range, "{header}");
        }
        assert_eq!(parse(b"bytes=0-9", 0), Range::Outside);
        assert_eq!(parse(b"bytes=\xff", 0), Range::Bad);
    }
}
