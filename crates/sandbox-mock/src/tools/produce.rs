//! `yes` and `seq`: output without end, bounded.

use std::fmt::Write as _;

use super::io::{CHUNK, ENDLESS, Io, NO_MEMORY, Run};

pub(super) async fn yes(io: &mut Io) -> Run<i32> {
    let line = if io.args.is_empty() {
        "y\n".to_owned()
    } else {
        io.args.join(" ") + "\n"
    };
    let block = line.repeat(1 + 4096 / line.len()).into_bytes();
    let mut left = ENDLESS;
    while left > block.len() {
        left -= block.len();
        io.write(&block).await?;
        io.flush().await?;
    }
    io.fail(format!("write error: {NO_MEMORY}"), 1).await
}

struct Sequence {
    first: f64,
    step: f64,
    last: f64,
    precision: usize,
}

#[allow(clippy::too_many_lines, reason = "one arm an option, then one pass")]
pub(super) async fn seq(io: &mut Io) -> Run<i32> {
    let mut separator = "\n".to_owned();
    let mut equal_width = false;
    let mut format = None;
    let mut numbers = Vec::new();
    let args = io.args.clone();
    let mut args = args.iter();
    // Not getopt: `-1` is a number here.
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-w" | "--equal-width" => equal_width = true,
            "-s" | "--separator" => separator = args.next().cloned().unwrap_or_default(),
            "-f" | "--format" => format = args.next().cloned(),
            "--" => {}
            other => {
                if let Some(value) = other
                    .strip_prefix("-s")
                    .or(other.strip_prefix("--separator="))
                {
                    value.clone_into(&mut separator);
                } else if let Some(value) =
                    other.strip_prefix("-f").or(other.strip_prefix("--format="))
                {
                    format = Some(value.to_owned());
                } else {
                    numbers.push(other.to_owned());
                }
            }
        }
    }
    let Some(range) = sequence(io, &numbers).await? else {
        return Ok(1);
    };
    if range.step == 0.0 {
        return io
            .fail(
                format!(
                    "invalid Zero increment value: '{}'\nTry 'seq --help' for more information.",
                    numbers[1]
                ),
                1,
            )
            .await;
    }
    let shape = match &format {
        Some(format) => match percent(format, range.precision) {
            Some(shape) => shape,
            None => {
                return io
                    .fail(format!("format '{format}' has no usable % directive"), 1)
                    .await;
            }
        },
        None => Shape {
            precision: range.precision,
            ..Shape::default()
        },
    };
    let precision = shape.precision;
    let width = if equal_width {
        let text = |x: f64| format!("{x:.precision$}").len();
        text(range.first).max(text(range.last))
    } else {
        shape.width
    };
    let zeros = equal_width || shape.zeros;
    let mut block = String::new();
    let slack = range.step.abs() * 1e-9;
    let mut index: u64 = 0;
    loop {
        // Never summed up: rounding would add up too.
        #[allow(
            clippy::cast_precision_loss,
            reason = "beyond 2^53 GNU's long double rounds as well"
        )]
        let value = range.first + range.step * index as f64;
        let past = if range.step > 0.0 {
            value > range.last + slack
        } else {
            value < range.last - slack
        };
        if past {
            break;
        }
        if index > 0 {
            block.push_str(&separator);
        }
        block.push_str(&shape.before);
        // `seq -w` and a rounded `-0` both print like GNU's `%0*.*f`.
        let value = if value == 0.0 { 0.0 } else { value };
        let _ = if zeros {
            write!(block, "{value:0width$.precision$}")
        } else {
            write!(block, "{value:width$.precision$}")
        };
        block.push_str(&shape.after);
        index += 1;
        if block.len() >= CHUNK {
            io.write(block.as_bytes()).await?;
            io.flush().await?;
            block.clear();
        }
    }
    if index > 0 {
        block.push('\n');
    }
    io.write(block.as_bytes()).await?;
    Ok(0)
}

async fn sequence(io: &mut Io, numbers: &[String]) -> Run<Option<Sequence>> {
    let hint = format!("\nTry '{} --help' for more information.", io.name);
    let mut values = Vec::new();
    let mut precision = 0;
    for (at, text) in numbers.iter().enumerate() {
        match text.trim_start().parse::<f64>() {
            Ok(value) if !value.is_nan() => values.push(value),
            _ => {
                io.complain(format!("invalid floating point argument: '{text}'{hint}"))
                    .await?;
                return Ok(None);
            }
        }
        // The last number does not set how many places are printed.
        if at == 0 || at + 1 < numbers.len() {
            precision = precision.max(text.split_once('.').map_or(0, |(_, places)| places.len()));
        }
    }
    if values.len() == 1 {
        precision = 0;
    }
    let (first, step, last) = match values[..] {
        [last] => (1.0, 1.0, last),
        [first, last] => (first, 1.0, last),
        [first, step, last] => (first, step, last),
        [] => {
            io.complain(format!("missing operand{hint}")).await?;
            return Ok(None);
        }
        _ => {
            io.complain(format!("extra operand '{}'{hint}", numbers[3]))
                .await?;
            return Ok(None);
        }
    };
    Ok(Some(Sequence {
        first,
        step,
        last,
        precision,
    }))
}

/// How `-f` has numbers written.
#[derive(Default)]
struct Shape {
    before: String,
    zeros: bool,
    width: usize,
    precision: usize,
    after: String,
}

/// Reads `a%03.2fb`. `%g` has the places that the numbers need.
fn percent(format: &str, places: usize) -> Option<Shape> {
    let (before, rest) = format.split_once('%')?;
    let end = rest.find(['f', 'g'])?;
    let spec = &rest[..end];
    let zeros = spec.starts_with('0');
    let (width, precision) = spec.split_once('.').unwrap_or((spec, ""));
    let number = |text: &str| {
        if text.is_empty() {
            Some(0)
        } else {
            text.parse().ok()
        }
    };
    Some(Shape {
        before: before.to_owned(),
        zeros,
        width: number(width)?.min(1024),
        precision: match (precision, &rest[end..=end]) {
            ("", "f") => 6,
            ("", _) => places,
            (digits, "f") => digits.parse::<usize>().ok()?.min(64),
            _ => places,
        },
        after: rest[end + 1..].to_owned(),
    })
}
