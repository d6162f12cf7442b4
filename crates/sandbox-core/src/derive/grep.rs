//! `grep`.

use super::pattern::{Pattern, Scope};
use super::read::is_binary;
use super::script::{self, Answer, field, garbled, number, script};
use super::search::{self, Found, enter};
use crate::files::{Gap, GrepMatch, GrepMatches, GrepOptions};
use crate::{Error, ErrorKind, Result, SandboxBackend, SandboxPath, defaults};

/// Own arguments: the text, and how many lines of a file are looked at.
///
/// Files go through `grep` in batches. Its counts, in the order of the files, say which of them
/// are hit, so no output has to be told apart by names. A batch prints how many files it could not
/// read, how many are hit, their counts, their names, the lines as `NUMBER:LINE`, a NUL; a large
/// one does so in parts.
///
/// Where files change, counts are soon wrong. So `NUMBER:each` in place of the number of lines has
/// the lines of each file by themselves, with `?` for their count: they end at the NUL, and one in
/// them is made a byte that is no UTF-8.
///
/// `NUMBER:walk` lets GNU's `grep` walk by itself, which opens each file once. It prints an `r` and
/// what `grep` prints, uncut, then an empty name and `+`; `-` says that all of this does not count,
/// because `grep` complained or is another's, and batches follow. Of a file that it takes for a
/// binary one it says only that it is hit: these go through a batch, which may bring lines a second
/// time.
///
/// What is not there any more holds nothing and is no gap.
const GREP: &str = script!(
    enter!(),
    r#"need grep head tr cut wc
able() {
  printf 'a\n' | grep -c -h -a -F -m 1 -e a >/dev/null 2>&1 || { printf 'grep -c -h -a -F -m'; exit 68; }
  printf '\n' | grep -c -F -e "$a" >/dev/null 2>&1
  [ "$?" -le 1 ] || exit 73
}
batch='
t=$1 m=${2%:*} each=; [ "$m" = "$2" ] || each=1; shift 2
count() { grep -c -h -a -F -m "$m" -e "$t" -- "$@" 2>/dev/null; }
# Whether one of them has a NUL in front, or can not be looked at.
binary() {
  q=; [ "$#" = 1 ] || q=-q
  q=$({ head $q -c 8192 -- "$@" 2>/dev/null || printf "\0"; } | tr -dc "\000" | wc -c)
  [ "$((q))" != 0 ]
}
lines() { grep -n -h -a -F -m "$m" -e "$t" -- "$@" 2>/dev/null | cut -b 1-8240; }
# Prints the files that are hit, without the binary ones; h holds their counts.
emit() {
  if binary "$@"; then
    c2=$h h=
    for i in $c2; do
      binary "$1" || { h="$h $i"; set -- "$@" "$1"; }
      shift
    done
  fi
  printf "%s\0" "$b" "$#" "$h"
  if [ "$#" -gt 0 ]; then
    printf "%s\0" "$@"
    lines "$@"
  fi
  printf "\0"
  b=0 h=
}
# What one file by itself holds.
emit_one() {
  ! binary "$1" || return
  printf "%s\0" "$b" 1 "?" "$1"
  lines "$1" | tr "\000" "\377"
  printf "\0"
  b=0
}
missed() { [ ! -e "$1" ] || b=$((b+1)); }
b=0 h=
# NUMBER:COUNT of each file that is hit, and last one number more, with `end`.
hits=$({ count "$@"; echo end; } | grep -n -v -x 0)
w=${hits%:end} w=$((${w##*[!0-9]}-1))
# Fewer counts than files: some can not be read. r tells how they are found out. No count at all
# may mean that this grep can not do it.
r=0
if [ "$w" != "$#" ]; then
  if [ "$w" -le 0 ]; then
    printf "\n" | grep -c -h -a -F -m 1 -e "$t" >/dev/null 2>&1
    [ "$?" -le 1 ] || exit 1
  fi
  r=1 n=0
  for f in "$@"; do [ ! -r "$f" ] || n=$((n+1)); done
  [ "$n" = "$w" ] || r=2
fi
readable() {
  if [ "$r" = 1 ]; then [ -r "$1" ]; return; fi
  case $(count "$1") in ""|*[!0-9]*) return 1 ;; esac
}
if [ -n "$each" ] && [ "$r" != 0 ]; then
  hits=
  for f in "$@"; do
    case $(count "$f") in
      ""|*[!0-9]*) missed "$f" ;;
      0) ;;
      *) emit_one "$f" ;;
    esac
  done
fi
# j of the first k files can be read. Nothing is cut off a list for each file: lists may be long.
l= n=0 j=0 k=0
for x in $hits; do
  i=${x#*:} x=${x%%:*}
  if [ "$r" = 0 ]; then
    k=$x
  else
    while [ "$j" -lt "$x" ] && [ "$k" -lt "$#" ]; do
      k=$((k+1)); eval "f=\${$k}"
      if readable "$f"; then j=$((j+1)); else missed "$f"; fi
    done
  fi
  if [ "$i" = end ]; then
    # Not as many as before: something has changed, and the hits may be of other files.
    [ "$r" = 0 ] || [ "$j" = "$w" ] || printf "?\0"
    break
  fi
  if [ -n "$each" ]; then eval "emit_one \"\${$k}\""; continue; fi
  l="$l \"\${$k}\"" h="$h $i" n=$((n+1))
  [ "$n" -lt 200 ] || { eval "emit $l"; l= n=0; }
done
[ "$n" = 0 ] || eval "emit $l"
[ "$b" = 0 ] || printf "%s\0" "$b" 0 "" ""
exit 0'
w=; case $b in *:walk) b=${b%:walk} w=1 ;; esac
if [ ! -d "$p" ]; then
  regular "$p"
  sh -c "$batch" sandbox "$a" "$b" "$p" || able
  end 0
fi
walk() {
  printf 'r\0'
  { e=$(grep -r -n -H -Z -F -m "$b" -e "$a" . 2>&1 >&3; printf %s "$?"); } 3>&1
  case $e in *[01]) ;; *) e=none ;; esac
  set -f
  IFS='
'
  for f in $e; do
    case $f in
      0 | 1) ;;
      'grep: ./'*': binary file matches')
        f=${f#grep: } f=${f%: binary file matches}
        if [ "$#" = 200 ] || [ ! -f "$f" ] || [ -L "$f" ]; then e=none; fi
        set -- "$@" "$f"
        ;;
      *) e=none ;;
    esac
    [ "$e" != none ] || break
  done
  set +f
  unset IFS
  if [ "$e" = none ]; then printf '\0-\0'; return; fi
  printf '\0+\0'
  [ "$#" = 0 ] || sh -c "$batch" sandbox "$a" "$b" "$@"
  end 0
}
[ -z "$w" ] || [ "$1" != -type ] || walk
find . "$@" -exec sh -c "$batch" sandbox "$a" "$b" {} + 2>/dev/null || { able; unreadable "$@"; }
end 0"#
);

/// Asks for a walk.
const WALK: &str = ":walk";

/// The most that a walk may print, in bytes: more is searched again with long lines cut.
const WALK_OUTPUT: u64 = 8 << 20;

/// The longest text to search, in bytes: it travels as an argument, next to others.
const MAX_TEXT: usize = 64 << 10;

/// See [`crate::Sandbox::grep`].
///
/// # Errors
///
/// As there; [`ErrorKind::TooLarge`] for a text of more than 64 KiB.
pub async fn grep(
    backend: &dyn SandboxBackend,
    text: &str,
    path: &SandboxPath,
    options: &GrepOptions,
) -> Result<GrepMatches> {
    if text.is_empty() || text.contains(['\n', '\0']) {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            "the text to search is empty or holds a newline or NUL: search one line's text",
        ));
    }
    if text.len() > MAX_TEXT {
        return Err(Error::new(
            ErrorKind::TooLarge,
            "the text to search is too long: search a part of it",
        )
        .with("bytes", text.len())
        .with("limit", MAX_TEXT));
    }
    let pattern = options.glob.as_deref().map(Pattern::new).transpose()?;
    let scope = pattern
        .as_ref()
        .map_or_else(search::everywhere, Pattern::scope);
    // One more tells whether there are more. Tools count with 31 bits.
    let per_file = options.max_count.saturating_add(1).min((1 << 31) - 1);
    let search = Search {
        text,
        root: path,
        pattern: pattern.as_ref(),
        scope: &scope,
        max_count: options.max_count,
    };
    // An emulated shell may not pass descriptors on, which a walk needs. A walk does not cut long
    // lines, and files that change may make an answer that does not add up: then they are searched
    // again, at last file by file.
    let native = backend.capabilities().native_programs;
    let walk = (native && scope.is_everywhere()).then_some(WALK);
    for how in walk.into_iter().chain([""]) {
        let answer = search.run(backend, per_file, how).await?;
        // No time is left where the budget was used up: what came is the answer.
        if how == WALK && answer.output.dropped() > 0 && !answer.timed_out {
            continue;
        }
        match search.parse(&answer) {
            Err(e) if e.kind() == ErrorKind::Protocol => {}
            result => return result.map_err(|e| e.with("path", path)),
        }
    }
    let answer = search.run(backend, per_file, ":each").await?;
    search.parse(&answer).map_err(|e| e.with("path", path))
}

struct Search<'a> {
    text: &'a str,
    root: &'a SandboxPath,
    pattern: Option<&'a Pattern>,
    scope: &'a Scope,
    max_count: u64,
}

/// What a search adds up to.
#[derive(Default)]
struct Sum {
    matches: Vec<GrepMatch>,
    unreadable: u64,
    not_utf8: u64,
    ended: bool,
}

impl Search<'_> {
    async fn run(&self, backend: &dyn SandboxBackend, per_file: u64, how: &str) -> Result<Answer> {
        let mut run = search::run(
            self.root,
            self.scope,
            [self.text, &format!("{per_file}{how}")],
        );
        if how == WALK {
            run = run.output_limit(WALK_OUTPUT);
        }
        script::run(backend, GREP, run.budget(defaults::GREP_TIME)).await
    }

    fn parse(&self, answer: &Answer) -> Result<GrepMatches> {
        let mut sum = Sum::default();
        let cut = answer.timed_out || answer.output.dropped() > 0;
        let mut rest = answer.output.head();
        while !sum.ended && !rest.is_empty() {
            let batch = rest;
            if let Err(e) = self.batch(&mut rest, &mut sum) {
                // The last one may have been cut, if anything was.
                if !cut {
                    return Err(e);
                }
                rest = batch;
                break;
            }
        }
        if !cut && (!sum.ended || !rest.is_empty()) {
            return Err(garbled("the end"));
        }
        let mut gaps = Vec::new();
        if answer.output.dropped() > 0 {
            gaps.push(Gap::OutputLimit);
        }
        if answer.timed_out {
            gaps.push(Gap::TimeLimit);
        }
        if sum.unreadable > 0 {
            gaps.push(Gap::Unreadable(sum.unreadable));
        }
        if sum.not_utf8 > 0 {
            gaps.push(Gap::NotUtf8(sum.not_utf8));
        }
        Ok(limited(sum.matches, gaps, self.max_count))
    }

    /// Reads one batch, or the end.
    fn batch(&self, rest: &mut &[u8], sum: &mut Sum) -> Result<()> {
        let unreadable = field(rest)?;
        if unreadable == b"r" {
            return self.walk(rest, sum);
        }
        if unreadable.is_empty() {
            sum.unreadable = sum.unreadable.saturating_add(number(field(rest)?)?);
            sum.ended = true;
            return Ok(());
        }
        sum.unreadable = sum.unreadable.saturating_add(number(unreadable)?);
        let files: usize = number(field(rest)?)?;
        let counts = field(rest)?;
        if counts == b"?" && files == 1 {
            return self.whole_file(rest, sum);
        }
        let counts: Vec<u64> = counts
            .split(|b| *b == b' ')
            .filter(|digits| !digits.is_empty())
            .map(number)
            .collect::<Result<_>>()?;
        if counts.len() != files {
            return Err(garbled("the number of files"));
        }
        let names: Vec<&[u8]> = (0..files).map(|_| field(rest)).collect::<Result<_>>()?;
        for (name, count) in names.into_iter().zip(counts) {
            let path = self.path(name, sum)?;
            let mut last = 0;
            for _ in 0..count {
                self.line(rest, path.as_ref(), &mut last, sum)?;
            }
        }
        if field(rest)?.is_empty() {
            Ok(())
        } else {
            Err(garbled("the number of lines"))
        }
    }

    /// Reads what GNU's `grep` printed on its own walk.
    fn walk(&self, rest: &mut &[u8], sum: &mut Sum) -> Result<()> {
        let before = (sum.matches.len(), sum.not_utf8);
        let (mut name, mut path, mut last): (&[u8], _, _) = (b"", None, 0);
        loop {
            let next = field(rest)?;
            if next.is_empty() {
                break;
            }
            if next != name {
                (name, path, last) = (next, self.path(next, sum)?, 0);
            }
            self.line(rest, path.as_ref(), &mut last, sum)?;
        }
        match field(rest)? {
            b"+" => Ok(()),
            b"-" => {
                sum.matches.truncate(before.0);
                sum.not_utf8 = before.1;
                Ok(())
            }
            _ => Err(garbled("how the walk went")),
        }
    }

    /// Reads the lines of one file, which end with the batch.
    fn whole_file(&self, rest: &mut &[u8], sum: &mut Sum) -> Result<()> {
        let path = self.path(field(rest)?, sum)?;
        let mut lines = field(rest)?;
        let mut last = 0;
        while !lines.is_empty() {
            self.line(&mut lines, path.as_ref(), &mut last, sum)?;
        }
        Ok(())
    }

    /// Where the next lines are, if that can be told and was asked for.
    fn path(&self, name: &[u8], sum: &mut Sum) -> Result<Option<SandboxPath>> {
        Ok(match self.file(name)? {
            Found::Path(path) => Some(SandboxPath::new(path)?),
            Found::NotUtf8 => {
                sum.not_utf8 += 1;
                None
            }
            _ => None,
        })
    }

    /// Reads one line. `last` is the number of the one before it in the same file, or 0.
    fn line(
        &self,
        rest: &mut &[u8],
        path: Option<&SandboxPath>,
        last: &mut u64,
        sum: &mut Sum,
    ) -> Result<()> {
        let end = memchr::memchr(b'\n', rest).ok_or_else(|| garbled("a line"))?;
        let (line, after) = rest.split_at(end);
        *rest = &after[1..];
        let colon = memchr::memchr(b':', line).ok_or_else(|| garbled("a line"))?;
        let number: u64 = number(&line[..colon])?;
        // The next file begins anew: a wrong count shows here.
        if number <= *last {
            return Err(garbled("the number of a line"));
        }
        *last = number;
        if let (Some(path), Some((text, cut))) =
            (path, matching_line(&line[colon + 1..], self.text))
        {
            sum.matches
                .push(GrepMatch::new(path.clone(), number, text, cut));
        }
        Ok(())
    }

    /// The absolute path of a file that was hit.
    fn file(&self, name: &[u8]) -> Result<Found> {
        if name == self.root.as_str().as_bytes() {
            let base = self.root.file_name().unwrap_or_default();
            return Ok(match self.pattern {
                Some(pattern) if !pattern.matches(base) => Found::Other,
                _ => Found::Path(self.root.as_str().to_owned()),
            });
        }
        match search::found(name, self.scope, self.pattern) {
            Found::Garbled => Err(garbled("a name")),
            Found::Path(relative) => Ok(self
                .root
                .join(&relative)
                .map_or(Found::Other, |p| Found::Path(p.as_str().to_owned()))),
            other => Ok(other),
        }
    }
}

/// Sorts and keeps `max_count` of the matches.
fn limited(matches: Vec<GrepMatch>, gaps: Vec<Gap>, max_count: u64) -> GrepMatches {
    let mut found = GrepMatches::new(matches, gaps);
    // Of a file that turned out to be binary in the middle.
    found.matches.dedup();
    let limit = usize::try_from(max_count).unwrap_or(usize::MAX);
    if found.matches.len() > limit {
        found.matches.truncate(limit);
        found.gaps.insert(0, Gap::MatchLimit(max_count));
    }
    found
}

/// The lines of `content` that hold `text`: 1-based number, the line as `grep` gives it, and
/// whether it was cut. At most `limit`; none in what is [binary](is_binary).
pub fn matching_lines(content: &[u8], text: &str, limit: u64) -> Vec<(u64, String, bool)> {
    if is_binary(content) {
        return Vec::new();
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let lines = content.split(|b| *b == b'\n');
    (1..)
        .zip(lines)
        .filter_map(|(number, line)| {
            // Of a line that is cut below, all is searched here.
            memchr::memmem::find(line, text.as_bytes())?;
            let (text, cut) = matching_line(line, text)?;
            Some((number, text, cut))
        })
        .take(limit)
        .collect()
}

/// The line without its end, cut at [`defaults::GREP_LINE`]; `None` if it does not hold `text`.
/// Of a line beyond that only the beginning may be given: it is known to hold the text then.
fn matching_line(line: &[u8], text: &str) -> Option<(String, bool)> {
    let limit = usize::try_from(defaults::GREP_LINE).unwrap_or(usize::MAX);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let cut = line.len() > limit;
    if !cut {
        memchr::memmem::find(line, text.as_bytes())?;
        return Some((String::from_utf8_lossy(line).into_owned(), false));
    }
    let mut end = limit;
    while end > limit - 3 && line[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    Some((String::from_utf8_lossy(&line[..end]).into_owned(), true))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Captured;

    fn look(
        output: &[u8],
        glob: Option<&str>,
        max_count: u64,
        timed_out: bool,
    ) -> Result<GrepMatches> {
        let pattern = glob.map(|g| Pattern::new(g).unwrap());
        let scope = pattern
            .as_ref()
            .map_or_else(search::everywhere, Pattern::scope);
        let search = Search {
            text: "needle",
            root: &SandboxPath::new("/w").unwrap(),
            pattern: pattern.as_ref(),
            scope: &scope,
            max_count,
        };
        search.parse(&Answer {
            output: Captured::whole(output.to_vec()),
            timed_out,
        })
    }

    const TWO: &[u8] = b"1\x002\x00 2 1\x00./a:12:b.txt\x00./nl\nname\x003:needle\n12:a:needle\r\n1: needle\xff\n\x000\x000\x00\x00\x00\x002\x00";

    #[test]
    fn exact_names_numbers_and_lines() {
        let found = look(TWO, None, 10, false).unwrap();
        let seen: Vec<_> = found
            .matches
            .iter()
            .map(|m| (m.path.as_str(), m.line, m.text.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                ("/w/a:12:b.txt", 3, "needle"),
                ("/w/a:12:b.txt", 12, "a:needle"),
                ("/w/nl\nname", 1, " needle\u{fffd}")
            ]
        );
        assert_eq!(found.gaps, [Gap::Unreadable(3)]);
        assert_eq!(
            look(TWO, Some("*.txt"), 10, false).unwrap().matches.len(),
            2
        );
    }

    #[test]
    fn a_file_by_itself_needs_no_count() {
        let answer = b"2\x001\x00?\x00./a\x001:needle\n7: needle\n\x000\x001\x00?\x00./gone\x00\x00\x000\x00";
        let found = look(answer, None, 9, false).unwrap();
        let numbers: Vec<_> = found.matches.iter().map(|m| m.line).collect();
        assert_eq!(numbers, [1, 7]);
        assert_eq!(found.gaps, [Gap::Unreadable(2)]);
    }

    #[test]
    fn a_walk_counts_unless_it_says_otherwise() {
        const WALK: &str = "r\0./a\x003:needle\n./a\x005:x needle\n./nl\nname\x001:needle\n\0";
        let numbers = |rest: &str| {
            let answer = format!("{WALK}{rest}\x002\0");
            let found = look(answer.as_bytes(), None, 9, false).unwrap();
            assert_eq!(found.gaps, [Gap::Unreadable(2)], "{rest:?}");
            let number = |m: &GrepMatch| (m.path.as_str().to_owned(), m.line);
            found.matches.iter().map(number).collect::<Vec<_>>()
        };
        let hit = |path: &str, line| (path.to_owned(), line);
        let walked = [hit("/w/a", 3), hit("/w/a", 5), hit("/w/nl\nname", 1)];
        assert_eq!(numbers("+\0"), walked);
        // What a batch finds again comes once.
        let again = "+\x000\x001\x00 2\0./a\x005:x needle\n9:needle\n\0";
        let mut both = walked.to_vec();
        both.insert(2, hit("/w/a", 9));
        assert_eq!(numbers(again), both);
        let only = "-\x000\x001\x00 1\0./b\x001:needle\n\0";
        assert_eq!(numbers(only), [hit("/w/b", 1)]);
        // Cut, what is there counts: each line is a hit, whatever would have been said.
        assert_eq!(
            look(&WALK.as_bytes()[..40], None, 9, true)
                .unwrap()
                .matches
                .len(),
            2
        );
    }

    #[test]
    fn as_many_as_asked_is_complete_and_one_more_is_not() {
        assert_eq!(
            look(TWO, None, 3, false).unwrap().gaps,
            [Gap::Unreadable(3)]
        );
        let found = look(TWO, None, 2, false).unwrap();
        assert_eq!(found.gaps, [Gap::MatchLimit(2), Gap::Unreadable(3)]);
        assert_eq!(found.matches.len(), 2);
    }

    #[test]
    fn a_cut_answer_keeps_what_is_whole() {
        let found = look(&TWO[..TWO.len() - 3], None, 9, true).unwrap();
        assert_eq!(
            (found.matches.len(), found.gaps),
            (3, vec![Gap::TimeLimit, Gap::Unreadable(1)])
        );
        let found = look(&TWO[..20], None, 9, true).unwrap();
        assert!(found.matches.is_empty());
        assert_eq!(
            look(&TWO[..20], None, 9, false).unwrap_err().kind(),
            ErrorKind::Protocol
        );
    }

    #[test]
    fn hostile_answers_are_errors() {
        for output in [
            &b""[..],
            b"0\x001\x00 1\x00./a\x001:needle\n",
            b"0\x001\x00 2\x00./a\x001:needle\n1:needle\n\x00\x000\x00",
            b"0\x001\x00 1\x00/etc/passwd\x001:needle\n\x00\x000\x00",
            b"0\x001\x00 1\x00./a\x00needle\n\x00\x000\x00",
            b"0\x00999999999999\x00\x00\x00\x000\x00",
            b"0\x001\x00 18446744073709551615\x00./a\x00",
            b"\x000\x00x",
            b"0\x002\x00?\x00./a\x00./b\x00\x00\x000\x00",
            b"0\x001\x00?\x00./a\x002:needle\n1:needle\n\x00\x000\x00",
            b"0\x001\x00?\x00./a\x001:needle\x00\x000\x00",
            // An older GNU's words, another tool's, no word on how it went, none at all.
            b"r\0./a\x001:needle\nBinary file ./b matches\n\0+\x00\x000\0",
            b"r\0./a:1:needle\n\0+\x00\x000\0",
            b"r\0./a\x001:needle\n\x00\x000\0",
            b"r\0./a\x001:needle\n",
        ] {
            assert_eq!(
                look(output, None, 9, false).unwrap_err().kind(),
                ErrorKind::Protocol,
                "{output:?}"
            );
        }
    }

    #[test]
    fn lines_in_memory_are_what_the_script_gives() {
        let found = matching_lines(b"ab\r\nx\nneedle ab\ncaf\xe9 ab", "ab", 9);
        let numbers: Vec<_> = found.iter().map(|f| f.0).collect();
        assert_eq!(numbers, [1, 3, 4]);
        assert_eq!(found[0].1, "ab");
        assert_eq!(found[2].1, "caf\u{fffd} ab");
        assert!(matching_lines(b"ab\r\n", "ab\r", 9).is_empty());
        assert!(matching_lines(b"ab\0", "ab", 9).is_empty());
        let long = format!("é{}needle", "é".repeat(5000));
        let found = matching_lines(long.as_bytes(), "needle", 9);
        assert!(found[0].2 && found[0].1.len() as u64 == defaults::GREP_LINE);
    }

    proptest! {
        #[test]
        fn no_answer_panics(output in prop::collection::vec(prop::sample::select(&b"./a01r+-: \n\x00\xff"[..]), 0..80), timed_out in any::<bool>()) {
            let _ = look(&output, None, 1, timed_out);
        }
    }
}
