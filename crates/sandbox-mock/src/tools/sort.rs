//! `sort`, `uniq` and `shuf`: lines in memory, bounded.
//!
//! Lines are kept in one buffer and referred to by their ends, a few bytes a
//! line, so that many short lines cost little more than their bytes.

use std::cmp::Ordering;

use bytes::{Bytes, BytesMut};

use super::getopt;
use super::io::{Io, Records, Run};
use crate::vfs::How;

/// How two keys compare.
#[derive(Clone, Copy, Default, PartialEq)]
enum Compare {
    #[default]
    Bytes,
    Numeric,
    General,
    Human,
    Month,
    Version,
}

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the tool"
)]
#[derive(Clone, Default)]
struct Ordered {
    compare: Compare,
    reverse: bool,
    fold: bool,
    blanks: bool,
    dictionary: bool,
}

impl Ordered {
    fn is_plain(&self) -> bool {
        self.compare == Compare::Bytes
            && !self.reverse
            && !self.fold
            && !self.blanks
            && !self.dictionary
    }

    /// Takes an ordering letter; false if it is none.
    fn take(&mut self, letter: char) -> bool {
        match letter {
            'n' => self.compare = Compare::Numeric,
            'g' => self.compare = Compare::General,
            'h' => self.compare = Compare::Human,
            'M' => self.compare = Compare::Month,
            'V' => self.compare = Compare::Version,
            'r' => self.reverse = true,
            'f' => self.fold = true,
            'b' => self.blanks = true,
            'd' => self.dictionary = true,
            'i' => {}
            _ => return false,
        }
        true
    }
}

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

/// All lines of some files.
struct Lines {
    bytes: Bytes,
    /// Where each line ends; its delimiter is not kept.
    ends: Vec<u32>,
}

impl Lines {
    async fn read(io: &mut Io, operands: &[String], end: u8) -> Run<Self> {
        let stdin = ["-".to_owned()];
        let operands = if operands.is_empty() {
            &stdin
        } else {
            operands
        };
        let mut bytes = BytesMut::new();
        let mut ends = Vec::new();
        for operand in operands {
            let mut source = match io.open(operand).await? {
                Ok(source) => source,
                Err(why) => {
                    let what = if why == "Is a directory" {
                        "read failed"
                    } else {
                        "cannot read"
                    };
                    return io.fail(format!("{what}: {operand}: {why}"), 2).await;
                }
            };
            let mut open = false;
            while let Some(chunk) = source.next().await? {
                let mut from = 0;
                let before = ends.len();
                for at in memchr::memchr_iter(end, &chunk) {
                    bytes.extend_from_slice(&chunk[from..at]);
                    ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
                    from = at + 1;
                }
                bytes.extend_from_slice(&chunk[from..]);
                open = from < chunk.len();
                // Bytes, ends, and what sorting needs of them.
                io.hold(chunk.len() + (ends.len() - before) * 20).await?;
            }
            if open {
                ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
            }
        }
        Ok(Self {
            bytes: bytes.freeze(),
            ends,
        })
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, at: usize) -> &[u8] {
        let from = if at == 0 {
            0
        } else {
            self.ends[at - 1] as usize
        };
        &self.bytes[from..self.ends[at] as usize]
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

fn blanks(text: &[u8]) -> usize {
    text.iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count()
}

fn end_of_word(line: &[u8], from: usize) -> usize {
    let start = from + blanks(&line[from..]);
    start
        + line[start..]
            .iter()
            .take_while(|b| !matches!(b, b' ' | b'\t'))
            .count()
}

fn compare_by(order: &Ordered, a: &[u8], b: &[u8]) -> Ordering {
    let ordering = match order.compare {
        Compare::Numeric => decimal(a, b),
        Compare::General => general(a)
            .partial_cmp(&general(b))
            .unwrap_or(Ordering::Equal),
        Compare::Human => {
            let (x, y) = (magnitude(a), magnitude(b));
            x.cmp(&y).then_with(|| decimal(a, b))
        }
        Compare::Month => month(a).cmp(&month(b)),
        Compare::Version => version(a, b),
        Compare::Bytes => {
            let keep = |byte: &u8| {
                !order.dictionary || byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'\t')
            };
            let fold = |byte: u8| {
                if order.fold {
                    byte.to_ascii_uppercase()
                } else {
                    byte
                }
            };
            let (a, b) = if order.blanks {
                (&a[blanks(a)..], &b[blanks(b)..])
            } else {
                (a, b)
            };
            if order.fold || order.dictionary {
                let key = |text: &[u8]| {
                    text.iter()
                        .copied()
                        .filter(keep)
                        .map(fold)
                        .collect::<Vec<u8>>()
                };
                key(a).cmp(&key(b))
            } else {
                a.cmp(b)
            }
        }
    };
    if order.reverse {
        ordering.reverse()
    } else {
        ordering
    }
}

/// The sign, whole digits and places of the number a text begins with.
fn digits(text: &[u8]) -> (bool, &[u8], &[u8]) {
    let text = &text[text.iter().take_while(|b| b.is_ascii_whitespace()).count()..];
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let whole = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let places = match text[whole..].strip_prefix(b".") {
        Some(rest) => &rest[..rest.iter().take_while(|b| b.is_ascii_digit()).count()],
        None => &[],
    };
    let zeros = text[..whole].iter().take_while(|b| **b == b'0').count();
    (negative, &text[zeros..whole], places)
}

/// Compares numbers of any length.
fn decimal(a: &[u8], b: &[u8]) -> Ordering {
    let (negative_a, whole_a, places_a) = digits(a);
    let (negative_b, whole_b, places_b) = digits(b);
    let trim = |places: &[u8]| {
        places
            .iter()
            .rposition(|d| *d != b'0')
            .map_or(0, |at| at + 1)
    };
    let (places_a, places_b) = (&places_a[..trim(places_a)], &places_b[..trim(places_b)]);
    let zero = |whole: &[u8], places: &[u8]| whole.is_empty() && places.is_empty();
    let negative_a = negative_a && !zero(whole_a, places_a);
    let negative_b = negative_b && !zero(whole_b, places_b);
    if negative_a != negative_b {
        return if negative_a {
            Ordering::Less
        } else {
            Ordering::Greater
        };
    }
    let size = whole_a
        .len()
        .cmp(&whole_b.len())
        .then_with(|| whole_a.cmp(whole_b))
        .then_with(|| places_a.cmp(places_b));
    if negative_a { size.reverse() } else { size }
}

fn general(text: &[u8]) -> f64 {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_start();
    // The longest prefix that is a number; what is none sorts first.
    let end = text
        .find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-' | 'e' | 'E'))
        .unwrap_or(text.len());
    (1..=end)
        .rev()
        .find_map(|end| text.get(..end)?.parse().ok())
        .unwrap_or(f64::NEG_INFINITY)
}

/// The order of `1K` against `1M`: the sign and the suffix.
fn magnitude(text: &[u8]) -> i32 {
    let (negative, whole, places) = digits(text);
    if whole.is_empty() && places.iter().all(|d| *d == b'0') {
        return 0;
    }
    let start = text
        .iter()
        .take_while(|b| b.is_ascii_whitespace() || **b == b'-')
        .count();
    let number = text[start..]
        .iter()
        .take_while(|b| b.is_ascii_digit() || **b == b'.')
        .count();
    let power = match text.get(start + number) {
        Some(b'k' | b'K') => 2,
        Some(b'M') => 3,
        Some(b'G') => 4,
        Some(b'T') => 5,
        Some(b'P') => 6,
        Some(b'E') => 7,
        _ => 1,
    };
    if negative { -power } else { power }
}

fn month(text: &[u8]) -> usize {
    const MONTHS: [&[u8]; 12] = [
        b"JAN", b"FEB", b"MAR", b"APR", b"MAY", b"JUN", b"JUL", b"AUG", b"SEP", b"OCT", b"NOV",
        b"DEC",
    ];
    let upper = text[blanks(text)..]
        .iter()
        .take(3)
        .map(u8::to_ascii_uppercase)
        .collect::<Vec<_>>();
    MONTHS
        .iter()
        .position(|month| *month == upper)
        .map_or(0, |at| at + 1)
}

/// Runs of digits compare as numbers.
fn version(a: &[u8], b: &[u8]) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let text = |t: &[u8]| t.iter().take_while(|b| !b.is_ascii_digit()).count();
        let (x, y) = (text(a), text(b));
        let ordering = a[..x].cmp(&b[..y]);
        if ordering != Ordering::Equal {
            return ordering;
        }
        (a, b) = (&a[x..], &b[y..]);
        if a.is_empty() || b.is_empty() {
            return a.len().cmp(&b.len());
        }
        let number = |t: &[u8]| t.iter().take_while(|b| b.is_ascii_digit()).count();
        let (x, y) = (number(a), number(b));
        let ordering = decimal(&a[..x], &b[..y]);
        if ordering != Ordering::Equal {
            return ordering;
        }
        (a, b) = (&a[x..], &b[y..]);
    }
}

/// `uniq`.
#[allow(clippy::too_many_lines, reason = "one arm an option, then one pass")]
pub(super) async fn uniq(io: &mut Io) -> Run<i32> {
    let long = [
        ("count", 'c'),
        ("repeated", 'd'),
        ("unique", 'u'),
        ("ignore-case", 'i'),
        ("skip-fields", 'f'),
        ("skip-chars", 's'),
        ("check-chars", 'w'),
        ("zero-terminated", 'z'),
        ("all-repeated", 'D'),
    ];
    let parsed = getopt::options(io, "cduif:s:w:zD", &long, 1).await?;
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    let (count, repeated, single, all) = (has('c'), has('d'), has('u'), has('D'));
    let fold = has('i');
    let end = if has('z') { 0 } else { b'\n' };
    let mut numbers = [0, 0, usize::MAX];
    for (slot, letter) in ['f', 's', 'w'].iter().enumerate() {
        if let Some((_, value)) = parsed.options.iter().find(|(option, _)| option == letter) {
            match value.parse() {
                Ok(number) => numbers[slot] = number,
                Err(_) => {
                    return io
                        .fail(format!("{value}: invalid number of bytes to skip"), 1)
                        .await;
                }
            }
        }
    }
    let [skip_fields, skip_chars, width] = numbers;
    let key = |line: &[u8]| -> Vec<u8> {
        let mut at = 0;
        for _ in 0..skip_fields {
            at = end_of_word(line, at);
        }
        let at = (at + skip_chars).min(line.len());
        let key = &line[at..at.saturating_add(width).min(line.len())];
        if fold {
            key.to_ascii_lowercase()
        } else {
            key.to_vec()
        }
    };
    let name = parsed
        .operands
        .first()
        .cloned()
        .unwrap_or_else(|| "-".to_owned());
    let source = match io.open(&name).await? {
        Ok(source) => source,
        Err(why) => return io.fail(format!("{name}: {why}"), 1).await,
    };
    let mut lines = Records::new(source, end);
    let mut output = parsed.operands.get(1).map(|_| BytesMut::new());
    let mut group: Option<(Vec<u8>, Vec<u8>, u64)> = None;
    loop {
        let mut line = lines.next(io).await?;
        if let Some(line) = &mut line
            && line.last() == Some(&end)
        {
            line.pop();
        }
        if let (Some(line), Some((_, first, seen))) = (&line, &mut group)
            && key(line) == *first
        {
            *seen += 1;
            if all {
                let (text, seen) = (line.clone(), *seen);
                if seen == 2
                    && let Some((kept, ..)) = &group
                {
                    let kept = kept.clone();
                    put(io, &mut output, &kept, end).await?;
                }
                put(io, &mut output, &text, end).await?;
            }
            continue;
        }
        if let Some((text, _, seen)) = group.take()
            && !all
            && !(repeated && seen < 2)
            && !(single && seen > 1)
        {
            let mut shown = if count {
                format!("{seen:7} ").into_bytes()
            } else {
                Vec::new()
            };
            shown.extend_from_slice(&text);
            put(io, &mut output, &shown, end).await?;
        }
        match line {
            Some(line) => group = Some((line.clone(), key(&line), 1)),
            None => break,
        }
    }
    if let (Some(whole), Some(name)) = (output, parsed.operands.get(1))
        && let Err(error) = io.write_file(name, whole.freeze(), How::Truncate)
    {
        return io.fail(format!("{name}: {}", error.strerror()), 1).await;
    }
    Ok(0)
}

async fn put(io: &mut Io, output: &mut Option<BytesMut>, line: &[u8], end: u8) -> Run {
    if let Some(whole) = output {
        io.hold(line.len() + 1).await?;
        whole.extend_from_slice(line);
        whole.extend_from_slice(&[end]);
    } else {
        io.write(line).await?;
        io.write(&[end]).await?;
    }
    Ok(())
}

/// `shuf`: of lines, of arguments, of a range as large as one likes.
pub(super) async fn shuf(io: &mut Io) -> Run<i32> {
    let long = [
        ("head-count", 'n'),
        ("input-range", 'i'),
        ("echo", 'e'),
        ("repeat", 'r'),
        ("output", 'o'),
        ("zero-terminated", 'z'),
    ];
    let parsed = getopt::options(io, "n:i:ero:z", &long, 1).await?;
    let (mut most, mut range, mut echo, mut repeat, mut end) =
        (u64::MAX, None, false, false, b'\n');
    for (option, value) in &parsed.options {
        match option {
            'n' => match value.parse() {
                Ok(count) => most = count,
                Err(_) => return io.fail(format!("invalid line count: '{value}'"), 1).await,
            },
            'i' => {
                let ends = value
                    .split_once('-')
                    .and_then(|(a, b)| Some((a.parse::<u64>().ok()?, b.parse::<u64>().ok()?)));
                match ends {
                    Some((low, high)) if low <= high => range = Some((low, high)),
                    _ => return io.fail(format!("invalid input range: '{value}'"), 1).await,
                }
            }
            'e' => echo = true,
            'r' => repeat = true,
            'z' => end = 0,
            'o' => return io.fail("use a redirection in place of -o", 1).await,
            _ => {}
        }
    }
    let lines = if echo || range.is_some() {
        None
    } else {
        Some(Lines::read(io, &parsed.operands, end).await?)
    };
    let (low, count) = match (range, &lines) {
        (Some((low, high)), _) => (low, (high - low).saturating_add(1)),
        (None, Some(lines)) => (0, lines.len() as u64),
        (None, None) => (0, parsed.operands.len() as u64),
    };
    let most = if repeat { most } else { most.min(count) };
    // What a swap has moved, of a permutation that is never written out: a pick
    // from a range costs by the numbers taken, not by the range.
    let mut moved = std::collections::HashMap::new();
    let mut picked = 0;
    while picked < most && count > 0 {
        let at = if repeat { 0 } else { picked };
        let other = at + random(io) % (count - at);
        let pick = if repeat {
            other
        } else {
            *moved.get(&other).unwrap_or(&other)
        };
        if !repeat {
            let here = *moved.get(&at).unwrap_or(&at);
            moved.insert(other, here);
            moved.remove(&at);
            if picked % 1024 == 0 {
                io.hold(1024 * 48).await?;
            }
        }
        let index = usize::try_from(pick).unwrap_or(usize::MAX);
        match &lines {
            Some(lines) => io.write(lines.get(index)).await?,
            None if echo => io.write(parsed.operands[index].as_bytes()).await?,
            None => io.write((low + pick).to_string().as_bytes()).await?,
        }
        io.write(&[end]).await?;
        picked += 1;
    }
    Ok(0)
}

fn random(io: &Io) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&io.vfs().random(8));
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value_at_any_length() {
        assert_eq!(decimal(b"10", b"9"), Ordering::Greater);
        assert_eq!(decimal(b"-2", b"1"), Ordering::Less);
        assert_eq!(decimal(b"1.5", b"1.50"), Ordering::Equal);
        assert_eq!(decimal(b"-0", b"0"), Ordering::Equal);
        assert_eq!(decimal(&[b'9'; 40], &[b'9'; 41]), Ordering::Less);
        assert_eq!(decimal(b"x", b"0"), Ordering::Equal);
    }

    #[test]
    fn versions_and_sizes() {
        assert_eq!(version(b"a-1.9", b"a-1.10"), Ordering::Less);
        assert!(magnitude(b"1M") > magnitude(b"900K"));
        assert!(magnitude(b"-1M") < magnitude(b"2"));
    }

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
