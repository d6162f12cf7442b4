//! `dd`.

use bytes::{Bytes, BytesMut};

use super::getopt;
use super::io::{Io, Run, Source};
use crate::vfs::{FileKind, How, Last};

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the tool"
)]
struct Dd {
    input: String,
    output: Option<String>,
    ibs: u64,
    obs: u64,
    skip: u64,
    seek: u64,
    count: Option<u64>,
    skip_bytes: bool,
    count_bytes: bool,
    seek_bytes: bool,
    append: bool,
    notrunc: bool,
    sync: bool,
    excl: bool,
    nocreat: bool,
    upper: bool,
    lower: bool,
    swab: bool,
    status: Status,
}

#[derive(PartialEq)]
enum Status {
    All,
    NoXfer,
    None,
}

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let mut dd = Dd {
        input: "-".to_owned(),
        output: None,
        ibs: 512,
        obs: 512,
        skip: 0,
        seek: 0,
        count: None,
        skip_bytes: false,
        count_bytes: false,
        seek_bytes: false,
        append: false,
        notrunc: false,
        sync: false,
        excl: false,
        nocreat: false,
        upper: false,
        lower: false,
        swab: false,
        status: Status::All,
    };
    for arg in io.args.clone() {
        if let Err(why) = dd.operand(&arg) {
            return io.fail(why, 1).await;
        }
    }
    if dd.ibs == 0 || dd.obs == 0 {
        return io.fail("invalid number: '0'", 1).await;
    }
    let mut source = match io.open(&dd.input).await? {
        Ok(source) => source,
        Err(why) => {
            return io
                .fail(format!("failed to open '{}': {why}", dd.input), 1)
                .await;
        }
    };
    let seek = if dd.seek_bytes {
        dd.seek
    } else {
        dd.seek.saturating_mul(dd.obs)
    };
    let skip = if dd.skip_bytes {
        dd.skip
    } else {
        dd.skip.saturating_mul(dd.ibs)
    };
    let most = match dd.count {
        None => u64::MAX,
        Some(count) if dd.count_bytes => count,
        Some(count) => count.saturating_mul(dd.ibs),
    };
    let Some(mut target) = Target::open(io, &dd, seek).await? else {
        return Ok(1);
    };
    let mut input = Input {
        pending: Bytes::new(),
        read: 0,
    };
    let mut left = skip;
    while left > 0 {
        let Some(chunk) = input.take(&mut source, left).await? else {
            break;
        };
        left -= chunk.len() as u64;
    }
    input.read = 0;
    let mut left = most;
    let mut written = 0_u64;
    while left > 0 {
        let Some(chunk) = input.take(&mut source, left).await? else {
            break;
        };
        left -= chunk.len() as u64;
        let chunk = dd.convert(chunk);
        written += chunk.len() as u64;
        if let Err(why) = target.put(io, &chunk).await? {
            let name = dd.output.as_deref().unwrap_or("standard output");
            io.complain(format!("error writing '{name}': {why}"))
                .await?;
            break;
        }
    }
    if dd.sync && !input.read.is_multiple_of(dd.ibs) {
        let zeros = vec![0; usize::try_from(dd.ibs - input.read % dd.ibs).unwrap_or(0)];
        io.hold(zeros.len()).await?;
        written += zeros.len() as u64;
        target.put(io, &zeros).await?.ok();
    }
    target.close(io).await?;
    io.flush().await?;
    dd.summary(io, input.read, written).await?;
    Ok(0)
}

/// Bytes of a source in pieces of any size.
struct Input {
    pending: Bytes,
    read: u64,
}

impl Input {
    async fn take(&mut self, source: &mut Source, most: u64) -> Run<Option<Bytes>> {
        if self.pending.is_empty() {
            match source.next().await? {
                Some(chunk) => self.pending = chunk,
                None => return Ok(None),
            }
        }
        let most = usize::try_from(most)
            .unwrap_or(usize::MAX)
            .min(self.pending.len());
        let piece = self.pending.split_to(most);
        self.read += piece.len() as u64;
        Ok(Some(piece))
    }
}

/// Where the bytes go.
enum Target {
    Stdout,
    /// A file that is added to.
    Append(String),
    /// A file with a place in it that is written over; put back at the end.
    Inside {
        name: String,
        content: BytesMut,
        at: usize,
    },
}

impl Target {
    async fn open(io: &mut Io, dd: &Dd, seek: u64) -> Run<Option<Self>> {
        let Some(name) = &dd.output else {
            return Ok(Some(Self::Stdout));
        };
        let there = io.stat(name, Last::Follow);
        let refused = |why: &str| format!("failed to open '{name}': {why}");
        if dd.excl && there.is_ok() {
            io.complain(refused("File exists")).await?;
            return Ok(None);
        }
        if dd.nocreat
            && let Err(error) = &there
        {
            io.complain(refused(error.strerror())).await?;
            return Ok(None);
        }
        // Truncated to where writing begins, unless told not to.
        let is_file = there.is_ok_and(|stat| stat.kind == FileKind::File);
        let keep = is_file && (dd.notrunc || dd.append || seek > 0);
        let opened = io.write_file(
            name,
            Bytes::new(),
            if keep { How::Append } else { How::Truncate },
        );
        if let Err(error) = opened {
            io.complain(refused(error.strerror())).await?;
            return Ok(None);
        }
        if dd.append || (seek == 0 && !dd.notrunc) || !(is_file || seek > 0) {
            return Ok(Some(Self::Append(name.clone())));
        }
        let old = match io.vfs().read(&io.path(name), io.cred()) {
            Ok(old) => old,
            // Write-only: what is there can't be kept.
            Err(error) => {
                io.complain(refused(error.strerror())).await?;
                return Ok(None);
            }
        };
        let at = usize::try_from(seek).unwrap_or(usize::MAX);
        io.hold(old.len().max(at)).await?;
        let mut content = BytesMut::from(&old[..]);
        if !dd.notrunc || content.len() < at {
            content.resize(at, 0);
        }
        Ok(Some(Self::Inside {
            name: name.clone(),
            content,
            at,
        }))
    }

    async fn put(&mut self, io: &mut Io, bytes: &[u8]) -> Run<Result<(), &'static str>> {
        match self {
            Self::Stdout => {
                io.write(bytes).await?;
                io.flush().await?;
            }
            Self::Append(name) => {
                let bytes = Bytes::copy_from_slice(bytes);
                if let Err(error) = io.write_file(name, bytes, How::Append) {
                    return Ok(Err(error.strerror()));
                }
            }
            Self::Inside { content, at, .. } => {
                let end = *at + bytes.len();
                if end > content.len() {
                    io.hold(end - content.len()).await?;
                    content.resize(end, 0);
                }
                content[*at..end].copy_from_slice(bytes);
                *at = end;
            }
        }
        Ok(Ok(()))
    }

    async fn close(self, io: &mut Io) -> Run {
        if let Self::Inside { name, content, .. } = self
            && let Err(error) = io.write_file(&name, content.freeze(), How::Truncate)
        {
            io.complain(format!("error writing '{name}': {}", error.strerror()))
                .await?;
        }
        Ok(())
    }
}

impl Dd {
    fn operand(&mut self, arg: &str) -> Result<(), String> {
        let Some((name, value)) = arg.split_once('=') else {
            return Err(format!(
                "unrecognized operand '{arg}'\nTry 'dd --help' for more information."
            ));
        };
        let number = || {
            // `2x3` multiplies; a final B counts bytes.
            let text = value
                .strip_suffix('B')
                .filter(|v| !v.ends_with(['k', 'K', 'M', 'G', 'i']))
                .unwrap_or(value);
            text.split('x')
                .try_fold(1_u64, |product, factor| {
                    product.checked_mul(getopt::size(factor)?)
                })
                .ok_or_else(|| format!("invalid number: '{value}'"))
        };
        let in_bytes = value.ends_with('B')
            && !value.ends_with("kB")
            && !value.ends_with("MB")
            && !value.ends_with("GB")
            && !value.ends_with("KB")
            && !value.ends_with("iB");
        match name {
            "if" => value.clone_into(&mut self.input),
            "of" => self.output = Some(value.to_owned()),
            "bs" => {
                self.ibs = number()?;
                self.obs = self.ibs;
            }
            "ibs" => self.ibs = number()?,
            "obs" => self.obs = number()?,
            "skip" | "iseek" => {
                (self.skip, self.skip_bytes) = (number()?, self.skip_bytes || in_bytes);
            }
            "seek" | "oseek" => {
                (self.seek, self.seek_bytes) = (number()?, self.seek_bytes || in_bytes);
            }
            "count" => {
                (self.count, self.count_bytes) = (Some(number()?), self.count_bytes || in_bytes);
            }
            "status" => {
                self.status = match value {
                    "none" => Status::None,
                    "noxfer" => Status::NoXfer,
                    "progress" => Status::All,
                    _ => return Err(format!("invalid status level: '{value}'")),
                };
            }
            "iflag" => {
                for flag in value.split(',') {
                    match flag {
                        "skip_bytes" => self.skip_bytes = true,
                        "count_bytes" => self.count_bytes = true,
                        "fullblock" | "nonblock" | "direct" | "sync" | "dsync" | "nocache"
                        | "noatime" | "nofollow" => {}
                        _ => return Err(format!("invalid input flag: '{flag}'")),
                    }
                }
            }
            "oflag" => {
                for flag in value.split(',') {
                    match flag {
                        "append" => self.append = true,
                        "seek_bytes" => self.seek_bytes = true,
                        "direct" | "sync" | "dsync" | "nonblock" | "nocache" => {}
                        _ => return Err(format!("invalid output flag: '{flag}'")),
                    }
                }
            }
            "conv" => {
                for conversion in value.split(',') {
                    match conversion {
                        "notrunc" => self.notrunc = true,
                        "sync" => self.sync = true,
                        "excl" => self.excl = true,
                        "nocreat" => self.nocreat = true,
                        "ucase" => self.upper = true,
                        "lcase" => self.lower = true,
                        "swab" => self.swab = true,
                        "noerror" | "fsync" | "fdatasync" | "sparse" => {}
                        _ => return Err(format!("invalid conversion: '{conversion}'")),
                    }
                }
            }
            _ => {
                return Err(format!(
                    "unrecognized operand '{arg}'\nTry 'dd --help' for more information."
                ));
            }
        }
        Ok(())
    }

    fn convert(&self, bytes: Bytes) -> Bytes {
        if !(self.upper || self.lower || self.swab) {
            return bytes;
        }
        let mut bytes = bytes.to_vec();
        if self.upper {
            bytes.make_ascii_uppercase();
        }
        if self.lower {
            bytes.make_ascii_lowercase();
        }
        if self.swab {
            for pair in bytes.chunks_exact_mut(2) {
                pair.swap(0, 1);
            }
        }
        bytes.into()
    }

    async fn summary(&self, io: &mut Io, read: u64, written: u64) -> Run {
        if self.status == Status::None {
            return Ok(());
        }
        let records = |bytes: u64, size: u64| {
            format!(
                "{}+{}",
                bytes / size,
                u64::from(!bytes.is_multiple_of(size))
            )
        };
        let mut text = format!(
            "{} records in\n{} records out\n",
            records(read, self.ibs),
            records(written, self.obs)
        );
        if self.status == Status::All {
            text.push_str(&written.to_string());
            text.push_str(" bytes copied\n");
        }
        io.report(&text).await
    }
}
