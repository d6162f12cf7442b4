//! `grep`, `egrep` and `fgrep`, on bytes: without a locale every byte is a
//! character, and a file is binary if there is a NUL in what is read of it.

use globset::{Glob, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};

use super::getopt;
use super::io::{Io, Records, Run, Source, base_name};
use super::posix;
use super::walk::join;
use crate::vfs::{FileKind, Last};

/// What is told of a file.
#[derive(Clone, Copy, PartialEq)]
enum Tell {
    Lines,
    Count,
    FilesWith,
    FilesWithout,
    Nothing,
}

/// How patterns are written.
#[derive(Clone, Copy, PartialEq)]
enum Syntax {
    Basic,
    Extended,
    Fixed,
    Perl,
}

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the tool"
)]
struct Grep {
    syntax: Syntax,
    fold: bool,
    invert: bool,
    words: bool,
    whole: bool,
    only: bool,
    number: bool,
    offset: bool,
    names: Option<bool>,
    null: bool,
    text: bool,
    skip_binary: bool,
    quiet_errors: bool,
    recursive: bool,
    follow: bool,
    tell: Tell,
    most: u64,
    before: usize,
    after: usize,
    end: u8,
    label: String,
    include: Vec<GlobMatcher>,
    exclude: Vec<GlobMatcher>,
    exclude_dir: Vec<GlobMatcher>,
    patterns: Vec<String>,
    any: bool,
    context: bool,
}

impl Grep {
    fn new(name: &str) -> Self {
        Self {
            syntax: match name {
                "egrep" => Syntax::Extended,
                "fgrep" => Syntax::Fixed,
                _ => Syntax::Basic,
            },
            fold: false,
            invert: false,
            words: false,
            whole: false,
            only: false,
            number: false,
            offset: false,
            names: None,
            null: false,
            text: false,
            skip_binary: false,
            quiet_errors: false,
            recursive: false,
            follow: false,
            tell: Tell::Lines,
            most: u64::MAX,
            before: 0,
            after: 0,
            end: b'\n',
            label: "(standard input)".to_owned(),
            include: Vec::new(),
            exclude: Vec::new(),
            exclude_dir: Vec::new(),
            patterns: Vec::new(),
            any: false,
            context: false,
        }
    }

    /// Takes an option; the error says what is wrong with it.
    fn take(&mut self, option: char, value: &str) -> Result<(), String> {
        let count = || {
            value
                .parse::<usize>()
                .map_err(|_| format!("{value}: invalid context length argument"))
        };
        let glob = || {
            Glob::new(value)
                .map(|glob| glob.compile_matcher())
                .map_err(|_| format!("{value}: invalid glob"))
        };
        match option {
            'E' => self.syntax = Syntax::Extended,
            'F' => self.syntax = Syntax::Fixed,
            'G' => self.syntax = Syntax::Basic,
            'P' => self.syntax = Syntax::Perl,
            'e' => self.patterns.extend(value.split('\n').map(str::to_owned)),
            'i' | 'y' => self.fold = true,
            'v' => self.invert = true,
            'w' => self.words = true,
            'x' => self.whole = true,
            'o' => self.only = true,
            'n' => self.number = true,
            'b' => self.offset = true,
            'H' => self.names = Some(true),
            'h' => self.names = Some(false),
            'Z' => self.null = true,
            'a' => self.text = true,
            'I' => self.skip_binary = true,
            's' => self.quiet_errors = true,
            'r' => self.recursive = true,
            'R' => (self.recursive, self.follow) = (true, true),
            'c' => self.tell = Tell::Count,
            'l' => self.tell = Tell::FilesWith,
            'L' => self.tell = Tell::FilesWithout,
            'q' => self.tell = Tell::Nothing,
            'm' => self.most = value.parse().map_err(|_| "invalid max count".to_owned())?,
            'A' => (self.after, self.context) = (count()?, true),
            'B' => (self.before, self.context) = (count()?, true),
            'C' => (self.before, self.after, self.context) = (count()?, count()?, true),
            'z' => self.end = 0,
            'W' => value.clone_into(&mut self.label),
            'j' => self.include.push(glob()?),
            'k' => self.exclude.push(glob()?),
            'K' => self.exclude_dir.push(glob()?),
            'J' => match value {
                "text" => self.text = true,
                "without-match" => self.skip_binary = true,
                "binary" => {}
                _ => return Err("unknown binary-files type".to_owned()),
            },
            'd' => match value {
                "recurse" => self.recursive = true,
                "read" | "skip" => {}
                _ => return Err(format!("invalid argument '{value}' for '--directories'")),
            },
            _ => {}
        }
        Ok(())
    }

    /// The one text to find, where that is all there is to it: an expression for a long one is
    /// slow to make and slower to use.
    fn literal(&self) -> Option<&[u8]> {
        match &*self.patterns {
            [text] if self.syntax == Syntax::Fixed && !self.fold && !self.whole && !self.words => {
                Some(text.as_bytes())
            }
            _ => None,
        }
    }

    /// All patterns as one expression; one that is not used if there is a [`literal`](Self::literal).
    fn regex(&self) -> Result<Regex, String> {
        let mut parts = Vec::new();
        if self.literal().is_some() {
            return Regex::new("").map_err(|e| e.to_string());
        }
        for pattern in &self.patterns {
            let part = match self.syntax {
                Syntax::Fixed => escape(pattern),
                Syntax::Perl => pattern.clone(),
                Syntax::Basic => posix::translate(pattern, false)?,
                Syntax::Extended => posix::translate(pattern, true)?,
            };
            parts.push(format!("(?:{part})"));
        }
        let all = parts.join("|");
        let all = if self.whole {
            format!("^(?:{all})$")
        } else {
            all
        };
        RegexBuilder::new(&all)
            .unicode(false)
            .case_insensitive(self.fold)
            .size_limit(16 << 20)
            .build()
            .map_err(|error| match (&error, self.syntax) {
                (_, Syntax::Perl) => {
                    "this Perl expression is not supported here (no look-around, no references)"
                        .to_owned()
                }
                (regex::Error::CompiledTooBig(_), _) => "Regular expression too big".to_owned(),
                _ => "Invalid regular expression".to_owned(),
            })
    }
}

/// Bytes of a text as an expression that matches just them.
fn escape(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "\\x{byte:02x}");
        out
    })
}

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    // `-5` is `-C5`.
    for arg in &mut io.args {
        if arg.len() > 1 && arg.starts_with('-') && arg[1..].bytes().all(|b| b.is_ascii_digit()) {
            arg.insert(1, 'C');
        }
    }
    let long = [
        ("extended-regexp", 'E'),
        ("fixed-strings", 'F'),
        ("basic-regexp", 'G'),
        ("perl-regexp", 'P'),
        ("regexp", 'e'),
        ("file", 'f'),
        ("ignore-case", 'i'),
        ("invert-match", 'v'),
        ("word-regexp", 'w'),
        ("line-regexp", 'x'),
        ("only-matching", 'o'),
        ("line-number", 'n'),
        ("byte-offset", 'b'),
        ("with-filename", 'H'),
        ("no-filename", 'h'),
        ("null", 'Z'),
        ("text", 'a'),
        ("no-messages", 's'),
        ("recursive", 'r'),
        ("dereference-recursive", 'R'),
        ("count", 'c'),
        ("files-with-matches", 'l'),
        ("files-without-match", 'L'),
        ("quiet", 'q'),
        ("silent", 'q'),
        ("max-count", 'm'),
        ("after-context", 'A'),
        ("before-context", 'B'),
        ("context", 'C'),
        ("null-data", 'z'),
        ("label", 'W'),
        ("include", 'j'),
        ("exclude", 'k'),
        ("exclude-dir", 'K'),
        ("binary-files", 'J'),
        ("directories", 'd'),
        ("color", 'Q'),
        ("colour", 'Q'),
        ("line-buffered", 'u'),
        ("no-ignore-case", 'u'),
        ("devices", 'D'),
    ];
    let short = "EFGPe:f:iyvwxonbHhZaIsrRclLqm:A:B:C:zW:j:k:K:J:d:Q::uUD:T";
    let parsed = getopt::options(io, short, &long, 2).await?;
    let mut grep = Grep::new(&io.name);
    let mut given = false;
    for (option, value) in parsed.options {
        if option == 'f' {
            given = true;
            match io.slurp(&value).await? {
                Ok(bytes) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    grep.patterns.extend(text.lines().map(str::to_owned));
                }
                Err(why) => return io.fail(format!("{value}: {why}"), 2).await,
            }
            continue;
        }
        given |= option == 'e';
        if let Err(why) = grep.take(option, &value) {
            return io.fail(why, 2).await;
        }
    }
    let mut operands = parsed.operands;
    if !given {
        if operands.is_empty() {
            io.report("Usage: grep [OPTION]... PATTERNS [FILE]...\nTry 'grep --help' for more information.\n").await?;
            return Ok(2);
        }
        let pattern = operands.remove(0);
        grep.patterns.extend(pattern.split('\n').map(str::to_owned));
    }
    let regex = match (grep.patterns.is_empty(), grep.regex()) {
        (true, _) => None,
        (false, Ok(regex)) => Some(regex),
        (false, Err(why)) => return io.fail(why, 2).await,
    };
    if operands.is_empty() {
        operands.push(if grep.recursive { "." } else { "-" }.to_owned());
    }
    grep.all(io, regex.as_ref(), operands).await
}

impl Grep {
    async fn all(&mut self, io: &mut Io, regex: Option<&Regex>, operands: Vec<String>) -> Run<i32> {
        let named = self.names.unwrap_or(self.recursive || operands.len() > 1);
        let here = self.recursive && io.args.iter().filter(|arg| *arg == ".").count() == 0;
        let (mut found, mut failed) = (false, false);
        let mut pending: Vec<(String, bool)> = operands
            .into_iter()
            .rev()
            .map(|name| (name, true))
            .collect();
        while let Some((name, given)) = pending.pop() {
            let shown = match name.as_str() {
                "-" => self.label.clone(),
                _ if here => name.strip_prefix("./").unwrap_or(&name).to_owned(),
                _ => name.clone(),
            };
            if name != "-" {
                let last = if given || self.follow {
                    Last::Follow
                } else {
                    Last::Keep
                };
                let stat = io.stat(&name, last);
                match &stat {
                    Ok(stat) if stat.kind == FileKind::Dir && self.recursive => {
                        let base = base_name(&name);
                        if !given && self.exclude_dir.iter().any(|glob| glob.is_match(base)) {
                            continue;
                        }
                        match io.vfs().list(&io.path(&name), io.cred()) {
                            Ok(entries) => {
                                let below = entries
                                    .into_iter()
                                    .rev()
                                    .map(|(entry, _)| (join(&name, &entry), false));
                                pending.extend(below);
                            }
                            Err(error) => {
                                failed |= self.failed(io, &shown, error.strerror()).await?;
                            }
                        }
                        continue;
                    }
                    // In a tree only files are looked at: no links, no devices.
                    Ok(stat) if !given && stat.kind != FileKind::File => continue,
                    _ => {}
                }
                if !self.wanted(&name) {
                    continue;
                }
            }
            match io.open(&name).await? {
                Ok(source) => {
                    if self
                        .file(io, regex, source, named.then_some(shown.as_str()), &shown)
                        .await?
                    {
                        found = true;
                        if self.tell == Tell::Nothing {
                            return Ok(0);
                        }
                    }
                }
                Err(why) => {
                    failed |= self.failed(io, &shown, &why).await?;
                    // One that opens and can't be read is a file without a match.
                    if why == "Is a directory" {
                        let named = named.then_some(shown.as_str());
                        self.end_of_file(io, named, &shown, 0).await?;
                    }
                }
            }
        }
        Ok(if failed { 2 } else { i32::from(!found) })
    }

    fn wanted(&self, name: &str) -> bool {
        let base = base_name(name);
        let any = |globs: &[GlobMatcher]| {
            globs
                .iter()
                .any(|glob| glob.is_match(base) || glob.is_match(name))
        };
        !any(&self.exclude) && (self.include.is_empty() || any(&self.include))
    }

    async fn failed(&self, io: &mut Io, name: &str, why: &str) -> Run<bool> {
        if !self.quiet_errors {
            io.flush().await?;
            io.report(&format!("grep: {name}: {why}\n")).await?;
        }
        Ok(true)
    }

    /// The matches of a line, in order.
    fn matches(&self, regex: &Regex, line: &[u8]) -> Vec<(usize, usize)> {
        let word =
            |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let mut found = Vec::new();
        let mut from = 0;
        while from <= line.len() {
            let hit = match self.literal() {
                Some(text) => memchr::memmem::find(&line[from..], text)
                    .map(|at| (from + at, from + at + text.len())),
                None => regex.find_at(line, from).map(|m| (m.start(), m.end())),
            };
            let Some((start, mut end)) = hit else {
                break;
            };
            if self.words {
                // A shorter match from the same place may be a word.
                let bounded = |end: usize| {
                    !word(start.checked_sub(1).and_then(|at| line.get(at))) && !word(line.get(end))
                };
                while !bounded(end) && end > start {
                    match regex.find_at(&line[..end - 1], start) {
                        Some(shorter) if shorter.start() == start => end = shorter.end(),
                        _ => end = start,
                    }
                }
                if end == start || !bounded(end) {
                    from = start + 1;
                    continue;
                }
            }
            found.push((start, end));
            if !self.only {
                break;
            }
            from = if end == start { end + 1 } else { end };
        }
        found
    }

    async fn file(
        &mut self,
        io: &mut Io,
        regex: Option<&Regex>,
        source: Source,
        named: Option<&str>,
        shown: &str,
    ) -> Run<bool> {
        let mut lines = Records::new(source, self.end);
        let (mut number, mut offset, mut count) = (0_u64, 0_u64, 0_u64);
        let mut kept: std::collections::VecDeque<(u64, u64, Vec<u8>)> =
            std::collections::VecDeque::new();
        let (mut trailing, mut last_shown) = (0, 0_u64);
        let mut binary = false;
        while let Some(mut line) = lines.next(io).await? {
            number += 1;
            let at = offset;
            offset += line.len() as u64;
            if line.last() == Some(&self.end) {
                line.pop();
            }
            binary |= !self.text && self.end == b'\n' && memchr::memchr(0, &line).is_some();
            if binary && self.skip_binary {
                return Ok(false);
            }
            let hits = regex.map_or_else(Vec::new, |regex| self.matches(regex, &line));
            if hits.is_empty() != self.invert {
                if trailing > 0 && self.tell == Tell::Lines && !binary {
                    trailing -= 1;
                    last_shown = number;
                    self.show(io, named, (number, at), &line, b'-').await?;
                } else if self.before > 0 {
                    if kept.len() == self.before {
                        kept.pop_front();
                    }
                    kept.push_back((number, at, line));
                }
                if count >= self.most && trailing == 0 {
                    break;
                }
                continue;
            }
            if count >= self.most {
                break;
            }
            count += 1;
            match self.tell {
                Tell::Nothing => return Ok(true),
                Tell::FilesWith | Tell::FilesWithout => break,
                Tell::Count => {
                    if count >= self.most {
                        break;
                    }
                    continue;
                }
                Tell::Lines if binary => {
                    io.flush().await?;
                    io.report(&format!("grep: {shown}: binary file matches\n"))
                        .await?;
                    return Ok(true);
                }
                Tell::Lines => {}
            }
            let first = kept.front().map_or(number, |(number, ..)| *number);
            if self.context && self.any && (last_shown == 0 || first > last_shown + 1) {
                io.write(b"--\n").await?;
            }
            self.any = true;
            for (number, at, line) in std::mem::take(&mut kept) {
                self.show(io, named, (number, at), &line, b'-').await?;
            }
            if self.only {
                if !self.invert {
                    for (start, end) in hits {
                        if end > start {
                            self.show(
                                io,
                                named,
                                (number, at + start as u64),
                                &line[start..end],
                                b':',
                            )
                            .await?;
                        }
                    }
                }
            } else {
                self.show(io, named, (number, at), &line, b':').await?;
            }
            last_shown = number;
            trailing = self.after;
            if count >= self.most && trailing == 0 {
                break;
            }
        }
        self.end_of_file(io, named, shown, count).await?;
        io.release();
        Ok(if self.tell == Tell::FilesWithout {
            count == 0
        } else {
            count > 0
        })
    }

    async fn end_of_file(&self, io: &mut Io, named: Option<&str>, shown: &str, count: u64) -> Run {
        let end: &[u8] = if self.null { b"\0" } else { b"\n" };
        match self.tell {
            Tell::Count => {
                if let Some(name) = named {
                    io.write(name.as_bytes()).await?;
                    io.write(if self.null { b"\0" } else { b":" }).await?;
                }
                io.write(format!("{count}\n").as_bytes()).await
            }
            Tell::FilesWith if count > 0 => {
                io.write(shown.as_bytes()).await?;
                io.write(end).await
            }
            Tell::FilesWithout if count == 0 => {
                io.write(shown.as_bytes()).await?;
                io.write(end).await
            }
            _ => Ok(()),
        }
    }

    async fn show(
        &self,
        io: &mut Io,
        named: Option<&str>,
        (number, offset): (u64, u64),
        line: &[u8],
        mark: u8,
    ) -> Run {
        let mut out = Vec::with_capacity(line.len() + 16);
        if let Some(name) = named {
            out.extend_from_slice(name.as_bytes());
            out.push(if self.null { 0 } else { mark });
        }
        if self.number {
            out.extend_from_slice(number.to_string().as_bytes());
            out.push(mark);
        }
        if self.offset {
            out.extend_from_slice(offset.to_string().as_bytes());
            out.push(mark);
        }
        out.extend_from_slice(line);
        out.push(self.end);
        io.write(&out).await
    }
}
