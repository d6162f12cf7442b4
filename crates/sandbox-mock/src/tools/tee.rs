//! `tee`.

use bytes::Bytes;

use super::getopt;
use super::io::{Io, Run, Source, descriptor};
use crate::vfs::How;

/// Where a copy goes besides standard output.
enum Copy {
    File(String),
    Stdout,
    Stderr,
}

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [("append", 'a'), ("ignore-interrupts", 'i')];
    let parsed = getopt::options(io, "aip", &long, 1).await?;
    let append = parsed.options.iter().any(|(option, _)| *option == 'a');
    let mut copies = Vec::new();
    let how = if append { How::Append } else { How::Truncate };
    for operand in parsed.operands {
        match descriptor(&io.path(&operand)) {
            Some("1") => copies.push(Copy::Stdout),
            Some("2") => copies.push(Copy::Stderr),
            _ => match io.write_file(&operand, Bytes::new(), how) {
                Ok(()) => copies.push(Copy::File(operand)),
                Err(error) => {
                    io.complain(format!("{operand}: {}", error.strerror()))
                        .await?;
                }
            },
        }
    }
    let Ok(mut source): Result<Source, String> = io.open("-").await? else {
        return Ok(1);
    };
    while let Some(chunk) = source.next().await? {
        io.write(&chunk).await?;
        let mut kept = Vec::with_capacity(copies.len());
        for copy in copies {
            match &copy {
                Copy::Stdout => io.write(&chunk).await?,
                Copy::Stderr => io.write_error(&chunk).await?,
                Copy::File(file) => {
                    if let Err(error) = io.write_file(file, chunk.clone(), How::Append) {
                        io.complain(format!("{file}: {}", error.strerror())).await?;
                        continue;
                    }
                }
            }
            kept.push(copy);
        }
        copies = kept;
        io.flush().await?;
    }
    Ok(0)
}
