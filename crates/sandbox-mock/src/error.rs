//! The errors of this backend that are not a file operation's.

use sandbox_core::{Error, ErrorKind};

/// There is no such sandbox any more.
pub(crate) fn gone() -> Error {
    Error::new(
        ErrorKind::SandboxGone,
        "the sandbox has ended: it was killed, or its lifetime is over",
    )
}

/// A FIFO or a device where a file was needed.
pub(crate) fn not_regular() -> Error {
    Error::new(
        ErrorKind::InvalidPath,
        "this is not a regular file but a FIFO or a device",
    )
}

/// No thread for a command.
pub(crate) fn no_thread(source: std::io::Error) -> Error {
    Error::new(
        ErrorKind::LimitExceeded,
        "the system gives no thread for the command",
    )
    .because(source)
}
