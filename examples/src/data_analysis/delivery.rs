//! From the sandbox to the user's disk. The paths, the bytes and the report are hostile input.

use std::collections::HashSet;
use std::path::Path;

use sandbox::Sandbox;

use super::agent::Answer;
use super::image::{self, Kind};
use super::{Outcome, markdown};
use crate::Result;

/// Images taken at most.
const IMAGES: usize = 24;
/// Bytes of one image at most.
const IMAGE_BYTES: u64 = 8 << 20;
/// Bytes of the report at most.
const REPORT_BYTES: usize = 2 << 20;

/// Downloads the images that `answer` lists, and writes them and the report into `out`.
///
/// Of an image's path only the base name is used here. What is not an image by its bytes, is too
/// large, or could run code is refused by name; the rest goes on without it.
pub(super) async fn deliver(sandbox: &Sandbox, answer: &Answer, out: &Path) -> Result<Outcome> {
    if answer.report.trim().is_empty() {
        return Err("the model returned no report".into());
    }
    if answer.report.len() > REPORT_BYTES {
        return Err(format!(
            "the report has {} bytes; the limit is {REPORT_BYTES}",
            answer.report.len()
        )
        .into());
    }
    let mut refused = Vec::new();
    let mut taken: Vec<(String, String, Vec<u8>)> = Vec::new();
    let mut names = HashSet::new();
    if answer.images.len() > IMAGES {
        refused.push(format!(
            "{} images beyond the first {IMAGES}",
            answer.images.len() - IMAGES
        ));
    }
    for path in answer.images.iter().take(IMAGES) {
        if taken.iter().any(|(known, ..)| known == path) {
            continue;
        }
        match fetch(sandbox, path).await {
            Ok((bytes, kind)) => {
                let name = image::unique_name(path, kind, &mut names);
                taken.push((path.clone(), name, bytes));
            }
            Err(why) => {
                let path: String = path.chars().take(100).collect();
                refused.push(format!("{path:?}: {why}"));
            }
        }
    }
    let known: Vec<(&str, &str)> = taken
        .iter()
        .map(|(p, n, _)| (p.as_str(), n.as_str()))
        .collect();
    let report = markdown::localise(&answer.report, &known);

    std::fs::create_dir_all(out).map_err(|e| format!("{} can't be made: {e}", out.display()))?;
    let mut images = Vec::new();
    for (_, name, bytes) in &taken {
        images.push(write(out, name, bytes)?);
    }
    Ok(Outcome {
        report: write(out, "report.md", report.as_bytes())?,
        images,
        refused,
    })
}

/// One image's bytes, if it is one and has a usable size.
async fn fetch(sandbox: &Sandbox, path: &str) -> Result<(Vec<u8>, Kind)> {
    // Ask for the size first, so that a huge file never comes over.
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let parent = if parent.is_empty() { "/" } else { parent };
    let listing = sandbox.ls(parent).await?;
    let entry = listing
        .entries
        .iter()
        .find(|e| e.path.as_str() == path)
        .ok_or("no such file in the sandbox")?;
    if entry.size > IMAGE_BYTES {
        return Err(format!("it has {} bytes; the limit is {IMAGE_BYTES}", entry.size).into());
    }
    let bytes = sandbox.download(path).await?;
    if bytes.len() as u64 > IMAGE_BYTES {
        return Err(format!("it has {} bytes; the limit is {IMAGE_BYTES}", bytes.len()).into());
    }
    let kind = image::check(&bytes)?;
    Ok((bytes.to_vec(), kind))
}

/// Writes beside and renames: a link that stands there already is replaced, not followed.
fn write(out: &Path, name: &str, bytes: &[u8]) -> Result<std::path::PathBuf> {
    let target = out.join(name);
    let fresh = out.join(format!(".{name}.part"));
    let failed = |e: std::io::Error| format!("{} can't be written: {e}", target.display());
    let _ = std::fs::remove_file(&fresh);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&fresh)
        .map_err(failed)?;
    std::io::Write::write_all(&mut file, bytes).map_err(failed)?;
    drop(file);
    std::fs::rename(&fresh, &target).map_err(failed)?;
    Ok(target)
}
