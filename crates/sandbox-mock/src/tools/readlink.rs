//! `readlink` and `realpath`.

use super::getopt;
use super::io::{Io, Run, parent, real_path};
use crate::vfs::{FileKind, FsError, Last};

pub(super) async fn readlink(io: &mut Io) -> Run<i32> {
    let long = [
        ("canonicalize", 'f'),
        ("canonicalize-existing", 'e'),
        ("canonicalize-missing", 'm'),
        ("no-newline", 'n'),
        ("zero", 'z'),
        ("verbose", 'v'),
        ("quiet", 'q'),
        ("silent", 's'),
        ("relative-to", 'R'),
        ("no-symlinks", 'S'),
        ("strip", 'S'),
    ];
    let parsed = getopt::options(io, "femnzvqsR:SP", &long, 1).await?;
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    let real = io.name == "realpath";
    let end = if has('z') {
        "\0"
    } else if has('n') && parsed.operands.len() == 1 {
        ""
    } else {
        "\n"
    };
    if parsed.operands.is_empty() {
        let message = format!(
            "missing operand\nTry '{} --help' for more information.",
            io.name
        );
        return io.fail(message, 1).await;
    }
    let base = parsed
        .options
        .iter()
        .find(|(option, _)| *option == 'R')
        .map(|(_, dir)| real_path(io.vfs(), io.cred(), &io.path(dir)));
    for operand in &parsed.operands {
        let resolved = if real || has('f') || has('e') || has('m') {
            canonical(io, operand, has('e'), has('m'))
        } else {
            match io.vfs().read_link(&io.path(operand), io.cred()) {
                Ok(target) if !operand.is_empty() => Ok(target.to_string()),
                Ok(_) => Err("No such file or directory"),
                Err(error) => Err(error.strerror()),
            }
        };
        match resolved {
            Ok(path) => {
                let path = match &base {
                    Some(base) => relative(base, &path),
                    None => path,
                };
                io.write(format!("{path}{end}").as_bytes()).await?;
            }
            // `readlink` says nothing, it only fails.
            Err(why) if real || has('v') => io.complain(format!("{operand}: {why}")).await?,
            Err(_) => io.fail_silently(),
        }
    }
    Ok(0)
}

/// The path without links. The last component may be missing, unless `existing`;
/// any may, if `missing`.
fn canonical(
    io: &Io,
    operand: &str,
    existing: bool,
    missing: bool,
) -> Result<String, &'static str> {
    if operand.is_empty() {
        return Err("No such file or directory");
    }
    let path = io.path(operand);
    let real = real_path(io.vfs(), io.cred(), &path);
    if missing {
        return Ok(real);
    }
    match io.vfs().stat(&path, io.cred(), Last::Follow) {
        Ok(_) => Ok(real),
        Err(FsError::NotFound) if !existing => {
            let dir = parent(&real);
            match io.vfs().stat(dir, io.cred(), Last::Follow) {
                Ok(stat) if stat.kind == FileKind::Dir => Ok(real),
                Ok(_) => Err("Not a directory"),
                Err(error) => Err(error.strerror()),
            }
        }
        Err(error) => Err(error.strerror()),
    }
}

/// `path` seen from the directory `base`; both absolute and without links.
pub(super) fn relative(base: &str, path: &str) -> String {
    let parts = |path: &str| {
        path.split('/')
            .filter(|p| !p.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (base, path) = (parts(base), parts(path));
    let common = base.iter().zip(&path).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), base.len() - common);
    let whole: Vec<String> = up.chain(path[common..].iter().cloned()).collect();
    if whole.is_empty() {
        ".".to_owned()
    } else {
        whole.join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths() {
        assert_eq!(relative("/a/b", "/a/b"), ".");
        assert_eq!(relative("/a/b", "/a/c/d"), "../c/d");
        assert_eq!(relative("/", "/x"), "x");
    }
}
