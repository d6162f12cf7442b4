//! `gzip`, `gunzip` and `zcat`, as streams.

use std::io::{Cursor, Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::{GzEncoder, MultiGzDecoder as Unpack};

use super::getopt;
use super::io::{Io, Run, Source};
use crate::vfs::{FileKind, How, Last};

#[allow(clippy::too_many_lines, reason = "one arm an option, then one pass")]
pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("stdout", 'c'),
        ("to-stdout", 'c'),
        ("decompress", 'd'),
        ("uncompress", 'd'),
        ("force", 'f'),
        ("keep", 'k'),
        ("no-name", 'n'),
        ("name", 'N'),
        ("quiet", 'q'),
        ("suffix", 'S'),
        ("test", 't'),
        ("verbose", 'v'),
        ("fast", '1'),
        ("best", '9'),
        ("list", 'l'),
    ];
    let parsed = getopt::options(io, "cdfknNqS:tv123456789l", &long, 1).await?;
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    let to_stdout = has('c') || io.name == "zcat";
    let unpack = has('d') || has('t') || matches!(io.name.as_str(), "gunzip" | "zcat");
    let (force, keep, test) = (has('f'), has('k') || to_stdout || has('t'), has('t'));
    if has('l') {
        return io.fail("-l is not supported here", 1).await;
    }
    let level = parsed
        .options
        .iter()
        .filter_map(|(option, _)| option.to_digit(10))
        .next_back()
        .unwrap_or(6);
    let suffix = parsed
        .options
        .iter()
        .find(|(option, _)| *option == 'S')
        .map_or(".gz", |(_, suffix)| suffix);
    let operands = if parsed.operands.is_empty() {
        vec!["-".to_owned()]
    } else {
        parsed.operands.clone()
    };
    for operand in &operands {
        let Some(mut source) = open(io, operand, unpack, suffix).await? else {
            continue;
        };
        if operand == "-" || to_stdout || test {
            let filter = if unpack {
                Filter::unpack()
            } else {
                Filter::pack(level)
            };
            if let Err(why) = pass(
                io,
                &mut source,
                filter,
                if test { None } else { Some(To::Stdout) },
            )
            .await?
            {
                io.complain(format!("{}: {why}", shown(operand))).await?;
            }
            continue;
        }
        let target = if unpack {
            let stem = operand.strip_suffix(suffix).map(str::to_owned);
            let stem = stem.or_else(|| Some(operand.strip_suffix(".tgz")?.to_owned() + ".tar"));
            let Some(stem) = stem else {
                io.complain_with(format!("{operand}: unknown suffix -- ignored"), 2)
                    .await?;
                continue;
            };
            stem
        } else if operand.ends_with(suffix) && !force {
            io.complain_with(
                format!("{operand} already has {suffix} suffix -- unchanged"),
                2,
            )
            .await?;
            continue;
        } else {
            format!("{operand}{suffix}")
        };
        let stat = match io.stat(operand, Last::Follow) {
            Ok(stat) => stat,
            Err(error) => {
                io.complain(format!("{operand}: {}", error.strerror()))
                    .await?;
                continue;
            }
        };
        if !force && io.stat(&target, Last::Keep).is_ok() {
            io.complain_with(format!("{target} already exists;\tnot overwritten"), 2)
                .await?;
            continue;
        }
        if let Err(error) = io.write_file(&target, Bytes::new(), How::Truncate) {
            io.complain(format!("{target}: {}", error.strerror()))
                .await?;
            continue;
        }
        let filter = if unpack {
            Filter::unpack()
        } else {
            Filter::pack(level)
        };
        if let Err(why) = pass(io, &mut source, filter, Some(To::File(target.clone()))).await? {
            io.vfs().remove(&io.path(&target), io.cred(), false).ok();
            io.complain(format!("{}: {why}", shown(operand))).await?;
            continue;
        }
        io.vfs().chmod(&io.path(&target), io.cred(), stat.mode).ok();
        io.vfs()
            .set_modified(&io.path(&target), io.cred(), stat.modified)
            .ok();
        if !keep {
            io.vfs().remove(&io.path(operand), io.cred(), false).ok();
        }
    }
    Ok(0)
}

fn shown(operand: &str) -> &str {
    if operand == "-" { "stdin" } else { operand }
}

async fn open(io: &mut Io, operand: &str, unpack: bool, suffix: &str) -> Run<Option<Source>> {
    if operand != "-"
        && io
            .stat(operand, Last::Follow)
            .is_ok_and(|stat| stat.kind == FileKind::Dir)
    {
        io.complain_with(format!("{operand} is a directory -- ignored"), 2)
            .await?;
        return Ok(None);
    }
    match io.open(operand).await? {
        Ok(source) => Ok(Some(source)),
        Err(why) => {
            // `gunzip f` means `f.gz` where there is no `f`.
            let longer = format!("{operand}{suffix}");
            if unpack
                && io.stat(&longer, Last::Follow).is_ok()
                && let Ok(source) = io.open(&longer).await?
            {
                return Ok(Some(source));
            }
            io.complain(format!("{operand}: {why}")).await?;
            Ok(None)
        }
    }
}

enum To {
    Stdout,
    File(String),
}

/// A codec that is fed and whose output is taken out as it comes.
enum Filter {
    Pack(GzEncoder<Vec<u8>>),
    Unpack(Unpack<Vec<u8>>),
}

impl Filter {
    fn pack(level: u32) -> Self {
        Self::Pack(GzEncoder::new(Vec::new(), Compression::new(level)))
    }

    fn unpack() -> Self {
        Self::Unpack(Unpack::new(Vec::new()))
    }

    fn feed(&mut self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Pack(encoder) => {
                encoder.write_all(bytes)?;
                Ok(std::mem::take(encoder.get_mut()))
            }
            Self::Unpack(decoder) => {
                decoder.write_all(bytes)?;
                Ok(std::mem::take(decoder.get_mut()))
            }
        }
    }

    fn finish(self) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Pack(encoder) => encoder.finish(),
            Self::Unpack(decoder) => decoder.finish(),
        }
    }
}

/// Runs a source through a codec.
async fn pass(
    io: &mut Io,
    source: &mut Source,
    mut filter: Filter,
    to: Option<To>,
) -> Run<Result<(), String>> {
    let unpacks = matches!(filter, Filter::Unpack(_));
    let mut first = true;
    while let Some(chunk) = source.next().await? {
        if std::mem::replace(&mut first, false) && unpacks && !chunk.starts_with(&[0x1f, 0x8b]) {
            return Ok(Err("not in gzip format".to_owned()));
        }
        // A little at a time: what comes out can be a thousand times as much.
        for piece in chunk.chunks(1024) {
            match filter.feed(piece) {
                Ok(out) => {
                    if let Err(why) = put(io, to.as_ref(), out).await? {
                        return Ok(Err(why));
                    }
                }
                Err(_) => return Ok(Err("invalid compressed data--format violated".to_owned())),
            }
        }
    }
    if first && unpacks {
        return Ok(Err("unexpected end of file".to_owned()));
    }
    match filter.finish() {
        Ok(out) => put(io, to.as_ref(), out).await,
        Err(_) => Ok(Err("unexpected end of file".to_owned())),
    }
}

async fn put(io: &mut Io, to: Option<&To>, bytes: Vec<u8>) -> Run<Result<(), String>> {
    match to {
        None => {}
        Some(To::Stdout) => io.write(&bytes).await?,
        Some(To::File(name)) => {
            if let Err(error) = io.write_file(name, bytes.into(), How::Append) {
                return Ok(Err(error.strerror().to_owned()));
            }
            tokio::task::yield_now().await;
        }
    }
    Ok(Ok(()))
}

/// The content of gzip data, held in memory; the error is the codec's.
pub(super) async fn inflate(io: &mut Io, bytes: &Bytes) -> Run<Result<Bytes, String>> {
    let mut decoder = MultiGzDecoder::new(Cursor::new(bytes.clone()));
    let mut all = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        match decoder.read(&mut piece) {
            Ok(0) => return Ok(Ok(all.into())),
            Ok(read) => {
                io.hold(read).await?;
                all.extend_from_slice(&piece[..read]);
            }
            Err(error) => return Ok(Err(error.to_string())),
        }
        tokio::task::yield_now().await;
    }
}
