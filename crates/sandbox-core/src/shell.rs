//! Shell text: the one place that quotes, and the one script that kills a process tree.

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

/// The argv that runs shell text of any length with the semantics of `sh -c TEXT`.
///
/// Text beyond [`MAX_ARGUMENT`] travels in parts and is put together by the shell itself. The
/// arguments of one program are bounded in sum too, by Linux at 2 MiB by default: core moves text
/// beyond [`crate::Capabilities::execute_max_text`] through a file.
pub fn shell_argv(text: &str) -> Vec<String> {
    let mut argv = vec!["sh".to_owned(), "-c".to_owned()];
    if text.len() <= MAX_ARGUMENT {
        argv.push(text.to_owned());
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
    argv.push(format!(
        "set -- \"{names}\"; eval \"shift
$1\""
    ));
    argv.push("sh".to_owned());
    argv.extend(parts);
    argv
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
