//! Programs that run other programs: `xargs`, `timeout`, `setsid`, `stdbuf`,
//! `nohup`.
//!
//! The engine runs what they plan. A plan can only name commands, so where a
//! status has to be told apart the plan is a line for `sh` in which every word
//! that came from outside is quoted.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionPlan, SubCommand, async_trait};

use super::getopt;
use super::io::absolute;
use super::sleep::interval;
use crate::vfs::View;

/// What a command line asks for: commands to run, or words and a status.
enum Wish {
    Plan(ExecutionPlan),
    Say(ExecResult),
}

fn complaint(name: &str, message: &str, status: i32) -> Wish {
    Wish::Say(ExecResult::err(format!("{name}: {message}\n"), status))
}

fn usage(name: &str, message: &str, status: i32) -> Wish {
    complaint(
        name,
        &format!("{message}\nTry '{name} --help' for more information."),
        status,
    )
}

fn command(name: &str, args: &[String], ctx: &BuiltinContext<'_>) -> SubCommand {
    SubCommand {
        name: name.to_owned(),
        args: args.to_vec(),
        stdin: ctx.stdin.cloned(),
        assignments: Vec::new(),
    }
}

/// One of the programs.
pub(super) struct Runner {
    pub(super) kind: Kind,
    pub(super) view: Arc<View>,
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Xargs,
    Timeout,
    Setsid,
    Stdbuf,
    Nohup,
}

/// The names of the programs here.
pub(super) const RUNNERS: &[(&str, Kind)] = &[
    ("nohup", Kind::Nohup),
    ("setsid", Kind::Setsid),
    ("stdbuf", Kind::Stdbuf),
    ("timeout", Kind::Timeout),
    ("xargs", Kind::Xargs),
];

impl Runner {
    fn wish(&self, ctx: &BuiltinContext<'_>) -> Wish {
        match self.kind {
            Kind::Xargs => xargs(ctx, &self.view),
            Kind::Timeout => timeout(ctx),
            Kind::Setsid => prefix("setsid", "+cfwV", ctx, 1),
            Kind::Stdbuf => prefix("stdbuf", "+i:o:e:", ctx, 125),
            Kind::Nohup => prefix("nohup", "+", ctx, 125),
        }
    }
}

#[async_trait]
impl Builtin for Runner {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(match self.wish(&ctx) {
            Wish::Say(result) => result,
            Wish::Plan(_) => ExecResult::default(),
        })
    }

    async fn execution_plan(
        &self,
        ctx: &BuiltinContext<'_>,
    ) -> bashkit::Result<Option<ExecutionPlan>> {
        Ok(match self.wish(ctx) {
            Wish::Plan(plan) => Some(plan),
            Wish::Say(_) => None,
        })
    }
}

/// A program that changes how another runs in ways that make no difference here:
/// there are no terminals, sessions or hangups, and output is never held back.
fn prefix(name: &str, short: &str, ctx: &BuiltinContext<'_>, status: i32) -> Wish {
    let long = [
        ("input", 'i'),
        ("output", 'o'),
        ("error", 'e'),
        ("wait", 'w'),
        ("fork", 'f'),
        ("ctty", 'c'),
    ];
    match getopt::parse(ctx.args, short, &long) {
        Err(why) => usage(name, &why, status),
        Ok(parsed) => match parsed.operands.split_first() {
            None => usage(name, "missing operand", status),
            Some((program, args)) => {
                let commands = vec![command(program, args, ctx)];
                Wish::Plan(ExecutionPlan::Batch { commands })
            }
        },
    }
}

fn timeout(ctx: &BuiltinContext<'_>) -> Wish {
    let long = [
        ("signal", 's'),
        ("kill-after", 'k'),
        ("preserve-status", 'p'),
        ("foreground", 'f'),
        ("verbose", 'v'),
    ];
    let parsed = match getopt::parse(ctx.args, "+s:k:pfv", &long) {
        Ok(parsed) => parsed,
        Err(why) => return usage("timeout", &why, 125),
    };
    let mut killed = false;
    for (option, value) in &parsed.options {
        match option {
            's' => killed = matches!(value.trim_start_matches("SIG"), "KILL" | "9"),
            'k' if interval(value).is_none() => {
                return usage("timeout", &format!("invalid time interval '{value}'"), 125);
            }
            // What runs here ends at once, so that nothing is left to kill after.
            'p' => killed = true,
            _ => {}
        }
    }
    let [limit, program, args @ ..] = &parsed.operands[..] else {
        return usage("timeout", "missing operand", 125);
    };
    let Some(seconds) = interval(limit) else {
        return usage("timeout", &format!("invalid time interval '{limit}'"), 125);
    };
    let command = command(program, args, ctx);
    if seconds == 0.0 {
        return Wish::Plan(ExecutionPlan::Batch {
            commands: vec![command],
        });
    }
    Wish::Plan(ExecutionPlan::Timeout {
        duration: Duration::from_secs_f64(seconds),
        // Ends as one that was killed, 137, in place of 124.
        preserve_status: killed,
        command,
    })
}

/// How `xargs` splits and groups.
struct Xargs {
    delimiter: Option<u8>,
    /// Arguments a command, at most.
    most: usize,
    /// Lines a command, at most.
    lines: Option<usize>,
    replace: Option<String>,
    run_empty: bool,
    trace: bool,
    chars: usize,
    exit: bool,
    stop: Option<Vec<u8>>,
}

#[allow(clippy::too_many_lines, reason = "one arm an option, then one pass")]
fn xargs(ctx: &BuiltinContext<'_>, view: &View) -> Wish {
    let long = [
        ("null", '0'),
        ("delimiter", 'd'),
        ("max-args", 'n'),
        ("max-lines", 'L'),
        ("max-procs", 'P'),
        ("max-chars", 's'),
        ("replace", 'I'),
        ("no-run-if-empty", 'r'),
        ("verbose", 't'),
        ("exit", 'x'),
        ("arg-file", 'a'),
        ("eof", 'E'),
        ("process-slot-var", 'V'),
    ];
    let parsed = match getopt::parse(ctx.args, "+0d:n:L:P:s:I:i::rtxa:E:V:o", &long) {
        Ok(parsed) => parsed,
        Err(why) => return usage("xargs", &why, 1),
    };
    let mut how = Xargs {
        delimiter: None,
        most: usize::MAX,
        lines: None,
        replace: None,
        run_empty: true,
        trace: false,
        chars: 128 * 1024,
        exit: false,
        stop: None,
    };
    let mut file = None;
    for (option, value) in parsed.options {
        let number = value.parse::<usize>().ok().filter(|n| *n > 0);
        match (option, number) {
            ('0', _) => how.delimiter = Some(0),
            ('d', _) => {
                let [byte] = super::text::unescape(&value)[..] else {
                    let message = format!(
                        "Invalid input delimiter specification {value}: the delimiter must be either a single character or an escape sequence starting with \\."
                    );
                    return complaint("xargs", &message, 1);
                };
                how.delimiter = Some(byte);
            }
            ('n', Some(most)) => how.most = most,
            ('L', Some(lines)) => how.lines = Some(lines),
            ('s', Some(chars)) => how.chars = chars,
            ('n' | 'L' | 's', None) => {
                return complaint(
                    "xargs",
                    &format!("invalid number \"{value}\" for -{option} option"),
                    1,
                );
            }
            ('I', _) => how.replace = Some(value),
            ('i', _) => {
                how.replace = Some(if value.is_empty() {
                    "{}".to_owned()
                } else {
                    value
                });
            }
            ('r', _) => how.run_empty = false,
            ('t', _) => how.trace = true,
            ('x', _) => how.exit = true,
            ('a', _) => file = Some(value),
            ('E', _) => how.stop = Some(value.into_bytes()),
            // Commands run one after another whatever -P says.
            _ => {}
        }
    }
    let input = match file {
        None => ctx.stdin_bytes().unwrap_or_default().to_vec(),
        Some(name) => {
            let path = absolute(&ctx.cwd.to_string_lossy(), &name);
            match view.vfs().read(&path, view.cred()) {
                Ok(bytes) => bytes.to_vec(),
                Err(error) => {
                    let message = format!("Cannot open input file '{name}': {}", error.strerror());
                    return complaint("xargs", &message, 1);
                }
            }
        }
    };
    let items = match how.split(&input) {
        Ok(items) => items,
        Err(why) => return complaint("xargs", why, 1),
    };
    let base = if parsed.operands.is_empty() {
        vec!["echo".to_owned()]
    } else {
        parsed.operands
    };
    let lines = match how.group(&base, &items) {
        Ok(lines) => lines,
        Err(why) => return complaint("xargs", why, 1),
    };
    if lines.is_empty() {
        return Wish::Say(ExecResult::default());
    }
    let script = script(&lines, how.trace);
    let command = SubCommand {
        name: "sh".to_owned(),
        args: vec!["-c".to_owned(), script, "xargs".to_owned()],
        stdin: Some(Vec::new().into()),
        assignments: Vec::new(),
    };
    Wish::Plan(ExecutionPlan::Batch {
        commands: vec![command],
    })
}

impl Xargs {
    /// The items of the input, each with the line it ends at.
    fn split(&self, input: &[u8]) -> Result<Vec<(String, usize)>, &'static str> {
        // An argument is text in the engine.
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if let Some(delimiter) = self.delimiter {
            let body = input.strip_suffix(&[delimiter]).unwrap_or(input);
            if input.is_empty() {
                return Ok(Vec::new());
            }
            return Ok(body
                .split(|b| *b == delimiter)
                .enumerate()
                .map(|(at, item)| (text(item), at))
                .collect());
        }
        let mut items = Vec::new();
        let mut item: Option<Vec<u8>> = None;
        let mut quote = None;
        let mut line = 0;
        let mut bytes = input.iter().copied();
        while let Some(byte) = bytes.next() {
            match (quote, byte) {
                (Some(open), _) if byte == open => quote = None,
                (Some(_), b'\n') => {
                    return Err(
                        "unmatched single quote; by default quotes are special to xargs unless you use the -0 option",
                    );
                }
                (None, b'\'' | b'"') => {
                    quote = Some(byte);
                    item.get_or_insert_default();
                }
                (None, b'\\') => item.get_or_insert_default().extend(bytes.next()),
                (None, b'\n') => {
                    items.extend(item.take().map(|item| (text(&item), line)));
                    line += 1;
                }
                // With -I only a newline separates; leading blanks are dropped.
                (None, b' ' | b'\t') if self.replace.is_some() => {
                    if let Some(item) = &mut item {
                        item.push(byte);
                    }
                }
                (None, b' ' | b'\t') => items.extend(item.take().map(|item| (text(&item), line))),
                _ => item.get_or_insert_default().push(byte),
            }
        }
        if quote.is_some() {
            return Err(
                "unmatched single quote; by default quotes are special to xargs unless you use the -0 option",
            );
        }
        items.extend(item.map(|item| (text(&item), line)));
        if let Some(stop) = &self.stop
            && let Some(at) = items
                .iter()
                .position(|(item, _)| item.as_bytes() == stop.as_slice())
        {
            items.truncate(at);
        }
        Ok(items)
    }

    /// The command lines.
    fn group(
        &self,
        base: &[String],
        items: &[(String, usize)],
    ) -> Result<Vec<Vec<String>>, &'static str> {
        const TOO_LONG: &str = "argument line too long";
        if let Some(mark) = &self.replace {
            return Ok(items
                .iter()
                .map(|(item, _)| {
                    base.iter()
                        .map(|word| word.replace(mark.as_str(), item))
                        .collect()
                })
                .collect());
        }
        let fixed: usize = base.iter().map(|word| word.len() + 1).sum();
        let mut lines = Vec::new();
        let mut current = base.to_vec();
        let (mut count, mut length, mut first_line) = (0, fixed, None);
        for (item, line) in items {
            let full = count >= self.most
                || length + item.len() + 1 > self.chars
                || self
                    .lines
                    .is_some_and(|most| first_line.is_some_and(|first| line - first >= most));
            if full && count > 0 {
                if self.exit && length + item.len() + 1 > self.chars {
                    return Err(TOO_LONG);
                }
                lines.push(std::mem::replace(&mut current, base.to_vec()));
                (count, length, first_line) = (0, fixed, None);
            }
            if length + item.len() + 1 > self.chars {
                return Err(TOO_LONG);
            }
            first_line.get_or_insert(*line);
            current.push(item.clone());
            count += 1;
            length += item.len() + 1;
        }
        if count > 0 || (items.is_empty() && self.run_empty) {
            lines.push(current);
        }
        Ok(lines)
    }
}

/// Runs the lines one after another, and ends with the status `xargs` has.
fn script(lines: &[Vec<String>], trace: bool) -> String {
    let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    let mut script = String::from("status=0\n");
    for line in lines {
        let words: Vec<String> = line.iter().map(quote).collect();
        let words = words.join(" ");
        if trace {
            let _ = writeln!(script, "printf '%s\\n' {} >&2", quote(&line.join(" ")));
        }
        let stopped = quote(&format!(
            "xargs: {}: exited with status 255; aborting",
            line[0]
        ));
        let _ = writeln!(
            script,
            "{words}\ncase $? in 0) ;; 126) exit 126 ;; 127) exit 127 ;; \
             255) printf '%s\\n' {stopped} >&2; exit 124 ;; *) status=123 ;; esac"
        );
    }
    script.push_str("exit $status\n");
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Xargs {
        Xargs {
            delimiter: None,
            most: usize::MAX,
            lines: None,
            replace: None,
            run_empty: true,
            trace: false,
            chars: 1000,
            exit: false,
            stop: None,
        }
    }

    fn words(items: &[(String, usize)]) -> Vec<&str> {
        items.iter().map(|(item, _)| item.as_str()).collect()
    }

    #[test]
    fn input_is_split_as_xargs_splits_it() {
        let items = plain().split(b"a 'b c'\t\"d\"\\ e\n\nf").expect("items");
        assert_eq!(words(&items), ["a", "b c", "d e", "f"]);
        assert!(plain().split(b"a 'b").is_err());
        let zero = Xargs {
            delimiter: Some(0),
            ..plain()
        };
        assert_eq!(
            words(&zero.split(b"a b\0\0c\n\0").expect("items")),
            ["a b", "", "c\n"]
        );
        let replace = Xargs {
            replace: Some("{}".into()),
            ..plain()
        };
        assert_eq!(
            words(&replace.split(b"  a b\nc\n").expect("items")),
            ["a b", "c"]
        );
    }

    #[test]
    fn lines_keep_to_their_limits() {
        let items: Vec<(String, usize)> = (0..5).map(|n| (n.to_string(), n / 2)).collect();
        let base = ["echo".to_owned()];
        let by_two = Xargs { most: 2, ..plain() }
            .group(&base, &items)
            .expect("lines");
        assert_eq!(by_two.len(), 3);
        let by_line = Xargs {
            lines: Some(1),
            ..plain()
        }
        .group(&base, &items)
        .expect("lines");
        assert_eq!(by_line[2], ["echo", "4"]);
        assert!(
            Xargs {
                chars: 5,
                ..plain()
            }
            .group(&base, &items)
            .is_err()
        );
    }
}
