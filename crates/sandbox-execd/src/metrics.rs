//! What the machine is doing, as seen from inside.

use std::time::Duration;

use hyper::Response;

use crate::clock::unix_ms;
use crate::daemon::blocking;
use crate::json::Object;
use crate::respond::{ApiError, Body, event_stream, json};
use crate::stream::Feeder;

/// How long the processors are watched.
const SAMPLE: Duration = Duration::from_secs(1);

/// Jiffies since the start: those spent on work, and all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Jiffies {
    busy: u64,
    all: u64,
}

fn jiffies(stat: &str) -> Option<Jiffies> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line
        .split_ascii_whitespace()
        .map_while(|it| it.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; what follows is counted in user already.
    let all: u64 = fields.iter().take(8).sum();
    let idle = fields.get(3)? + fields.get(4).copied().unwrap_or(0);
    Some(Jiffies {
        busy: all.saturating_sub(idle),
        all,
    })
}

/// Total and used memory in MiB; the used one counts no buffers and caches.
fn memory(meminfo: &str) -> Option<(f64, f64)> {
    let kib = |name: &str| -> Option<f64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':')
            .split_ascii_whitespace()
            .next()?
            .parse()
            .ok()
    };
    let total = kib("MemTotal")?;
    let unused: f64 = ["MemFree", "Buffers", "Cached", "SReclaimable"]
        .iter()
        .map(|name| kib(name).unwrap_or(0.0))
        .sum();
    Some((total / 1024.0, (total - unused).max(0.0) / 1024.0))
}

async fn read(path: &'static str) -> Result<String, ApiError> {
    blocking(move || {
        std::fs::read_to_string(path).map_err(|error| {
            let text = crate::names::error_text(&error);
            ApiError::runtime(format!(
                "error reading runtime metrics. open {path}: {text}"
            ))
        })
    })
    .await
}

/// Watches for [`SAMPLE`] and tells.
async fn sample() -> Result<Vec<u8>, ApiError> {
    let timestamp = unix_ms();
    let odd = |path: &str| {
        ApiError::runtime(format!(
            "error reading runtime metrics. {path} is not understood"
        ))
    };
    let before = jiffies(&read("/proc/stat").await?);
    tokio::time::sleep(SAMPLE).await;
    let after = jiffies(&read("/proc/stat").await?);
    let (Some(before), Some(after)) = (before, after) else {
        return Err(odd("/proc/stat"));
    };
    let (total, used) =
        memory(&read("/proc/meminfo").await?).ok_or_else(|| odd("/proc/meminfo"))?;
    let passed = after.all.saturating_sub(before.all);
    let busy = after.busy.saturating_sub(before.busy);
    #[allow(
        clippy::cast_precision_loss,
        reason = "a share of one second's jiffies"
    )]
    let percent = if passed == 0 {
        0.0
    } else {
        100.0 * busy as f64 / passed as f64
    };
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(Object::new()
        .int("cpu_count", i64::try_from(processors).unwrap_or(1))
        .float("cpu_used_pct", percent.clamp(0.0, 100.0))
        .float("mem_total_mib", total)
        .float("mem_used_mib", used)
        .int("timestamp", timestamp)
        .finish())
}

/// `GET /metrics`.
pub(crate) async fn once() -> Result<Response<Body>, ApiError> {
    Ok(json(sample().await?))
}

/// `GET /metrics/watch`: a line every two seconds, until the client leaves.
pub(crate) fn watch() -> Response<Body> {
    let (feeder, body) = Feeder::open(1);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SAMPLE).await;
            let mut line = match sample().await {
                Ok(line) => line,
                Err(error) => Object::new().str("error", error.message).finish(),
            };
            line.push(b'\n');
            if !feeder.send(line).await {
                return;
            }
        }
    });
    event_stream(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors() {
        let stat = "intr 1\ncpu  10 1 5 80 4 0 0 0 7 0\ncpu0 1 1 1 1\n";
        assert_eq!(jiffies(stat), Some(Jiffies { busy: 16, all: 100 }));
        assert_eq!(jiffies("cpu0 1 2 3 4"), None);
        assert_eq!(jiffies("cpu 1 2"), None);
    }

    #[test]
    fn memory_in_use_is_without_caches() {
        let info = "MemTotal: 4096 kB\nMemFree: 1024 kB\nBuffers: 512 kB\nCached: 512 kB\n";
        assert_eq!(memory(info), Some((4.0, 2.0)));
        assert_eq!(memory("MemFree: 1 kB"), None);
    }
}
