//! Patterns for the last name of a path: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, `\` before a sign
//! that is to mean itself. There is no `/` in a name, so `**/` before and `/**` after the pattern
//! stand for nothing, and a pattern with any other `/` matches no name.

/// What a pattern that can't be read is answered with.
const BAD: &str = "syntax error in pattern";
/// How many patterns one with braces may stand for.
const ALTERNATIVES: usize = 1024;

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Literal(char),
    One,
    Any,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// A pattern that has been read.
#[derive(Debug)]
pub(super) struct Glob {
    alternatives: Vec<Vec<Token>>,
}

impl Glob {
    /// # Errors
    ///
    /// When the pattern can't be read, or has too many alternatives.
    pub(super) fn new(pattern: &str) -> Result<Self, &'static str> {
        let mut alternatives = Vec::new();
        // Patterns whose braces are still to be taken apart.
        let mut left = vec![pattern.to_owned()];
        let mut expanded = 0;
        while let Some(pattern) = left.pop() {
            expanded += 1;
            if expanded > ALTERNATIVES || pattern.len() > 64 * 1024 {
                return Err("too many alternatives in pattern");
            }
            match braces(&pattern)? {
                Some((before, inner, after)) => {
                    for choice in inner.iter().rev() {
                        left.push(format!("{before}{choice}{after}"));
                    }
                }
                None => alternatives.push(tokens(&pattern)?),
            }
        }
        Ok(Self { alternatives })
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        self.alternatives
            .iter()
            .any(|tokens| matches(tokens, &name))
    }
}

/// What stands before a pair of braces, the choices in it, and what stands after it.
type Braces<'a> = (&'a str, Vec<&'a str>, &'a str);

/// The first pair of braces.
fn braces(pattern: &str) -> Result<Option<Braces<'_>>, &'static str> {
    let bytes = pattern.as_bytes();
    let (mut open, mut depth, mut at, mut start) = (None, 0, 0, 0);
    let mut choices = Vec::new();
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'[' if depth == 0 => at = class_end(pattern, at)?,
            b'{' => {
                depth += 1;
                if depth == 1 {
                    open = Some(at);
                    start = at + 1;
                }
            }
            b',' if depth == 1 => {
                choices.push(&pattern[start..at]);
                start = at + 1;
            }
            b'}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    choices.push(&pattern[start..at]);
                    let before = &pattern[..open.unwrap_or(0)];
                    return Ok(Some((before, choices, &pattern[at + 1..])));
                }
            }
            _ => {}
        }
        at += 1;
    }
    if depth > 0 { Err(BAD) } else { Ok(None) }
}

/// Where the class that begins at `open` ends.
fn class_end(pattern: &str, open: usize) -> Result<usize, &'static str> {
    let bytes = pattern.as_bytes();
    let mut at = open + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b']' => return Ok(at),
            _ => {}
        }
        at += 1;
    }
    Err(BAD)
}

fn tokens(pattern: &str) -> Result<Vec<Token>, &'static str> {
    let mut rest = pattern;
    while let Some(shorter) = rest.strip_prefix("**/") {
        rest = shorter;
    }
    while let Some(shorter) = rest.strip_suffix("/**").filter(|it| !it.ends_with('\\')) {
        rest = shorter;
    }
    let mut signs = rest.chars().peekable();
    let mut out = Vec::new();
    while let Some(sign) = signs.next() {
        out.push(match sign {
            '*' => {
                if out.last() == Some(&Token::Any) {
                    continue;
                }
                Token::Any
            }
            '?' => Token::One,
            '\\' => Token::Literal(signs.next().ok_or(BAD)?),
            '[' => {
                let negated = signs.next_if(|it| matches!(it, '!' | '^')).is_some();
                let mut ranges = Vec::new();
                loop {
                    let low = match signs.next().ok_or(BAD)? {
                        ']' if ranges.is_empty() => return Err(BAD),
                        ']' => break,
                        '\\' => signs.next().ok_or(BAD)?,
                        other => other,
                    };
                    let mut ahead = signs.clone();
                    let high = match (ahead.next(), ahead.next()) {
                        (Some('-'), Some(high)) if high != ']' => {
                            signs.next();
                            match signs.next() {
                                Some('\\') => signs.next().ok_or(BAD)?,
                                other => other.ok_or(BAD)?,
                            }
                        }
                        _ => low,
                    };
                    ranges.push((low, high));
                }
                Token::Class { negated, ranges }
            }
            other => Token::Literal(other),
        });
    }
    Ok(out)
}

fn matches(tokens: &[Token], name: &[char]) -> bool {
    let one = |token: &Token, sign: char| match token {
        Token::Literal(it) => *it == sign,
        Token::One => true,
        Token::Any => false,
        Token::Class { negated, ranges } => {
            ranges
                .iter()
                .any(|(low, high)| (*low..=*high).contains(&sign))
                != *negated
        }
    };
    let (mut token, mut at) = (0, 0);
    // The last star, and how much of the name it takes: all that ever has to be tried anew.
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match tokens.get(token) {
            Some(Token::Any) => {
                star = Some((token, at));
                token += 1;
            }
            Some(it) if one(it, name[at]) => {
                token += 1;
                at += 1;
            }
            _ => match &mut star {
                Some((place, taken)) => {
                    *taken += 1;
                    (token, at) = (*place + 1, *taken);
                }
                None => return false,
            },
        }
    }
    tokens[token.min(tokens.len())..]
        .iter()
        .all(|it| *it == Token::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let glob = Glob::new(pattern).unwrap();
        for name in yes {
            assert!(glob.matches(name), "{pattern} should match {name}");
        }
        for name in no {
            assert!(!glob.matches(name), "{pattern} should not match {name}");
        }
    }

    #[test]
    fn patterns() {
        check("**", &["a", ".hidden", "ü"], &[]);
        check("*.txt", &["a.txt", ".txt"], &["a.txt2", "txt"]);
        check("**/*.txt", &["a.txt"], &["a"]);
        check("d/**/*.txt", &[], &["a.txt", "d"]);
        check("{t1,t2}", &["t1", "t2"], &["t", "t3", "{t1,t2}"]);
        check("{a,b{c,d}}e", &["ae", "bce", "bde"], &["be", "ce"]);
        check("[a-c]?", &["a1", "cü"], &["d1", "a"]);
        check("[!a-c]*", &["d", "dx"], &["a", ""]);
        check("[^a]", &["b"], &["a"]);
        check("\\*", &["*"], &["a"]);
        check("[\\]]", &["]"], &["\\"]);
        check("a*b*c", &["abc", "axbxbxc"], &["ab", "acb"]);
        check("{}", &[""], &["a"]);
        check("☃?", &["☃ü"], &["☃"]);
    }

    #[test]
    fn what_can_not_be_read_is_said_so() {
        for bad in ["[a", "[", "{a", "a\\", "[]", "[a-", "{a,{b}"] {
            assert_eq!(Glob::new(bad).unwrap_err(), BAD, "{bad}");
        }
    }

    #[test]
    fn hostile_patterns_end() {
        assert!(Glob::new(&"{a,b}".repeat(30)).is_err());
        assert!(Glob::new(&"{".repeat(10_000)).is_err());
        let glob = Glob::new(&format!("{}b", "a*".repeat(100))).unwrap();
        assert!(!glob.matches(&"a".repeat(5_000)));
    }
}
