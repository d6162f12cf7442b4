//! `cut`.

use super::getopt;
use super::io::{Io, Records, Run};

enum By {
    Bytes,
    Fields,
}

struct Cut {
    by: By,
    /// One-based, both ends included, sorted and merged.
    ranges: Vec<(usize, usize)>,
    delimiter: Vec<u8>,
    output: Option<Vec<u8>>,
    only_delimited: bool,
}

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("bytes", 'b'),
        ("characters", 'c'),
        ("fields", 'f'),
        ("delimiter", 'd'),
        ("only-delimited", 's'),
        ("output-delimiter", 'O'),
        ("complement", 'C'),
        ("zero-terminated", 'z'),
    ];
    let parsed = getopt::options(io, "b:c:f:d:snO:Cz", &long, 1).await?;
    let hint = "\nTry 'cut --help' for more information.";
    let mut cut = Cut {
        by: By::Bytes,
        ranges: Vec::new(),
        delimiter: b"\t".to_vec(),
        output: None,
        only_delimited: false,
    };
    let mut list = None;
    let mut complement = false;
    let mut end = b'\n';
    for (option, value) in &parsed.options {
        match option {
            'b' | 'c' | 'f' => {
                if list.is_some() {
                    return io
                        .fail(format!("only one list may be specified{hint}"), 1)
                        .await;
                }
                cut.by = if *option == 'f' {
                    By::Fields
                } else {
                    By::Bytes
                };
                list = Some(value.clone());
            }
            'd' if value.chars().count() > 1 => {
                return io
                    .fail(format!("the delimiter must be a single character{hint}"), 1)
                    .await;
            }
            'd' if value.is_empty() => cut.delimiter = vec![0],
            'd' => cut.delimiter = value.clone().into_bytes(),
            's' => cut.only_delimited = true,
            'O' => cut.output = Some(value.clone().into_bytes()),
            'C' => complement = true,
            'z' => end = 0,
            _ => {}
        }
    }
    let Some(list) = list else {
        let message = format!("you must specify a list of bytes, characters, or fields{hint}");
        return io.fail(message, 1).await;
    };
    cut.ranges = match ranges(&list, matches!(cut.by, By::Fields)) {
        Ok(ranges) if complement => inverted(&ranges),
        Ok(ranges) => ranges,
        Err(why) => return io.fail(format!("{why}{hint}"), 1).await,
    };
    let operands = if parsed.operands.is_empty() {
        vec!["-".to_owned()]
    } else {
        parsed.operands
    };
    for operand in &operands {
        let source = match io.open(operand).await? {
            Ok(source) => source,
            Err(why) => {
                io.complain(format!("{operand}: {why}")).await?;
                continue;
            }
        };
        let mut lines = Records::new(source, end);
        while let Some(mut line) = lines.next(io).await? {
            if line.last() == Some(&end) {
                line.pop();
            }
            if let Some(mut kept) = cut.apply(&line) {
                kept.push(end);
                io.write(&kept).await?;
            }
        }
        io.flush().await?;
    }
    Ok(0)
}

impl Cut {
    fn wants(&self, position: usize) -> bool {
        self.ranges
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&position))
    }

    fn apply(&self, line: &[u8]) -> Option<Vec<u8>> {
        match self.by {
            By::Bytes => {
                let mut kept = Vec::new();
                let mut any = false;
                for &(from, to) in &self.ranges {
                    if from > line.len() {
                        break;
                    }
                    if std::mem::replace(&mut any, true) {
                        kept.extend(self.output.iter().flatten());
                    }
                    kept.extend_from_slice(&line[from - 1..to.min(line.len())]);
                }
                Some(kept)
            }
            By::Fields => {
                if memchr::memmem::find(line, &self.delimiter).is_none() {
                    return (!self.only_delimited).then(|| line.to_vec());
                }
                let between = self.output.as_deref().unwrap_or(&self.delimiter);
                let mut kept = Vec::new();
                let mut any = false;
                let mut from = 0;
                let mut position = 1;
                loop {
                    let to =
                        memchr::memmem::find(&line[from..], &self.delimiter).map(|at| from + at);
                    if self.wants(position) {
                        if std::mem::replace(&mut any, true) {
                            kept.extend_from_slice(between);
                        }
                        kept.extend_from_slice(&line[from..to.unwrap_or(line.len())]);
                    }
                    let Some(to) = to else { break };
                    from = to + self.delimiter.len();
                    position += 1;
                }
                Some(kept)
            }
        }
    }
}

/// `1,3-5,7-`: sorted and merged.
fn ranges(list: &str, fields: bool) -> Result<Vec<(usize, usize)>, String> {
    let what = if fields {
        "field"
    } else {
        "byte/character position"
    };
    let invalid = || format!("invalid {what} '{list}'");
    let number = |text: &str| text.parse::<usize>().map_err(|_| invalid());
    let mut ranges = Vec::new();
    for part in list.split([',', ' ']) {
        let (from, to) = match part.split_once('-') {
            Some(("", "")) => return Err("invalid range with no endpoint: -".to_owned()),
            Some((from, to)) => (
                if from.is_empty() { 1 } else { number(from)? },
                if to.is_empty() {
                    usize::MAX
                } else {
                    number(to)?
                },
            ),
            None => (number(part)?, number(part)?),
        };
        if from == 0 {
            return Err(if fields {
                "fields are numbered from 1"
            } else {
                "byte/character positions are numbered from 1"
            }
            .to_owned());
        }
        if to < from {
            return Err("invalid decreasing range".to_owned());
        }
        ranges.push((from, to));
    }
    ranges.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (from, to) in ranges {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    Ok(merged)
}

fn inverted(ranges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut gaps = Vec::new();
    let mut next = 1;
    for &(from, to) in ranges {
        if from > next {
            gaps.push((next, from - 1));
        }
        next = to.saturating_add(1);
    }
    if next < usize::MAX {
        gaps.push((next, usize::MAX));
    }
    gaps
}
