//! Modes, owners and times as text; `chmod`, `chown` and `chgrp`.

use super::getopt;
use super::io::{Io, Run};
use super::walk;
use crate::vfs::{Accounts, FileKind, Last, Stat};

/// `drwxr-xr-x`.
pub(super) fn text(stat: &Stat) -> String {
    rights(stat.kind, stat.mode)
}

/// [`text`] of a kind and a mode.
pub(super) fn rights(kind: FileKind, mode: u32) -> String {
    let mut out = String::with_capacity(10);
    out.push(match kind {
        FileKind::File => '-',
        FileKind::Dir => 'd',
        FileKind::Symlink => 'l',
        FileKind::Fifo => 'p',
        FileKind::Device => 'c',
    });
    let special = [(0o4000, 's', 'S'), (0o2000, 's', 'S'), (0o1000, 't', 'T')];
    for (who, (bit, set, set_only)) in special.into_iter().enumerate() {
        let bits = mode >> (6 - 3 * who);
        out.push(if bits & 4 != 0 { 'r' } else { '-' });
        out.push(if bits & 2 != 0 { 'w' } else { '-' });
        out.push(match (bits & 1 != 0, mode & bit != 0) {
            (true, true) => set,
            (false, true) => set_only,
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    out
}

/// The name of a user or group, or its number.
pub(super) fn account(id: u32) -> String {
    Accounts::name(id).map_or_else(|| id.to_string(), str::to_owned)
}

/// Applies `0644`, `u+x,go=r`, `a-w` to a mode. `None` if it is no mode.
pub(super) fn apply(spec: &str, mode: u32, is_dir: bool, umask: u32) -> Option<u32> {
    if spec.starts_with(|c: char| c.is_ascii_digit()) {
        return u32::from_str_radix(spec, 8)
            .ok()
            .filter(|mode| *mode <= 0o7777);
    }
    let mut mode = mode;
    for clause in spec.split(',') {
        let at = clause.find(['+', '-', '='])?;
        let (who, mut actions) = clause.split_at(at);
        let mut classes = 0;
        for class in who.chars() {
            classes |= match class {
                'u' => 0o4700,
                'g' => 0o2070,
                'o' => 0o1007,
                'a' => 0o7777,
                _ => return None,
            };
        }
        // Without a class the umask has a say.
        let mask = if who.is_empty() {
            0o7777 & !umask
        } else {
            classes
        };
        let cleared = if who.is_empty() { 0o777 } else { classes };
        while !actions.is_empty() {
            let (operator, rest) = actions.split_at(1);
            if !matches!(operator, "+" | "-" | "=") {
                return None;
            }
            let end = rest.find(['+', '-', '=']).unwrap_or(rest.len());
            let bits = permissions(&rest[..end], mode, is_dir)? & mask;
            match operator {
                "+" => mode |= bits,
                "-" => mode &= !bits,
                // A directory's set-id bits stay unless they are named.
                _ => mode = (mode & !(cleared & 0o777)) | bits,
            }
            actions = &rest[end..];
        }
    }
    Some(mode)
}

fn permissions(letters: &str, mode: u32, is_dir: bool) -> Option<u32> {
    let spread = |bits: u32| bits << 6 | bits << 3 | bits;
    let mut bits = 0;
    for letter in letters.chars() {
        bits |= match letter {
            'r' => 0o444,
            'w' => 0o222,
            'x' => 0o111,
            'X' if is_dir || mode & 0o111 != 0 => 0o111,
            'X' => 0,
            's' => 0o6000,
            't' => 0o1000,
            'u' => spread(mode >> 6 & 7),
            'g' => spread(mode >> 3 & 7),
            'o' => spread(mode & 7),
            _ => return None,
        };
    }
    Some(bits)
}

pub(super) async fn chmod(io: &mut Io) -> Run<i32> {
    // A mode such as `-x` or `-rw` looks like options.
    let looks_like_mode = |arg: &String| {
        arg.len() > 1
            && arg.starts_with('-')
            && arg[1..].chars().all(|c| "rwxXst,ugoa+=".contains(c))
    };
    if let Some(at) = io.args.iter().position(looks_like_mode)
        && !io.args[..at].iter().any(|arg| arg == "--")
        && io.args[..at].iter().all(|arg| arg.starts_with('-'))
    {
        let mode = io.args.remove(at);
        io.args.insert(at, format!("a{mode}"));
    }
    let long = [
        ("recursive", 'R'),
        ("silent", 'f'),
        ("quiet", 'f'),
        ("verbose", 'v'),
        ("changes", 'c'),
        ("reference", 'r'),
    ];
    let parsed = getopt::options(io, "RfvcF:r:", &long, 1).await?;
    let recursive = parsed.options.iter().any(|(option, _)| *option == 'R');
    let quiet = parsed.options.iter().any(|(option, _)| *option == 'f');
    let reference = parsed.options.iter().find(|(option, _)| *option == 'r');
    let mut operands = parsed.operands;
    let spec = match reference {
        Some((_, name)) => match io.stat(name, Last::Follow) {
            Ok(stat) => format!("{:o}", stat.mode),
            Err(error) => {
                let why = error.strerror();
                return io
                    .fail(format!("failed to get attributes of '{name}': {why}"), 1)
                    .await;
            }
        },
        None if operands.is_empty() => {
            return io
                .fail(
                    "missing operand\nTry 'chmod --help' for more information.",
                    1,
                )
                .await;
        }
        None => operands.remove(0),
    };
    if apply(&spec, 0, false, 0).is_none() {
        let message = format!("invalid mode: '{spec}'\nTry 'chmod --help' for more information.");
        return io.fail(message, 1).await;
    }
    if operands.is_empty() {
        let message =
            format!("missing operand after '{spec}'\nTry 'chmod --help' for more information.");
        return io.fail(message, 1).await;
    }
    let umask = io.view.umask();
    for operand in &operands {
        let targets = walk::targets(io, operand, recursive).await?;
        // From the leaves up, so that a directory that loses its rights is the last.
        for target in targets.into_iter().rev() {
            let stat = match io.stat(&target, Last::Follow) {
                Ok(stat) => stat,
                Err(error) => {
                    if !quiet {
                        let why = error.strerror();
                        io.complain(format!("cannot access '{target}': {why}"))
                            .await?;
                    }
                    continue;
                }
            };
            let Some(mode) = apply(&spec, stat.mode, stat.kind == FileKind::Dir, umask) else {
                continue;
            };
            if let Err(error) = io.vfs().chmod(&io.path(&target), io.cred(), mode)
                && !quiet
            {
                let why = error.strerror();
                io.complain(format!("changing permissions of '{target}': {why}"))
                    .await?;
            }
        }
    }
    Ok(0)
}

pub(super) async fn chown(io: &mut Io) -> Run<i32> {
    let long = [
        ("recursive", 'R'),
        ("no-dereference", 'h'),
        ("verbose", 'v'),
        ("quiet", 'f'),
        ("silent", 'f'),
        ("reference", 'r'),
    ];
    let parsed = getopt::options(io, "RhvfcLHPr:", &long, 1).await?;
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    let (recursive, last) = (has('R'), if has('h') { Last::Keep } else { Last::Follow });
    let only_group = io.name == "chgrp";
    let mut operands = parsed.operands;
    if operands.len() < 2 {
        let what = operands
            .first()
            .map_or_else(String::new, |first| format!(" after '{first}'"));
        let message = format!(
            "missing operand{what}\nTry '{} --help' for more information.",
            io.name
        );
        return io.fail(message, 1).await;
    }
    let spec = operands.remove(0);
    let (user, group) = match spec.split_once([':', '.']) {
        _ if only_group => (None, Some(spec.as_str())),
        Some((user, group)) => (Some(user), Some(group)),
        None => (Some(spec.as_str()), None),
    };
    let uid = match user
        .filter(|name| !name.is_empty())
        .map(|name| (name, number(name)))
    {
        Some((_, None)) => return io.fail(format!("invalid user: '{spec}'"), 1).await,
        found => found.and_then(|(_, id)| id),
    };
    let gid = match group
        .filter(|name| !name.is_empty())
        .map(|name| (name, number(name)))
    {
        Some((_, None)) => return io.fail(format!("invalid group: '{spec}'"), 1).await,
        found => found.and_then(|(_, id)| id),
    };
    for operand in &operands {
        for target in walk::targets(io, operand, recursive).await? {
            if let Err(error) = io.stat(&target, Last::Keep) {
                let why = error.strerror();
                io.complain(format!("cannot access '{target}': {why}"))
                    .await?;
                continue;
            }
            if let Err(error) = io.vfs().chown(&io.path(&target), io.cred(), last, uid, gid) {
                let what = if only_group || uid.is_none() {
                    "group"
                } else {
                    "ownership"
                };
                let why = error.strerror();
                io.complain(format!("changing {what} of '{target}': {why}"))
                    .await?;
            }
        }
    }
    Ok(0)
}

/// The number of a user or group; both have the same names.
fn number(name: &str) -> Option<u32> {
    name.parse().ok().or_else(|| Accounts::gid(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbolic_modes() {
        assert_eq!(apply("644", 0, false, 0o22), Some(0o644));
        assert_eq!(apply("u+x", 0o644, false, 0o22), Some(0o744));
        assert_eq!(apply("+x", 0o644, false, 0o22), Some(0o755));
        assert_eq!(apply("+w", 0o444, false, 0o22), Some(0o644));
        assert_eq!(apply("u-x,go=r", 0o755, false, 0o22), Some(0o644));
        assert_eq!(apply("a=,u+rwx", 0o777, false, 0o22), Some(0o700));
        assert_eq!(apply("g=u", 0o640, false, 0), Some(0o660));
        assert_eq!(apply("=r", 0o775, false, 0o22), Some(0o444));
        assert_eq!(apply("+X", 0o600, true, 0), Some(0o711));
        assert_eq!(apply("+X", 0o600, false, 0), Some(0o600));
        assert_eq!(apply("q+x", 0, false, 0), None);
        assert_eq!(apply("u", 0, false, 0), None);
        assert_eq!(apply("77777", 0, false, 0), None);
    }
}
