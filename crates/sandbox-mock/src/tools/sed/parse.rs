//! Scripts into commands.

use std::collections::HashMap;

use regex::bytes::Regex;

use super::super::posix::compile;

/// What selects a line.
pub(super) enum Address {
    Line(usize),
    Last,
    /// `first~step`.
    Step(usize, usize),
    /// `None` is the last expression used.
    Match(Option<Regex>),
}

/// Where a range ends, once it has begun.
pub(super) enum Until {
    Address(Address),
    /// `addr,+N`.
    Count(usize),
    /// `addr,~N`.
    Multiple(usize),
}

/// A command with its addresses.
pub(super) struct Command {
    pub(super) from: Option<Address>,
    pub(super) until: Option<Until>,
    pub(super) negated: bool,
    pub(super) action: Action,
}

/// A piece of what replaces a match.
pub(super) enum Piece {
    Text(Vec<u8>),
    Group(usize),
    Case(Case),
}

/// `\U`, `\L`, `\u`, `\l`, `\E`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Case {
    Upper,
    Lower,
    NextUpper,
    NextLower,
    End,
}

pub(super) struct Substitute {
    pub(super) regex: Option<Regex>,
    pub(super) pieces: Vec<Piece>,
    pub(super) global: bool,
    pub(super) nth: usize,
    pub(super) print: bool,
    pub(super) file: Option<String>,
}

pub(super) enum Action {
    /// To the command behind the matching `}`.
    Begin(usize),
    End,
    Label,
    Branch(usize),
    BranchIf(usize),
    BranchIfNot(usize),
    Append(Vec<u8>),
    Insert(Vec<u8>),
    Change(Vec<u8>),
    Delete,
    DeleteFirst,
    Print,
    PrintFirst,
    List,
    Number,
    Next,
    NextAppend,
    Hold,
    HoldAppend,
    Get,
    GetAppend,
    Exchange,
    Quit(i32),
    QuitNow(i32),
    Read(String),
    Write(String),
    WriteFirst(String),
    Substitute(Box<Substitute>),
    Translate(Box<[u8; 256]>),
    Zap,
    FileName,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    extended: bool,
    commands: Vec<Command>,
    open: Vec<usize>,
    labels: HashMap<String, usize>,
    jumps: Vec<(usize, String)>,
}

/// Reads a script. The error is what GNU says behind `-e expression #1, `.
pub(super) fn parse(text: &str, extended: bool) -> Result<Vec<Command>, String> {
    let mut parser = Parser {
        text,
        at: 0,
        extended,
        commands: Vec::new(),
        open: Vec::new(),
        labels: HashMap::new(),
        jumps: Vec::new(),
    };
    while parser
        .command()
        .map_err(|why| format!("char {}: {why}", parser.at))?
    {}
    if !parser.open.is_empty() {
        return Err("char 0: unmatched `{'".to_owned());
    }
    let end = parser.commands.len();
    for (at, label) in std::mem::take(&mut parser.jumps) {
        let to = match parser.labels.get(&label) {
            Some(to) => *to,
            None if label.is_empty() => end,
            None => {
                return Err(format!(
                    "char {}: can't find label for jump to `{label}'",
                    text.len()
                ));
            }
        };
        parser.commands[at].action = match parser.commands[at].action {
            Action::BranchIf(_) => Action::BranchIf(to),
            Action::BranchIfNot(_) => Action::BranchIfNot(to),
            _ => Action::Branch(to),
        };
    }
    Ok(parser.commands)
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip(&mut self, what: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&what) {
            self.next();
        }
    }

    fn number(&mut self) -> Option<usize> {
        let from = self.at;
        self.skip(|c| c.is_ascii_digit());
        self.text[from..self.at].parse().ok()
    }

    /// One command; false at the end.
    fn command(&mut self) -> Result<bool, String> {
        self.skip(|c| c.is_whitespace() || c == ';');
        if self.peek().is_none() {
            return Ok(false);
        }
        let from = self.address()?;
        let mut until = None;
        self.skip(|c| c == ' ');
        if from.is_some() && self.peek() == Some(',') {
            self.next();
            self.skip(|c| c == ' ');
            until = Some(match self.peek() {
                Some('+') => {
                    self.next();
                    Until::Count(self.number().ok_or("expected number")?)
                }
                Some('~') => {
                    self.next();
                    Until::Multiple(self.number().ok_or("expected number")?)
                }
                _ => Until::Address(self.address()?.ok_or("unexpected `,'")?),
            });
        }
        self.skip(|c| c == ' ' || c == '\t');
        let negated = self.peek() == Some('!');
        self.skip(|c| c == '!' || c == ' ');
        let letter = self.next().ok_or("missing command")?;
        let addressed = from.is_some();
        if letter == '}' {
            if addressed {
                return Err("} doesn't want any addresses".to_owned());
            }
            let begin = self.open.pop().ok_or("unexpected `}'")?;
            self.commands[begin].action = Action::Begin(self.commands.len());
            self.commands.push(Command {
                from: None,
                until: None,
                negated: false,
                action: Action::End,
            });
            self.ended()?;
            return Ok(true);
        }
        let action = self.action(letter, addressed)?;
        let at = self.commands.len();
        if let Action::Begin(_) = action {
            self.open.push(at);
        }
        self.commands.push(Command {
            from,
            until,
            negated,
            action,
        });
        Ok(true)
    }

    fn action(&mut self, letter: char, addressed: bool) -> Result<Action, String> {
        let simple = match letter {
            '#' if addressed => return Err("comments don't accept any addresses".to_owned()),
            '#' => {
                self.skip(|c| c != '\n');
                return Ok(Action::Label);
            }
            '{' => return Ok(Action::Begin(0)),
            ':' if addressed => return Err(": doesn't want any addresses".to_owned()),
            ':' => {
                self.skip(|c| c == ' ');
                let label = self.word();
                if label.is_empty() {
                    return Err("\":\" lacks a label".to_owned());
                }
                self.labels.insert(label, self.commands.len());
                return Ok(Action::Label);
            }
            'b' | 't' | 'T' => {
                self.skip(|c| c == ' ');
                let label = self.word();
                self.jumps.push((self.commands.len(), label));
                return Ok(match letter {
                    'b' => Action::Branch(0),
                    't' => Action::BranchIf(0),
                    _ => Action::BranchIfNot(0),
                });
            }
            'a' => return Ok(Action::Append(self.lines()?)),
            'i' => return Ok(Action::Insert(self.lines()?)),
            'c' => return Ok(Action::Change(self.lines()?)),
            'r' => return Ok(Action::Read(self.file()?)),
            'w' => return Ok(Action::Write(self.file()?)),
            'W' => return Ok(Action::WriteFirst(self.file()?)),
            's' => return self.substitute(),
            'y' => self.translate()?,
            'q' | 'Q' => {
                self.skip(|c| c == ' ');
                let code = i32::try_from(self.number().unwrap_or(0)).unwrap_or(0) & 0xff;
                if letter == 'q' {
                    Action::Quit(code)
                } else {
                    Action::QuitNow(code)
                }
            }
            'l' => {
                self.skip(|c| c == ' ');
                self.number();
                Action::List
            }
            'd' => Action::Delete,
            'D' => Action::DeleteFirst,
            'p' => Action::Print,
            'P' => Action::PrintFirst,
            '=' => Action::Number,
            'n' => Action::Next,
            'N' => Action::NextAppend,
            'h' => Action::Hold,
            'H' => Action::HoldAppend,
            'g' => Action::Get,
            'G' => Action::GetAppend,
            'x' => Action::Exchange,
            'z' => Action::Zap,
            'F' => Action::FileName,
            'e' => return Err("e command is not supported here".to_owned()),
            'v' => {
                self.skip(|c| c != '\n' && c != ';');
                Action::Label
            }
            _ => return Err(format!("unknown command: `{letter}'")),
        };
        self.ended()?;
        Ok(simple)
    }

    /// What may follow a command.
    fn ended(&mut self) -> Result<(), String> {
        self.skip(|c| c == ' ' || c == '\t');
        match self.peek() {
            None | Some('}' | '#') => Ok(()),
            Some(';' | '\n') => {
                self.next();
                Ok(())
            }
            Some(_) => {
                self.next();
                Err("extra characters after command".to_owned())
            }
        }
    }

    fn word(&mut self) -> String {
        let from = self.at;
        self.skip(|c| !c.is_whitespace() && c != ';' && c != '}');
        self.text[from..self.at].to_owned()
    }

    fn file(&mut self) -> Result<String, String> {
        self.skip(|c| c == ' ' || c == '\t');
        let from = self.at;
        self.skip(|c| c != '\n');
        if from == self.at {
            return Err("missing filename in r/R/w/W commands".to_owned());
        }
        Ok(self.text[from..self.at].to_owned())
    }

    /// The text of `a`, `i`, `c`: on the same line or behind `\` and a newline.
    fn lines(&mut self) -> Result<Vec<u8>, String> {
        self.skip(|c| c == ' ' || c == '\t');
        if self.peek() == Some('\\') {
            self.next();
            // Behind `\\` blanks are part of the text, unless a newline follows them.
            let rest = self.text[self.at..].trim_start_matches([' ', '\t']);
            if rest.starts_with('\n') {
                self.at = self.text.len() - rest.len() + 1;
            }
        }
        if self.peek().is_none() {
            return Err("expected \\ after `a', `c' or `i'".to_owned());
        }
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                '\n' => break,
                '\\' => match self.next() {
                    Some('t') => text.push('\t'),
                    Some('n') => text.push('\n'),
                    Some(escaped) => text.push(escaped),
                    None => {}
                },
                _ => text.push(c),
            }
        }
        text.push('\n');
        Ok(text.into_bytes())
    }

    fn address(&mut self) -> Result<Option<Address>, String> {
        let address = match self.peek() {
            Some('0'..='9') => {
                let first = self.number().ok_or("invalid usage of line address 0")?;
                if self.peek() == Some('~') {
                    self.next();
                    Address::Step(first, self.number().unwrap_or(0))
                } else {
                    Address::Line(first)
                }
            }
            Some('$') => {
                self.next();
                Address::Last
            }
            Some(open @ ('/' | '\\')) => {
                self.next();
                let delimiter = if open == '/' {
                    '/'
                } else {
                    self.next().ok_or("unterminated address regex")?
                };
                let pattern = self
                    .delimited(delimiter, true)
                    .ok_or("unterminated address regex")?;
                let (mut fold, mut multiline) = (false, false);
                loop {
                    match self.peek() {
                        Some('I') => fold = true,
                        Some('M') => multiline = true,
                        _ => break,
                    }
                    self.next();
                }
                Address::Match(if pattern.is_empty() {
                    None
                } else {
                    Some(compile(&pattern, self.extended, fold, multiline)?)
                })
            }
            _ => return Ok(None),
        };
        Ok(Some(address))
    }

    /// Text up to a delimiter, which a backslash takes its meaning from. In a
    /// `pattern` a bracket expression may hold it.
    fn delimited(&mut self, delimiter: char, pattern: bool) -> Option<String> {
        let mut text = String::new();
        let mut bracket = 0;
        while let Some(c) = self.next() {
            if c == delimiter && bracket == 0 {
                return Some(text);
            }
            match c {
                '\\' => {
                    let escaped = self.next()?;
                    if escaped == delimiter {
                        // `s|a\|b|` is the character, `s,a\,b,` too.
                        if pattern && "(){}|+?.*[]^$".contains(escaped) {
                            text.push_str(&format!("[{escaped}]").replace("[^]", "\\^"));
                        } else {
                            text.push(escaped);
                        }
                    } else if escaped == '\n' && pattern {
                        text.push('\n');
                    } else {
                        text.push('\\');
                        text.push(escaped);
                    }
                    continue;
                }
                '[' if pattern && bracket == 0 => {
                    // A `]` that comes first is one of the set.
                    text.push(c);
                    let mut rest = self.text[self.at..].chars().peekable();
                    let mut taken = 0;
                    if rest.next_if_eq(&'^').is_some() {
                        taken += 1;
                    }
                    if rest.next_if_eq(&']').is_some() {
                        taken += 1;
                    }
                    if self.text[self.at + taken..].contains(']') {
                        text.push_str(&self.text[self.at..self.at + taken]);
                        self.at += taken;
                        bracket = 1;
                    }
                    continue;
                }
                '[' if bracket > 0 && matches!(self.peek(), Some(':' | '.' | '=')) => bracket = 2,
                ']' if bracket > 0 => bracket -= 1,
                '\n' if !pattern && delimiter != '\n' => {}
                _ => {}
            }
            text.push(c);
        }
        None
    }

    fn substitute(&mut self) -> Result<Action, String> {
        const OPEN: &str = "unterminated `s' command";
        let delimiter = self.next().ok_or(OPEN)?;
        let pattern = self.delimited(delimiter, true).ok_or(OPEN)?;
        let replacement = self.delimited(delimiter, false).ok_or(OPEN)?;
        let mut substitute = Substitute {
            regex: None,
            pieces: pieces(&replacement),
            global: false,
            nth: 1,
            print: false,
            file: None,
        };
        let (mut fold, mut multiline) = (false, false);
        loop {
            match self.peek() {
                Some('g') => substitute.global = true,
                Some('p') => substitute.print = true,
                Some('i' | 'I') => fold = true,
                Some('m' | 'M') => multiline = true,
                Some('1'..='9') => {
                    substitute.nth = self.number().unwrap_or(1);
                    continue;
                }
                Some('0') => return Err("number option to `s' command may not be zero".to_owned()),
                Some('e') => return Err("e option of `s' is not supported here".to_owned()),
                Some('w') => {
                    self.next();
                    substitute.file = Some(self.file()?);
                    break;
                }
                None | Some('}' | '#' | ';' | '\n' | ' ' | '\t') => break,
                Some(_) => return Err("unknown option to `s'".to_owned()),
            }
            self.next();
        }
        if !pattern.is_empty() {
            let regex = compile(&pattern, self.extended, fold, multiline)?;
            let most = substitute
                .pieces
                .iter()
                .filter_map(|piece| {
                    if let Piece::Group(group) = piece {
                        Some(*group)
                    } else {
                        None
                    }
                })
                .max();
            if most.is_some_and(|most| most >= regex.captures_len()) {
                return Err(format!(
                    "invalid reference \\{} on `s' command's RHS",
                    most.unwrap_or(0)
                ));
            }
            substitute.regex = Some(regex);
        }
        self.ended()?;
        Ok(Action::Substitute(Box::new(substitute)))
    }

    fn translate(&mut self) -> Result<Action, String> {
        const OPEN: &str = "unterminated `y' command";
        let delimiter = self.next().ok_or(OPEN)?;
        let from = bytes(&self.delimited(delimiter, false).ok_or(OPEN)?);
        let to = bytes(&self.delimited(delimiter, false).ok_or(OPEN)?);
        if from.len() != to.len() {
            return Err("strings for `y' command are different lengths".to_owned());
        }
        let mut map: [u8; 256] = std::array::from_fn(|at| at.to_le_bytes()[0]);
        for (from, to) in from.iter().zip(to) {
            map[usize::from(*from)] = to;
        }
        Ok(Action::Translate(Box::new(map)))
    }
}

/// Text with `\n`, `\t` and `\\` read.
fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => match rest.next() {
                Some(b'n') => out.push(b'\n'),
                Some(b't') => out.push(b'\t'),
                Some(b'r') => out.push(b'\r'),
                Some(other) => out.push(other),
                None => out.push(b'\\'),
            },
            _ => out.push(byte),
        }
    }
    out
}

/// What replaces a match.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut literal: Vec<u8> = Vec::new();
    let source = text.as_bytes();
    let mut at = 0;
    while at < source.len() {
        let byte = source[at];
        at += 1;
        let piece = match byte {
            b'&' => Piece::Group(0),
            b'\\' => {
                let Some(&escaped) = source.get(at) else {
                    break;
                };
                at += 1;
                match escaped {
                    b'0'..=b'9' => Piece::Group(usize::from(escaped - b'0')),
                    b'U' => Piece::Case(Case::Upper),
                    b'L' => Piece::Case(Case::Lower),
                    b'u' => Piece::Case(Case::NextUpper),
                    b'l' => Piece::Case(Case::NextLower),
                    b'E' => Piece::Case(Case::End),
                    _ => {
                        literal.push(match escaped {
                            b'n' => b'\n',
                            b't' => b'\t',
                            b'r' => b'\r',
                            b'f' => 12,
                            b'v' => 11,
                            b'a' => 7,
                            b'x' => {
                                let digits = source[at..]
                                    .iter()
                                    .take(2)
                                    .take_while(|b| b.is_ascii_hexdigit())
                                    .count();
                                let value =
                                    u8::from_str_radix(&text[at..at + digits], 16).unwrap_or(b'x');
                                at += digits;
                                value
                            }
                            other => other,
                        });
                        continue;
                    }
                }
            }
            _ => {
                literal.push(byte);
                continue;
            }
        };
        if !literal.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut literal)));
        }
        pieces.push(piece);
    }
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    pieces
}
