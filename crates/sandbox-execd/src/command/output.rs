//! Where the output of commands goes.
//!
//! In the default profile a command in the foreground writes into two pipes, and one in the
//! background into a file without a name, so that no `rm -rf /tmp` takes it away. In the stock
//! profile both write into named files in the temporary directory, as with the real one, and the
//! files are read again by name.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::names::error_text;
use crate::options::Profile;

/// How much of a background command's output one answer has at most; the cursor leads on.
const LARGEST_ANSWER: usize = 16 << 20;

/// The combined output of a background command.
#[derive(Debug)]
pub(crate) enum BackgroundOutput {
    Unnamed(File),
    Named(PathBuf),
}

impl BackgroundOutput {
    /// Makes the file and gives it twice: to read from, and for the command to write to.
    ///
    /// # Errors
    ///
    /// When there is no place for it.
    pub(crate) fn create(id: &str, profile: Profile) -> io::Result<(Self, File)> {
        if profile.is_stock() {
            let path = named(id, "output");
            return Ok((Self::Named(path.clone()), create_named(&path)?));
        }
        let file = unnamed()?;
        let writer = file.try_clone()?;
        Ok((Self::Unnamed(file), writer))
    }

    /// What was printed from byte `cursor` on, and the cursor after it. Reads a file.
    ///
    /// # Errors
    ///
    /// The text a client gets.
    pub(crate) fn read(&self, id: &str, cursor: i64) -> Result<(Vec<u8>, i64), String> {
        let opened;
        let (file, shown) = match self {
            Self::Unnamed(file) => (file, "the output".to_owned()),
            Self::Named(path) => {
                let shown = path.display().to_string();
                opened = File::open(path).map_err(|error| {
                    let text = error_text(&error);
                    format!(
                        "error open combined output file for command {id}: open {shown}: {text}"
                    )
                })?;
                (&opened, shown)
            }
        };
        let Ok(mut at) = u64::try_from(cursor) else {
            return Err(format!("error seek file: seek {shown}: invalid argument"));
        };
        let failed = |error: io::Error| format!("error read file: {}", error_text(&error));
        let size = file.metadata().map_err(failed)?.len();
        let length = usize::try_from(size.saturating_sub(at)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length.min(LARGEST_ANSWER)];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], at) {
                Ok(0) => break,
                Ok(read) => {
                    filled += read;
                    at += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        bytes.truncate(filled);
        Ok((bytes, i64::try_from(at).unwrap_or(i64::MAX)))
    }
}

/// The stock profile's name for a command's output.
pub(crate) fn named(id: &str, kind: &str) -> PathBuf {
    std::env::temp_dir().join(format!("{id}.{kind}"))
}

/// Makes such a file, and the temporary directory if a command removed it.
///
/// # Errors
///
/// What the system says.
pub(crate) fn create_named(path: &Path) -> io::Result<File> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o777)
        .open(path)
}

/// A file without a name, on the first of several file systems that has room for one.
///
/// # Errors
///
/// That of the last one tried.
pub(crate) fn unnamed() -> io::Result<File> {
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    let temporary = std::env::temp_dir();
    let places = [
        &temporary,
        Path::new("/var/tmp"),
        Path::new("/dev/shm"),
        Path::new("/"),
    ];
    for place in places {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::open(place, flags, Mode::RUSR | Mode::WUSR) {
            return Ok(File::from(file));
        }
        match unlinked(place) {
            Ok(file) => return Ok(file),
            Err(failed) => error = failed,
        }
    }
    Err(error)
}

/// For file systems that can't make a file without a name.
fn unlinked(place: &Path) -> io::Result<File> {
    let path = place.join(format!(".execd-{}", super::new_id()));
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn cursors_are_byte_offsets() {
        let (output, mut writer) = BackgroundOutput::create("id", Profile::Default).unwrap();
        writer.write_all(b"l1\ne1\nl2\n\xff").unwrap();
        assert_eq!(
            output.read("id", 0).unwrap(),
            (b"l1\ne1\nl2\n\xff".to_vec(), 10)
        );
        assert_eq!(
            output.read("id", 3).unwrap(),
            (b"e1\nl2\n\xff".to_vec(), 10)
        );
        assert_eq!(output.read("id", 9999).unwrap(), (vec![], 9999));
        assert!(
            output
                .read("id", -1)
                .unwrap_err()
                .ends_with("invalid argument")
        );
    }

    #[test]
    fn a_file_can_be_made_where_it_must_have_a_name_first() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = unlinked(directory.path()).unwrap();
        file.write_all(b"x").unwrap();
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
    }
}
