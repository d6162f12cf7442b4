//! `glob`.

use super::pattern::{Pattern, Scope};
use super::script::{self, Answer, field, garbled, number, script};
use super::search::{self, Found, enter};
use crate::files::{Gap, GlobMatches};
use crate::{Result, SandboxBackend, SandboxPath, defaults};

/// Prints what `find` finds, each with a NUL, and [`enter!`]'s end.
const GLOB: &str = script!(
    enter!(),
    r#"[ -d "$p" ] || exit 64
find . "$@" -print0 2>/dev/null || unreadable "$@"
end 0"#
);

/// See [`crate::Sandbox::glob`].
///
/// # Errors
///
/// As there.
pub async fn glob(
    backend: &dyn SandboxBackend,
    pattern: &str,
    path: &SandboxPath,
) -> Result<GlobMatches> {
    let pattern = Pattern::new(pattern)?;
    let scope = pattern.scope();
    let run = search::run(path, &scope, ["", ""]).budget(defaults::GLOB_TIME);
    let answer = script::run(backend, GLOB, run).await?;
    parse(path, &pattern, &scope, &answer).map_err(|e| e.with("path", path))
}

fn parse(
    root: &SandboxPath,
    pattern: &Pattern,
    scope: &Scope,
    answer: &Answer,
) -> Result<GlobMatches> {
    let (head, tail) = search::parts(&answer.output);
    let mut paths = Vec::new();
    let mut gaps = Vec::new();
    let (mut not_utf8, mut unreadable) = (0, 0);
    let mut ended = false;
    // Behind a gap the first record has lost its beginning.
    let tail = memchr::memchr(0, tail).map_or(&[][..], |end| &tail[end + 1..]);
    for mut part in [head, tail] {
        // What has no end was cut.
        while let Ok(name) = field(&mut part) {
            if ended {
                return Err(garbled("something after the end"));
            }
            if name.is_empty() {
                unreadable += number::<u64>(field(&mut part)?)?;
                ended = true;
                continue;
            }
            match search::found(name, scope, Some(pattern)) {
                Found::Path(relative) => match root.join(&relative) {
                    Ok(path) => paths.push(path),
                    // Longer than a path may be.
                    Err(_) => unreadable += 1,
                },
                Found::NotUtf8 => not_utf8 += 1,
                Found::Other => {}
                Found::Garbled => return Err(garbled("a name")),
            }
        }
        if ended && !part.is_empty() {
            return Err(garbled("something after the end"));
        }
    }
    if answer.output.dropped() > 0 {
        gaps.push(Gap::OutputLimit);
    }
    if answer.timed_out {
        gaps.push(Gap::TimeLimit);
    } else if !ended && answer.output.dropped() == 0 {
        return Err(garbled("no end"));
    }
    if unreadable > 0 {
        gaps.push(Gap::Unreadable(unreadable));
    }
    if not_utf8 > 0 {
        gaps.push(Gap::NotUtf8(not_utf8));
    }
    let mut matches = GlobMatches::new(paths, gaps);
    let limit = usize::try_from(defaults::GLOB_MATCHES).unwrap_or(usize::MAX);
    if matches.paths.len() > limit {
        matches.paths.truncate(limit);
        matches
            .gaps
            .insert(0, Gap::MatchLimit(defaults::GLOB_MATCHES));
    }
    Ok(matches)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Captured, Collector, ErrorKind};

    fn answer(output: &[u8], timed_out: bool) -> Answer {
        Answer {
            output: Captured::whole(output.to_vec()),
            timed_out,
        }
    }

    fn look(pattern: &str, answer: &Answer) -> Result<GlobMatches> {
        let pattern = Pattern::new(pattern).unwrap();
        parse(
            &SandboxPath::new("/w").unwrap(),
            &pattern,
            &pattern.scope(),
            answer,
        )
    }

    #[test]
    fn filters_sorts_and_says_what_is_missing() {
        let found = look(
            "src/*.p?",
            &answer(
                b"./b.py\x00./nl\n.py\x00./x\x00./\xff.py\x00\x003\x00",
                false,
            ),
        )
        .unwrap();
        let paths: Vec<_> = found.paths.iter().map(SandboxPath::as_str).collect();
        assert_eq!(paths, ["/w/src/b.py", "/w/src/nl\n.py"]);
        assert_eq!(found.gaps, [Gap::Unreadable(3), Gap::NotUtf8(1)]);
    }

    #[test]
    fn what_came_before_a_cut_counts() {
        let found = look("*", &answer(b"./a\x00./b\x00./half", true)).unwrap();
        assert_eq!((found.paths.len(), found.gaps), (2, vec![Gap::TimeLimit]));
        let mut output = Collector::new(32);
        output.push(b"./aaaa\x00./bbbb\x00./cccccccccccccccccccccc\x00./d\x00\x000\x00");
        let cut = Answer {
            output: output.finish(),
            timed_out: false,
        };
        let found = look("*", &cut).unwrap();
        let paths: Vec<_> = found.paths.iter().map(SandboxPath::as_str).collect();
        assert_eq!(paths, ["/w/aaaa", "/w/bbbb", "/w/d"]);
        assert_eq!(found.gaps, [Gap::OutputLimit]);
    }

    #[test]
    fn one_match_more_than_the_limit_is_truncated() {
        for (count, gaps) in [(10_000, vec![]), (10_001, vec![Gap::MatchLimit(10_000)])] {
            let mut output: Vec<u8> = (0..count)
                .flat_map(|n| format!("./{n}\0").into_bytes())
                .collect();
            output.extend(b"\x000\x00");
            let found = look("*", &answer(&output, false)).unwrap();
            assert_eq!((found.paths.len(), found.gaps), (10_000, gaps));
        }
    }

    #[test]
    fn hostile_answers_are_errors() {
        for output in [
            &b""[..],
            b"./a\x00",
            b"/etc/passwd\x00\x000\x00",
            b"./../x\x00\x000\x00",
            b"./a//b\x00\x000\x00",
            b"\x00x\x00",
            b"\x000\x00./a\x00",
            b"\x000\x00a",
        ] {
            let e = look("*", &answer(output, false)).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Protocol, "{output:?}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_panics(output in prop::collection::vec(prop::sample::select(&b"./a0\x00\xff"[..]), 0..60), timed_out in any::<bool>()) {
            let _ = look("**/*", &answer(&output, timed_out));
        }
    }
}
