//! The programs of the sandbox that are ours.
//!
//! The engine brings most of a small container's programs along. Ours stand in
//! where its own lose bytes, cut silently, keep too much in memory or answer
//! unlike GNU. Each is a function over [`io::Io`].

mod cat;
mod cmp;
mod copy;
mod cut;
mod date;
mod dd;
mod df;
mod diff;
mod getopt;
mod grep;
mod gzip;
mod head_tail;
mod ident;
mod io;
mod lines;
mod ls;
mod mkdir;
mod mktemp;
mod mode;
mod od;
mod posix;
mod produce;
mod readlink;
mod rm;
mod run;
mod sed;
mod shell;
mod shuf;
mod sleep;
mod sort;
mod split;
mod stat;
mod tar;
mod tee;
mod text;
mod time;
mod tr;
mod uniq;
mod walk;
mod wc;

use std::sync::Arc;

use bashkit::BashBuilder;

use crate::shell::Session;
use io::{Entry, Live, Tool, tool};
use run::{RUNNERS, Runner};

const TOOLS: &[(&str, Entry)] = &[
    ("chgrp", tool!(mode::chown)),
    ("chmod", tool!(mode::chmod)),
    ("chown", tool!(mode::chown)),
    ("cmp", tool!(cmp::run)),
    ("cp", tool!(copy::cp)),
    ("cut", tool!(cut::run)),
    ("date", tool!(date::run)),
    ("dd", tool!(dd::run)),
    ("df", tool!(df::run)),
    ("diff", tool!(diff::run)),
    ("egrep", tool!(grep::run)),
    ("fgrep", tool!(grep::run)),
    ("groups", tool!(ident::groups)),
    ("gunzip", tool!(gzip::run)),
    ("gzip", tool!(gzip::run)),
    ("head", tool!(head_tail::head)),
    ("id", tool!(ident::id)),
    ("ln", tool!(copy::ln)),
    ("logname", tool!(ident::whoami)),
    ("ls", tool!(ls::run)),
    ("mkdir", tool!(mkdir::run)),
    ("mktemp", tool!(mktemp::run)),
    ("mv", tool!(copy::mv)),
    ("od", tool!(od::run)),
    ("readlink", tool!(readlink::readlink)),
    ("realpath", tool!(readlink::readlink)),
    ("rev", tool!(head_tail::rev)),
    ("sed", tool!(sed::run)),
    ("seq", tool!(produce::seq)),
    ("shuf", tool!(shuf::run)),
    ("sleep", tool!(sleep::run)),
    ("sort", tool!(sort::run)),
    ("split", tool!(split::run)),
    ("stat", tool!(stat::run)),
    ("tac", tool!(head_tail::tac)),
    ("tail", tool!(head_tail::tail)),
    ("tar", tool!(tar::run)),
    ("tee", tool!(tee::run)),
    ("uniq", tool!(uniq::run)),
    ("wc", tool!(wc::run)),
    ("whoami", tool!(ident::whoami)),
    ("zcat", tool!(gzip::run)),
];

/// Those that are given a pipe as it is: `yes` never ends, and the engine gives the others the pipe
/// by their names.
const LIVE: &[(&str, Entry)] = &[
    ("cat", tool!(cat::run)),
    ("grep", tool!(grep::run)),
    ("tr", tool!(tr::run)),
    ("yes", tool!(produce::yes)),
];

/// Programs of the engine that a minimal Debian image does not have. In order: every command looks.
const ABSENT: &[&str] = &[
    "assert", "bc", "bunzip2", "busybox", "bzcat", "bzip2", "column", "csv", "curl", "dotenv",
    "envsubst", "file", "free", "gawk", "git", "glob", "hexdump", "http", "json", "less", "log",
    "make", "man", "nano", "openssl", "parallel", "patch", "pgrep", "pkill", "ps", "retry", "rg",
    "semver", "ssh", "strings", "sudo", "template", "tomlq", "tree", "unzip", "uptime", "uuidgen",
    "verify", "vi", "vim", "watch", "wget", "xxd", "yq", "zip",
];

/// Which of the engine's commands stay: a sandbox has the shell's builtins and
/// the programs of a minimal Debian image, and says "command not found" of any
/// other, as that image does.
pub(crate) fn keeps(name: &str) -> bool {
    ABSENT.binary_search(&name).is_err()
}

/// Gives a shell our commands, on the files as its user sees them.
pub(crate) fn register(builder: BashBuilder, session: &Arc<Session>) -> BashBuilder {
    let view = &session.view;
    let builder = TOOLS.iter().fold(builder, |builder, (name, entry)| {
        let tool = Tool {
            entry: *entry,
            name,
            view: Arc::clone(view),
        };
        builder.builtin(*name, Box::new(tool))
    });
    let builder = LIVE.iter().fold(builder, |builder, (name, entry)| {
        let live = Live {
            entry: *entry,
            view: Arc::clone(view),
        };
        builder.command(*name, live)
    });
    let builder = RUNNERS.iter().fold(builder, |builder, (name, kind)| {
        builder.builtin(
            *name,
            Box::new(Runner {
                kind: *kind,
                view: Arc::clone(view),
            }),
        )
    });
    builder
        .builtin("rm", Box::new(rm::Rm(Arc::clone(view))))
        .builtin("umask", Box::new(shell::Umask(Arc::clone(view))))
        .builtin("disown", Box::new(shell::Disown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_found() {
        assert!(ABSENT.is_sorted());
        assert!(!keeps("curl") && !keeps("zip") && keeps("cat"));
    }
}
