//! `date`.

use std::time::SystemTime;

use super::getopt;
use super::io::{Io, Run};
use super::time::{self, Civil};
use crate::vfs::Last;

const USUAL: &str = "%a %b %e %H:%M:%S %Z %Y";

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("date", 'd'),
        ("reference", 'r'),
        ("utc", 'u'),
        ("universal", 'u'),
        ("iso-8601", 'I'),
        ("rfc-3339", '3'),
        ("rfc-email", 'R'),
        ("set", 's'),
        ("file", 'f'),
    ];
    let parsed = getopt::options(io, "d:r:uI::3:Rs:f:", &long, 1).await?;
    let now = time::since_epoch(SystemTime::now());
    let mut moment = now;
    let mut format = USUAL.to_owned();
    for (option, value) in &parsed.options {
        match option {
            'd' => match parse(value, now) {
                Some(found) => moment = found,
                None => return io.fail(format!("invalid date '{value}'"), 1).await,
            },
            'r' => match io.stat(value, Last::Follow) {
                Ok(stat) => moment = time::since_epoch(stat.modified),
                Err(error) => return io.fail(format!("{value}: {}", error.strerror()), 1).await,
            },
            'R' => "%a, %d %b %Y %H:%M:%S %z".clone_into(&mut format),
            'I' | '3' => {
                let (day, rest) = if *option == 'I' {
                    ("%Y-%m-%d", "T")
                } else {
                    ("%Y-%m-%d", " ")
                };
                let time = match value.as_str() {
                    "" | "date" => "",
                    "hours" => "%H%:z",
                    "minutes" => "%H:%M%:z",
                    "seconds" => "%H:%M:%S%:z",
                    "ns" if *option == 'I' => "%H:%M:%S,%N%:z",
                    "ns" => "%H:%M:%S.%N%:z",
                    _ => return io.fail(format!("invalid argument '{value}'"), 1).await,
                };
                format = if time.is_empty() {
                    day.to_owned()
                } else {
                    format!("{day}{rest}{time}")
                };
            }
            's' => return io.fail("cannot set date: Operation not permitted", 1).await,
            'f' => return io.fail("-f is not supported here", 1).await,
            _ => {}
        }
    }
    for operand in &parsed.operands {
        match operand.strip_prefix('+') {
            Some(wanted) => wanted.clone_into(&mut format),
            None => return io.fail("cannot set date: Operation not permitted", 1).await,
        }
    }
    let text = time::format(&format, moment.0, moment.1);
    io.write(format!("{text}\n").as_bytes()).await?;
    Ok(0)
}

/// What a date string says so far.
struct Reading {
    civil: Civil,
    /// Whether the time of the day was given; a date alone is its midnight.
    timed: bool,
    dated: bool,
    nanos: u32,
    /// Seconds to add, and the zone to take off.
    shift: i64,
}

/// Reads a date as GNU does: `@N`, ISO 8601, `Jan 2 2024`, weekdays, and words
/// that move it: `now`, `yesterday`, `+3 days`, `2 weeks ago`, `next month`.
#[allow(clippy::too_many_lines, reason = "one arm a kind of word")]
pub(super) fn parse(text: &str, now: (i64, u32)) -> Option<(i64, u32)> {
    let text = text.trim().to_lowercase();
    if let Some(seconds) = text.strip_prefix('@') {
        let (whole, places) = seconds.split_once('.').unwrap_or((seconds, ""));
        let nanos = format!("{places:0<9}").get(..9)?.parse().ok()?;
        return Some((whole.parse().ok()?, nanos));
    }
    let mut reading = Reading {
        civil: Civil::new(now.0),
        timed: false,
        dated: false,
        nanos: now.1,
        shift: 0,
    };
    let spaced = text.replace(',', " ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut relative = false;
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at];
        at += 1;
        match token {
            "now" | "today" | "utc" | "gmt" | "z" | "at" | "of" | "on" => {
                reading.timed |= matches!(token, "now" | "today");
                continue;
            }
            "midnight" => {
                reading.clock(0, 0, 0);
                continue;
            }
            "noon" => {
                reading.clock(12, 0, 0);
                continue;
            }
            "yesterday" => {
                (reading.civil.day, relative) = (reading.civil.day - 1, true);
                continue;
            }
            "tomorrow" => {
                (reading.civil.day, relative) = (reading.civil.day + 1, true);
                continue;
            }
            _ => {}
        }
        if let Some((amount, unit, taken)) = amount(&tokens[at - 1..]) {
            let ago = tokens.get(at - 1 + taken) == Some(&"ago");
            reading.step(if ago { -amount } else { amount }, unit)?;
            at += taken - 1 + usize::from(ago);
            relative = true;
        } else if reading.iso(token) || reading.time_of_day(token, tokens.get(at).copied()) {
            if matches!(tokens.get(at), Some(&"am" | &"pm"))
                && token.contains(|c: char| c.is_ascii_digit())
                && !token.contains('-')
            {
                at += 1;
            }
        } else if let Some(month) = month(token) {
            reading.civil.month = month;
            reading.dated = true;
            if let Some(day) = tokens
                .get(at)
                .and_then(|t| t.parse().ok())
                .filter(|day| (1..=31).contains(day))
            {
                reading.civil.day = day;
                at += 1;
            }
            if let Some(year) = tokens
                .get(at)
                .filter(|t| t.len() == 4)
                .and_then(|t| t.parse().ok())
            {
                reading.civil.year = year;
                at += 1;
            }
        } else if let Some(day) = token.parse().ok().filter(|day| {
            (1..=31).contains(day) && tokens.get(at).is_some_and(|t| month(t).is_some())
        }) {
            reading.civil.day = day;
        } else if let Some(year) = token
            .parse()
            .ok()
            .filter(|_| token.len() == 4 && reading.dated)
        {
            reading.civil.year = year;
        } else if let Some(weekday) = weekday(token) {
            let today = time::days(reading.civil.year, reading.civil.month, reading.civil.day);
            if !reading.dated {
                reading.civil.day += (weekday - (today + 4)).rem_euclid(7);
                reading.dated = true;
            }
        } else {
            return None;
        }
    }
    if !reading.timed && (reading.dated || tokens.is_empty()) {
        reading.clock(0, 0, 0);
    } else if !reading.timed && !relative {
        reading.nanos = 0;
    }
    Some((
        reading.civil.seconds().checked_add(reading.shift)?,
        reading.nanos,
    ))
}

impl Reading {
    fn clock(&mut self, hour: i64, minute: i64, second: i64) {
        (self.civil.hour, self.civil.minute, self.civil.second) = (hour, minute, second);
        (self.timed, self.nanos) = (true, 0);
    }

    /// Moves by an amount of a unit.
    fn step(&mut self, amount: i64, unit: Unit) -> Option<()> {
        match unit {
            Unit::Seconds(seconds) => {
                self.shift = self.shift.checked_add(amount.checked_mul(seconds)?)?;
            }
            Unit::Days(days) => {
                self.civil.day = self.civil.day.checked_add(amount.checked_mul(days)?)?;
            }
            Unit::Months(months) => {
                self.civil.month = self.civil.month.checked_add(amount.checked_mul(months)?)?;
            }
        }
        (self.civil.day.abs() < 1 << 40 && self.civil.month.abs() < 1 << 30).then_some(())
    }

    /// `2024-01-02`, `20240102`, `2024/01/02`, `01/02/2024`, and with `T` the time.
    fn iso(&mut self, token: &str) -> bool {
        let (date, clock) = match token.split_once('t') {
            Some((date, clock)) if date.starts_with(|c: char| c.is_ascii_digit()) => {
                (date, Some(clock))
            }
            _ => (token, None),
        };
        let parts: Vec<i64> = match date.split(['-', '/']).map(str::parse).collect() {
            Ok(parts) => parts,
            Err(_) => return false,
        };
        let (year, month, day) = match parts[..] {
            [month, day, year] if date.contains('/') && year > 31 => (year, month, day),
            [year, month, day] => (year, month, day),
            [packed] if date.len() == 8 => (packed / 10_000, packed / 100 % 100, packed % 100),
            _ => return false,
        };
        let length = time::days(year, month + 1, 1) - time::days(year, month, 1);
        if !(1..=12).contains(&month) || !(1..=length).contains(&day) {
            return false;
        }
        (self.civil.year, self.civil.month, self.civil.day) = (year, month, day);
        self.dated = true;
        clock.is_none_or(|clock| self.time_of_day(clock, None))
    }

    /// `03:04`, `03:04:05.5`, `3pm`, and a zone: `Z`, `+02:00`.
    fn time_of_day(&mut self, token: &str, next: Option<&str>) -> bool {
        let (clock, zone) = match token.find(['+', '-', 'z']) {
            Some(0) | None => (token, None),
            Some(at) => (&token[..at], Some(&token[at..])),
        };
        let (clock, half) = match (clock.strip_suffix("am"), clock.strip_suffix("pm"), next) {
            (Some(clock), ..) => (clock, Some(0)),
            (_, Some(clock), _) => (clock, Some(12)),
            (.., Some("am")) => (clock, Some(0)),
            (.., Some("pm")) => (clock, Some(12)),
            _ => (clock, None),
        };
        if !clock.contains(':') && half.is_none() {
            return false;
        }
        let (clock, places) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
        let Ok(parts) = clock
            .split(':')
            .map(str::parse)
            .collect::<Result<Vec<i64>, _>>()
        else {
            return false;
        };
        let (hour, minute, second) = match parts[..] {
            [hour] => (hour, 0, 0),
            [hour, minute] => (hour, minute, 0),
            [hour, minute, second] => (hour, minute, second),
            _ => return false,
        };
        let hour = half.map_or(hour, |half| hour % 12 + half);
        let offset = match zone {
            None | Some("z") => Some(0),
            Some(zone) => zone_offset(zone),
        };
        let (Some(offset), true) = (
            offset,
            (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second),
        ) else {
            return false;
        };
        self.clock(hour, minute, second);
        self.nanos = format!("{places:0<9}")
            .get(..9)
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(0);
        self.shift -= offset;
        true
    }
}

fn zone_offset(zone: &str) -> Option<i64> {
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone[1..].chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = match digits.len() {
        2 => (digits.parse::<i64>().ok()?, 0),
        4 => (digits[..2].parse().ok()?, digits[2..].parse().ok()?),
        _ => return None,
    };
    Some(sign * (hours * 3600 + minutes * 60))
}

#[derive(Clone, Copy)]
enum Unit {
    Seconds(i64),
    Days(i64),
    Months(i64),
}

/// `+3 days`, `3days`, `next week`, `last month`: how many of what, in how many tokens.
fn amount(tokens: &[&str]) -> Option<(i64, Unit, usize)> {
    let first = tokens[0];
    let named = match first {
        "next" => Some(1),
        "last" => Some(-1),
        "this" => Some(0),
        _ => None,
    };
    if let Some(count) = named {
        return Some((count, unit(tokens.get(1)?)?, 2));
    }
    if let Some(unit) = unit(first) {
        return Some((1, unit, 1));
    }
    let digits = first.trim_start_matches(['+', '-']);
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let count: i64 = digits[..end].parse().ok()?;
    let count = if first.starts_with('-') {
        -count
    } else {
        count
    };
    if end < digits.len() {
        return Some((count, unit(&digits[end..])?, 1));
    }
    Some((count, unit(tokens.get(1)?)?, 2))
}

fn unit(word: &str) -> Option<Unit> {
    Some(match word.strip_suffix('s').unwrap_or(word) {
        "sec" | "second" => Unit::Seconds(1),
        "min" | "minute" => Unit::Seconds(60),
        "hour" => Unit::Seconds(3600),
        "day" => Unit::Days(1),
        "week" => Unit::Days(7),
        "fortnight" => Unit::Days(14),
        "month" => Unit::Months(1),
        "year" => Unit::Months(12),
        _ => return None,
    })
}

fn month(word: &str) -> Option<i64> {
    named(word, &time::MONTHS).map(|at| at + 1)
}

fn weekday(word: &str) -> Option<i64> {
    named(word, &time::WEEKDAYS)
}

/// The place of a name, or of its first letters, three at least.
fn named(word: &str, names: &[&str]) -> Option<i64> {
    let word = word.trim_end_matches('.');
    let at = names
        .iter()
        .position(|name| word.len() >= 3 && name.to_lowercase().starts_with(word))?;
    i64::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::super::time::DAY;
    use super::*;

    fn said(text: &str) -> Option<String> {
        // Thursday, 2024-02-29 10:20:30.
        let now = Civil {
            year: 2024,
            month: 2,
            day: 29,
            hour: 10,
            minute: 20,
            second: 30,
        }
        .seconds();
        parse(text, (now, 0)).map(|(seconds, nanos)| time::format("%F %T", seconds, nanos))
    }

    #[test]
    fn dates_are_read_as_gnu_reads_them() {
        for (text, expected) in [
            ("@86400", "1970-01-02 00:00:00"),
            ("2024-02-29 +1 day", "2024-03-01 00:00:00"),
            ("2024-01-02 03:04:05 UTC", "2024-01-02 03:04:05"),
            ("2024-01-02T03:04:05Z", "2024-01-02 03:04:05"),
            ("2024-01-02T03:04:05+02:00", "2024-01-02 01:04:05"),
            ("20240102", "2024-01-02 00:00:00"),
            ("01/02/2024", "2024-01-02 00:00:00"),
            ("Jan 2, 2024", "2024-01-02 00:00:00"),
            ("2 January 2024 3pm", "2024-01-02 15:00:00"),
            ("now", "2024-02-29 10:20:30"),
            ("yesterday", "2024-02-28 10:20:30"),
            ("tomorrow", "2024-03-01 10:20:30"),
            ("2 hours ago", "2024-02-29 08:20:30"),
            ("next month", "2024-03-29 10:20:30"),
            ("1 year ago", "2023-03-01 10:20:30"),
            ("-3 days", "2024-02-26 10:20:30"),
            ("friday", "2024-03-01 00:00:00"),
            ("12:34", "2024-02-29 12:34:00"),
            ("", "2024-02-29 00:00:00"),
        ] {
            assert_eq!(said(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["gibberish", "2024-13-01", "2024-02-30", "25:00", "next"] {
            assert_eq!(said(text), None, "{text}");
        }
    }

    #[test]
    fn a_day_is_a_day() {
        assert_eq!(parse("1970-01-02", (0, 0)), Some((DAY, 0)));
    }
}
