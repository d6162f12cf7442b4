//! Replacing text in files.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use hyper::Response;

use super::failure::Failure;
use super::{unreadable, write};
use crate::body::Share;
use crate::daemon::{Daemon, blocking};
use crate::decode::{first_value, map_of};
use crate::json::push_string;
use crate::respond::{ApiError, Body, empty, json};

/// The largest file that is changed: it is held in memory, and its new text beside it.
const LARGEST: u64 = 64 << 20;

/// `POST /files/replace`: every occurrence, in each file; with `verbose` the counts are told.
pub(crate) async fn replace(
    daemon: &Arc<Daemon>,
    body: Vec<u8>,
    share: Share,
    verbose: bool,
) -> Result<Response<Body>, ApiError> {
    let daemon = daemon.clone();
    blocking(move || {
        let _share = share;
        let value = first_value(&body).map_err(unreadable)?;
        let all = map_of(&value, "ReplaceFileContentItem")
            .and_then(|items| {
                items
                    .iter()
                    .map(|(path, it)| Ok((*path, it.string("old")?, it.string("new")?)))
                    .collect::<Result<Vec<_>, String>>()
            })
            .map_err(unreadable)?;
        let mut counts = vec![b'{'];
        for (asked, old, new) in all {
            let path = daemon
                .environment
                .absolute(asked.as_ref())
                .map_err(|why| Failure::said(why).into_api())?;
            let text = read(&path).map_err(Failure::into_api)?;
            if old.is_empty() {
                return Err(ApiError::invalid("old content must not be empty"));
            }
            let (count, text) = substitute(&text, old.as_bytes(), new.as_bytes())
                .ok_or_else(|| Failure::said("the new text is too large").into_api())?;
            if let Some(text) = text {
                write::open(&path)
                    .and_then(|mut file| write::content(&mut file, &*text, text.len() as u64))
                    .map_err(|it| Failure::io("open", &path, &it).into_api())?;
            }
            if counts.len() > 1 {
                counts.push(b',');
            }
            push_string(&mut counts, asked.as_bytes());
            counts.extend_from_slice(format!(":{{\"replacedCount\":{count}}}").as_bytes());
        }
        counts.push(b'}');
        Ok(if verbose { json(counts) } else { empty() })
    })
    .await
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let metadata = path
        .metadata()
        .map_err(|it| Failure::io("stat", path, &it))?;
    if metadata.is_dir() {
        let error = io::Error::from(rustix::io::Errno::ISDIR);
        return Err(Failure::io("read", path, &error));
    }
    if !metadata.is_file() {
        return Err(Failure::named("not a regular file: ", path.as_os_str()));
    }
    let mut text = Vec::new();
    File::open(path)
        .map_err(|it| Failure::io("open", path, &it))?
        .take(LARGEST + 1)
        .read_to_end(&mut text)
        .map_err(|it| Failure::io("read", path, &it))?;
    if text.len() as u64 > LARGEST {
        let why = format!("larger than the {LARGEST} bytes a replacement can be made in: ");
        return Err(Failure::named(&why, path.as_os_str()));
    }
    Ok(text)
}

/// How often `old` stands in `text`, and the text with `new` in its places if it does at all.
/// `None` when that would be too large.
fn substitute(text: &[u8], old: &[u8], new: &[u8]) -> Option<(usize, Option<Vec<u8>>)> {
    let places: Vec<usize> = memchr::memmem::find_iter(text, old).collect();
    if places.is_empty() {
        return Some((0, None));
    }
    let size = (text.len() - places.len() * old.len())
        .checked_add(places.len().checked_mul(new.len())?)?;
    if size as u64 > 4 * LARGEST {
        return None;
    }
    let mut out = Vec::with_capacity(size);
    let mut rest = 0;
    for &place in &places {
        out.extend_from_slice(&text[rest..place]);
        out.extend_from_slice(new);
        rest = place + old.len();
    }
    out.extend_from_slice(&text[rest..]);
    Some((places.len(), Some(out)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occurrence_once() {
        assert_eq!(
            substitute(b"aXbXcX\n", b"X", b"Y"),
            Some((3, Some(b"aYbYcY\n".to_vec())))
        );
        assert_eq!(
            substitute(b"aaa", b"aa", b"b"),
            Some((1, Some(b"ba".to_vec())))
        );
        assert_eq!(substitute(b"abc", b"x", b"y"), Some((0, None)));
        assert_eq!(
            substitute(b"a\xffb", b"b", b""),
            Some((1, Some(b"a\xff".to_vec())))
        );
        assert_eq!(substitute(&[b'a'; 1000], b"a", &vec![0; 1 << 20]), None);
    }
}
