//! What tools say about files, in terms of the contract.

use crate::{Error, ErrorKind};

/// What of a tool's words goes into a message.
const WORDS: usize = 400;

/// A script's words about one file.
pub(super) fn refused(words: &str, done: &str) -> Error {
    if words.trim() == "not a regular file" {
        return Error::new(
            ErrorKind::InvalidPath,
            format!("only regular files are {done}: this is a FIFO, a socket or a device"),
        );
    }
    let kind = kind_of_words(words);
    Error::new(kind, format!("the file could not be {done}")).with("why", shorten(words))
}

/// The kind behind the C library's words for an error number, looked for at the end of a line:
/// what stands before it may be a name that hostile code chose.
fn kind_of_words(words: &str) -> ErrorKind {
    for line in words.lines() {
        let line = line.trim_end();
        let known = [
            ("Permission denied", ErrorKind::PermissionDenied),
            ("Operation not permitted", ErrorKind::PermissionDenied),
            ("Read-only file system", ErrorKind::PermissionDenied),
            ("Is a directory", ErrorKind::IsADirectory),
            ("Not a directory", ErrorKind::NotADirectory),
            ("File exists", ErrorKind::NotADirectory),
            ("No such file or directory", ErrorKind::NotFound),
            ("No such file", ErrorKind::NotFound),
            ("no such file", ErrorKind::NotFound),
            ("nonexistent directory", ErrorKind::NotFound),
            ("Directory nonexistent", ErrorKind::NotFound),
            ("File name too long", ErrorKind::InvalidPath),
            ("Too many levels of symbolic links", ErrorKind::InvalidPath),
            ("No space left on device", ErrorKind::LimitExceeded),
            ("Disk quota exceeded", ErrorKind::LimitExceeded),
            ("Cannot allocate memory", ErrorKind::LimitExceeded),
            ("Resource temporarily unavailable", ErrorKind::LimitExceeded),
            ("Text file busy", ErrorKind::Conflict),
        ];
        if let Some((_, kind)) = known.iter().find(|(end, _)| line.ends_with(end)) {
            return *kind;
        }
        if line.ends_with("not found") {
            return ErrorKind::MissingTool;
        }
    }
    ErrorKind::Unexpected
}

/// The beginning of foreign words, on one line.
fn shorten(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(WORDS)
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_says_an_error_is_not_believed() {
        let words = "sh: 1: cannot create /w/Permission denied: No space left on device";
        assert_eq!(kind_of_words(words), ErrorKind::LimitExceeded);
    }
}
