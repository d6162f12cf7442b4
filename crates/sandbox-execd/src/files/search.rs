//! Looking for files by a pattern for their names.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::Response;

use super::dirs::names;
use super::failure::Failure;
use super::glob::Glob;
use super::info::Listing;
use crate::daemon::{Daemon, blocking};
use crate::query::Query;
use crate::respond::{ApiError, Body};

/// `GET /files/search?path=&pattern=`: what is no directory, below `path` and not through links,
/// and whose last name matches.
pub(crate) async fn search(
    daemon: &Arc<Daemon>,
    query: &Query,
) -> Result<Response<Body>, ApiError> {
    let asked = query
        .path()
        .ok_or_else(|| ApiError::missing_query("path"))?;
    let pattern = query.text("pattern");
    let pattern = if pattern.is_empty() {
        "**".to_owned()
    } else {
        pattern
    };
    let daemon = daemon.clone();
    blocking(move || {
        let root = daemon.environment.absolute(&asked).map_err(|why| {
            Failure::said(why).runtime_plain("error converting path  to absolute")
        })?;
        root.metadata()
            .map_err(|it| Failure::io("stat", &root, &it).into_api())?;
        let failed = |it: Failure| it.runtime_plain("error searching files");
        let glob = Glob::new(&pattern).map_err(|why| {
            failed(Failure::said(why).within_named("invalid pattern ", pattern.as_ref()))
        })?;
        let mut listing = Listing::new();
        walk(root, &glob, &mut listing).map_err(failed)?;
        Ok(listing.into_response())
    })
    .await
}

fn walk(root: PathBuf, glob: &Glob, listing: &mut Listing) -> Result<(), Failure> {
    let mut open: Vec<(PathBuf, std::vec::IntoIter<OsString>)> = Vec::new();
    let mut next = Some(root);
    loop {
        if let Some(path) = next.take() {
            match visit(&path, glob, listing) {
                Ok(Some(names)) => open.push((path, names.into_iter())),
                Ok(None) | Err(Stop::Gone) => {}
                Err(Stop::Failed(failure)) => return Err(failure),
            }
        }
        let Some((directory, names)) = open.last_mut() else {
            return Ok(());
        };
        match names.next() {
            Some(name) => next = Some(directory.join(name)),
            None => drop(open.pop()),
        }
    }
}

enum Stop {
    /// It went away while we looked.
    Gone,
    Failed(Failure),
}

/// Adds `path` if it matches, or gives the names in it if it is a directory.
fn visit(path: &Path, glob: &Glob, listing: &mut Listing) -> Result<Option<Vec<OsString>>, Stop> {
    let stop = |operation: &str, error: &io::Error| {
        if error.kind() == io::ErrorKind::NotFound {
            return Stop::Gone;
        }
        let failure = Failure::io(operation, path, error);
        Stop::Failed(failure.within_named("error accessing path ", path.as_os_str()))
    };
    let metadata = path.symlink_metadata().map_err(|it| stop("lstat", &it))?;
    if metadata.is_dir() {
        return names(path).map(Some).map_err(|it| stop("open", &it));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if glob.matches(&name) {
        listing.add(path, &metadata).map_err(Stop::Failed)?;
    }
    Ok(None)
}
