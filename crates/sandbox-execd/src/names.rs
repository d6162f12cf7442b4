//! The names the real daemon uses for errors and signals, which clients read out of its messages.

use std::io;

/// The name of an I/O error without the operation, such as `no such file or directory`.
pub(crate) fn error_text(error: &io::Error) -> String {
    use rustix::io::Errno;
    if error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none() {
        // A NUL in an argument never reaches the system; the name is that of the system's answer.
        return "invalid argument".into();
    }
    let Some(errno) = Errno::from_io_error(error) else {
        return error.to_string();
    };
    let known = match errno {
        Errno::TOOBIG => "argument list too long",
        Errno::ACCESS => "permission denied",
        Errno::PERM => "operation not permitted",
        Errno::NOENT => "no such file or directory",
        Errno::NOTDIR => "not a directory",
        Errno::ISDIR => "is a directory",
        Errno::XDEV => "invalid cross-device link",
        Errno::INVAL => "invalid argument",
        Errno::NOSPC => "no space left on device",
        Errno::DQUOT => "disk quota exceeded",
        Errno::EXIST => "file exists",
        Errno::NOTEMPTY => "directory not empty",
        Errno::MFILE => "too many open files",
        Errno::NFILE => "too many open files in system",
        Errno::AGAIN => "resource temporarily unavailable",
        Errno::NOMEM => "cannot allocate memory",
        Errno::ROFS => "read-only file system",
        Errno::NAMETOOLONG => "file name too long",
        Errno::BUSY => "device or resource busy",
        Errno::LOOP => "too many levels of symbolic links",
        Errno::NOEXEC => "exec format error",
        Errno::TXTBSY => "text file busy",
        Errno::BADF => "bad file descriptor",
        Errno::IO => "input/output error",
        Errno::FBIG => "file too large",
        Errno::NXIO => "no such device or address",
        Errno::OPNOTSUPP => "operation not supported",
        Errno::SPIPE => "illegal seek",
        Errno::SRCH => "no such process",
        _ => {
            let text = error.to_string();
            let name = text.split(" (os error").next().unwrap_or(&text);
            return name.to_lowercase();
        }
    };
    known.into()
}

/// The name of a signal, such as `killed` for 9.
pub(crate) fn signal(number: i32) -> String {
    const NAMES: [&str; 31] = [
        "hangup",
        "interrupt",
        "quit",
        "illegal instruction",
        "trace/breakpoint trap",
        "aborted",
        "bus error",
        "floating point exception",
        "killed",
        "user defined signal 1",
        "segmentation fault",
        "user defined signal 2",
        "broken pipe",
        "alarm clock",
        "terminated",
        "stack fault",
        "child exited",
        "continued",
        "stopped (signal)",
        "stopped",
        "stopped (tty input)",
        "stopped (tty output)",
        "urgent I/O condition",
        "CPU time limit exceeded",
        "file size limit exceeded",
        "virtual timer expired",
        "profiling timer expired",
        "window changed",
        "I/O possible",
        "power failure",
        "bad system call",
    ];
    usize::try_from(number - 1)
        .ok()
        .and_then(|at| NAMES.get(at))
        .map_or_else(|| format!("signal {number}"), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_named_as_recorded() {
        assert_eq!(signal(9), "killed");
        assert_eq!(signal(11), "segmentation fault");
        assert_eq!(signal(15), "terminated");
        assert_eq!(signal(34), "signal 34");
        assert_eq!(signal(0), "signal 0");
    }

    #[test]
    fn errors_have_no_operation_and_no_number() {
        assert_eq!(
            error_text(&io::Error::from_raw_os_error(7)),
            "argument list too long"
        );
        assert_eq!(
            error_text(&io::Error::from_raw_os_error(18)),
            "invalid cross-device link"
        );
        let nul = std::fs::File::open("a\0b").unwrap_err();
        assert_eq!(error_text(&nul), "invalid argument");
        assert!(!error_text(&io::Error::from_raw_os_error(97)).contains("os error"));
    }
}
