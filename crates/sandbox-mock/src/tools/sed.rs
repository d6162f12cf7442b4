//! `sed`, on bytes.
//!
//! Parsed into commands with addresses ([`parse`]), then run over the lines
//! ([`machine`]). What GNU has and agents use is here; the rest is an error that
//! names it.

mod machine;
mod parse;

use super::getopt;
use super::io::{Io, Run};
use machine::{Machine, Options};

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("quiet", 'n'),
        ("silent", 'n'),
        ("expression", 'e'),
        ("file", 'f'),
        ("in-place", 'i'),
        ("regexp-extended", 'E'),
        ("null-data", 'z'),
        ("separate", 's'),
        ("unbuffered", 'u'),
        ("posix", 'p'),
        ("follow-symlinks", 'L'),
        ("sandbox", 'S'),
        ("debug", 'D'),
    ];
    let parsed = getopt::options(io, "ne:f:i::ErzsuE", &long, 1).await?;
    let mut options = Options::default();
    let mut script: Option<String> = None;
    let mut extended = false;
    for (option, value) in parsed.options {
        let more = match option {
            'n' => {
                options.quiet = true;
                continue;
            }
            'E' | 'r' => {
                extended = true;
                continue;
            }
            'z' => {
                options.end = 0;
                continue;
            }
            's' => {
                options.separate = true;
                continue;
            }
            'i' => {
                options.in_place = Some(value);
                continue;
            }
            'e' => value,
            'f' => match io.slurp(&value).await? {
                Ok(bytes) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
                }
                Err(why) => {
                    return io
                        .fail(format!("couldn't open file {value}: {why}"), 1)
                        .await;
                }
            },
            _ => continue,
        };
        script = Some(match script {
            Some(text) => text + "\n" + &more,
            None => more,
        });
    }
    let mut operands = parsed.operands;
    let script = match script {
        Some(script) => script,
        None if operands.is_empty() => {
            let usage = "Usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...\n";
            io.report(usage).await?;
            return Ok(1);
        }
        None => operands.remove(0),
    };
    if script.starts_with("#n\n") || script == "#n" {
        options.quiet = true;
    }
    let commands = match parse::parse(&script, extended) {
        Ok(commands) => commands,
        Err(why) => return io.fail(format!("-e expression #1, {why}"), 1).await,
    };
    if operands.is_empty() {
        operands.push("-".to_owned());
    }
    Machine::new(commands, options).run(io, operands).await
}
