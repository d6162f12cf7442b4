//! `mkdir`.

use super::getopt;
use super::io::{Io, Run};
use super::mode;
use crate::vfs::{FileKind, Last};

pub(super) async fn run(io: &mut Io) -> Run<i32> {
    let long = [("parents", 'p'), ("mode", 'm'), ("verbose", 'v')];
    let parsed = getopt::options(io, "pm:v", &long, 1).await?;
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    let (parents, verbose) = (has('p'), has('v'));
    let usual = 0o777 & !io.view.umask();
    let wanted = match parsed.options.iter().find(|(option, _)| *option == 'm') {
        None => None,
        Some((_, spec)) => match mode::apply(spec, 0o777, true, io.view.umask()) {
            Some(mode) => Some(mode),
            None => return io.fail(format!("invalid mode '{spec}'"), 1).await,
        },
    };
    if parsed.operands.is_empty() {
        let message = "missing operand\nTry 'mkdir --help' for more information.";
        return io.fail(message, 1).await;
    }
    for operand in &parsed.operands {
        let path = io.path(operand);
        let there = io
            .stat(operand, Last::Follow)
            .is_ok_and(|stat| stat.kind == FileKind::Dir);
        let made = if operand.is_empty() {
            Err(crate::vfs::FsError::NotFound)
        } else {
            io.vfs().mkdir(&path, io.cred(), usual, parents)
        };
        if let Err(error) = made {
            let why = error.strerror();
            io.complain(format!("cannot create directory '{operand}': {why}"))
                .await?;
            continue;
        }
        if !there && let Some(mode) = wanted {
            io.vfs().chmod(&path, io.cred(), mode).ok();
        }
        if verbose && !there {
            io.write(format!("mkdir: created directory '{operand}'\n").as_bytes())
                .await?;
        }
    }
    Ok(0)
}
