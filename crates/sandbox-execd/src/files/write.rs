//! Writing over a file in place, so that its mode, owner and links stay.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FallocateFlags, OFlags};

/// Opens `path` for writing, making it with 0777 less the umask. A pipe without a reader is an
/// error rather than a wait.
///
/// # Errors
///
/// What the system says.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or(0);
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o777)
        .custom_flags(flags)
        .open(path)
}

/// Makes `file` have the `length` bytes of `content` and no others. Where the disk has no room
/// for more than the file had, it is left as it was.
///
/// # Errors
///
/// What the system says.
pub(super) fn content(file: &mut File, content: impl Read, length: u64) -> io::Result<()> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        // A device or a pipe has no length.
        io::copy(&mut content.take(length), file)?;
        return Ok(());
    }
    let before = metadata.len();
    if length > before
        && let Err(error) = rustix::fs::fallocate(&*file, FallocateFlags::empty(), 0, length)
        && matches!(
            error,
            rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT | rustix::io::Errno::FBIG
        )
    {
        file.set_len(before)?;
        return Err(error.into());
    }
    let written = io::copy(&mut content.take(length), file)?;
    file.set_len(written)?;
    if written < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_file_keeps_its_inode_whatever_the_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let mut inodes = Vec::new();
        for text in ["four", "longer text", "", "x"] {
            let mut file = open(&path).unwrap();
            content(&mut file, text.as_bytes(), text.len() as u64).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            inodes.push(path.metadata().unwrap().ino());
        }
        inodes.dedup();
        assert_eq!(inodes.len(), 1);
    }

    #[test]
    fn a_full_disk_leaves_the_file_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, "before").unwrap();
        let mut file = open(&path).unwrap();
        // More than any disk has.
        assert!(content(&mut file, io::repeat(b'x').take(1), 1 << 60).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
    }

    #[test]
    fn a_device_takes_bytes() {
        let mut null = open(Path::new("/dev/null")).unwrap();
        content(&mut null, &b"abc"[..], 3).unwrap();
    }
}
