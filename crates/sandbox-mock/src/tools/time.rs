//! Calendar times, in UTC: the sandbox has no other zone.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds of a day.
pub(super) const DAY: i64 = 86_400;

/// A moment on the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
}

/// Seconds and nanoseconds since 1970, also before it.
pub(super) fn since_epoch(time: SystemTime) -> (i64, u32) {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (
            i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            after.subsec_nanos(),
        ),
        Err(before) => {
            let before = before.duration();
            let seconds = -i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            match before.subsec_nanos() {
                0 => (seconds, 0),
                nanos => (seconds - 1, 1_000_000_000 - nanos),
            }
        }
    }
}

/// Days since 1970 of a date of the Gregorian calendar.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    // Months and years that begin in March, so that the leap day is the last.
    let year = year + (month - 1).div_euclid(12);
    let month = (month - 1).rem_euclid(12) + 1;
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

impl Civil {
    /// The moment `seconds` after 1970.
    pub(super) fn new(seconds: i64) -> Self {
        let days = seconds.div_euclid(DAY) + 719_468;
        let of_day = seconds.rem_euclid(DAY);
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        Self {
            year,
            month,
            day,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
        }
    }

    /// Seconds since 1970. Fields out of their range carry over.
    pub(super) fn seconds(&self) -> i64 {
        days(self.year, self.month, self.day) * DAY
            + self.hour * 3600
            + self.minute * 60
            + self.second
    }
}

/// Short names of the months.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Names of the days, from Sunday.
pub(super) const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// `strftime`, with GNU's flags `-`, `_`, `0`, `^` and a width.
pub(super) fn format(format: &str, seconds: i64, nanos: u32) -> String {
    let civil = Civil::new(seconds);
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let (mut flag, mut upper, mut width) = (None, false, 0_usize);
        let mut colons = 0;
        let letter = loop {
            match chars.next() {
                Some('-') => flag = Some('-'),
                Some('_') => flag = Some(' '),
                Some('0') if width == 0 => flag = Some('0'),
                Some('^') => upper = true,
                Some('#') => {}
                Some(':') => colons += 1,
                Some(d) if d.is_ascii_digit() => {
                    width = (width * 10 + d as usize - '0' as usize).min(1024);
                }
                other => break other,
            }
        };
        let Some(letter) = letter else {
            out.push('%');
            break;
        };
        let (value, pad, natural) = field(letter, &civil, seconds, nanos, colons, width);
        let value = if upper { value.to_uppercase() } else { value };
        let width = if letter == 'N' {
            0
        } else if width > 0 {
            width
        } else {
            natural
        };
        let pad = flag.unwrap_or(pad);
        for _ in value.chars().count()..width {
            if pad != '-' {
                out.push(pad);
            }
        }
        out.push_str(&value);
    }
    out
}

/// One directive: its text, what it is padded with, to what width.
fn field(
    letter: char,
    civil: &Civil,
    seconds: i64,
    nanos: u32,
    colons: usize,
    width: usize,
) -> (String, char, usize) {
    let today = civil.seconds().div_euclid(DAY);
    let weekday = (today + 4).rem_euclid(7);
    let day_of_year = today - days(civil.year, 1, 1);
    let name = |names: &[&str], at: i64| names[usize::try_from(at).unwrap_or(0)].to_owned();
    let short = |text: String| text[..3].to_owned();
    let hour = if civil.hour % 12 == 0 {
        12
    } else {
        civil.hour % 12
    };
    let number = |value: i64, width: usize| (value.to_string(), '0', width);
    let spaced = |value: i64| (value.to_string(), ' ', 2);
    let composed = |text: &str| (format(text, seconds, nanos), ' ', 0);
    let plain = |text: String| (text, ' ', 0);
    match letter {
        'Y' => number(civil.year, 0),
        'C' => number(civil.year.div_euclid(100), 2),
        'y' => number(civil.year.rem_euclid(100), 2),
        'm' => number(civil.month, 2),
        'd' => number(civil.day, 2),
        'e' => spaced(civil.day),
        'H' => number(civil.hour, 2),
        'I' => number(hour, 2),
        'k' => spaced(civil.hour),
        'l' => spaced(hour),
        'M' => number(civil.minute, 2),
        'S' => number(civil.second, 2),
        'N' => {
            let digits = format!("{nanos:09}");
            let kept = if width == 0 { 9 } else { width.min(9) };
            plain(digits[..kept].to_owned())
        }
        's' => number(seconds, 0),
        'j' => number(day_of_year + 1, 3),
        'u' => number(if weekday == 0 { 7 } else { weekday }, 0),
        'w' => number(weekday, 0),
        'q' => number((civil.month - 1) / 3 + 1, 0),
        'U' => number((day_of_year + 7 - weekday) / 7, 2),
        'W' => number((day_of_year + 7 - (weekday + 6) % 7) / 7, 2),
        'V' => number(iso_week(today).1, 2),
        'G' => number(iso_week(today).0, 0),
        'g' => number(iso_week(today).0.rem_euclid(100), 2),
        'a' => plain(short(name(&WEEKDAYS, weekday))),
        'A' => plain(name(&WEEKDAYS, weekday)),
        'b' | 'h' => plain(short(name(&MONTHS, civil.month - 1))),
        'B' => plain(name(&MONTHS, civil.month - 1)),
        'p' => plain(if civil.hour < 12 { "AM" } else { "PM" }.to_owned()),
        'P' => plain(if civil.hour < 12 { "am" } else { "pm" }.to_owned()),
        'D' | 'x' => composed("%m/%d/%y"),
        'F' => composed("%Y-%m-%d"),
        'T' | 'X' => composed("%H:%M:%S"),
        'R' => composed("%H:%M"),
        'r' => composed("%I:%M:%S %p"),
        'c' => composed("%a %b %e %H:%M:%S %Y"),
        'z' => plain(["+0000", "+00:00", "+00:00:00"][colons.min(2)].to_owned()),
        'Z' => plain("UTC".to_owned()),
        'n' => plain("\n".to_owned()),
        't' => plain("\t".to_owned()),
        '%' => plain("%".to_owned()),
        other => plain(format!("%{other}")),
    }
}

/// The ISO 8601 year and week of a day.
fn iso_week(day: i64) -> (i64, i64) {
    // The week belongs to the year of its Thursday.
    let thursday = day - (day + 3).rem_euclid(7) + 3;
    let year = Civil::new(thursday * DAY).year;
    (year, (thursday - days(year, 1, 1)) / 7 + 1)
}

/// `2024-01-02 03:04:05.000000000 +0000`.
pub(super) fn full(time: SystemTime) -> String {
    let (seconds, nanos) = since_epoch(time);
    format("%Y-%m-%d %H:%M:%S.%N %z", seconds, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_goes_both_ways() {
        for seconds in [
            0,
            951_782_400,
            1_709_164_800,
            -1,
            -86_401,
            253_402_300_799,
            4_102_444_800,
        ] {
            assert_eq!(Civil::new(seconds).seconds(), seconds);
        }
        assert_eq!(
            format("%F %T %a %j %V", 1_709_164_800, 0),
            "2024-02-29 00:00:00 Thu 060 09"
        );
        assert_eq!(
            format("%-d|%e|%3d|%^b|%3N|%s", 1_704_164_645, 5_000_000),
            "2| 2|002|JAN|005|1704164645"
        );
        assert_eq!(format("%G-%V %u", 1_735_603_200, 0), "2025-01 2");
    }
}
