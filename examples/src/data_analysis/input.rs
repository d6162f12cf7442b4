//! The file that the user named. Nothing of CSV is known here: only what is certainly none is refused.

use std::path::Path;

use bytes::Bytes;

use crate::Result;

/// The largest file uploaded: more does not fit into a sandbox's default memory.
const LIMIT: u64 = 200 << 20;

/// What is uploaded.
pub(super) struct Input {
    /// The file's name, harmless in a shell.
    pub(super) name: String,
    /// All of it.
    pub(super) bytes: Bytes,
}

/// Reads the file, unless it can't be a CSV.
pub(super) fn read(path: &Path) -> Result<Input> {
    let shown = path.display();
    let meta = std::fs::metadata(path).map_err(|e| format!("{shown} can't be read: {e}"))?;
    if !meta.is_file() {
        return Err(format!("{shown} is no file").into());
    }
    if meta.len() > LIMIT {
        return Err(format!("{shown} has {} bytes; the limit is {LIMIT}", meta.len()).into());
    }
    let bytes = std::fs::read(path).map_err(|e| format!("{shown} can't be read: {e}"))?;
    if let Some(what) = no_csv(&bytes) {
        return Err(format!("{shown} is no CSV: {what}").into());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(Input {
        name: super::image::plain_name(&name, "data.csv"),
        bytes: bytes.into(),
    })
}

/// What a file is that is certainly no CSV.
fn no_csv(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [] => "it is empty",
        [0x89, b'P', b'N', b'G', ..] => "it is a PNG image",
        [0xFF, 0xD8, 0xFF, ..] => "it is a JPEG image",
        [b'G', b'I', b'F', b'8', ..] => "it is a GIF image",
        [b'P', b'K', 3, 4, ..] => {
            "it is a ZIP archive or an Excel workbook; export it as CSV first"
        }
        [0xD0, 0xCF, 0x11, 0xE0, ..] => "it is an old Excel workbook; export it as CSV first",
        [b'%', b'P', b'D', b'F', ..] => "it is a PDF document",
        [0x1F, 0x8B, ..] => "it is compressed with gzip; unpack it first",
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "it is text in UTF-16; save it as UTF-8 first",
        b if b.contains(&0) => "it holds NUL bytes, so it is no text",
        b if b.iter().all(u8::is_ascii_whitespace) => "it is blank",
        _ => return None,
    })
}
