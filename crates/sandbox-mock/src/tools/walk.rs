//! Trees, without recursion on the stack.

use super::io::{Io, Run};
use crate::vfs::{FileKind, Last};

/// `operand` itself and, with `recursive`, all below it, parents before what is
/// in them, links not followed. What can't be listed is complained about.
pub(super) async fn targets(io: &mut Io, operand: &str, recursive: bool) -> Run<Vec<String>> {
    let mut found = vec![operand.to_owned()];
    if !recursive {
        return Ok(found);
    }
    let mut next = 0;
    while next < found.len() {
        let here = found[next].clone();
        next += 1;
        if next % 256 == 0 {
            tokio::task::yield_now().await;
        }
        if !io
            .stat(&here, Last::Keep)
            .is_ok_and(|stat| stat.kind == FileKind::Dir)
        {
            continue;
        }
        match io.vfs().list(&io.path(&here), io.cred()) {
            Ok(entries) => {
                for (name, _) in entries {
                    io.hold(here.len() + name.len() + 32).await?;
                    found.push(join(&here, &name));
                }
            }
            Err(error) => {
                io.complain(format!(
                    "cannot read directory '{here}': {}",
                    error.strerror()
                ))
                .await?;
            }
        }
    }
    Ok(found)
}

/// A name in a directory.
pub(super) fn join(dir: &str, name: &str) -> String {
    if dir.ends_with('/') {
        format!("{dir}{name}")
    } else {
        format!("{dir}/{name}")
    }
}
