//! What keeps a script from taking the process down: the engine recurses on the stack of its
//! thread, and an overflow of that would be an abort.

use std::sync::Arc;

use bashkit::hooks::{HookAction, Interceptor, ToolEvent};

use super::pool;
use super::run::Run;

/// How much of a worker's stack a script may use. The rest is for what one tool needs.
const STACK_LIMIT: usize = pool::STACK / 2;

/// Parentheses and negations in one expression; each is a recursion.
const NESTING: usize = 256;

/// `SIGSEGV`: what a real shell dies of when its stack is used up.
const SEGV: i32 = 11;

/// Looks at each tool before it runs.
pub(super) fn hook(run: Arc<Run>) -> Interceptor<ToolEvent> {
    Box::new(move |mut tool| {
        if pool::stack_used() > STACK_LIMIT {
            run.crash(SEGV);
            return HookAction::Cancel("the stack is used up".into());
        }
        match tool.name.as_str() {
            "test" | "[" | "find" | "expr" if nesting(&tool.args) > NESTING => {
                // A primary that no expression has: the tool's own error says so.
                tool.args = vec!["-nested-too-deep".into(), "-nested-too-deep".into()];
                if tool.name == "[" {
                    tool.args.push("]".into());
                }
            }
            "kill" => {
                if let Some(signal) = signal_to_self(&tool.args) {
                    run.signal_self(signal);
                }
            }
            _ => {}
        }
        HookAction::Continue(tool)
    })
}

fn nesting(args: &[String]) -> usize {
    args.iter()
        .filter(|arg| matches!(arg.as_str(), "(" | "\\(" | "!" | "-not"))
        .count()
}

/// The signal that `kill` with these arguments sends to the shell itself, whose number is 1.
fn signal_to_self(args: &[String]) -> Option<i32> {
    let mut signal = 15;
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        match arg {
            "-s" | "-n" => signal = number(args.next()?)?,
            "--" => {}
            "1" => return (signal != 0).then_some(signal),
            _ => {
                if let Some(name) = arg.strip_prefix('-') {
                    signal = number(name)?;
                }
            }
        }
    }
    None
}

fn number(signal: &str) -> Option<i32> {
    if let Ok(number) = signal.parse() {
        return Some(number);
    }
    let name = signal.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let known = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ILL", 4),
        ("TRAP", 5),
        ("ABRT", 6),
        ("BUS", 7),
        ("FPE", 8),
        ("KILL", 9),
        ("USR1", 10),
        ("SEGV", 11),
        ("USR2", 12),
        ("PIPE", 13),
        ("ALRM", 14),
        ("TERM", 15),
    ];
    known.iter().find(|(n, _)| *n == name).map(|(_, n)| *n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_signal_a_shell_sends_itself() {
        let of = |text: &str| {
            let args: Vec<String> = text.split(' ').map(str::to_owned).collect();
            signal_to_self(&args)
        };
        assert_eq!(of("-9 1"), Some(9));
        assert_eq!(of("-s KILL 1"), Some(9));
        assert_eq!(of("-SIGSEGV -- 1"), Some(11));
        assert_eq!(of("1"), Some(15));
        assert_eq!(of("-0 1"), None);
        assert_eq!(of("-9 %1"), None);
    }
}
