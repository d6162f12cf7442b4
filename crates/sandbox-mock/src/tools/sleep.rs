//! `sleep`.

use std::time::Duration;

use super::io::{Io, Run};

/// Longer than any sandbox lives; the timer takes it.
const FOREVER: f64 = 1e9;

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let hint = format!("Try '{} --help' for more information.", io.name);
    if io.args.is_empty() {
        return io.fail(format!("missing operand\n{hint}"), 1).await;
    }
    let mut seconds = 0.0;
    for arg in io.args.clone() {
        match interval(&arg) {
            Some(some) => seconds += some,
            None => {
                return io
                    .fail(format!("invalid time interval '{arg}'\n{hint}"), 1)
                    .await;
            }
        }
    }
    tokio::time::sleep(Duration::from_secs_f64(seconds.min(FOREVER))).await;
    Ok(0)
}

/// `1.5`, `2m`, `inf`: seconds.
pub(super) fn interval(text: &str) -> Option<f64> {
    let (number, unit) = match text.as_bytes().last()? {
        b's' => (&text[..text.len() - 1], 1.0),
        b'm' => (&text[..text.len() - 1], 60.0),
        b'h' => (&text[..text.len() - 1], 3600.0),
        b'd' => (&text[..text.len() - 1], 86400.0),
        _ => (text, 1.0),
    };
    let number: f64 = number.parse().ok()?;
    (number >= 0.0).then(|| (number * unit).min(FOREVER))
}
