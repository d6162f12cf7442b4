//! `diff`: normal, unified and context formats, files and trees.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use bytes::Bytes;

use super::getopt;
use super::io::{Io, NO_MEMORY, Run, base_name};
use super::time;
use super::walk::join;
use crate::vfs::{FileKind, Last};

/// Lines that differ, at most: the search costs their square. Beyond it the
/// whole middle counts as changed, which is right but not the shortest.
const SEARCH: usize = 1500;

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Normal,
    Unified(usize),
    Context(usize),
    Brief,
}

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the tool"
)]
struct Diff {
    format: Format,
    recursive: bool,
    new_file: bool,
    report_same: bool,
    fold: bool,
    all_space: bool,
    space_amount: bool,
    blank_lines: bool,
    text: bool,
    labels: Vec<String>,
    exclude: Vec<String>,
    /// The options, for the line before each pair in a tree.
    given: String,
}

#[allow(clippy::too_many_lines, reason = "one arm an option, then one pass")]
pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("unified", 'U'),
        ("context", 'C'),
        ("brief", 'q'),
        ("recursive", 'r'),
        ("new-file", 'N'),
        ("report-identical-files", 's'),
        ("ignore-case", 'i'),
        ("ignore-all-space", 'w'),
        ("ignore-space-change", 'b'),
        ("ignore-blank-lines", 'B'),
        ("text", 'a'),
        ("label", 'L'),
        ("exclude", 'x'),
        ("strip-trailing-cr", 'R'),
        ("color", 'K'),
        ("minimal", 'd'),
        ("normal", 'n'),
    ];
    let parsed = getopt::options(io, "uU::cC::qrNsiwbBaL:x:RK::dnpt", &long, 2).await?;
    let mut diff = Diff {
        format: Format::Normal,
        recursive: false,
        new_file: false,
        report_same: false,
        fold: false,
        all_space: false,
        space_amount: false,
        blank_lines: false,
        text: false,
        labels: Vec::new(),
        exclude: Vec::new(),
        given: io
            .args
            .iter()
            .filter(|arg| arg.starts_with('-'))
            .fold(String::new(), |text, arg| text + " " + arg),
    };
    let mut operands = parsed.operands;
    for (option, mut value) in parsed.options {
        if matches!(option, 'U' | 'C')
            && value.is_empty()
            && io.args.iter().any(|arg| arg == "-U" || arg == "-C")
        {
            value = operands.remove(0);
        }
        let lines = || {
            if value.is_empty() {
                Some(3)
            } else {
                value.parse().ok()
            }
        };
        match option {
            'u' => diff.format = Format::Unified(3),
            'c' => diff.format = Format::Context(3),
            'U' | 'C' => match lines() {
                Some(lines) if option == 'U' => diff.format = Format::Unified(lines),
                Some(lines) => diff.format = Format::Context(lines),
                None => {
                    return io
                        .fail(format!("invalid context length '{value}'"), 2)
                        .await;
                }
            },
            'q' => diff.format = Format::Brief,
            'r' => diff.recursive = true,
            'N' => diff.new_file = true,
            's' => diff.report_same = true,
            'i' => diff.fold = true,
            'w' => diff.all_space = true,
            'b' | 'R' => diff.space_amount = true,
            'B' => diff.blank_lines = true,
            'a' => diff.text = true,
            'L' => diff.labels.push(value),
            'x' => diff.exclude.push(value),
            _ => {}
        }
    }
    let hint = "Try 'diff --help' for more information.";
    let [left, right] = &operands[..] else {
        let message = match operands.last() {
            Some(last) if operands.len() < 2 => {
                format!("missing operand after '{last}'\ndiff: {hint}")
            }
            Some(last) => format!("extra operand '{last}'\ndiff: {hint}"),
            None => format!("missing operand after 'diff'\ndiff: {hint}"),
        };
        return io.fail(message, 2).await;
    };
    let kind = |name: &str| {
        (name != "-")
            .then(|| io.stat(name, Last::Follow).ok())
            .flatten()
            .map(|stat| stat.kind)
    };
    let (mut left, mut right) = (left.clone(), right.clone());
    match (
        kind(&left) == Some(FileKind::Dir),
        kind(&right) == Some(FileKind::Dir),
    ) {
        (true, true) => return diff.trees(io, left, right).await,
        (true, false) => left = join(&left, base_name(&right)),
        (false, true) => right = join(&right, base_name(&left)),
        (false, false) => {}
    }
    diff.files(io, &left, &right, false).await
}

impl Diff {
    async fn trees(&self, io: &mut Io, left: String, right: String) -> Run<i32> {
        let mut status = 0;
        let mut pending = vec![(left, right)];
        while let Some((left, right)) = pending.pop() {
            tokio::task::yield_now().await;
            let mut names = BTreeSet::new();
            for side in [&left, &right] {
                match io.vfs().list(&io.path(side), io.cred()) {
                    Ok(entries) => {
                        names.extend(entries.into_iter().map(|(name, _)| name.to_string()));
                    }
                    Err(_) if self.new_file && io.stat(side, Last::Follow).is_err() => {}
                    Err(error) => {
                        io.complain_with(format!("{side}: {}", error.strerror()), 2)
                            .await?;
                        status = 2;
                    }
                }
            }
            let mut below = Vec::new();
            for name in names {
                if self.exclude.iter().any(|pattern| {
                    globset::Glob::new(pattern)
                        .is_ok_and(|glob| glob.compile_matcher().is_match(&name))
                }) {
                    continue;
                }
                let (a, b) = (join(&left, &name), join(&right, &name));
                let kind = |name: &str| io.stat(name, Last::Follow).ok().map(|stat| stat.kind);
                let found = match (kind(&a), kind(&b)) {
                    (Some(FileKind::Dir), Some(FileKind::Dir)) if self.recursive => {
                        below.push((a, b));
                        0
                    }
                    (Some(FileKind::Dir), None) | (None, Some(FileKind::Dir))
                        if self.recursive && self.new_file =>
                    {
                        below.push((a, b));
                        0
                    }
                    (Some(FileKind::Dir), Some(FileKind::Dir)) => {
                        io.write(format!("Common subdirectories: {a} and {b}\n").as_bytes())
                            .await?;
                        0
                    }
                    (Some(FileKind::File), Some(FileKind::File)) => {
                        self.files(io, &a, &b, true).await?
                    }
                    (Some(FileKind::File), None) | (None, Some(FileKind::File))
                        if self.new_file =>
                    {
                        self.files(io, &a, &b, true).await?
                    }
                    (Some(_), None) => {
                        io.write(format!("Only in {left}: {name}\n").as_bytes())
                            .await?;
                        1
                    }
                    (None, Some(_)) => {
                        io.write(format!("Only in {right}: {name}\n").as_bytes())
                            .await?;
                        1
                    }
                    (Some(x), Some(y)) => {
                        let line = format!(
                            "File {a} is a {} while file {b} is a {}\n",
                            word(x),
                            word(y)
                        );
                        io.write(line.as_bytes()).await?;
                        1
                    }
                    (None, None) => 0,
                };
                status = status.max(found);
            }
            pending.extend(below.into_iter().rev());
        }
        Ok(status)
    }

    async fn files(&self, io: &mut Io, left: &str, right: &str, in_tree: bool) -> Run<i32> {
        let mut sides = Vec::new();
        for name in [left, right] {
            let missing = self.new_file && name != "-" && io.stat(name, Last::Follow).is_err();
            match if missing {
                Ok(Bytes::new())
            } else {
                io.slurp(name).await?
            } {
                Ok(bytes) => sides.push(bytes),
                Err(why) => {
                    io.complain_with(format!("{name}: {why}"), 2).await?;
                    return Ok(2);
                }
            }
        }
        let (a, b) = (sides[0].clone(), sides[1].clone());
        let same = if a == b {
            true
        } else if !self.text && (is_binary(&a) || is_binary(&b)) {
            let word = if self.format == Format::Brief {
                "Files"
            } else {
                "Binary files"
            };
            io.write(format!("{word} {left} and {right} differ\n").as_bytes())
                .await?;
            io.release();
            return Ok(1);
        } else {
            let (a, b) = (lines(&a), lines(&b));
            io.hold((a.len() + b.len()) * 64).await?;
            let Some(changes) = self.changes(&a, &b).await else {
                return io.fail(NO_MEMORY, 2).await;
            };
            if changes.is_empty() {
                true
            } else if self.format == Format::Brief {
                io.write(format!("Files {left} and {right} differ\n").as_bytes())
                    .await?;
                false
            } else {
                if in_tree {
                    io.write(format!("diff{} {left} {right}\n", self.given).as_bytes())
                        .await?;
                }
                let out = self.render(io, (left, &a), (right, &b), &changes);
                io.write(&out).await?;
                false
            }
        };
        if same && self.report_same {
            io.write(format!("Files {left} and {right} are identical\n").as_bytes())
                .await?;
        }
        io.release();
        Ok(i32::from(!same))
    }

    /// A line as it is compared.
    fn key(&self, line: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(line.len());
        let space = |b: u8| b.is_ascii_whitespace();
        for &byte in line {
            if space(byte) && self.all_space {
                continue;
            }
            if space(byte) && self.space_amount {
                if key.last() != Some(&b' ') {
                    key.push(b' ');
                }
                continue;
            }
            key.push(if self.fold {
                byte.to_ascii_lowercase()
            } else {
                byte
            });
        }
        if self.space_amount && key.last() == Some(&b' ') {
            key.pop();
        }
        key
    }

    /// What of `a` is replaced with what of `b`.
    async fn changes(&self, a: &[&[u8]], b: &[&[u8]]) -> Option<Vec<Change>> {
        let mut numbers = std::collections::HashMap::new();
        let mut number = |line: &&[u8]| {
            let next = numbers.len();
            *numbers.entry(self.key(line)).or_insert(next)
        };
        let x: Vec<usize> = a.iter().map(&mut number).collect();
        let y: Vec<usize> = b.iter().map(&mut number).collect();
        let mut changes = compare(&x, &y).await?;
        if self.blank_lines {
            let blank = |lines: &[&[u8]]| {
                lines
                    .iter()
                    .all(|line| line.iter().all(u8::is_ascii_whitespace))
            };
            changes.retain(|c| !(blank(&a[c.a.0..c.a.1]) && blank(&b[c.b.0..c.b.1])));
        }
        Some(changes)
    }

    fn render(
        &self,
        io: &Io,
        (left, a): (&str, &[&[u8]]),
        (right, b): (&str, &[&[u8]]),
        changes: &[Change],
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let header = |mark: &str, at: usize, name: &str| {
            let label = self.labels.get(at).cloned().unwrap_or_else(|| {
                let modified = match io.stat(name, Last::Follow) {
                    Ok(stat) => stat.modified,
                    Err(_) if self.new_file => std::time::UNIX_EPOCH,
                    Err(_) => std::time::SystemTime::now(),
                };
                format!("{name}\t{}", time::full(modified))
            });
            format!("{mark} {label}\n").into_bytes()
        };
        match self.format {
            Format::Unified(context) => {
                out.extend(header("---", 0, left));
                out.extend(header("+++", 1, right));
                for hunk in hunks(changes, context) {
                    unified(&mut out, a, b, hunk, context);
                }
            }
            Format::Context(context) => {
                out.extend(header("***", 0, left));
                out.extend(header("---", 1, right));
                for hunk in hunks(changes, context) {
                    contextual(&mut out, a, b, hunk, context);
                }
            }
            Format::Normal | Format::Brief => {
                for change in changes {
                    normal(&mut out, a, b, change);
                }
            }
        }
        out
    }
}

fn word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Dir => "directory",
        FileKind::File => "regular file",
        FileKind::Symlink => "symbolic link",
        FileKind::Fifo => "fifo",
        FileKind::Device => "character special file",
    }
}

fn is_binary(bytes: &[u8]) -> bool {
    memchr::memchr(0, &bytes[..bytes.len().min(4096)]).is_some()
}

/// Lines with their newline; the last may lack it.
fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|b| *b == b'\n').collect()
}

/// Half-open ranges of lines.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Change {
    a: (usize, usize),
    b: (usize, usize),
}

/// Myers' greedy search, after what begins and ends alike is set aside.
async fn compare(left: &[usize], right: &[usize]) -> Option<Vec<Change>> {
    let start = left
        .iter()
        .zip(right)
        .take_while(|(one, other)| one == other)
        .count();
    let end = left[start..]
        .iter()
        .rev()
        .zip(right[start..].iter().rev())
        .take_while(|(one, other)| one == other)
        .count();
    let (x, y) = (
        &left[start..left.len() - end],
        &right[start..right.len() - end],
    );
    if x.is_empty() && y.is_empty() {
        return Some(Vec::new());
    }
    let whole = Change {
        a: (start, left.len() - end),
        b: (start, right.len() - end),
    };
    if x.is_empty() || y.is_empty() {
        return Some(vec![whole]);
    }
    let most = (x.len() + y.len()).min(SEARCH);
    let offset = most + 1;
    let mut furthest = vec![0_usize; 2 * most + 3];
    let mut trace = Vec::new();
    for depth in 0..=most {
        if depth % 64 == 0 {
            tokio::task::yield_now().await;
        }
        trace.push(furthest[offset - depth..=offset + depth].to_vec());
        for step in 0..=depth {
            let k = offset + 2 * step - depth;
            let down = step == 0 || (step != depth && furthest[k - 1] < furthest[k + 1]);
            let mut at = if down {
                furthest[k + 1]
            } else {
                furthest[k - 1] + 1
            };
            let Some(mut other) = (at + offset).checked_sub(k) else {
                continue;
            };
            while at < x.len() && other < y.len() && x[at] == y[other] {
                at += 1;
                other += 1;
            }
            furthest[k] = at;
            if at >= x.len() && other >= y.len() {
                return Some(backtrack(&trace, (x.len(), y.len()), start));
            }
        }
    }
    Some(vec![whole])
}

/// Follows the trace back to the changes.
fn backtrack(trace: &[Vec<usize>], end: (usize, usize), start: usize) -> Vec<Change> {
    let (mut x, mut y) = end;
    let mut edits = Vec::new();
    for depth in (1..trace.len()).rev() {
        // trace[depth] holds diagonals -depth..=depth as they were before it.
        let before = |k: isize| {
            let index = usize::try_from(k + depth.cast_signed()).ok()?;
            trace[depth].get(index).copied()
        };
        let k = x.cast_signed() - y.cast_signed();
        let limit = depth.cast_signed();
        let down = k == -limit || (k != limit && before(k - 1) < before(k + 1));
        let from = if down { k + 1 } else { k - 1 };
        let from_x = before(from).unwrap_or(0);
        let from_y = (from_x.cast_signed() - from).unsigned_abs();
        if down {
            edits.push((from_x, from_y, false));
        } else {
            edits.push((from_x, from_y, true));
        }
        (x, y) = (from_x, from_y);
    }
    edits.reverse();
    let mut changes: Vec<Change> = Vec::new();
    for (x, y, deletes) in edits {
        let (x, y) = (x + start, y + start);
        let (to_x, to_y) = if deletes { (x + 1, y) } else { (x, y + 1) };
        match changes.last_mut() {
            Some(last) if last.a.1 == x && last.b.1 == y => (last.a.1, last.b.1) = (to_x, to_y),
            _ => changes.push(Change {
                a: (x, to_x),
                b: (y, to_y),
            }),
        }
    }
    changes
}

/// Changes whose context touches, together.
fn hunks(changes: &[Change], context: usize) -> impl Iterator<Item = &[Change]> {
    changes.chunk_by(move |one, next| next.a.0 - one.a.1 <= 2 * context)
}

const NO_NEWLINE: &[u8] = b"\n\\ No newline at end of file\n";

fn put(out: &mut Vec<u8>, mark: &[u8], line: &[u8]) {
    out.extend_from_slice(mark);
    out.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        out.extend_from_slice(NO_NEWLINE);
    }
}

fn normal(out: &mut Vec<u8>, a: &[&[u8]], b: &[&[u8]], change: &Change) {
    let range = |(from, to): (usize, usize)| match to - from {
        0 => from.to_string(),
        1 => to.to_string(),
        _ => format!("{},{to}", from + 1),
    };
    let letter = match (change.a.1 > change.a.0, change.b.1 > change.b.0) {
        (true, true) => 'c',
        (true, false) => 'd',
        _ => 'a',
    };
    out.extend_from_slice(format!("{}{letter}{}\n", range(change.a), range(change.b)).as_bytes());
    for line in &a[change.a.0..change.a.1] {
        put(out, b"< ", line);
    }
    if letter == 'c' {
        out.extend_from_slice(b"---\n");
    }
    for line in &b[change.b.0..change.b.1] {
        put(out, b"> ", line);
    }
}

/// The lines of a hunk with its context, of one side.
fn span(
    first: (usize, usize),
    last: (usize, usize),
    length: usize,
    context: usize,
) -> (usize, usize) {
    (
        first.0.saturating_sub(context),
        (last.1 + context).min(length),
    )
}

fn unified(out: &mut Vec<u8>, a: &[&[u8]], b: &[&[u8]], hunk: &[Change], context: usize) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
        return;
    };
    let (from, to) = span(first.a, last.a, a.len(), context);
    let (other_from, other_to) = span(first.b, last.b, b.len(), context);
    let range = |from: usize, to: usize| match to - from {
        0 => format!("{from},0"),
        1 => to.to_string(),
        count => format!("{},{count}", from + 1),
    };
    out.extend_from_slice(
        format!(
            "@@ -{} +{} @@\n",
            range(from, to),
            range(other_from, other_to)
        )
        .as_bytes(),
    );
    let mut at = from;
    for change in hunk {
        for line in &a[at..change.a.0] {
            put(out, b" ", line);
        }
        for line in &a[change.a.0..change.a.1] {
            put(out, b"-", line);
        }
        for line in &b[change.b.0..change.b.1] {
            put(out, b"+", line);
        }
        at = change.a.1;
    }
    for line in &a[at..to] {
        put(out, b" ", line);
    }
}

fn contextual(out: &mut Vec<u8>, a: &[&[u8]], b: &[&[u8]], hunk: &[Change], context: usize) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
        return;
    };
    let (from, to) = span(first.a, last.a, a.len(), context);
    let (other_from, other_to) = span(first.b, last.b, b.len(), context);
    let range = |from: usize, to: usize| {
        if to - from <= 1 {
            to.to_string()
        } else {
            format!("{},{to}", from + 1)
        }
    };
    let mut side = |mark: &[u8],
                    title: String,
                    lines: &[&[u8]],
                    (from, to): (usize, usize),
                    own: fn(&Change) -> (usize, usize),
                    other: fn(&Change) -> (usize, usize)| {
        out.extend_from_slice(title.as_bytes());
        if hunk.iter().all(|change| own(change).0 == own(change).1) {
            return;
        }
        let mut at = from;
        for change in hunk {
            let (start, end) = own(change);
            for line in &lines[at..start] {
                put(out, b"  ", line);
            }
            let both = other(change).0 < other(change).1;
            for line in &lines[start..end] {
                put(out, if both { b"! " } else { mark }, line);
            }
            at = end;
        }
        for line in &lines[at..to] {
            put(out, b"  ", line);
        }
    };
    let mut title = String::from("***************\n");
    let _ = writeln!(title, "*** {} ****", range(from, to));
    side(b"- ", title, a, (from, to), |c| c.a, |c| c.b);
    side(
        b"+ ",
        format!("--- {} ----\n", range(other_from, other_to)),
        b,
        (other_from, other_to),
        |c| c.b,
        |c| c.a,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies changes and sees that they lead from one to the other.
    async fn check(a: &[usize], b: &[usize]) -> usize {
        let changes = compare(a, b).await.expect("changes");
        let (mut built, mut at) = (Vec::new(), 0);
        let mut cost = 0;
        for change in &changes {
            built.extend_from_slice(&a[at..change.a.0]);
            built.extend_from_slice(&b[change.b.0..change.b.1]);
            at = change.a.1;
            cost += change.a.1 - change.a.0 + change.b.1 - change.b.0;
        }
        built.extend_from_slice(&a[at..]);
        assert_eq!(built, b);
        cost
    }

    #[tokio::test]
    async fn changes_lead_from_one_to_the_other() {
        assert_eq!(check(&[1, 2, 3], &[1, 2, 3]).await, 0);
        assert_eq!(check(&[1, 2, 3], &[1, 9, 3]).await, 2);
        assert_eq!(check(&[], &[1, 2]).await, 2);
        assert_eq!(check(&[1, 2, 3, 1, 2, 2, 1], &[3, 2, 1, 2, 1, 3]).await, 5);
        let mut seed = 7_u64;
        for _ in 0..200 {
            let mut make = || {
                let mut list = Vec::new();
                for _ in 0..12 {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    list.push(usize::try_from(seed >> 60 & 3).unwrap_or(0));
                }
                list
            };
            let (a, b) = (make(), make());
            check(&a, &b).await;
        }
    }
}
