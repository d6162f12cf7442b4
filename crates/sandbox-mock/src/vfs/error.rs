//! What a file operation can fail with, as errno names it.

use std::io;

use sandbox_core::{Error, ErrorKind};

/// An errno of the virtual file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FsError {
    NotFound,
    Denied,
    /// Only the owner, or a privilege nobody has here, may do it.
    NotPermitted,
    Exists,
    IsADirectory,
    NotADirectory,
    NotEmpty,
    TooManyLinks,
    NoSpace,
    NameTooLong,
    Invalid,
    Busy,
}

pub(crate) type FsResult<T> = Result<T, FsError>;

impl FsError {
    /// The text that `strerror` gives.
    pub(crate) fn strerror(self) -> &'static str {
        match self {
            Self::NotFound => "No such file or directory",
            Self::Denied => "Permission denied",
            Self::NotPermitted => "Operation not permitted",
            Self::Exists => "File exists",
            Self::IsADirectory => "Is a directory",
            Self::NotADirectory => "Not a directory",
            Self::NotEmpty => "Directory not empty",
            Self::TooManyLinks => "Too many levels of symbolic links",
            Self::NoSpace => "No space left on device",
            Self::NameTooLong => "File name too long",
            Self::Invalid => "Invalid argument",
            Self::Busy => "Device or resource busy",
        }
    }

    fn io_kind(self) -> io::ErrorKind {
        match self {
            Self::NotFound => io::ErrorKind::NotFound,
            Self::Denied | Self::NotPermitted => io::ErrorKind::PermissionDenied,
            Self::Exists => io::ErrorKind::AlreadyExists,
            Self::IsADirectory => io::ErrorKind::IsADirectory,
            Self::NotADirectory => io::ErrorKind::NotADirectory,
            Self::NotEmpty => io::ErrorKind::DirectoryNotEmpty,
            Self::NoSpace => io::ErrorKind::StorageFull,
            Self::TooManyLinks | Self::NameTooLong | Self::Invalid | Self::Busy => {
                io::ErrorKind::Other
            }
        }
    }
}

impl From<FsError> for bashkit::Error {
    fn from(e: FsError) -> Self {
        io::Error::new(e.io_kind(), e.strerror()).into()
    }
}

impl From<FsError> for Error {
    fn from(e: FsError) -> Self {
        let kind = match e {
            FsError::NotFound => ErrorKind::NotFound,
            FsError::Denied | FsError::NotPermitted | FsError::Busy => ErrorKind::PermissionDenied,
            FsError::Exists => ErrorKind::AlreadyExists,
            FsError::IsADirectory => ErrorKind::IsADirectory,
            FsError::NotADirectory => ErrorKind::NotADirectory,
            FsError::NoSpace => ErrorKind::LimitExceeded,
            FsError::TooManyLinks | FsError::NameTooLong | FsError::Invalid => {
                ErrorKind::InvalidPath
            }
            FsError::NotEmpty => ErrorKind::Unexpected,
        };
        let text = e.strerror();
        // Our messages begin in lower case.
        Self::new(kind, text[..1].to_lowercase() + &text[1..])
    }
}
