//! Times as the protocol writes them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, now.
pub(crate) fn unix_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A moment as seconds and nanoseconds since 1970, as the file system counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instant {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

impl From<SystemTime> for Instant {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self {
            seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            nanos: since.subsec_nanos(),
        }
    }
}

struct Civil {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    weekday: usize,
}

impl Instant {
    /// The proleptic Gregorian calendar in UTC (Howard Hinnant's `civil_from_days`).
    fn civil(self) -> Civil {
        let days = self.seconds.div_euclid(86_400);
        let of_day = self.seconds.rem_euclid(86_400);
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096).div_euclid(365);
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * of_year + 2) / 153;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        Civil {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day: of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: of_day / 3_600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            weekday: usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0),
        }
    }

    /// RFC 3339 in UTC with as many fractional digits as needed: `2026-11-29T13:01:15.84629599Z`.
    pub(crate) fn rfc3339(self) -> String {
        let Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
            ..
        } = self.civil();
        let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
        if self.nanos > 0 {
            let digits = format!("{:09}", self.nanos);
            text.push('.');
            text.push_str(digits.trim_end_matches('0'));
        }
        text.push('Z');
        text
    }

    /// The form of HTTP headers: `Sun, 29 Nov 2026 13:04:50 GMT`.
    pub(crate) fn http_date(self) -> String {
        const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
        const MONTHS: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        let Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
            weekday,
        } = self.civil();
        let month = MONTHS[usize::try_from(month - 1).unwrap_or(0)];
        format!(
            "{}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT",
            DAYS[weekday]
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let at = Instant {
            seconds: 1_795_957_490,
            nanos: 698_366_420,
        };
        assert_eq!(at.rfc3339(), "2026-11-29T13:04:50.69836642Z");
        assert_eq!(at.http_date(), "Sun, 29 Nov 2026 13:04:50 GMT");
        let epoch = Instant {
            seconds: 0,
            nanos: 0,
        };
        assert_eq!(epoch.rfc3339(), "1970-01-01T00:00:00Z");
        assert_eq!(epoch.http_date(), "Thu, 01 Jan 1970 00:00:00 GMT");
        let leap = Instant {
            seconds: 951_782_400,
            nanos: 1,
        };
        assert_eq!(leap.rfc3339(), "2000-02-29T00:00:00.000000001Z");
        let before = Instant {
            seconds: -1,
            nanos: 0,
        };
        assert_eq!(before.rfc3339(), "1969-12-31T23:59:59Z");
    }
}
