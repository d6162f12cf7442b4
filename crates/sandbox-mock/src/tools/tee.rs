//! `tee`.

use bytes::Bytes;

use super::getopt;
use super::io::{Io, Run, Source};
use crate::vfs::How;

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [("append", 'a'), ("ignore-interrupts", 'i')];
    let parsed = getopt::options(io, "aip", &long, 1).await?;
    let append = parsed.options.iter().any(|(option, _)| *option == 'a');
    let mut files = Vec::new();
    let how = if append { How::Append } else { How::Truncate };
    for operand in parsed.operands {
        match io.write_file(&operand, Bytes::new(), how) {
            Ok(()) => files.push(operand),
            Err(error) => {
                io.complain(format!("{operand}: {}", error.strerror()))
                    .await?;
            }
        }
    }
    let Ok(mut source): Result<Source, String> = io.open("-").await? else {
        return Ok(1);
    };
    while let Some(chunk) = source.next().await? {
        let mut failed = None;
        for (at, operand) in files.iter().enumerate() {
            if let Err(error) = io.write_file(operand, chunk.clone(), How::Append) {
                failed = Some(at);
                io.complain(format!("{operand}: {}", error.strerror()))
                    .await?;
            }
        }
        if let Some(at) = failed {
            files.remove(at);
        }
        io.write(&chunk).await?;
        io.flush().await?;
    }
    Ok(0)
}
