//! How two keys compare.

use std::cmp::Ordering;

use crate::tools::lines::blanks;

/// How two keys compare.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Compare {
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
pub(super) struct Ordered {
    pub(super) compare: Compare,
    pub(super) reverse: bool,
    pub(super) fold: bool,
    pub(super) blanks: bool,
    pub(super) dictionary: bool,
}

impl Ordered {
    pub(super) fn is_plain(&self) -> bool {
        self.compare == Compare::Bytes
            && !self.reverse
            && !self.fold
            && !self.blanks
            && !self.dictionary
    }

    /// Takes an ordering letter; false if it is none.
    pub(super) fn take(&mut self, letter: char) -> bool {
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

pub(super) fn compare_by(order: &Ordered, a: &[u8], b: &[u8]) -> Ordering {
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
}
