//! Shell text: the one place that quotes, and the one script that kills a process tree.

use std::time::Duration;

use crate::{Command, Error, ErrorKind, Result, lower};

/// The longest single argument that Linux takes, in bytes (`MAX_ARG_STRLEN` less its NUL).
pub const MAX_ARGUMENT: usize = (128 << 10) - 1;

/// Quotes `word` so that a POSIX shell reads it back as one word, whatever it holds but NUL.
pub fn quote(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./,:@%+=".contains(&b);
    // A word with `=` in front position is an assignment, and `~` and others are not plain.
    if !word.is_empty() && word.bytes().all(plain) && !word.contains('=') {
        return word.to_owned();
    }
    let mut quoted = String::with_capacity(word.len() + 2);
    quoted.push('\'');
    quoted.push_str(&word.replace('\'', r"'\''"));
    quoted.push('\'');
    quoted
}

/// Quotes and joins words.
pub fn join<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let words: Vec<String> = words.into_iter().map(|w| quote(w.as_ref())).collect();
    words.join(" ")
}

/// The arguments with which a shell runs `text`, whatever it begins with. `$0` and the positional
/// parameters may follow.
pub fn text_args(text: String) -> Vec<String> {
    let mut args = vec!["-c".to_owned()];
    // To the shell it would be options.
    if text.starts_with(['-', '+']) {
        args.push("--".to_owned());
    }
    args.push(text);
    args
}

/// The argv that runs shell text of any length with the semantics of `sh -c TEXT`, whatever it
/// begins with.
///
/// Text beyond [`MAX_ARGUMENT`] travels in parts and is put together by the shell itself. The
/// arguments of one program are bounded in sum too, by Linux at 2 MiB by default: core moves text
/// beyond [`crate::Capabilities::execute_max_text`] through a file.
pub fn shell_argv(text: &str) -> Vec<String> {
    let mut argv = vec!["sh".to_owned()];
    if text.len() <= MAX_ARGUMENT {
        argv.extend(text_args(text.to_owned()));
        argv.push("sh".to_owned());
        return argv;
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.len().min(MAX_ARGUMENT);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (part, after) = rest.split_at(end);
        parts.push(part.to_owned());
        rest = after;
    }
    // The text replaces this shell's own state: no variable of ours is left when it runs.
    let names: Vec<String> = (1..=parts.len()).map(|i| format!("${{{i}}}")).collect();
    let names = names.concat();
    argv.extend(text_args(format!(
        "set -- \"{names}\"; eval \"shift
$1\""
    )));
    argv.push("sh".to_owned());
    argv.extend(parts);
    argv
}

/// The variable that every program which a backend starts in a sandbox carries, each with a value
/// of its own from [`command_id`], where processes are killed by [`tree_kill`].
pub const COMMAND_ID: &str = "SANDBOX_COMMAND_ID";

/// A new value for [`COMMAND_ID`]. All are equally long, so none is the beginning of another.
pub fn command_id() -> String {
    lower::random_token()
}

/// Kills the process tree of a command. Shell builtins and `/proc` alone: it starts no process.
///
/// Arguments: the command's id, its age in clock ticks of 10 ms, a floor. Ends with 0 if nothing
/// is left of it, else with 1.
///
/// A process belongs to the command if
/// - its environment holds the id, or
/// - its parent belongs, whatever it says itself, or
/// - its environment holds no id at all (`env -i`), nor does one of its ancestors hold another
///   command's, and it is not older than the command.
///
/// Never touched: process 1, this killer and its ancestors (a daemon that runs commands is one),
/// what began at the floor or before, and a process that is just about to be turned into a program
/// of another command: by a container engine (its parent is outside, and it still has the engine's
/// name), or by a daemon in the sandbox (its parent began at the floor or before, and it still is a
/// copy of it, with the same command line). The latter is looked at again, until it is a program:
/// what only calls itself like the daemon is left of the tree.
///
/// While a program is being loaded its environment reads as empty. So one without an id counts only
/// if the process was the same loaded program before and after it was read: where its code and its
/// stack begin (`image`) is new with each program, and 0 until it is loaded. Both are hidden (`1 0`)
/// where the environment can't be read either: such a process is looked at twice, and never
/// stopped if it could not be signalled when it was looked at: it may be on its way from the
/// daemon's user to that of another command. A kernel that always says 0 loads in one step.
///
/// All that belong are stopped first, round after round until one finds no more, and then killed
/// at once: killing while looking never overtakes a fork bomb.
///
/// `/proc/PID/stat` is read to its end: the name in it may hold newlines and parentheses.
pub(crate) const TREE_KILL: &str = r#"v=SANDBOX_COMMAND_ID= m=$v$1
look() {
  l=
  while IFS= read -r x || [ -n "$x" ]; do l="$l $x"; done 2>/dev/null <"/proc/$1/stat"
  [ -n "$l" ] || return 1
  name=${l#*\(}
  set -- ${l##*\) }
  state=$1 parent=$2 tick=${20} image="${24} ${26}"
}
look "$$" || exit 1
# What image begins with while a program is being loaded, if this kernel says so.
case $image in "0 "*) loading=- ;; *) loading="0 " ;; esac
born=$((tick-$2-10))
[ "$born" -gt "$3" ] || born=$(($3+1))
up=" 1 $$ "
while [ "$parent" -gt 1 ]; do
  up="$up$parent "
  look "$parent" || break
done
# Sets c to the first line of what process $1 was called with.
called() { c=; { IFS= read -r c || [ -n "$c" ]; } 2>/dev/null <"/proc/$1/cmdline"; }
# Sets id to whose id the environment of process $1 holds: mine, other, or nothing.
ids() {
  id=
  while IFS= read -r x || [ -n "$x" ]; do
    case $x in *"$m"*) id=mine; return ;; *"$v"*) id=other ;; esac
  done 2>/dev/null <"/proc/$1/environ"
}
# Whether the process $1, just looked at, surely has no id. Sets c and what look sets, of the same
# program.
bare() {
  i=$image
  ids "$1"
  called "$1"
  look "$1" || return 1
  if [ -z "$id" ] && [ "$image" = "$i" ]; then
    case $image in
      "$loading"*) ;;
      "1 0") [ -z "$c" ] || return 0 ;;
      *) return 0 ;;
    esac
  fi
  again=1
  return 1
}
anothers() {
  q=$1
  while [ "$q" -gt 1 ]; do
    ids "$q"
    case $id in mine) return 1 ;; other) return 0 ;; esac
    look "$q" || return 1
    [ "$tick" -gt "$floor" ] || return 1
    bare "$q" || return 0
    q=$parent
  done
  return 1
}
belongs() {
  ids "$1"
  [ "$id" != mine ] || return 0
  look "$1" || return 1
  [ "$state" != Z ] || return 1
  [ "$tick" -gt "$floor" ] || return 1
  case $stopped in *" $parent "*) return 0 ;; esac
  [ -z "$id" ] || return 1
  [ "$tick" -ge "$born" ] || return 1
  [ "$parent" != 0 ] || case $name in runc*|crun*|youki*|conmon*) return 1 ;; esac
  bare "$1" || return 1
  of=$parent n=$c hidden=
  [ "$image" != "1 0" ] || hidden=1
  if look "$of" && [ "$tick" -le "$floor" ] && called "$of" && [ "$n" = "$c" ]; then
    again=1
    return 1
  fi
  ! anothers "$of" || return 1
  [ -n "$hidden" ] || return 0
  if kill -0 "$1" 2>/dev/null; then
    case $twice in *" $1 "*) return 0 ;; esac
    twice="$twice$1 " again=1
  else
    kept "$1"
  fi
  return 1
}
# What this may not stop is left of the tree, unless it is the child of something that was there
# before all commands: another user's, as the child of what ends the sandbox.
settled() { [ "$1" -gt 1 ] && look "$1" && [ "$tick" -le "$floor" ]; }
kept() { ! look "$1" || [ "$state" = Z ] || settled "$parent" || left=1; }
floor=$3 stopped=" " twice=" " left=0 round=0
while [ "$round" -lt 100 ]; do
  round=$((round+1)) found=0 again=
  for d in /proc/[0-9]*; do
    p=${d#/proc/}
    case $up$stopped in *" $p "*) continue ;; esac
    belongs "$p" || continue
    if kill -STOP "$p" 2>/dev/null; then
      stopped="$stopped$p " found=1
    else
      kept "$p"
    fi
  done
  [ "$found$again" != 0 ] || break
done
[ "$found$again" = 0 ] || left=1
[ "$stopped" = " " ] || kill -KILL $stopped 2>/dev/null
for p in $stopped; do
  i=0
  while look "$p" && [ "$state" != Z ] && [ "$state" != X ]; do
    i=$((i+1))
    [ "$i" -lt 2000 ] || { left=1; break; }
  done
done
exit "$left""#;

/// Prints the start tick of the youngest process there is.
const FLOOR: &str = r#"floor=0
for d in /proc/[0-9]*; do
  l=
  while IFS= read -r x || [ -n "$x" ]; do l="$l $x"; done 2>/dev/null <"$d/stat"
  set -- ${l##*\) }
  case ${20-} in ''|*[!0-9]*) continue ;; esac
  [ "${20}" -le "$floor" ] || floor=${20}
done
printf %s "$floor""#;

/// The command that kills the process tree of the command with this id.
///
/// `age` is how long ago the command was started, at least; a little more does no harm. `floor` is
/// what [`parse_floor`] gave when the sandbox became ready, or 0.
///
/// Run it as the command's own user, whose processes nobody else may see and kill, root without
/// capabilities included; never with more rights. It ends with 0 when nothing is left of the tree,
/// and with 1 when something is or may be: try again until the grace is over. Hostile code that
/// takes another command's id and lets its parent die is not found: then only the sandbox's own
/// death is certain.
pub fn tree_kill(id: &str, age: Duration, floor: u64) -> Command {
    let ticks = age.as_millis().div_ceil(10);
    Command::new("sh")
        .args(["-c", TREE_KILL, "sandbox", id])
        .args([ticks.to_string(), floor.to_string()])
        .env(COMMAND_ID, command_id())
}

/// The command whose output [`parse_floor`] reads: run it once, when the sandbox has become ready
/// and no command has been started.
pub fn floor_probe() -> Command {
    Command::new("sh")
        .args(["-c", FLOOR, "sandbox"])
        .env(COMMAND_ID, command_id())
}

/// Reads what [`floor_probe`] printed: a number of clock ticks since the machine's start.
///
/// # Errors
///
/// [`ErrorKind::Protocol`] if it is no number.
pub fn parse_floor(output: &[u8]) -> Result<u64> {
    std::str::from_utf8(output)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Protocol,
                "the start times of the sandbox's processes can't be read",
            )
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_what_a_shell_would_read() {
        for (word, quoted) in [
            ("", "''"),
            ("a/b-c.d", "a/b-c.d"),
            ("A=1", "'A=1'"),
            ("~", "'~'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("a\nb", "'a\nb'"),
        ] {
            assert_eq!(quote(word), quoted);
        }
    }

    #[test]
    fn a_kill_carries_an_id_of_its_own() {
        let id = command_id();
        assert_eq!(id.len(), command_id().len());
        let kill = tree_kill(&id, Duration::from_millis(1001), 7);
        let crate::Program::Argv(argv) = &kill.program else {
            panic!("{kill:?}")
        };
        assert_eq!(argv[4..], [id.as_str(), "101", "7"]);
        assert_ne!(kill.env[COMMAND_ID], id);
        assert_eq!(parse_floor(b"123\n").unwrap(), 123);
        for bad in [&b""[..], b"-1", b"x", b"\xff"] {
            assert!(parse_floor(bad).is_err());
        }
    }

    proptest! {
        // The grammar of single quotes, read back by hand: no shell runs on this machine.
        #[test]
        fn a_quoted_word_reads_back(word in "[^\\x00]{0,30}") {
            let quoted = quote(&word);
            let mut read = String::new();
            let mut inside = false;
            let mut chars = quoted.chars();
            while let Some(c) = chars.next() {
                match c {
                    '\'' => inside = !inside,
                    '\\' if !inside => read.extend(chars.next()),
                    c => {
                        prop_assert!(inside || c.is_ascii_alphanumeric() || "_-./,:@%+=".contains(c));
                        read.push(c);
                    }
                }
            }
            prop_assert!(!inside);
            prop_assert_eq!(read, word);
        }

        #[test]
        fn long_text_travels_in_parts_that_fit(n in 0usize..400_000) {
            let text = "é".repeat(n / 2);
            let argv = shell_argv(&text);
            prop_assert!(argv.iter().all(|a| a.len() <= MAX_ARGUMENT));
            if text.len() > MAX_ARGUMENT {
                prop_assert_eq!(argv[4..].concat(), text);
            }
        }
    }
}
