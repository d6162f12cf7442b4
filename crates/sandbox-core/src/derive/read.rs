//! `read`: pages of a text file, for every implementation.

use bytes::Bytes;

use super::script::{self, Run, garbled, number, script};
use crate::defaults::READ_BYTES;
use crate::files::{ReadOptions, ReadPage, TextPage};
use crate::{Error, ErrorKind, Result, SandboxBackend, SandboxPath};

/// Arguments: the file, the offset, the number of lines, the cap in bytes, `1` for a file of a
/// type that is not text.
///
/// Prints `W` and the whole file if it is not larger than the cap. Else `B` and the size if it is
/// not text, `T`, the number of lines, the size, a newline and at most cap + 4 bytes from the first
/// line on.
const READ: &str = script!(
    r#"need head tail wc stat tr
regular "$1"
n=$(($(head -c "$(($4+1))" -- "$1" | wc -c)))
if [ "$n" -le "$4" ]; then
  printf W; cat -- "$1"; exit 0
fi
if [ -n "$5" ] || [ "$(($(head -c 8192 -- "$1" | tr -d '\000' | wc -c)))" != 8192 ]; then
  printf B; stat -L -c %s -- "$1"; exit 0
fi
l=$(($(wc -l <"$1")))
[ "$(($(tail -c 1 -- "$1" | wc -l)))" = 1 ] || l=$((l+1))
printf 'T%s %s\n' "$l" "$(stat -L -c %s -- "$1")"
[ "$2" -lt "$l" ] || exit 0
tail -n "+$(($2+1))" -- "$1" | head -n "$3" | head -c "$(($4+4))""#
);

/// How often a file that changes while it is read is read again.
const TRIES: usize = 3;

/// Shells count with 63 bits.
const MAX_OFFSET: u64 = 1 << 62;

/// See [`crate::Sandbox::read`].
///
/// # Errors
///
/// As there.
pub async fn read(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    options: ReadOptions,
) -> Result<ReadPage> {
    if options.limit == 0 {
        return Ok(ReadPage::NothingAsked);
    }
    let mut tries = 1;
    loop {
        let run = Run::on(path)
            .arg(options.offset.min(MAX_OFFSET))
            // A line is a byte at least.
            .arg(options.limit.min(READ_BYTES + 1))
            .arg(READ_BYTES)
            .arg(if has_binary_name(path) { "1" } else { "" });
        let answer = script::run(backend, READ, run).await?;
        match parse(path, options, answer.output.bytes()) {
            Err(e) if e.kind() == ErrorKind::Protocol && tries < TRIES => tries += 1,
            result => return result.map_err(|e| e.with("path", path)),
        }
    }
}

fn parse(path: &SandboxPath, options: ReadOptions, answer: &Bytes) -> Result<ReadPage> {
    match answer.first() {
        Some(b'W') if answer.len() as u64 <= READ_BYTES + 1 => {
            page(path, &answer.slice(1..), options)
        }
        Some(b'B') => {
            let size: u64 = number(&answer[1..])?;
            // It shrank after it had been found too large.
            if size <= READ_BYTES {
                return Err(garbled("the size of a file that is too large"));
            }
            Err(too_large(size))
        }
        Some(b'T') => {
            let (head, window) = memchr::memchr(b'\n', answer)
                .map(|end| (&answer[1..end], &answer[end + 1..]))
                .ok_or_else(|| garbled("the number of lines"))?;
            let space = memchr::memchr(b' ', head).ok_or_else(|| garbled("the size"))?;
            window_page(
                number(&head[..space])?,
                number(&head[space..])?,
                window,
                options,
            )
        }
        _ => Err(garbled("the kind of the answer")),
    }
}

/// The page of a file of which `content` is all.
///
/// # Errors
///
/// [`ErrorKind::OffsetPastEnd`] with the number of lines, [`ErrorKind::TooLarge`] for content
/// beyond [`READ_BYTES`] that is not text.
pub fn page(path: &SandboxPath, content: &Bytes, options: ReadOptions) -> Result<ReadPage> {
    if options.limit == 0 {
        return Ok(ReadPage::NothingAsked);
    }
    if content.is_empty() {
        return Ok(ReadPage::Empty);
    }
    let binary = || {
        let size = content.len() as u64;
        if size > READ_BYTES {
            Err(too_large(size))
        } else {
            Ok(ReadPage::Binary(content.clone()))
        }
    };
    if has_binary_name(path) || is_binary(content) {
        return binary();
    }
    let mut total = memchr::memchr_iter(b'\n', content).count() as u64;
    total += u64::from(!content.ends_with(b"\n"));
    let start = match options.offset {
        0 => 0,
        n => usize::try_from(n - 1)
            .ok()
            .and_then(|n| memchr::memchr_iter(b'\n', content).nth(n))
            .map_or(content.len(), |end| end + 1),
    };
    match cut(total, &content[start..], options)? {
        Some(page) => Ok(ReadPage::Text(page)),
        None => binary(),
    }
}

/// The page of a large file: `window` begins at the line `options.offset`, and ends after
/// `options.limit` lines, at the file's end, or beyond [`READ_BYTES`].
fn window_page(total: u64, size: u64, window: &[u8], options: ReadOptions) -> Result<ReadPage> {
    if options.offset < total {
        let lines = memchr::memchr_iter(b'\n', window).count() as u64
            + u64::from(!window.is_empty() && !window.ends_with(b"\n"));
        let wanted = options.limit.min(total - options.offset);
        if lines < wanted && (window.len() as u64) < READ_BYTES {
            return Err(garbled("the number of lines"));
        }
    }
    match cut(total, window, options)? {
        Some(page) => Ok(ReadPage::Text(page)),
        None => Err(too_large(size)),
    }
}

/// Cuts a page off the front of `window`; `None` if its bytes are not text.
fn cut(total: u64, window: &[u8], options: ReadOptions) -> Result<Option<TextPage>> {
    if options.offset >= total {
        return Err(Error::new(
            ErrorKind::OffsetPastEnd,
            format!("the file has {total} lines: use a smaller offset"),
        )
        .with("offset", options.offset)
        .with("lines", total));
    }
    let cap = usize::try_from(READ_BYTES).unwrap_or(usize::MAX);
    let mut text = Vec::new();
    let mut lines = 0u64;
    let mut at = 0;
    let (mut capped, mut line_cut) = (false, false);
    while lines < options.limit && at < window.len() {
        let rest = &window[at..];
        let end = memchr::memchr(b'\n', rest);
        let line = &rest[..end.unwrap_or(rest.len())];
        if at + line.len() > cap {
            capped = true;
            if lines > 0 {
                break;
            }
            // A single line beyond the cap: its beginning, and on with the next one.
            line_cut = true;
        }
        let line = match end {
            Some(_) => line.strip_suffix(b"\r").unwrap_or(line),
            None => line,
        };
        if lines > 0 {
            text.push(b'\n');
        }
        lines += 1;
        if line_cut {
            text.extend_from_slice(whole_characters(&line[..cap.min(line.len())]));
            break;
        }
        text.extend_from_slice(line);
        at += end.map_or(rest.len(), |end| end + 1);
    }
    if options.offset == 0 && text.starts_with(BOM) {
        text.drain(..BOM.len());
    }
    let Ok(text) = String::from_utf8(text) else {
        return Ok(None);
    };
    let start_line = options.offset + 1;
    let mut page = TextPage::new(text, start_line, options.offset + lines, total);
    page.capped = capped;
    page.line_cut = line_cut;
    Ok(Some(page))
}

/// The mark at the beginning of a UTF-8 file; no part of its first line.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// `bytes` without a character that was cut at their end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => &bytes[..e.valid_up_to()],
        _ => bytes,
    }
}

/// True if `content`, or its beginning, is what every operation here takes as not text: there is
/// a NUL in the first 8 KiB.
pub fn is_binary(content: &[u8]) -> bool {
    memchr::memchr(0, &content[..content.len().min(8 << 10)]).is_some()
}

/// True for the types that are handed out as bytes whatever they hold (Deep Agents' list).
pub fn has_binary_name(path: &SandboxPath) -> bool {
    const TYPES: [&str; 26] = [
        "3gpp", "aac", "aiff", "avi", "flac", "flv", "gif", "heic", "heif", "jpeg", "jpg", "mkv",
        "mov", "mp3", "mp4", "mpeg", "mpg", "ogg", "pdf", "png", "ppt", "pptx", "wav", "webm",
        "webp", "wmv",
    ];
    let extension = path
        .file_name()
        .and_then(|name| name.rsplit_once('.'))
        .filter(|(stem, _)| !stem.is_empty())
        .map(|(_, extension)| extension.to_ascii_lowercase());
    extension.is_some_and(|e| TYPES.contains(&e.as_str()))
}

fn too_large(size: u64) -> Error {
    Error::new(
        ErrorKind::TooLarge,
        "the file is not text and larger than `read` hands out: download it",
    )
    .with("bytes", size)
    .with("limit", READ_BYTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn txt() -> SandboxPath {
        SandboxPath::new("/d/a.txt").unwrap()
    }

    fn text(content: &'static [u8], offset: u64, limit: u64) -> TextPage {
        let content = Bytes::from_static(content);
        match page(&txt(), &content, ReadOptions::new(offset, limit)).unwrap() {
            ReadPage::Text(page) => page,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_end_at_lf_and_crlf_only() {
        let page = text(b"a\r\nb\rc\x0b\xe2\x80\xa8d\n\n", 0, 10);
        assert_eq!(page.text, "a\nb\rc\x0b\u{2028}d\n");
        assert_eq!(
            (page.start_line, page.end_line, page.total_lines),
            (1, 3, 3)
        );
        assert_eq!(page.next_offset, None);
        let page = text(b"a\nb\nc", 1, 1);
        assert_eq!((page.text.as_str(), page.next_offset), ("b", Some(2)));
        assert_eq!(text(b"a\nb\r", 1, 5).text, "b\r");
        assert_eq!(text(b"\xef\xbb\xbffirst\n", 0, 5).text, "first");
    }

    #[test]
    fn the_end_and_the_empty_file_say_so() {
        let content = Bytes::from_static(b"a\nb\nc\n");
        for offset in [3, 4, 1 << 63, u64::MAX] {
            let e = page(&txt(), &content, ReadOptions::new(offset, u64::MAX)).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::OffsetPastEnd);
            assert_eq!(e.context("lines"), Some("3"));
        }
        let empty = page(&txt(), &Bytes::new(), ReadOptions::new(7, 1)).unwrap();
        assert_eq!(empty, ReadPage::Empty);
        assert_eq!(text(b"a", 0, 1 << 63).text, "a");
    }

    #[test]
    fn what_is_not_text_comes_as_bytes_up_to_the_cap() {
        let binary = |path: &str, content: Bytes| {
            page(
                &SandboxPath::new(path).unwrap(),
                &content,
                ReadOptions::default(),
            )
        };
        for (path, content) in [
            ("/a.txt", &b"\x89PNG\x0d\x0a"[..]),
            ("/a.PNG", b"text"),
            ("/a", b"a\0b"),
            ("/utf16", b"\xff\xfea\0"),
        ] {
            let content = Bytes::copy_from_slice(content);
            let page = binary(path, content.clone()).unwrap();
            assert_eq!(page, ReadPage::Binary(content));
        }
        let large = Bytes::from(vec![0; 600 << 10]);
        let e = binary("/a", large).unwrap_err();
        assert_eq!(
            (e.kind(), e.context("bytes")),
            (ErrorKind::TooLarge, Some("614400"))
        );
        assert!(matches!(
            binary("/.png", Bytes::from_static(b"x")).unwrap(),
            ReadPage::Text(_)
        ));
    }

    #[test]
    fn a_capped_page_loses_no_line_and_a_huge_line_is_passed() {
        let mut content: Vec<String> = (0..3000).map(|n| format!("{n:0499}")).collect();
        content.extend(["é".repeat(400_000), "end".to_owned()]);
        let content = Bytes::from(content.join("\n"));
        let (mut offset, mut lines) = (0, Vec::new());
        loop {
            let ReadPage::Text(page) =
                page(&txt(), &content, ReadOptions::new(offset, 2000)).unwrap()
            else {
                panic!()
            };
            assert!(page.text.len() as u64 <= READ_BYTES);
            if page.line_cut {
                assert_eq!(page.start_line, 3001);
                assert_eq!(page.text.len() as u64, READ_BYTES);
            } else {
                lines.extend(page.text.split('\n').map(ToOwned::to_owned));
            }
            match page.next_offset {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert_eq!(lines.len(), 3001);
        assert_eq!(lines[2999].trim_start_matches('0'), "2999");
        assert_eq!(lines[3000], "end");
    }

    #[test]
    fn a_window_that_does_not_add_up_is_looked_at_again() {
        let options = ReadOptions::new(5, 10);
        for answer in [
            &b""[..],
            b"X",
            b"T",
            b"Tx\n",
            b"T100\n",
            b"T100 9\na\nb\n",
            b"B12\n",
            b"B-1",
        ] {
            let e = parse(&txt(), options, &Bytes::copy_from_slice(answer)).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Protocol, "{answer:?}");
        }
        let e = parse(&txt(), options, &Bytes::from_static(b"T5 9\n")).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::OffsetPastEnd);
        let e = parse(&txt(), options, &Bytes::from_static(b"B21474836480\n")).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::TooLarge);
    }

    proptest! {
        /// A window is what the script cuts; both ways give the same page.
        #[test]
        fn a_window_and_the_whole_file_give_the_same_page(
            lines in prop::collection::vec("[a-zé\r]{0,8}", 1..30),
            last in any::<bool>(),
            offset in 0u64..30,
            limit in 1u64..40,
        ) {
            let mut content = lines.join("\n");
            if last {
                content.push('\n');
            }
            prop_assume!(!content.is_empty());
            let options = ReadOptions::new(offset, limit);
            let total = content.split_inclusive('\n').count() as u64;
            let window: String = content
                .split_inclusive('\n')
                .skip(usize::try_from(offset).unwrap())
                .take(usize::try_from(limit).unwrap())
                .collect();
            let whole = page(&txt(), &Bytes::from(content), options);
            let cut = window_page(total, 0, window.as_bytes(), options);
            prop_assert_eq!(whole.map_err(|e| e.kind()), cut.map_err(|e| e.kind()));
        }

        #[test]
        fn no_answer_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), offset in any::<u64>()) {
            let _ = parse(&txt(), ReadOptions::new(offset, 3), &bytes.into());
        }
    }
}
