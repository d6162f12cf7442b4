//! Two clocks.

use std::time::{Duration, SystemTime};

/// Differences up to this are the way's, and the seconds' of a date.
const SMALL: Duration = Duration::from_secs(2);

/// How far the server's clock is ahead of, or behind, this one.
pub(crate) struct Skew {
    ahead: bool,
    by: Duration,
}

impl Skew {
    /// From what the server's clock said just now.
    pub(crate) fn of(server: Option<SystemTime>) -> Self {
        let now = SystemTime::now();
        let server = server.unwrap_or(now);
        let (ahead, by) = match server.duration_since(now) {
            Ok(by) => (true, by),
            Err(e) => (false, e.duration()),
        };
        let by = if by > SMALL { by } else { Duration::ZERO };
        Self { ahead, by }
    }

    pub(crate) fn to_server(&self, here: SystemTime) -> SystemTime {
        let moved = if self.ahead {
            here.checked_add(self.by)
        } else {
            here.checked_sub(self.by)
        };
        moved.unwrap_or(here)
    }

    pub(crate) fn to_here(&self, server: SystemTime) -> SystemTime {
        let moved = if self.ahead {
            server.checked_sub(self.by)
        } else {
            server.checked_add(self.by)
        };
        moved.unwrap_or(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_ahead_or_behind_is_corrected_and_a_small_difference_is_not() {
        let now = SystemTime::now();
        let hour = Duration::from_hours(1);
        for server in [now + hour, now - hour] {
            let skew = Skew::of(Some(server));
            let moved = skew.to_server(now);
            let off = moved
                .duration_since(server)
                .unwrap_or_else(|e| e.duration());
            assert!(off < Duration::from_mins(1), "{off:?}");
            assert_eq!(skew.to_here(moved), now);
        }
        let skew = Skew::of(Some(now + Duration::from_millis(900)));
        assert_eq!(skew.to_server(now), now);
        assert_eq!(Skew::of(None).to_server(now), now);
    }
}
