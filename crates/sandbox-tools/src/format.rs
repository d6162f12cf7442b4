//! Results as text for a model: short, honest about what is missing, bounded.

use std::fmt::Write as _;
use std::time::Duration;

use sandbox_core::files::{Entry, EntryKind, Gap, GrepMatch, GrepMatches, TextPage};
use sandbox_core::{Error, ErrorKind, ExecuteResponse, Status};

use crate::{OutputMode, ToolOutput};

/// An error of the sandbox: what is wrong, with which path, and what to do.
pub(crate) fn error(e: &Error) -> ToolOutput {
    let mut text = String::from("Error: ");
    if let Some(path) = e.context("path") {
        let _ = write!(text, "{}: ", quoted(path));
    }
    text.push_str(e.message());
    if let Some(hint) = hint(e.kind()) {
        let _ = write!(text, ". {hint}");
    }
    ToolOutput {
        text: cut(&text, 2000).to_owned(),
        is_error: true,
        kind: Some(e.kind()),
    }
}

fn hint(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::NotFound => "Use ls or glob to see what is there",
        ErrorKind::PermissionDenied => "The sandbox's user may not do this; choose another place",
        ErrorKind::IsADirectory => "It is a directory: use ls",
        ErrorKind::NotADirectory => "It is no directory: use read_file",
        ErrorKind::InvalidPath => {
            "Paths must be absolute and without `..`, as in /workspace/file.txt"
        }
        ErrorKind::NoMatch => {
            "Read the file again and copy the text exactly, with its indentation and without the header"
        }
        ErrorKind::NotUnique => "Add surrounding lines to old_string, or set replace_all",
        ErrorKind::Conflict => "The file was changed meanwhile: read it and edit it again",
        ErrorKind::OffsetPastEnd => "Use a smaller offset",
        ErrorKind::TooLarge => "Use execute with head, tail or sed to look at a part of it",
        ErrorKind::LimitExceeded => "A limit of the sandbox was hit: do it in smaller steps",
        ErrorKind::SandboxGone => "The sandbox is gone: no tool will work any more",
        ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::RateLimited => {
            "The sandbox did not answer; it may work again in a moment"
        }
        ErrorKind::Unsupported => "This sandbox can't do it: find another way",
        _ => return None,
    })
}

/// A command's output and its ending.
pub(crate) fn execute(r: &ExecuteResponse, timeout: Duration, limit: usize) -> ToolOutput {
    // The backend kept `limit` bytes; invalid UTF-8 can have grown to three times that as text.
    let whole = r.output();
    let mut text = ends(&whole, limit);
    let dropped = r.stdout.dropped() + r.stderr.dropped();
    let shortened = text.len() < whole.len();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut is_error = false;
    let _ = match &r.status {
        Status::Exited(0) => write!(text, "[Command succeeded with exit code 0]"),
        Status::Exited(code) => write!(text, "[Command failed with exit code {code}]"),
        Status::Signaled(signal) => write!(text, "[Command was killed by signal {signal}]"),
        Status::TimedOut => write!(
            text,
            "[Command timed out after {} s and was killed with its children. Set a longer timeout, or do less]",
            timeout.as_secs()
        ),
        Status::Lost(why) => {
            is_error = true;
            write!(
                text,
                "Error: the connection was lost while the command ran ({}). Whether it finished is not known: check before running it again",
                cut(why, 300)
            )
        }
        // Statuses may be added; their text says what happened.
        other => write!(text, "[Command: {other}]"),
    };
    if dropped > 0 {
        let _ = write!(
            text,
            "\n[Output was truncated: {dropped} bytes in its middle are missing. Redirect it into a file and use read_file or grep]"
        );
    } else if shortened {
        text.push_str("\n[Output was truncated: its middle is missing. Redirect it into a file and use read_file or grep]");
    }
    if r.sandbox_killed {
        is_error = true;
        text.push_str("\nError: the command could not be stopped, so the sandbox was killed: no tool will work any more");
    }
    ToolOutput {
        text,
        is_error,
        kind: if r.sandbox_killed {
            Some(ErrorKind::SandboxGone)
        } else if is_error {
            Some(ErrorKind::Unavailable)
        } else {
            None
        },
    }
}

/// Lines of a file below a header that says which.
pub(crate) fn page(page: &TextPage, asked: i64, limit: usize) -> ToolOutput {
    let mut notes = String::new();
    if asked < 0 {
        let _ = writeln!(
            notes,
            "[Requested offset {asked} is before the start of the file; read from line 1 instead.]"
        );
    }
    let (mut end, mut next, mut body) = (page.end_line, page.next_offset, page.text.as_str());
    let mut middle = page.line_cut;
    let mut shortened = page.capped || page.line_cut;
    if body.len() > limit {
        shortened = true;
        let fit = cut(body, limit);
        // Whole lines only, unless the first one alone is too long.
        let lines = if body[fit.len()..].starts_with('\n') {
            fit
        } else {
            fit.rfind('\n').map_or(fit, |i| &fit[..i])
        };
        middle = !body[lines.len()..].starts_with('\n');
        body = lines;
        end = page.start_line + body.matches('\n').count() as u64;
        next = Some(end);
    }
    if middle {
        // No offset reaches the rest of this line; the next one goes on after it.
        let _ = writeln!(
            notes,
            "[Line {end} is too long: only its beginning is shown. Use execute with cut or fold to see more of it.]"
        );
    } else if shortened {
        notes.push_str("[Output was truncated due to size limits: read on at the next offset.]\n");
    }
    let mut header = format!("@@ lines {}-{end} of {}", page.start_line, page.total_lines);
    if let Some(next) = next.filter(|n| *n < page.total_lines) {
        let _ = write!(header, " | next offset {next}");
    }
    if middle {
        header.push_str(" | truncated mid-line");
    } else if shortened {
        header.push_str(" | truncated due to size");
    }
    ToolOutput::done(format!("{notes}{header} @@\n{body}"))
}

/// A file that is no text, by what its first bytes say.
pub(crate) fn binary(path: &str, bytes: &[u8]) -> ToolOutput {
    let what = match bytes {
        [0x89, b'P', b'N', b'G', ..] => "a PNG image",
        [0xFF, 0xD8, 0xFF, ..] => "a JPEG image",
        [b'G', b'I', b'F', b'8', ..] => "a GIF image",
        [b'%', b'P', b'D', b'F', ..] => "a PDF document",
        [b'P', b'K', 3, 4, ..] => "a ZIP archive",
        [0x1F, 0x8B, ..] => "gzip data",
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "text in UTF-16",
        [0x7F, b'E', b'L', b'F', ..] => "an ELF program",
        b if b.contains(&0) => "binary data",
        _ => "text that is not UTF-8, or binary data",
    };
    ToolOutput {
        text: format!(
            "Error: {} is not UTF-8 text: {what}, {} bytes. Use execute to look at it (head -c 64 FILE | od -c) or to convert it (iconv)",
            quoted(path),
            bytes.len()
        ),
        is_error: true,
        kind: Some(ErrorKind::NotText),
    }
}

/// A directory's entry on one line.
pub(crate) fn entry(e: &Entry) -> String {
    let path = quoted(e.path.as_str());
    match e.kind {
        EntryKind::Dir => format!("{path}/"),
        EntryKind::File => format!("{path} ({} bytes)", e.size),
        EntryKind::Symlink => format!("{path} (symbolic link)"),
        _ => format!("{path} (special file)"),
    }
}

/// Lines, as many as fit, and a note on what is missing.
pub(crate) fn list(
    lines: impl Iterator<Item = String>,
    none: &str,
    gaps: &[Gap],
    limit: usize,
) -> ToolOutput {
    let mut text = String::new();
    let mut left_out = 0u64;
    for line in lines {
        if left_out > 0 || text.len() + line.len() + 1 > limit {
            left_out += 1;
            continue;
        }
        text.push_str(&line);
        text.push('\n');
    }
    if text.is_empty() && left_out == 0 {
        text.push_str(none);
    }
    if left_out > 0 {
        let _ = write!(
            text,
            "... [{left_out} more lines left out, try being more specific with your parameters]"
        );
    }
    let text = text.trim_end_matches('\n').to_owned();
    ToolOutput::done(text + &incomplete(gaps))
}

/// What a search could not see. "Nothing found" must not be taken for "nothing there".
fn incomplete(gaps: &[Gap]) -> String {
    if gaps.is_empty() {
        return String::new();
    }
    let all: Vec<String> = gaps.iter().map(ToString::to_string).collect();
    let narrow = gaps
        .iter()
        .any(|g| matches!(g, Gap::MatchLimit(_) | Gap::TimeLimit | Gap::OutputLimit));
    let what_to_do = if narrow {
        "Narrow the search (a more specific pattern or a narrower path) to see the rest."
    } else {
        "Narrowing the search will NOT show what is missing."
    };
    format!(
        "\n\nNote: this result is incomplete: {}. {what_to_do}",
        all.join("; ")
    )
}

/// What `grep` found, in one of its three modes.
pub(crate) fn hits(found: &GrepMatches, mode: OutputMode, limit: usize) -> ToolOutput {
    let by_file = found.matches.chunk_by(|a, b| a.path == b.path);
    let name = |hits: &[GrepMatch]| {
        hits.first()
            .map_or(String::new(), |h| quoted(h.path.as_str()))
    };
    let lines: Box<dyn Iterator<Item = String>> = match mode {
        OutputMode::FilesWithMatches => Box::new(by_file.map(name)),
        OutputMode::Count => Box::new(by_file.map(|h| format!("{}: {}", name(h), h.len()))),
        OutputMode::Content => Box::new(by_file.flat_map(|hits| {
            std::iter::once(format!("{}:", name(hits))).chain(hits.iter().map(|h| {
                let cut = if h.cut { " [line cut]" } else { "" };
                format!("  {}: {}{cut}", h.line, h.text)
            }))
        })),
    };
    list(lines, "No matches found", &found.gaps, limit)
}

/// A path on one line: as it is, or quoted when it holds control characters.
pub(crate) fn quoted(path: &str) -> String {
    if path.chars().any(char::is_control) {
        format!("{path:?}")
    } else {
        path.to_owned()
    }
}

/// The longest prefix of at most `max` bytes that cuts no character.
fn cut(s: &str, max: usize) -> &str {
    &s[..s.floor_char_boundary(max)]
}

/// The beginning and the end, if all is longer than `max` bytes.
fn ends(s: &str, max: usize) -> String {
    if s.len() <= max {
        return s.to_owned();
    }
    let head = cut(s, max / 2);
    let tail = &s[s.ceil_char_boundary(s.len() - max / 2)..];
    format!("{head}\n[...]\n{tail}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sandbox_core::SandboxPath;

    use super::*;

    fn response(status: Status, out: &str) -> String {
        let r = ExecuteResponse::new(status, out.to_owned(), "");
        execute(&r, Duration::from_secs(9), 100).text
    }

    #[test]
    fn the_ending_of_a_command_is_a_line_of_its_own() {
        assert_eq!(
            response(Status::Exited(0), "hi\n"),
            "hi\n[Command succeeded with exit code 0]"
        );
        assert_eq!(
            response(Status::Exited(3), "no end of line"),
            "no end of line\n[Command failed with exit code 3]"
        );
        assert_eq!(
            response(Status::Exited(0), ""),
            "[Command succeeded with exit code 0]"
        );
        assert!(
            response(Status::TimedOut, "part").starts_with("part\n[Command timed out after 9 s")
        );
        assert!(response(Status::Signaled(9), "").contains("signal 9"));
        let lost = ExecuteResponse::new(Status::Lost("reset".into()), "half", "");
        let lost = execute(&lost, Duration::from_secs(9), 100);
        assert!(lost.is_error && lost.text.starts_with("half\nError:"));
    }

    #[test]
    fn long_output_keeps_its_ends_and_says_so() {
        let out = format!("first{}last", "\u{fffd}".repeat(1000));
        let text = response(Status::Exited(1), &out);
        assert!(text.starts_with("first") && text.contains("last\n[Command failed"));
        assert!(text.contains("truncated") && text.len() < 400);
    }

    #[test]
    fn a_page_names_its_lines_and_loses_none() {
        let p = TextPage::new("a\nb\n".into(), 1, 3, 10);
        assert_eq!(
            page(&p, 0, 100).text,
            "@@ lines 1-3 of 10 | next offset 3 @@\na\nb\n"
        );
        let text = (1..=20).map(|i| format!("line {i}")).collect::<Vec<_>>();
        let p = TextPage::new(text.join("\n"), 5, 24, 24);
        let shown = page(&p, 4, 50).text;
        // Six characters and a line end each: seven whole lines fit into 50.
        assert!(
            shown.contains("@@ lines 5-11 of 24 | next offset 11 | truncated"),
            "{shown}"
        );
        assert!(shown.ends_with("line 7"), "{shown}");
        let p = TextPage::new("x".repeat(200), 1, 1, 2);
        let shown = page(&p, -3, 50).text;
        assert!(shown.contains("lines 1-1 of 2 | next offset 1 | truncated mid-line"));
        assert!(shown.contains("Requested offset -3"));
    }

    #[test]
    fn nothing_found_is_not_said_of_what_could_not_be_searched() {
        let found = GrepMatches::new(vec![], vec![Gap::Unreadable(2)]);
        let text = hits(&found, OutputMode::Content, 1000).text;
        assert!(text.contains("incomplete: 2 could not be read"), "{text}");
        assert!(text.contains("will NOT"));
    }

    #[test]
    fn the_three_modes_of_grep() {
        let at =
            |p: &str, n| GrepMatch::new(SandboxPath::new(p).unwrap(), n, format!("l{n}"), n == 3);
        let found = GrepMatches::new(
            vec![at("/b", 3), at("/a", 1), at("/a", 2)],
            vec![Gap::MatchLimit(3)],
        );
        let shown = |mode| hits(&found, mode, 1000).text;
        assert!(shown(OutputMode::FilesWithMatches).starts_with("/a\n/b\n\nNote:"));
        assert!(shown(OutputMode::Count).starts_with("/a: 2\n/b: 1\n"));
        assert!(
            shown(OutputMode::Content)
                .starts_with("/a:\n  1: l1\n  2: l2\n/b:\n  3: l3 [line cut]")
        );
    }

    #[test]
    fn an_error_says_what_to_do_and_no_secret_of_the_host() {
        let e = Error::new(ErrorKind::NotFound, "no such file")
            .with("path", "/a\nb")
            .with("backend", "docker")
            .because(std::io::Error::other("http://host/?key=secret"));
        assert_eq!(
            error(&e).text,
            "Error: \"/a\\nb\": no such file. Use ls or glob to see what is there"
        );
    }

    proptest! {
        #[test]
        fn answers_are_bounded(lines in prop::collection::vec("\\PC{0,80}", 0..60), limit in 100usize..400) {
            let text = list(lines.clone().into_iter(), "none", &[], limit).text;
            prop_assert!(text.len() <= limit + 120);
            let all = lines.join("\n");
            if !all.is_empty() {
                let n = all.matches('\n').count() as u64 + 1;
                let p = TextPage::new(all.clone(), 1, n, n);
                let shown = page(&p, 0, limit).text;
                prop_assert!(shown.len() <= limit + 300);
                let body = shown.split_once(" @@\n").unwrap().1;
                prop_assert!(all.starts_with(body));
            }
            prop_assert!(ends(&all, limit).len() <= limit + 10);
        }
    }
}
