//! Options the way GNU tools read them: clustered letters, attached or
//! separate values, long names that may be shortened, operands in between.

use super::io::{Io, Run};

/// What stood on a command line.
pub(super) struct Parsed {
    /// Options in order, each with its value (empty for those that take none).
    pub(super) options: Vec<(char, String)>,
    /// What is left.
    pub(super) operands: Vec<String>,
}

/// Reads `args`. `short` is as for `getopt(3)`: a letter, then `:` where it
/// takes a value, `::` where it may take one; a leading `+` stops at the first
/// operand. `long` maps long names to letters of `short`.
pub(super) fn parse(args: &[String], short: &str, long: &[(&str, char)]) -> Result<Parsed, String> {
    let (in_order, short) = match short.strip_prefix('+') {
        Some(rest) => (true, rest),
        None => (false, short),
    };
    let mut parsed = Parsed {
        options: Vec::new(),
        operands: Vec::new(),
    };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            parsed.operands.extend(rest.cloned());
            break;
        }
        if let Some(name) = arg.strip_prefix("--") {
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, None),
            };
            let letter = find_long(name, long)?;
            let value = match (arity(short, letter), value) {
                (Arity::None, Some(_)) => {
                    return Err(format!("option '--{name}' doesn't allow an argument"));
                }
                (Arity::Required, None) => rest
                    .next()
                    .cloned()
                    .ok_or_else(|| format!("option '--{name}' requires an argument"))?,
                (_, value) => value.unwrap_or_default(),
            };
            parsed.options.push((letter, value));
        } else if arg.len() > 1 && arg.starts_with('-') {
            for (at, letter) in arg[1..].char_indices() {
                let attached = &arg[1 + at + letter.len_utf8()..];
                match arity(short, letter) {
                    Arity::Unknown => return Err(format!("invalid option -- '{letter}'")),
                    Arity::None => parsed.options.push((letter, String::new())),
                    Arity::Optional => {
                        parsed.options.push((letter, attached.to_owned()));
                        break;
                    }
                    Arity::Required => {
                        let value = if attached.is_empty() {
                            rest.next().cloned().ok_or_else(|| {
                                format!("option requires an argument -- '{letter}'")
                            })?
                        } else {
                            attached.to_owned()
                        };
                        parsed.options.push((letter, value));
                        break;
                    }
                }
            }
        } else {
            parsed.operands.push(arg.clone());
            if in_order {
                parsed.operands.extend(rest.cloned());
                break;
            }
        }
    }
    Ok(parsed)
}

/// [`parse`] of a tool's own arguments; a bad one ends the tool with `status`.
pub(super) async fn options(
    io: &mut Io,
    short: &str,
    long: &[(&str, char)],
    status: i32,
) -> Run<Parsed> {
    match parse(&io.args.clone(), short, long) {
        Ok(parsed) => Ok(parsed),
        Err(why) => {
            let message = format!("{why}\nTry '{} --help' for more information.", io.name);
            io.fail(message, status).await
        }
    }
}

enum Arity {
    Unknown,
    None,
    Required,
    Optional,
}

fn arity(short: &str, letter: char) -> Arity {
    if letter == ':' {
        return Arity::Unknown;
    }
    match short.find(letter) {
        None => Arity::Unknown,
        Some(at) => match &short[at + letter.len_utf8()..] {
            rest if rest.starts_with("::") => Arity::Optional,
            rest if rest.starts_with(':') => Arity::Required,
            _ => Arity::None,
        },
    }
}

fn find_long(name: &str, long: &[(&str, char)]) -> Result<char, String> {
    if let Some((_, letter)) = long.iter().find(|(known, _)| *known == name) {
        return Ok(*letter);
    }
    let mut matching: Vec<char> = long
        .iter()
        .filter(|(known, _)| known.starts_with(name))
        .map(|(_, l)| *l)
        .collect();
    matching.dedup();
    match matching[..] {
        [letter] => Ok(letter),
        [] => Err(format!("unrecognized option '--{name}'")),
        _ => Err(format!("option '--{name}' is ambiguous")),
    }
}

/// A count with a GNU suffix: `b` 512, `k`/`K` 1024, `KB` 1000, `M`, `G`.
pub(super) fn size(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().ok()?;
    let factor: u64 = match &text[digits..] {
        "" | "c" => 1,
        "b" => 512,
        "k" | "K" | "KiB" => 1 << 10,
        "kB" | "KB" => 1000,
        "m" | "M" | "MiB" => 1 << 20,
        "MB" => 1_000_000,
        "G" | "GiB" => 1 << 30,
        "GB" => 1_000_000_000,
        "T" | "TiB" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(factor)
}
