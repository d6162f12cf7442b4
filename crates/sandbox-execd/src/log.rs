//! A few lines to stderr or a file. A line that can't be written is dropped: logging never ends
//! the daemon, and never tells what a command's text or output was.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::sync::OnceLock;
use std::time::SystemTime;

use crate::clock::Instant;

/// How grave a line is, in syslog's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Error = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
}

struct Log {
    level: u8,
    file: Option<File>,
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Sets where lines go and which. Called once.
pub(crate) fn init(level: u8, path: Option<&OsStr>) {
    let file = path.and_then(|path| File::options().append(true).create(true).open(path).ok());
    let _ = LOG.set(Log { level, file });
}

/// Writes one line.
pub(crate) fn line(level: Level, message: fmt::Arguments<'_>) {
    let Some(log) = LOG.get().filter(|log| level as u8 <= log.level) else {
        return;
    };
    let now = Instant::from(SystemTime::now()).rfc3339();
    let text = format!("{now} [{level:?}] {message}\n");
    let _ = match &log.file {
        Some(file) => (&mut &*file).write_all(text.as_bytes()),
        None => std::io::stderr().write_all(text.as_bytes()),
    };
}
