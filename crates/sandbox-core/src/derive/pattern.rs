//! Glob patterns over paths, for every implementation.

use crate::{Error, ErrorKind, Result};

/// The longest pattern, in bytes: a path is not longer.
const MAX_BYTES: usize = 4096;

/// Patterns that braces may expand to (Deep Agents' number).
const MAX_ALTERNATIVES: usize = 1000;

/// A pattern of [`crate::Sandbox::glob`].
///
/// - Without `/` it is matched against the base name, at any depth, below hidden directories too.
/// - With `/` it is matched against the path relative to the root; a leading `/` says no more than
///   that. `**` as a whole component is any number of directories, none of them hidden; at the end
///   it is all that lies below.
/// - `*` and `?` never match `/`; `[a-z]`, `[!a]` and `[^a]`; `{a,b}`, nested too. What does not
///   close (`[a`, `{a`) and a group without a comma (`{a}`) stand for themselves. There is no
///   escape: write `[*]`.
/// - A name with a leading dot is matched only by a component that begins with a dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Whether base names are matched.
    base: bool,
    alternatives: Vec<Vec<Component>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Component {
    /// `**`.
    Directories,
    Name(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    /// `?`
    One,
    /// `*`
    Many,
    /// A set in brackets: whether it is negated, and its ranges.
    Set(bool, Vec<(char, char)>),
}

/// What a search may leave out without missing a match.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Directories that every match lies in.
    pub(crate) prefix: Vec<String>,
    /// How deep below them matches lie at most.
    pub(crate) depth: Option<usize>,
    /// What names match, in a form with `*` alone that every tool reads alike; never empty.
    pub(crate) names: Vec<String>,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidPattern`] if it is empty, too long, holds NUL or a `..` component, or
    /// has braces that expand to more than 1,000 patterns.
    pub fn new(pattern: &str) -> Result<Self> {
        let invalid = |why: &'static str| {
            let shown: String = pattern.chars().take(200).collect();
            Error::new(ErrorKind::InvalidPattern, why).with("pattern", shown)
        };
        if pattern.is_empty() {
            return Err(invalid("the pattern is empty"));
        }
        if pattern.len() > MAX_BYTES {
            return Err(invalid("the pattern is longer than 4096 bytes"));
        }
        if pattern.contains('\0') {
            return Err(invalid("the pattern holds a NUL character"));
        }
        let expanded = expand(pattern).ok_or_else(|| {
            invalid("the braces of the pattern expand to more than 1000 patterns")
        })?;
        if expanded.iter().any(|p| p.split('/').any(|c| c == "..")) {
            return Err(invalid("the pattern holds `..`: search from a higher root"));
        }
        let base = !pattern.contains('/');
        let alternatives = expanded
            .iter()
            .filter_map(|p| components(p, base))
            .collect();
        Ok(Self { base, alternatives })
    }

    /// Whether the file at `relative`, a path below the root without a leading `/`, is matched.
    pub fn matches(&self, relative: &str) -> bool {
        if self.base {
            let name = relative.rsplit('/').next().unwrap_or(relative);
            return self.alternatives.iter().any(|a| match a.as_slice() {
                [Component::Name(tokens)] => matches_name(tokens, name),
                _ => false,
            });
        }
        let names: Vec<&str> = relative.split('/').filter(|n| !n.is_empty()).collect();
        self.alternatives.iter().any(|a| matches_path(a, &names))
    }

    /// Whether matches can lie in the directory at `relative`, a path below the root: whether a
    /// search has to look into it.
    pub fn searches(&self, relative: &str) -> bool {
        let scope = self.scope();
        let names: Vec<&str> = relative.split('/').filter(|n| !n.is_empty()).collect();
        let on_the_way = scope.prefix.iter().zip(&names).all(|(p, n)| p == n);
        let below = names.len().saturating_sub(scope.prefix.len());
        on_the_way && scope.depth.is_none_or(|depth| below < depth)
    }

    /// Where matches can lie.
    pub(crate) fn scope(&self) -> Scope {
        let mut names: Vec<String> = self
            .alternatives
            .iter()
            .map(|a| match a.last() {
                Some(Component::Name(tokens)) => loose(tokens),
                _ => "*".to_owned(),
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        // One that every name passes makes the others useless, and so do too many.
        if names.is_empty() || names.len() > 64 || names.iter().any(|n| n == "*") {
            names = vec!["*".to_owned()];
        }
        if self.base {
            return Scope {
                prefix: Vec::new(),
                depth: None,
                names,
            };
        }
        let mut prefix: Option<Vec<String>> = None;
        for alternative in &self.alternatives {
            let parents = &alternative[..alternative.len() - 1];
            let literal: Vec<String> = parents.iter().map_while(literal).collect();
            prefix = Some(match prefix {
                None => literal,
                Some(p) => p
                    .into_iter()
                    .zip(literal)
                    .take_while(|(a, b)| a == b)
                    .map(|(a, _)| a)
                    .collect(),
            });
        }
        let prefix = prefix.unwrap_or_default();
        let any_depth = self
            .alternatives
            .iter()
            .any(|a| a.contains(&Component::Directories));
        let deepest = self.alternatives.iter().map(Vec::len).max().unwrap_or(1);
        let depth = (!any_depth).then_some(deepest - prefix.len());
        Scope {
            prefix,
            depth,
            names,
        }
    }
}

/// Expands braces as a shell does; `None` beyond [`MAX_ALTERNATIVES`].
fn expand(pattern: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    // Each with the place from which on braces are not looked at yet.
    let mut todo = vec![(pattern.to_owned(), 0)];
    while let Some((text, from)) = todo.pop() {
        let Some(open) = text[from..].find('{').map(|at| from + at) else {
            done.push(text);
            if done.len() + todo.len() > MAX_ALTERNATIVES {
                return None;
            }
            continue;
        };
        match group(&text[open..]) {
            Some((parts, len)) if parts.len() > 1 => {
                if done.len() + todo.len() + parts.len() > MAX_ALTERNATIVES {
                    return None;
                }
                let rest = &text[open + len..];
                todo.extend(
                    parts
                        .iter()
                        .map(|part| (format!("{}{part}{rest}", &text[..open]), open)),
                );
            }
            // A brace that stands for itself.
            _ => todo.push((text, open + 1)),
        }
    }
    Some(done)
}

/// The alternatives of the group that `text` begins with, and its length.
fn group(text: &str) -> Option<(Vec<&str>, usize)> {
    let (mut depth, mut start, mut parts) = (0usize, 1, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b',' if depth == 1 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            b'}' if depth == 1 => {
                parts.push(&text[start..at]);
                return Some((parts, at + 1));
            }
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The components of an expanded pattern; `None` for one that only directories match.
fn components(pattern: &str, base: bool) -> Option<Vec<Component>> {
    if base {
        return Some(vec![Component::Name(tokens(pattern))]);
    }
    let mut components = Vec::new();
    for part in pattern.split('/') {
        match part {
            "" | "." => {}
            "**" if components.last() == Some(&Component::Directories) => {}
            "**" => components.push(Component::Directories),
            name => components.push(Component::Name(tokens(name))),
        }
    }
    let directories_only =
        pattern.ends_with('/') && components.last() != Some(&Component::Directories);
    (!components.is_empty() && !directories_only).then_some(components)
}

fn tokens(name: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        tokens.push(match first {
            '*' if tokens.last() == Some(&Token::Many) => continue,
            '*' => Token::Many,
            '?' => Token::One,
            '[' => match set(rest) {
                Some((set, len)) => {
                    rest = &rest[len..];
                    set
                }
                None => Token::Char('['),
            },
            other => Token::Char(other),
        });
    }
    tokens
}

/// The set whose `[` is just before `text`, and the length up to behind its `]`.
fn set(text: &str) -> Option<(Token, usize)> {
    let negated = text.starts_with(['!', '^']);
    let body = &text[usize::from(negated)..];
    // A `]` in the first place is a member.
    let close = body.char_indices().skip(1).find(|(_, c)| *c == ']')?.0;
    let members: Vec<char> = body[..close].chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < members.len() {
        if let [low, '-', high, ..] = members[at..] {
            ranges.push((low, high));
            at += 3;
        } else {
            ranges.push((members[at], members[at]));
            at += 1;
        }
    }
    let len = usize::from(negated) + close + 1;
    Some((Token::Set(negated, ranges), len))
}

/// Whether a path is matched: all components are tried at once, so that no pattern takes longer
/// than its length times the path's.
fn matches_path(pattern: &[Component], names: &[&str]) -> bool {
    let mut states = vec![false; pattern.len() + 1];
    states[0] = true;
    skip_directories(pattern, &mut states);
    for name in names {
        let mut next = vec![false; states.len()];
        for (at, component) in pattern.iter().enumerate().filter(|(at, _)| states[*at]) {
            match component {
                Component::Directories if name.starts_with('.') => {}
                Component::Directories => {
                    next[at] = true;
                    // At the end it stands for one name at least.
                    if at + 1 == pattern.len() {
                        next[at + 1] = true;
                    }
                }
                Component::Name(tokens) if matches_name(tokens, name) => next[at + 1] = true,
                Component::Name(_) => {}
            }
        }
        states = next;
        skip_directories(pattern, &mut states);
    }
    states[pattern.len()]
}

/// `**` before something stands for no directory too.
fn skip_directories(pattern: &[Component], states: &mut [bool]) {
    for at in 0..pattern.len().saturating_sub(1) {
        if states[at] && pattern[at] == Component::Directories {
            states[at + 1] = true;
        }
    }
}

fn matches_name(pattern: &[Token], name: &str) -> bool {
    if name.starts_with('.') && pattern.first() != Some(&Token::Char('.')) {
        return false;
    }
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Where the last `*` is, and how far it reaches.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let matched = match pattern.get(p) {
            Some(Token::Many) => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some(Token::Char(c)) => *c == name[n],
            Some(Token::One) => true,
            Some(Token::Set(negated, ranges)) => {
                ranges.iter().any(|(a, b)| (a..=b).contains(&&name[n])) != *negated
            }
            None => false,
        };
        if matched {
            p += 1;
            n += 1;
        } else if let Some((at, reach)) = star {
            star = Some((at, reach + 1));
            p = at + 1;
            n = reach + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|t| *t == Token::Many)
}

/// The name that a component stands for alone.
fn literal(component: &Component) -> Option<String> {
    let Component::Name(tokens) = component else {
        return None;
    };
    tokens
        .iter()
        .map(|t| match t {
            Token::Char(c) => Some(*c),
            _ => None,
        })
        .collect()
}

/// A pattern of `*` and plain characters that matches at least what `tokens` match: all that the
/// tools' own patterns agree on, whatever the locale.
fn loose(tokens: &[Token]) -> String {
    let mut loose = String::new();
    for token in tokens {
        match token {
            Token::Char(c) if !matches!(c, '*' | '?' | '[' | ']' | '\\') => loose.push(*c),
            _ if loose.ends_with('*') => {}
            _ => loose.push('*'),
        }
    }
    loose
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found<'a>(pattern: &str, tree: &[&'a str]) -> Vec<&'a str> {
        let pattern = Pattern::new(pattern).unwrap();
        tree.iter()
            .copied()
            .filter(|p| pattern.matches(p))
            .collect()
    }

    const TREE: [&str; 4] = ["t.py", "src/a.py", "src/x/b.py", "src/x/y/c.py"];

    #[test]
    fn what_a_double_star_means() {
        for (pattern, count) in [
            ("**/*.py", 4),
            ("src/**/*.py", 3),
            ("src/**", 3),
            ("**", 4),
            ("**/**/", 4),
            ("src/*.py", 1),
            ("*.py", 4),
            ("/*.py", 1),
            ("**/x/**", 2),
            ("src/**/a.py", 1),
            ("**/a.py", 1),
            ("src/x/*.py", 1),
            ("s*c/a.py", 1),
            ("src?a.py", 0),
            ("[!x]/b.py", 0),
            ("src[/]a.py", 0),
            ("src/", 0),
            ("./src//a.py", 1),
            ("/src/*.py", 1),
            ("/w/src/*.py", 0),
            ("t.py/**", 0),
            ("{t,src/x/b}.py", 2),
            ("{src/{a,x/{b,y/c}},t}.py", 4),
        ] {
            assert_eq!(found(pattern, &TREE).len(), count, "{pattern}");
        }
        assert_eq!(found("**/x/**", &TREE), ["src/x/b.py", "src/x/y/c.py"]);
    }

    #[test]
    fn hidden_names_need_a_dot() {
        let tree = [".env", ".github/w/x.yml", "d/.h.py", "d/v.py"];
        for (pattern, files) in [
            ("*", &["d/v.py", ".github/w/x.yml"][..]),
            (".*", &[".env", "d/.h.py"]),
            ("*.yml", &[".github/w/x.yml"]),
            ("**/*.yml", &[]),
            (".github/**", &[".github/w/x.yml"]),
            ("*.py", &["d/v.py"]),
            ("[.]env", &[]),
            ("{.e,x}*", &[".env", ".github/w/x.yml"]),
            ("d/**", &["d/v.py"]),
        ] {
            let mut expected = files.to_vec();
            expected.sort_unstable();
            let mut found = found(pattern, &tree);
            found.sort_unstable();
            assert_eq!(found, expected, "{pattern}");
        }
    }

    #[test]
    fn sets_and_what_stands_for_itself() {
        for (pattern, name, matched) in [
            ("[a-c]", "b", true),
            ("[!a-c]", "b", false),
            ("[^a]", "b", true),
            ("[^a]", "a", false),
            ("[]]", "]", true),
            ("[!]]", "]", false),
            ("[a-]", "-", true),
            ("[c-a]", "b", false),
            ("[*]", "*", true),
            ("[*]", "x", false),
            ("[a", "[a", true),
            ("{a", "{a", true),
            ("{path}.txt", "{path}.txt", true),
            ("{{a,b}}", "{b}", true),
            ("{a,{b,c}", "{a,b", true),
            ("{a,}x", "x", true),
            ("a\\b", "a\\b", true),
            ("?", "漢", true),
            ("[é-ü]", "ö", true),
            ("a*b*c", "a.b.b.c", true),
            ("a*b*c", "a.b.b", false),
        ] {
            let found = Pattern::new(pattern).unwrap().matches(name);
            assert_eq!(found, matched, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_refused() {
        for pattern in [
            "",
            "../*",
            "a/../b",
            "{..,a}/b",
            "a\0",
            &"{a,b}".repeat(10),
            &"x".repeat(4097),
        ] {
            let e = Pattern::new(pattern).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidPattern, "{pattern}");
        }
        assert!(Pattern::new("..a/b..").is_ok());
        // Neither deep nor wide braces and stars take long.
        assert!(Pattern::new(&"{".repeat(4096)).is_ok());
        let stars = Pattern::new(&"*a".repeat(2000)).unwrap();
        assert!(!stars.matches(&"a".repeat(1000)));
        let dirs = Pattern::new(&("**/*/".repeat(500) + "x")).unwrap();
        assert!(!dirs.matches(&["a"; 400].join("/")));
    }

    #[test]
    fn a_scope_leaves_out_what_can_not_match() {
        let scope = |p: &str| Pattern::new(p).unwrap().scope();
        let s = scope("src/x/*.p?");
        assert_eq!(
            (s.prefix.join("/"), s.depth, s.names),
            ("src/x".into(), Some(1), vec!["*.p*".into()])
        );
        let s = scope("{src/a,src/b/c}/**/[ab].py");
        assert_eq!(
            (s.prefix.join("/"), s.depth, s.names),
            ("src".into(), None, vec!["*.py".into()])
        );
        let s = scope("src/**");
        assert_eq!(
            (s.prefix.join("/"), s.names),
            ("src".into(), vec!["*".into()])
        );
        let s = scope("*.{rs,py}");
        assert_eq!(
            (s.prefix.len(), s.depth, s.names.join(" ")),
            (0, None, "*.py *.rs".into())
        );
    }

    /// Deep Agents' matcher, by recursion.
    fn reference(pattern: &[&str], names: &[&str]) -> bool {
        match pattern {
            [] => names.is_empty(),
            ["**"] => !names.is_empty() && names.iter().all(|n| !n.starts_with('.')),
            ["**", rest @ ..] => {
                reference(rest, names)
                    || names.first().is_some_and(|n| !n.starts_with('.'))
                        && reference(pattern, &names[1..])
            }
            [name, rest @ ..] => {
                names.first().is_some_and(|n| {
                    (!n.starts_with('.') || name.starts_with('.')) && reference_name(name, n)
                }) && reference(rest, &names[1..])
            }
        }
    }

    fn reference_name(pattern: &str, name: &str) -> bool {
        let mut globs = globset::GlobBuilder::new(pattern);
        globs
            .backslash_escape(false)
            .build()
            .unwrap()
            .compile_matcher()
            .is_match(name)
    }

    proptest! {
        #[test]
        fn matches_as_the_reference_does(
            pattern in prop::collection::vec(
                prop::sample::select(&["**", "*", "a", "*b", ".*", "?b", "[ab]", "[!a]*", ".a", "a*a*b"][..]), 1..5),
            names in prop::collection::vec(
                prop::sample::select(&["a", "b", "ab", "aab", "abab", ".a", ".ab"][..]), 1..5),
        ) {
            let text = format!("/{}", pattern.join("/"));
            let mut collapsed = pattern.clone();
            collapsed.dedup_by(|a, b| a == b && *a == "**");
            let read = Pattern::new(&text).unwrap();
            let matched = read.matches(&names.join("/"));
            prop_assert_eq!(matched, reference(&collapsed, &names));
            if matched {
                // The scope holds every match.
                let scope = read.scope();
                prop_assert!(scope.prefix.iter().zip(&names).all(|(a, b)| a == b));
                prop_assert!(scope.depth.is_none_or(|d| names.len() <= d + scope.prefix.len()));
                prop_assert!(scope.names.iter().any(|n| reference_name(n, names[names.len() - 1])));
            }
        }

        #[test]
        fn no_pattern_panics(pattern in "\\PC{0,30}", braces in "[{},a*\\[\\]!/.-]{0,30}", path in "\\PC{0,20}") {
            for pattern in [pattern, braces] {
                if let Ok(pattern) = Pattern::new(&pattern) {
                    let _ = pattern.matches(&path);
                    let _ = pattern.scope();
                }
            }
        }
    }
}
