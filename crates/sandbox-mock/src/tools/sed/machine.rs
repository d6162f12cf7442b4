//! Runs commands over lines.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use regex::bytes::Regex;

use super::super::io::{Io, MEMORY, NO_MEMORY, Records, Run};
use super::parse::{Action, Address, Case, Command, Piece, Substitute, Until};
use crate::vfs::{FileKind, How, Last};

/// Commands run between two turns for others.
const TURN: u64 = 256;

pub(super) struct Options {
    pub(super) quiet: bool,
    pub(super) separate: bool,
    /// `-i`, with the suffix of a copy.
    pub(super) in_place: Option<String>,
    pub(super) end: u8,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            quiet: false,
            separate: false,
            in_place: None,
            end: b'\n',
        }
    }
}

/// A line and whether its end was there.
struct Line {
    text: Vec<u8>,
    ended: bool,
}

/// How a cycle goes on.
enum Flow {
    /// The script is at its end.
    Ended,
    /// The next cycle without printing.
    Drop,
    /// The next cycle on what is left, without reading.
    Again,
    /// No more input.
    Quit(i32),
    /// No more input, and nothing is printed.
    QuitNow(i32),
}

pub(super) struct Machine {
    commands: Vec<Command>,
    options: Options,
    /// For each command, the line its range ends at, or that it is open.
    ranges: Vec<Option<Range>>,
    pattern: Vec<u8>,
    hold: Vec<u8>,
    /// Whether the pattern's line had its newline.
    ended: bool,
    line: usize,
    replaced: bool,
    /// What comes out after the cycle.
    queue: Vec<Queued>,
    used: Option<Regex>,
    input: Input,
    output: Output,
    turns: u64,
}

#[derive(Clone, Copy)]
enum Range {
    To(usize),
    Open,
}

enum Queued {
    Text(Vec<u8>),
    File(String),
}

/// The files, as one stream of lines or each for itself.
#[derive(Default)]
struct Input {
    pending: Vec<String>,
    current: Option<Records>,
    name: String,
    ahead: Option<Line>,
    /// The next line is the first of another file that is edited in place.
    status: i32,
}

/// Where output goes: on, or into the file that is edited; and `w` files.
#[derive(Default)]
struct Output {
    edited: Option<(String, BytesMut)>,
    files: BTreeMap<String, BytesMut>,
    /// The last line came without its newline: one is due before more.
    due: bool,
}

impl Machine {
    pub(super) fn new(commands: Vec<Command>, options: Options) -> Self {
        Self {
            ranges: commands.iter().map(|_| None).collect(),
            commands,
            options,
            pattern: Vec::new(),
            hold: Vec::new(),
            ended: true,
            line: 0,
            replaced: false,
            queue: Vec::new(),
            used: None,
            input: Input::default(),
            output: Output::default(),
            turns: 0,
        }
    }

    pub(super) async fn run(mut self, io: &mut Io, mut operands: Vec<String>) -> Run<i32> {
        for command in &self.commands {
            let file = match &command.action {
                Action::Write(file) | Action::WriteFirst(file) => Some(file),
                Action::Substitute(substitute) => substitute.file.as_ref(),
                _ => None,
            };
            if let Some(file) = file
                && !matches!(file.as_str(), "/dev/stdout" | "/dev/stderr")
            {
                self.output.files.insert(file.clone(), BytesMut::new());
            }
        }
        for name in self.output.files.keys() {
            if let Err(error) = io.write_file(name, Bytes::new(), How::Truncate) {
                return io
                    .fail(
                        format!("couldn't open file {name}: {}", error.strerror()),
                        4,
                    )
                    .await;
            }
        }
        operands.reverse();
        let status = if self.options.in_place.is_some() || self.options.separate {
            let mut status = 0;
            while let Some(operand) = operands.pop() {
                self.input.pending = vec![operand.clone()];
                if self.options.in_place.is_some() {
                    match io.stat(&operand, Last::Follow) {
                        Ok(stat) if stat.kind != FileKind::File => {
                            io.complain_with(
                                format!("couldn't edit {operand}: not a regular file"),
                                4,
                            )
                            .await?;
                            continue;
                        }
                        Ok(_) => self.output.edited = Some((operand.clone(), BytesMut::new())),
                        Err(error) => {
                            io.complain_with(
                                format!("can't read {operand}: {}", error.strerror()),
                                2,
                            )
                            .await?;
                            continue;
                        }
                    }
                    self.line = 0;
                }
                let ended = self.cycles(io).await?;
                self.save(io).await?;
                if let Some(code) = ended {
                    status = code;
                    break;
                }
            }
            status
        } else {
            self.input.pending = operands;
            self.cycles(io).await?.unwrap_or(0)
        };
        for (name, content) in std::mem::take(&mut self.output.files) {
            if let Err(error) = io.write_file(&name, content.freeze(), How::Truncate) {
                io.complain_with(format!("couldn't write to {name}: {}", error.strerror()), 4)
                    .await?;
            }
        }
        Ok(status.max(self.input.status))
    }

    /// Puts an edited file back; the old one is kept where a suffix says so.
    async fn save(&mut self, io: &mut Io) -> Run {
        let Some((name, content)) = self.output.edited.take() else {
            return Ok(());
        };
        self.output.due = false;
        let suffix = self.options.in_place.clone().unwrap_or_default();
        if !suffix.is_empty()
            && let Ok(old) = io.vfs().read(&io.path(&name), io.cred())
        {
            let copy = if suffix.contains('*') {
                suffix.replace('*', super::super::io::base_name(&name))
            } else {
                format!("{name}{suffix}")
            };
            if let Err(error) = io.write_file(&copy, old, How::Truncate) {
                io.complain_with(format!("cannot rename {name}: {}", error.strerror()), 4)
                    .await?;
                return Ok(());
            }
        }
        if let Err(error) = io.write_file(&name, content.freeze(), How::Truncate) {
            io.complain_with(
                format!("couldn't open file {name}: {}", error.strerror()),
                4,
            )
            .await?;
        }
        io.release();
        Ok(())
    }

    /// All lines of the input; the status if a command quit.
    async fn cycles(&mut self, io: &mut Io) -> Run<Option<i32>> {
        let mut again = false;
        loop {
            if !again {
                match self.read(io).await? {
                    Some(line) => (self.pattern, self.ended) = (line.text, line.ended),
                    None => return Ok(None),
                }
            }
            self.replaced = if again { self.replaced } else { false };
            let flow = self.script(io).await?;
            again = matches!(flow, Flow::Again);
            if !self.options.quiet && matches!(flow, Flow::Ended | Flow::Quit(_)) {
                let text = self.pattern.clone();
                self.print(io, &text, self.ended).await?;
            }
            self.after(io).await?;
            if let Flow::Quit(code) | Flow::QuitNow(code) = flow {
                // What was not read of an edited file stays in it.
                if self.options.in_place.is_some() {
                    while let Some(line) = self.read(io).await? {
                        self.print(io, &line.text, line.ended).await?;
                    }
                }
                return Ok(Some(code));
            }
        }
    }

    /// Runs the commands once.
    #[allow(clippy::too_many_lines, reason = "one arm a command")]
    async fn script(&mut self, io: &mut Io) -> Run<Flow> {
        let mut at = 0;
        while at < self.commands.len() {
            self.turns += 1;
            if self.turns.is_multiple_of(TURN) {
                // A loop in a script ends at the deadline, and only there.
                io.flush().await?;
                io.turn().await?;
            }
            if self.pattern.len().saturating_add(self.hold.len()) > MEMORY {
                return io.fail(NO_MEMORY, 4).await;
            }
            if !self.selects(io, at).await? {
                at = match self.commands[at].action {
                    Action::Begin(end) => end,
                    _ => at + 1,
                };
                continue;
            }
            let end = self.options.end;
            let first_line = memchr::memchr(end, &self.pattern).unwrap_or(self.pattern.len());
            match &self.commands[at].action {
                Action::Begin(_) | Action::End | Action::Label => {}
                Action::Branch(to) => {
                    at = *to;
                    continue;
                }
                Action::BranchIf(to) => {
                    if std::mem::take(&mut self.replaced) {
                        at = *to;
                        continue;
                    }
                }
                Action::BranchIfNot(to) => {
                    if !std::mem::take(&mut self.replaced) {
                        at = *to;
                        continue;
                    }
                }
                Action::Append(text) => self.queue.push(Queued::Text(text.clone())),
                Action::Read(file) => self.queue.push(Queued::File(file.clone())),
                Action::Insert(text) => {
                    let text = text.clone();
                    self.write(io, &text).await?;
                }
                Action::Change(text) => {
                    let text = text.clone();
                    let inside = self.commands[at].until.is_some() && !self.commands[at].negated;
                    if !inside || self.ranges[at].is_none() {
                        self.write(io, &text).await?;
                    }
                    return Ok(Flow::Drop);
                }
                Action::Delete => return Ok(Flow::Drop),
                Action::DeleteFirst => {
                    if first_line == self.pattern.len() {
                        return Ok(Flow::Drop);
                    }
                    self.pattern.drain(..=first_line);
                    return Ok(Flow::Again);
                }
                Action::Print => {
                    let text = self.pattern.clone();
                    self.print(io, &text, self.ended).await?;
                }
                Action::PrintFirst => {
                    let text = self.pattern[..first_line].to_vec();
                    self.print(io, &text, true).await?;
                }
                Action::List => {
                    let text = list(&self.pattern);
                    self.write(io, &text).await?;
                }
                Action::Number => {
                    let text = format!("{}\n", self.line);
                    self.write(io, text.as_bytes()).await?;
                }
                Action::FileName => {
                    let text = format!("{}\n", self.input.name);
                    self.write(io, text.as_bytes()).await?;
                }
                Action::Next | Action::NextAppend => {
                    let appends = matches!(self.commands[at].action, Action::NextAppend);
                    if self.is_last(io).await? {
                        // GNU prints what there is; POSIX would not.
                        return Ok(Flow::Quit(0));
                    }
                    if !appends && !self.options.quiet {
                        let text = self.pattern.clone();
                        self.print(io, &text, self.ended).await?;
                    }
                    self.after(io).await?;
                    if let Some(line) = self.read(io).await? {
                        if appends {
                            self.pattern.push(end);
                            self.pattern.extend_from_slice(&line.text);
                        } else {
                            self.pattern = line.text;
                        }
                        self.ended = line.ended;
                    }
                }
                Action::Hold => self.hold.clone_from(&self.pattern),
                Action::HoldAppend => {
                    self.hold.push(end);
                    self.hold.extend_from_slice(&self.pattern);
                }
                Action::Get => self.pattern.clone_from(&self.hold),
                Action::GetAppend => {
                    self.pattern.push(end);
                    self.pattern.extend_from_slice(&self.hold);
                }
                Action::Exchange => std::mem::swap(&mut self.pattern, &mut self.hold),
                Action::Quit(code) => return Ok(Flow::Quit(*code)),
                Action::QuitNow(code) => return Ok(Flow::QuitNow(*code)),
                Action::Write(file) => {
                    let (file, text) = (file.clone(), self.pattern.clone());
                    self.write_to(io, &file, &text).await?;
                }
                Action::WriteFirst(file) => {
                    let (file, text) = (file.clone(), self.pattern[..first_line].to_vec());
                    self.write_to(io, &file, &text).await?;
                }
                Action::Substitute(substitute) => {
                    let Some(regex) = substitute.regex.clone().or_else(|| self.used.clone()) else {
                        return io.fail("no previous regular expression", 1).await;
                    };
                    let replaced = replace(substitute, &regex, &self.pattern);
                    let (print, file) = (substitute.print, substitute.file.clone());
                    self.used = Some(regex);
                    if let Some(replaced) = replaced {
                        self.pattern = replaced;
                        self.replaced = true;
                        let text = self.pattern.clone();
                        if print {
                            self.print(io, &text, self.ended).await?;
                        }
                        if let Some(file) = file {
                            self.write_to(io, &file, &text).await?;
                        }
                    }
                }
                Action::Translate(map) => {
                    for byte in &mut self.pattern {
                        *byte = map[usize::from(*byte)];
                    }
                }
                Action::Zap => self.pattern.clear(),
            }
            at += 1;
        }
        Ok(Flow::Ended)
    }

    /// Whether a command's addresses select this line.
    async fn selects(&mut self, io: &mut Io, at: usize) -> Run<bool> {
        let negated = self.commands[at].negated;
        if self.commands[at].from.is_none() {
            return Ok(!negated);
        }
        // `$` has to look ahead.
        let last = if self.asks_for_last(at) {
            self.is_last(io).await?
        } else {
            false
        };
        let command = &self.commands[at];
        let Some(from) = &command.from else {
            return Ok(!negated);
        };
        let Some(until) = &command.until else {
            let hit = hits(from, self.line, last, &self.pattern, &mut self.used);
            return Ok(hit != negated);
        };
        let line = self.line;
        let selected = match self.ranges[at] {
            Some(Range::To(end)) => {
                if line >= end {
                    self.ranges[at] = None;
                }
                // A range that ended before this line is over.
                line <= end
            }
            Some(Range::Open) => {
                if let Until::Address(address) = until
                    && hits(address, line, last, &self.pattern, &mut self.used)
                {
                    self.ranges[at] = None;
                }
                true
            }
            None => {
                // `0,/re/` may end at the first line.
                let zero = matches!(from, Address::Line(0)) && line == 1;
                let begins = zero || hits(from, line, last, &self.pattern, &mut self.used);
                if begins {
                    let range = match until {
                        Until::Count(0) | Until::Multiple(0) => None,
                        Until::Count(count) => Some(Range::To(line + count)),
                        Until::Multiple(multiple) => {
                            Some(Range::To(line.next_multiple_of(*multiple)))
                                .filter(|_| !line.is_multiple_of(*multiple))
                        }
                        Until::Address(Address::Line(end)) => {
                            (*end > line).then_some(Range::To(*end))
                        }
                        Until::Address(address) if zero => {
                            (!hits(address, line, last, &self.pattern, &mut self.used))
                                .then_some(Range::Open)
                        }
                        Until::Address(Address::Last) if last => None,
                        Until::Address(_) => Some(Range::Open),
                    };
                    self.ranges[at] = range;
                }
                begins
            }
        };
        Ok(selected != negated)
    }

    fn asks_for_last(&self, at: usize) -> bool {
        let command = &self.commands[at];
        matches!(command.from, Some(Address::Last))
            || matches!(command.until, Some(Until::Address(Address::Last)))
    }

    async fn is_last(&mut self, io: &mut Io) -> Run<bool> {
        if self.input.ahead.is_none() {
            self.input.ahead = self.fetch(io).await?;
        }
        Ok(self.input.ahead.is_none())
    }

    async fn read(&mut self, io: &mut Io) -> Run<Option<Line>> {
        let line = match self.input.ahead.take() {
            Some(line) => Some(line),
            None => self.fetch(io).await?,
        };
        self.line += usize::from(line.is_some());
        Ok(line)
    }

    async fn fetch(&mut self, io: &mut Io) -> Run<Option<Line>> {
        loop {
            if let Some(current) = &mut self.input.current {
                if let Some(mut text) = current.next(io).await? {
                    let ended = text.last() == Some(&self.options.end);
                    if ended {
                        text.pop();
                    }
                    return Ok(Some(Line { text, ended }));
                }
                self.input.current = None;
            }
            let Some(operand) = self.input.pending.pop() else {
                return Ok(None);
            };
            match io.open(&operand).await? {
                Ok(source) => {
                    self.input.current = Some(Records::new(source, self.options.end));
                    self.input.name = operand;
                }
                Err(why) => {
                    let why = if why == "Is a directory" {
                        format!("couldn't read {operand}: {why}")
                            .replace("couldn't read", "read error on")
                    } else {
                        format!("can't read {operand}: {why}")
                    };
                    io.complain_with(why, 2).await?;
                    self.input.status = 2;
                }
            }
        }
    }

    /// Prints a line with its newline, if it had one.
    async fn print(&mut self, io: &mut Io, text: &[u8], ended: bool) -> Run {
        self.write(io, text).await?;
        if ended {
            self.write(io, &[self.options.end]).await?;
        } else {
            self.output.due = true;
        }
        Ok(())
    }

    async fn write(&mut self, io: &mut Io, text: &[u8]) -> Run {
        let due = std::mem::take(&mut self.output.due);
        if let Some((_, content)) = &mut self.output.edited {
            if due {
                content.extend_from_slice(&[self.options.end]);
            }
            io.hold(text.len()).await?;
            content.extend_from_slice(text);
        } else {
            if due {
                io.write(&[self.options.end]).await?;
            }
            io.write(text).await?;
        }
        Ok(())
    }

    async fn write_to(&mut self, io: &mut Io, file: &str, text: &[u8]) -> Run {
        match file {
            "/dev/stdout" => self.print(io, text, true).await,
            "/dev/stderr" => {
                io.write_error(text).await?;
                io.write_error(&[self.options.end]).await
            }
            _ => {
                io.hold(text.len() + 1).await?;
                if let Some(content) = self.output.files.get_mut(file) {
                    content.extend_from_slice(text);
                    content.extend_from_slice(&[self.options.end]);
                }
                Ok(())
            }
        }
    }

    /// What `a` and `r` left for the end of the cycle.
    async fn after(&mut self, io: &mut Io) -> Run {
        for queued in std::mem::take(&mut self.queue) {
            match queued {
                Queued::Text(text) => self.write(io, &text).await?,
                // A file that can't be read is an empty one.
                Queued::File(file) => {
                    if let Ok(bytes) = io.slurp(&file).await? {
                        self.write(io, &bytes).await?;
                        self.output.due = !bytes.is_empty() && !bytes.ends_with(b"\n");
                    }
                }
            }
        }
        Ok(())
    }
}

fn hits(
    address: &Address,
    line: usize,
    last: bool,
    pattern: &[u8],
    used: &mut Option<Regex>,
) -> bool {
    match address {
        Address::Line(number) => *number == line,
        Address::Last => last,
        Address::Step(first, 0) => line == *first,
        Address::Step(first, step) => line >= *first && (line - first).is_multiple_of(*step),
        Address::Match(Some(regex)) => {
            *used = Some(regex.clone());
            regex.is_match(pattern)
        }
        Address::Match(None) => used.as_ref().is_some_and(|regex| regex.is_match(pattern)),
    }
}

/// The pattern with matches replaced; nothing if there was none.
fn replace(substitute: &Substitute, regex: &Regex, pattern: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(pattern.len());
    let (mut copied, mut count, mut from) = (0, 0, 0);
    let mut any = false;
    // Where the last match ended: an empty one right there does not count.
    let mut before = None;
    while from <= pattern.len() {
        let Some(found) = regex.captures_at(pattern, from) else {
            break;
        };
        let Some(whole) = found.get(0) else { break };
        let empty_again = whole.is_empty() && before == Some(whole.start());
        if !empty_again {
            count += 1;
            if count >= substitute.nth {
                any = true;
                out.extend_from_slice(&pattern[copied..whole.start()]);
                expand(&substitute.pieces, &found, &mut out);
                copied = whole.end();
                if !substitute.global {
                    break;
                }
            }
        }
        before = Some(whole.end());
        from = if whole.is_empty() {
            whole.end() + 1
        } else {
            whole.end()
        };
    }
    out.extend_from_slice(&pattern[copied..]);
    any.then_some(out)
}

fn expand(pieces: &[Piece], found: &regex::bytes::Captures<'_>, out: &mut Vec<u8>) {
    let (mut case, mut once) = (Case::End, None);
    for piece in pieces {
        let text = match piece {
            Piece::Case(next @ (Case::NextUpper | Case::NextLower)) => {
                once = Some(*next);
                continue;
            }
            Piece::Case(next) => {
                case = *next;
                continue;
            }
            Piece::Text(text) => text.as_slice(),
            Piece::Group(group) => found.get(*group).map_or(&[][..], |group| group.as_bytes()),
        };
        let from = out.len();
        out.extend_from_slice(text);
        match case {
            Case::Upper => out[from..].make_ascii_uppercase(),
            Case::Lower => out[from..].make_ascii_lowercase(),
            _ => {}
        }
        if let Some(first) = out.get_mut(from) {
            match once.take() {
                Some(Case::NextUpper) => first.make_ascii_uppercase(),
                Some(_) => first.make_ascii_lowercase(),
                None => {}
            }
        }
    }
}

/// `l`: unambiguous, folded at 70 columns.
fn list(text: &[u8]) -> Vec<u8> {
    const WIDTH: usize = 69;
    let (mut out, mut column) = (Vec::new(), 0);
    for &byte in text {
        let shown = match byte {
            b'\\' => "\\\\".to_owned(),
            7 => "\\a".to_owned(),
            8 => "\\b".to_owned(),
            9 => "\\t".to_owned(),
            10 => "\\n".to_owned(),
            11 => "\\v".to_owned(),
            12 => "\\f".to_owned(),
            13 => "\\r".to_owned(),
            32..=126 => char::from(byte).to_string(),
            _ => format!("\\{byte:03o}"),
        };
        if column + shown.len() > WIDTH {
            out.extend_from_slice(b"\\\n");
            column = 0;
        }
        column += shown.len();
        out.extend_from_slice(shown.as_bytes());
    }
    out.extend_from_slice(b"$\n");
    out
}
