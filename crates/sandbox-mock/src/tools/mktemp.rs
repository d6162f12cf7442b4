//! `mktemp`.

use bytes::Bytes;

use super::getopt;
use super::io::{Io, Run, parent};
use super::walk::join;
use crate::vfs::{FsError, How};

/// What the marks of a template are replaced with.
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [
        ("directory", 'd'),
        ("dry-run", 'u'),
        ("quiet", 'q'),
        ("tmpdir", 'p'),
        ("suffix", 'S'),
    ];
    // `-p` takes a directory, `--tmpdir` may do without.
    let mut args = io.args.clone();
    for arg in &mut args {
        if arg == "--tmpdir" {
            "--tmpdir=".clone_into(arg);
        }
    }
    io.args = args;
    let parsed = getopt::options(io, "duqp:tS:", &long, 1).await?;
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    let value = |letter: char| {
        parsed
            .options
            .iter()
            .find(|(option, _)| *option == letter)
            .map(|(_, value)| value.clone())
    };
    let (directory, dry, quiet) = (has('d'), has('u'), has('q'));
    let base = io
        .env
        .get("TMPDIR")
        .filter(|dir| !dir.is_empty())
        .cloned()
        .unwrap_or_else(|| "/tmp".to_owned());
    let named = parsed.operands.first().cloned();
    let mut template = named.clone().unwrap_or_else(|| "tmp.XXXXXXXXXX".to_owned());
    if let Some(suffix) = value('S') {
        template.push_str(&suffix);
    }
    let dir = match value('p') {
        Some(dir) if dir.is_empty() => Some(base),
        Some(dir) => Some(dir),
        None if named.is_none() || has('t') => Some(base),
        None => None,
    };
    if let Some(dir) = &dir {
        template = join(dir, &template);
    }
    // The last run of marks is what varies.
    let end = template.rfind('X').map_or(0, |at| at + 1);
    let start = template[..end].trim_end_matches('X').len();
    if end - start < 3 {
        return io
            .fail(format!("too few X's in template '{template}'"), 1)
            .await;
    }
    let (before, after) = (&template[..start], &template[end..]);
    for _ in 0..100 {
        let picked: String = io
            .vfs()
            .random(end - start)
            .iter()
            .map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]))
            .collect();
        let name = format!("{before}{picked}{after}");
        let made = if dry {
            io.stat(&name, crate::vfs::Last::Keep)
                .map_or(Ok(()), |_| Err(FsError::Exists))
        } else if directory {
            io.vfs().mkdir(&io.path(&name), io.cred(), 0o700, false)
        } else {
            io.vfs().write(
                &io.path(&name),
                io.cred(),
                Bytes::new(),
                How::CreateNew,
                0o600,
            )
        };
        match made {
            Ok(()) => {
                io.write(format!("{name}\n").as_bytes()).await?;
                return Ok(0);
            }
            Err(FsError::Exists) => {}
            Err(_) if quiet => return Ok(1),
            Err(error) => {
                let what = if directory { "directory" } else { "file" };
                let why = error.strerror();
                return io
                    .fail(
                        format!("failed to create {what} via template '{template}': {why}"),
                        1,
                    )
                    .await;
            }
        }
    }
    let dir = parent(&template).to_owned();
    io.fail(format!("failed to create a name in '{dir}'"), 1)
        .await
}
