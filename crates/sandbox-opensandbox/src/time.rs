//! Points in time as the API writes them: RFC 3339, any number of digits, `Z` or an offset.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// Reads a point in time; one without an offset is UTC. `None` if it is none, or before 1970.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.splitn(3, '-').map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let zone = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.splitn(3, ':').map(digits);
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let in_range = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !in_range {
        return None;
    }
    digits(fraction)?;
    let nanos: String = format!("{fraction:0<9}").chars().take(9).collect();
    let since = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    let at = UNIX_EPOCH + Duration::new(since, u32::try_from(digits(&nanos)?).ok()?);
    let Some(sign) = zone.chars().next().filter(|c| "+-".contains(*c)) else {
        return Some(at);
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let offset = Duration::from_secs(digits(hours)? * 3600 + digits(minutes)? * 60);
    if sign == '+' {
        at.checked_sub(offset)
    } else {
        at.checked_add(offset)
    }
}

/// Writes a point in time as UTC, to the millisecond.
pub(crate) fn format(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = civil(since.as_secs() / DAY);
    let of_day = since.as_secs() % DAY;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
        since.subsec_millis()
    )
}

fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

/// Days from 1970 to a date of the Gregorian calendar. The year begins in March, so that a leap
/// day is its last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

/// The date so many days after 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(text: &str) -> Option<u64> {
        let since = parse(text)?.duration_since(UNIX_EPOCH).ok()?;
        Some(since.as_secs())
    }

    #[test]
    fn reads_what_servers_write() {
        for (text, at) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-29T13:17:17.034682Z", 1_795_958_237),
            ("2026-11-29T13:17:17", 1_795_958_237),
            ("2026-11-29T14:17:17+01:00", 1_795_958_237),
            ("2026-11-29T08:17:17.5-05:00", 1_795_958_237),
            ("2024-02-29T00:00:00Z", 1_709_164_800),
        ] {
            assert_eq!(seconds(text), Some(at), "{text}");
        }
        for bad in [
            "",
            "2026-11-29",
            "2026-13-01T00:00:00Z",
            "1969-01-01T00:00:00Z",
            "2026-01-01T25:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+1",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(millis in 0u64..200_000_000_000_000) {
            let at = UNIX_EPOCH + Duration::from_millis(millis);
            prop_assert_eq!(parse(&format(at)), Some(at));
        }

        #[test]
        fn nothing_panics(text in "[0-9TZ:+. -]{0,40}") {
            let _ = parse(&text);
        }
    }
}
