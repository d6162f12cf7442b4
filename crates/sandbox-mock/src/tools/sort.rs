//! `sort`: lines in memory, bounded.

mod compare;

use std::cmp::Ordering;

use bytes::BytesMut;

use self::compare::{Ordered, compare_by};
use super::getopt;
use super::io::{Io, Run};
use super::lines::{Lines, blanks, end_of_word};
use crate::vfs::How;

/// `-k F.C,F.C`, one-based; a `to` of 0 characters is the end of the field.
#[derive(Clone)]
struct Key {
    from: (usize, usize),
    to: Option<(usize, usize)>,
    order: Ordered,
}

#[derive(Default)]
struct Sort {
    global: Ordered,
    keys: Vec<Key>,
    separator: Option<u8>,
    unique: bool,
    stable: bool,
}

#[allow(clippy::too_many_lines, reason = "one arm an option, then one pass")]
pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("numeric-sort", 'n'),
        ("general-numeric-sort", 'g'),
        ("human-numeric-sort", 'h'),
        ("month-sort", 'M'),
        ("version-sort", 'V'),
        ("reverse", 'r'),
        ("ignore-case", 'f'),
        ("ignore-leading-blanks", 'b'),
        ("dictionary-order", 'd'),
        ("ignore-nonprinting", 'i'),
        ("unique", 'u'),
        ("stable", 's'),
        ("key", 'k'),
        ("field-separator", 't'),
        ("output", 'o'),
        ("zero-terminated", 'z'),
        ("check", 'c'),
        ("merge", 'm'),
        ("buffer-size", 'S'),
        ("temporary-directory", 'T'),
        ("parallel", 'P'),
    ];
    let parsed = getopt::options(io, "nghMVrfbdiusk:t:o:zcCmS:T:P:", &long, 2).await?;
    let mut sort = Sort::default();
    let (mut output, mut end, mut check) = (None, b'\n', None);
    for (option, value) in parsed.options {
        match option {
            'u' => sort.unique = true,
            's' => sort.stable = true,
            'k' => match key(&value) {
                Some(key) => sort.keys.push(key),
                None => {
                    return io
                        .fail(format!("invalid field specification '{value}'"), 2)
                        .await;
                }
            },
            't' => match value.as_bytes() {
                [one] => sort.separator = Some(*one),
                br"\0" => sort.separator = Some(0),
                [] => return io.fail("empty tab", 2).await,
                _ => return io.fail(format!("multi-character tab '{value}'"), 2).await,
            },
            'o' => output = Some(value),
            'z' => end = 0,
            'c' | 'C' => check = Some(option),
            letter => {
                sort.global.take(letter);
            }
        }
    }
    for key in &mut sort.keys {
        if key.order.is_plain() {
            key.order = sort.global.clone();
        }
    }
    let lines = Lines::read(io, &parsed.operands, end).await?;
    let mut order: Vec<usize> = (0..lines.len()).collect();
    if let Some(kind) = check {
        for pair in order.windows(2) {
            let compared = sort.compare(lines.get(pair[0]), lines.get(pair[1]));
            if compared == Ordering::Greater || (sort.unique && compared == Ordering::Equal) {
                if kind == 'c' {
                    let name = parsed.operands.first().map_or("-", String::as_str);
                    let line = String::from_utf8_lossy(lines.get(pair[1])).into_owned();
                    io.complain(format!("{name}:{}: disorder: {line}", pair[1] + 1))
                        .await?;
                }
                return Ok(1);
            }
        }
        return Ok(0);
    }
    // A merge of sorted pieces, so that a deadline gets a turn in between.
    sorted(&mut order, |a, b| {
        sort.compare(lines.get(*a), lines.get(*b))
    })
    .await;
    if sort.unique {
        order.dedup_by(|b, a| sort.compare_keys(lines.get(*a), lines.get(*b)) == Ordering::Equal);
    }
    match output {
        None => {
            for at in order {
                io.write(lines.get(at)).await?;
                io.write(&[end]).await?;
            }
        }
        Some(name) => {
            let mut whole = BytesMut::new();
            for at in order {
                whole.extend_from_slice(lines.get(at));
                whole.extend_from_slice(&[end]);
            }
            if let Err(error) = io.write_file(&name, whole.freeze(), How::Truncate) {
                return io
                    .fail(format!("open failed: {name}: {}", error.strerror()), 2)
                    .await;
            }
        }
    }
    Ok(0)
}

/// Sorts stably, in runs that are merged, with a turn for others after each.
async fn sorted(order: &mut Vec<usize>, compare: impl Fn(&usize, &usize) -> Ordering) {
    const RUN: usize = 4096;
    for run in order.chunks_mut(RUN) {
        run.sort_by(&compare);
        tokio::task::yield_now().await;
    }
    let mut width = RUN;
    let mut merged = Vec::with_capacity(order.len());
    while width < order.len() {
        for pair in order.chunks(width * 2) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            let (mut l, mut r) = (0, 0);
            while l < left.len() && r < right.len() {
                if compare(&left[l], &right[r]) == Ordering::Greater {
                    merged.push(right[r]);
                    r += 1;
                } else {
                    merged.push(left[l]);
                    l += 1;
                }
                if (l + r) % RUN == 0 {
                    tokio::task::yield_now().await;
                }
            }
            merged.extend_from_slice(&left[l..]);
            merged.extend_from_slice(&right[r..]);
        }
        std::mem::swap(order, &mut merged);
        merged.clear();
        width *= 2;
    }
}

/// Reads `2,2nr` or `1.2b`.
fn key(text: &str) -> Option<Key> {
    let (from, to) = match text.split_once(',') {
        Some((from, to)) => (from, Some(to)),
        None => (text, None),
    };
    let mut order = Ordered::default();
    let mut position = |text: &str| -> Option<(usize, usize)> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        if !text[digits.len()..]
            .chars()
            .all(|letter| order.take(letter))
        {
            return None;
        }
        match digits.split_once('.') {
            Some((field, column)) => Some((field.parse().ok()?, column.parse().ok()?)),
            None => Some((digits.parse().ok()?, 0)),
        }
    };
    let from = position(from)?;
    let to = match to {
        Some(to) => Some(position(to)?),
        None => None,
    };
    (from.0 > 0 && to.is_none_or(|to| to.0 > 0)).then_some(Key { from, to, order })
}

impl Sort {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let by_keys = self.compare_keys(a, b);
        if by_keys != Ordering::Equal || self.stable || self.unique {
            return by_keys;
        }
        // The last resort: all bytes of the line.
        if self.global.reverse {
            b.cmp(a)
        } else {
            a.cmp(b)
        }
    }

    fn compare_keys(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.keys.is_empty() {
            return compare_by(&self.global, a, b);
        }
        for key in &self.keys {
            let ordering = compare_by(&key.order, self.extract(key, a), self.extract(key, b));
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        Ordering::Equal
    }

    fn extract<'a>(&self, key: &Key, line: &'a [u8]) -> &'a [u8] {
        let mut from = self.field(line, key.from.0 - 1);
        if key.order.blanks {
            from += blanks(&line[from..]);
        }
        from = (from + key.from.1.saturating_sub(1)).min(line.len());
        let to = match key.to {
            None => line.len(),
            Some((field, 0)) => self.field_end(line, field - 1),
            Some((field, column)) => {
                let mut start = self.field(line, field - 1);
                if key.order.blanks {
                    start += blanks(&line[start..]);
                }
                (start + column).min(line.len())
            }
        };
        &line[from..to.max(from)]
    }

    /// Where a field begins. Without a separator its leading blanks are its own.
    fn field(&self, line: &[u8], index: usize) -> usize {
        let mut at = 0;
        for _ in 0..index {
            match self.separator {
                Some(separator) => match memchr::memchr(separator, &line[at..]) {
                    Some(found) => at += found + 1,
                    None => return line.len(),
                },
                None => at = end_of_word(line, at),
            }
        }
        at
    }

    fn field_end(&self, line: &[u8], index: usize) -> usize {
        let from = self.field(line, index);
        match self.separator {
            Some(separator) => {
                memchr::memchr(separator, &line[from..]).map_or(line.len(), |at| from + at)
            }
            None => end_of_word(line, from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_cut_as_gnu_cuts_them() {
        let sort = Sort {
            separator: Some(b','),
            ..Sort::default()
        };
        let key = key("2,2").expect("a key");
        assert_eq!(sort.extract(&key, b"a,bc,d"), b"bc");
        let words = Sort::default();
        let second = super::key("2").expect("a key");
        assert_eq!(words.extract(&second, b"a  bc d"), b"  bc d");
    }
}
