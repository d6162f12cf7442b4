//! `edit`: exact replacement of text in the bytes of a file, for every implementation.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use memchr::memmem;

use super::install::{self, Replaced, Source};
use super::script::HELD;
use crate::files::{EditReport, WriteMode};
use crate::{Error, ErrorKind, FileDownload, Result, SandboxBackend, SandboxId, SandboxPath, call};

/// How often an edit starts anew when another process was faster.
const TRIES: u32 = 10;

/// See [`crate::Sandbox::edit`].
///
/// One command does it in the sandbox where it can do so exactly. Where it can't, its answer is the
/// content; the replacement is made here, and a second command puts it in place if the file still
/// holds what was read. Both work under a lock in the sandbox. Edits of this process take turns.
///
/// # Errors
///
/// As there.
pub async fn edit(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    old: &str,
    new: &str,
    replace_all: bool,
) -> Result<EditReport> {
    let turn = turn(backend.id(), path);
    let _turn = turn.lock().await;
    let needle = searched(old).map_err(|e| e.with("path", path))?;
    // In a file without a CR all line ends of a match are LF.
    let plain = if needle == old || !needle.contains('\n') {
        Cow::Borrowed(new)
    } else {
        Cow::Owned(new.replace("\r\n", "\n"))
    };
    let mut tries = 1;
    loop {
        let content = match install::replace(backend, path, &needle, &plain, replace_all).await {
            Some(Ok(Replaced::Times(n))) => {
                return times(n, replace_all)
                    .map(|()| EditReport::new(n))
                    .map_err(|e| e.with("path", path));
            }
            Some(Ok(Replaced::Unknown(content))) => content,
            Some(Err(e)) => return Err(e),
            None => read_all(backend, path).await?,
        };
        let (edited, replaced) =
            apply(&content, old, new, replace_all).map_err(|e| e.with("path", path))?;
        let source = Source::Edit(&content, &edited);
        match install::install(backend, path, source, WriteMode::Overwrite).await {
            Err(e)
                if e.kind() == ErrorKind::Conflict
                    && e.context(HELD).is_none()
                    && tries < TRIES =>
            {
                // Others are at it too; not all of them at the same moment again.
                let spread = u64::from(std::process::id() % 23);
                tokio::time::sleep(Duration::from_millis(u64::from(tries) * 10 + spread)).await;
                tries += 1;
            }
            result => return result.map(|()| EditReport::new(replaced)),
        }
    }
}

async fn read_all(backend: &dyn SandboxBackend, path: &SandboxPath) -> Result<Bytes> {
    call::download_files(backend, &[FileDownload::new(path.clone())])
        .await
        .pop()
        .unwrap_or_else(|| {
            Err(Error::new(
                ErrorKind::Protocol,
                "the backend answered nothing",
            ))
        })
}

/// The lock of a file for the edits of this process.
fn turn(id: &SandboxId, path: &SandboxPath) -> Arc<tokio::sync::Mutex<()>> {
    type Turns = HashMap<(SandboxId, SandboxPath), Weak<tokio::sync::Mutex<()>>>;
    static TURNS: LazyLock<Mutex<Turns>> = LazyLock::new(Mutex::default);
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(turn) = turns
        .get(&(id.clone(), path.clone()))
        .and_then(Weak::upgrade)
    {
        return turn;
    }
    turns.retain(|_, turn| turn.strong_count() > 0);
    let turn = Arc::default();
    turns.insert((id.clone(), path.clone()), Arc::downgrade(&turn));
    turn
}

/// Replaces `old` by `new` in `content`: once, or everywhere with `replace_all`, from left to
/// right and without overlaps. Gives the new content and how often.
///
/// Bytes are compared, but a line end (LF or CRLF) in `old` matches either kind. Where it matched
/// the other kind, the line ends of `new` become what was matched. An `old` within one line leaves
/// that line's end as it is: in a CRLF line the LFs of `new` become CRLF.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`] for an empty `old`, [`ErrorKind::NoMatch`],
/// [`ErrorKind::NotUnique`] with the count.
pub fn apply(content: &[u8], old: &str, new: &str, replace_all: bool) -> Result<(Vec<u8>, u64)> {
    let needle = searched(old)?;
    // Searched with all line ends as LF; the matches are brought back to `content` below.
    let plain = plain_line_ends(content);
    let starts: Vec<usize> = memmem::find_iter(&plain, needle.as_ref()).collect();
    let replaced = starts.len() as u64;
    times(replaced, replace_all)?;
    let (lf, crlf) = (new.replace("\r\n", "\n"), in_crlf(new));
    let mut edited = Vec::with_capacity(content.len() + new.len());
    let mut raw = Walk {
        content,
        at: 0,
        plain_at: 0,
    };
    let mut kept = 0;
    for start in starts {
        let from = raw.to(start);
        let to = raw.to(start + needle.len());
        let matched = &content[from..to];
        edited.extend_from_slice(&content[kept..from]);
        let text = match line_end(matched) {
            _ if matched == old.as_bytes() && needle.contains('\n') => new,
            Some(LineEnd::Crlf) => &crlf,
            Some(LineEnd::Lf) => &lf,
            None if end_of_line(content, from, to) == Some(LineEnd::Crlf) => &crlf,
            None => new,
        };
        edited.extend_from_slice(text.as_bytes());
        kept = to;
    }
    edited.extend_from_slice(&content[kept..]);
    Ok((edited, replaced))
}

/// What is searched for `old`: every CRLF as LF.
fn searched(old: &str) -> Result<Cow<'_, str>> {
    if old.is_empty() {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            "the text to replace is empty",
        ));
    }
    Ok(if old.contains("\r\n") {
        Cow::Owned(old.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(old)
    })
}

/// Whether text that is there `n` times can be replaced.
fn times(n: u64, replace_all: bool) -> Result<()> {
    match n {
        0 => Err(Error::new(
            ErrorKind::NoMatch,
            "the text to replace is not in the file: read it again",
        )),
        n if n > 1 && !replace_all => Err(Error::new(
            ErrorKind::NotUnique,
            format!(
                "the text to replace is in the file {n} times: give more of it, or replace all"
            ),
        )
        .with("count", n)),
        _ => Ok(()),
    }
}

/// `content` with every CRLF as LF.
fn plain_line_ends(content: &[u8]) -> Cow<'_, [u8]> {
    let mut ends = memmem::find_iter(content, b"\r\n").peekable();
    if ends.peek().is_none() {
        return Cow::Borrowed(content);
    }
    let mut plain = Vec::with_capacity(content.len());
    let mut at = 0;
    for end in ends {
        plain.extend_from_slice(&content[at..end]);
        at = end + 1;
    }
    plain.extend_from_slice(&content[at..]);
    Cow::Owned(plain)
}

/// Every line end as CRLF.
fn in_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Brings offsets in the plain content, which only grow, back to the content.
struct Walk<'a> {
    content: &'a [u8],
    at: usize,
    plain_at: usize,
}

impl Walk<'_> {
    fn to(&mut self, plain: usize) -> usize {
        while self.plain_at < plain {
            let rest = &self.content[self.at..];
            let gap = plain - self.plain_at;
            // Up to the next CRLF both advance alike.
            let same = memmem::find(&rest[..rest.len().min(gap + 1)], b"\r\n").unwrap_or(gap);
            if same >= gap {
                self.at += gap;
                self.plain_at = plain;
            } else {
                self.at += same + 2;
                self.plain_at += same + 1;
            }
        }
        self.at
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Lf,
    Crlf,
}

/// The first line end in `bytes`.
fn line_end(bytes: &[u8]) -> Option<LineEnd> {
    let lf = memchr::memchr(b'\n', bytes)?;
    Some(if bytes[..lf].ends_with(b"\r") {
        LineEnd::Crlf
    } else {
        LineEnd::Lf
    })
}

/// The end of the line that `from..to` is in; of the last line, the one before.
fn end_of_line(content: &[u8], from: usize, to: usize) -> Option<LineEnd> {
    line_end(&content[to..]).or_else(|| {
        let lf = memchr::memrchr(b'\n', &content[..from])?;
        line_end(&content[lf.saturating_sub(1)..=lf])
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(content: &[u8], old: &str, new: &str) -> (Vec<u8>, u64) {
        apply(content, old, new, true).unwrap()
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        for (content, old, new, edited) in [
            (
                &b"a\r\nb\r\nc\r\n"[..],
                "a\nb",
                "x\ny",
                &b"x\r\ny\r\nc\r\n"[..],
            ),
            (b"a\nb\r\nc\n", "b", "B", b"a\nB\r\nc\n"),
            (b"a\r\nb\r\n", "b", "b\nc", b"a\r\nb\r\nc\r\n"),
            (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
            (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
            (b"a\r\nb\r\n", "a\r\nb", "x\ny", b"x\ny\r\n"),
            (b"a\r\nb", "\nb", "\nB", b"a\r\nB"),
            (b"a\r\n", "a\n", "", b""),
            (b"a\nb", "b", "c\r\nd", b"a\nc\r\nd"),
            (b"a\nb", "b", "c", b"a\nc"),
            (b"a\r\rb", "\r", "x", b"axxb"),
        ] {
            assert_eq!(all(content, old, new).0, edited, "{content:?} {old:?}");
        }
    }

    #[test]
    fn counts_and_never_interprets() {
        assert_eq!(all(b"aaaa", "aa", "b"), (b"bb".to_vec(), 2));
        assert_eq!(
            all(b"foo foo foo", "foo", "foofoo").0,
            b"foofoo foofoo foofoo"
        );
        assert_eq!(
            all(b"X", "X", r"$& $1 $$ \1 \0 \n & ${x}").0,
            br"$& $1 $$ \1 \0 \n & ${x}"
        );
        assert_eq!(all(b"a.*b[c](d)?^$|\\", r"a.*b[c](d)?^$|\", "").0, b"");
        let e = apply(b"foo foo foo", "foo", "bar", false).unwrap_err();
        assert_eq!(
            (e.kind(), e.context("count")),
            (ErrorKind::NotUnique, Some("3"))
        );
        for (old, kind) in [
            ("", ErrorKind::InvalidArgument),
            ("b\n", ErrorKind::NoMatch),
        ] {
            assert_eq!(apply(b"a\nb", old, "x", true).unwrap_err().kind(), kind);
        }
    }

    #[test]
    fn other_encodings_and_marks_survive() {
        assert_eq!(all(b"caf\xe9\nx=1\n", "x=1", "x=2").0, b"caf\xe9\nx=2\n");
        assert_eq!(
            all(b"\xef\xbb\xbffirst\nsecond\n", "first", "FIRST").0,
            b"\xef\xbb\xbfFIRST\nsecond\n"
        );
        let text = "İıſß👩‍👩‍👧‍👦ﬁe\u{301}";
        assert_eq!(
            all(text.as_bytes(), "ß", "ss").0,
            text.replace('ß', "ss").as_bytes()
        );
        assert_eq!(
            all(text.as_bytes(), "👩‍👩‍👧‍👦", "x").0,
            text.replace("👩‍👩‍👧‍👦", "x").as_bytes()
        );
    }

    #[test]
    fn edits_of_one_file_take_turns_and_leave_nothing() {
        let id = SandboxId::new("s");
        let path = SandboxPath::new("/a").unwrap();
        let first = turn(&id, &path);
        assert!(Arc::ptr_eq(&first, &turn(&id, &path)));
        let other = turn(&id, &SandboxPath::new("/b").unwrap());
        assert!(!Arc::ptr_eq(&first, &other));
    }

    proptest! {
        #[test]
        fn without_cr_it_is_what_str_replace_does(
            content in "[ab\n]{0,20}", old in "[ab\n]{1,3}", new in "[ab\n]{0,3}",
        ) {
            let count = content.matches(&old).count() as u64;
            match apply(content.as_bytes(), &old, &new, true) {
                Ok((edited, n)) => {
                    prop_assert_eq!(edited, content.replace(&old, &new).into_bytes());
                    prop_assert_eq!(n, count);
                }
                Err(e) => prop_assert_eq!((e.kind(), count), (ErrorKind::NoMatch, 0)),
            }
        }

        #[test]
        fn a_crlf_file_is_edited_as_the_lf_file_is(
            content in "[ab\n]{0,20}", old in "[ab\n]{1,3}", new in "[ab\n]{0,3}",
        ) {
            prop_assume!(content.contains('\n'));
            let lf = apply(content.as_bytes(), &old, &new, true);
            let crlf = apply(in_crlf(&content).as_bytes(), &old, &new, true);
            match (lf, crlf) {
                (Ok((lf, n)), Ok((crlf, m))) => {
                    prop_assert_eq!(in_crlf(&String::from_utf8(lf).unwrap()).into_bytes(), crlf);
                    prop_assert_eq!(n, m);
                }
                (lf, crlf) => prop_assert_eq!(lf.is_err(), crlf.is_err()),
            }
        }

        #[test]
        fn what_is_not_matched_is_not_touched(
            content in prop::collection::vec(prop::sample::select(&b"ab\r\n\xff"[..]), 0..20),
            old in "[ab\r\n]{1,3}",
        ) {
            if let Ok((edited, n)) = apply(&content, &old, "", true) {
                prop_assert!(edited.len() + usize::try_from(n).unwrap() <= content.len());
            }
        }
    }
}
