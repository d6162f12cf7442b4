//! What the file operations take and give.

use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;

use crate::{SandboxPath, defaults};

/// What a directory entry is. Links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device.
    Other,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The absolute path.
    pub path: SandboxPath,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes, as `lstat` tells it.
    pub size: u64,
    /// When the content was last changed.
    pub modified: SystemTime,
}

impl Entry {
    /// An entry.
    pub fn new(path: SandboxPath, kind: EntryKind, size: u64, modified: SystemTime) -> Self {
        Self {
            path,
            kind,
            size,
            modified,
        }
    }
}

/// Why a result does not hold everything that is there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Gap {
    /// More matches than the budget or than were asked for.
    MatchLimit(u64),
    /// The search ran out of time.
    TimeLimit,
    /// So many files or directories could not be read (rights, I/O).
    Unreadable(u64),
    /// So many names are not UTF-8 and can't be given.
    NotUtf8(u64),
    /// So many things changed while they were looked at.
    Changed(u64),
    /// The backend handed out less than was found.
    OutputLimit,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MatchLimit(n) => write!(f, "stopped at {n} matches"),
            Self::TimeLimit => f.write_str("stopped for lack of time"),
            Self::Unreadable(n) => write!(f, "{n} could not be read"),
            Self::NotUtf8(n) => write!(f, "{n} have names that are not UTF-8"),
            Self::Changed(n) => write!(f, "{n} changed meanwhile"),
            Self::OutputLimit => f.write_str("the output was cut"),
        }
    }
}

/// Sorts, and makes one gap of counts of the same kind.
fn merge(gaps: &mut Vec<Gap>) {
    gaps.sort_unstable();
    gaps.dedup_by(|next, kept| match (kept, next) {
        (Gap::Unreadable(kept), Gap::Unreadable(n))
        | (Gap::NotUtf8(kept), Gap::NotUtf8(n))
        | (Gap::Changed(kept), Gap::Changed(n)) => {
            *kept += *n;
            true
        }
        (kept, next) => kept == next,
    });
}

/// What `ls` gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The children, sorted by the bytes of their paths.
    pub entries: Vec<Entry>,
    /// What is missing; empty if nothing is.
    pub gaps: Vec<Gap>,
}

impl Listing {
    /// A listing; sorts.
    pub fn new(mut entries: Vec<Entry>, mut gaps: Vec<Gap>) -> Self {
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        merge(&mut gaps);
        Self { entries, gaps }
    }
}

/// Which lines `read` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Lines to leave out at the beginning.
    pub offset: u64,
    /// Lines to give at most. 0 asks for nothing: the file is not looked at.
    pub limit: u64,
}

impl ReadOptions {
    /// So many lines from a 0-based offset.
    pub fn new(offset: u64, limit: u64) -> Self {
        Self { offset, limit }
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            offset: 0,
            limit: defaults::READ_LINES,
        }
    }
}

/// What `read` gives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadPage {
    /// Lines of text.
    Text(TextPage),
    /// All of a file that is not text.
    Binary(Bytes),
    /// The file is empty.
    Empty,
    /// Zero lines were asked for; the file was not looked at.
    NothingAsked,
}

impl ReadPage {
    /// The text of a text page, nothing for an empty file, `None` for bytes.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(page) => Some(&page.text),
            Self::Empty | Self::NothingAsked => Some(""),
            Self::Binary(_) => None,
        }
    }
}

/// Lines of a text file. They end at LF or CRLF and are joined with LF.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextPage {
    /// The lines, joined with LF, without one at the end.
    pub text: String,
    /// 1-based number of the first line.
    pub start_line: u64,
    /// 1-based number of the last line.
    pub end_line: u64,
    /// Lines of the whole file.
    pub total_lines: u64,
    /// The offset that continues; `None` at the end.
    pub next_offset: Option<u64>,
    /// The page was capped at [`defaults::READ_BYTES`]. Never loses a line: `next_offset`
    /// continues. A single line beyond the cap is cut, and this is `true` with `line_cut`.
    pub capped: bool,
    /// The one line of this page is longer than the cap and was cut at it.
    pub line_cut: bool,
}

impl TextPage {
    /// A page of lines.
    pub fn new(text: String, start_line: u64, end_line: u64, total_lines: u64) -> Self {
        let next_offset = (end_line < total_lines).then_some(end_line);
        Self {
            text,
            start_line,
            end_line,
            total_lines,
            next_offset,
            capped: false,
            line_cut: false,
        }
    }
}

/// What `write` does with a file that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteMode {
    /// Replace its content.
    #[default]
    Overwrite,
    /// Refuse with [`crate::ErrorKind::AlreadyExists`].
    CreateNew,
}

/// What `edit` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EditReport {
    /// How often the text was replaced.
    pub replaced: u64,
}

impl EditReport {
    /// So many replacements.
    pub fn new(replaced: u64) -> Self {
        Self { replaced }
    }
}

/// What `glob` gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GlobMatches {
    /// Regular files, absolute, sorted by bytes.
    pub paths: Vec<SandboxPath>,
    /// What is missing; empty if nothing is.
    pub gaps: Vec<Gap>,
}

impl GlobMatches {
    /// Matches; sorts.
    pub fn new(mut paths: Vec<SandboxPath>, mut gaps: Vec<Gap>) -> Self {
        paths.sort_unstable();
        merge(&mut gaps);
        Self { paths, gaps }
    }
}

/// Where and how much `grep` searches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepOptions {
    /// Only files that this pattern of [`crate::Sandbox::glob`] finds below the root.
    pub glob: Option<String>,
    /// Hits to report at most.
    pub max_count: u64,
}

impl Default for GrepOptions {
    fn default() -> Self {
        Self {
            glob: None,
            max_count: defaults::GREP_MATCHES,
        }
    }
}

impl GrepOptions {
    /// Only files that `pattern` finds.
    pub fn glob(mut self, pattern: impl Into<String>) -> Self {
        self.glob = Some(pattern.into());
        self
    }

    /// At most so many hits.
    pub fn max_count(mut self, hits: u64) -> Self {
        self.max_count = hits;
        self
    }
}

/// A line that holds the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct GrepMatch {
    /// The file.
    pub path: SandboxPath,
    /// 1-based number of the line.
    pub line: u64,
    /// The line without its end; invalid UTF-8 becomes U+FFFD.
    pub text: String,
    /// The line is longer than [`defaults::GREP_LINE`] and was cut at it.
    pub cut: bool,
}

impl GrepMatch {
    /// A hit.
    pub fn new(path: SandboxPath, line: u64, text: String, cut: bool) -> Self {
        Self {
            path,
            line,
            text,
            cut,
        }
    }
}

/// What `grep` gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepMatches {
    /// The hits, sorted by path and line.
    pub matches: Vec<GrepMatch>,
    /// What is missing; empty if nothing is.
    pub gaps: Vec<Gap>,
}

impl GrepMatches {
    /// Hits; sorts.
    pub fn new(mut matches: Vec<GrepMatch>, mut gaps: Vec<Gap>) -> Self {
        matches.sort_unstable();
        merge(&mut gaps);
        Self { matches, gaps }
    }
}

/// What `upload_dir` and `download_dir` moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeReport {
    /// Regular files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What was left out and why, one line each: links that lead out of the tree, devices, names
    /// that the other side can't have.
    pub skipped: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_one_kind_are_one_gap() {
        let gaps = vec![
            Gap::NotUtf8(1),
            Gap::Unreadable(2),
            Gap::TimeLimit,
            Gap::Unreadable(3),
        ];
        let listing = Listing::new(Vec::new(), gaps);
        assert_eq!(
            listing.gaps,
            [Gap::TimeLimit, Gap::Unreadable(5), Gap::NotUtf8(1)]
        );
    }
}
