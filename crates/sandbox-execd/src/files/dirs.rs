//! Directories.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::Response;

use super::failure::Failure;
use super::info::Listing;
use super::{permissions, unreadable};
use crate::body::Share;
use crate::daemon::{Daemon, blocking};
use crate::decode::{first_value, map_of};
use crate::query::Query;
use crate::respond::{ApiError, Body, empty};

/// Makes `path` and its parents. What is made gets `mode`, less the daemon's umask.
///
/// # Errors
///
/// What stands in the way.
pub(super) fn make_all(path: &Path, mode: u32) -> Result<(), Failure> {
    // From the deepest directory that exists; a loop, for a path may have thousands of parts.
    let mut missing = Vec::new();
    let mut at = path;
    loop {
        match at.metadata() {
            Ok(it) if it.is_dir() => break,
            Ok(_) => {
                let error = io::Error::from(rustix::io::Errno::NOTDIR);
                return Err(Failure::io("mkdir", at, &error));
            }
            Err(_) => missing.push(at),
        }
        match at.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => at = parent,
            _ => break,
        }
    }
    for path in missing.into_iter().rev() {
        if let Err(error) = DirBuilder::new().mode(mode).create(path)
            && !path.metadata().is_ok_and(|it| it.is_dir())
        {
            return Err(Failure::io("mkdir", path, &error));
        }
    }
    Ok(())
}

/// `POST /directories`: makes each; one that is there is left as it is.
pub(crate) async fn make(
    daemon: &Arc<Daemon>,
    body: Vec<u8>,
    share: Share,
) -> Result<Response<Body>, ApiError> {
    let daemon = daemon.clone();
    blocking(move || {
        let _share = share;
        let value = first_value(&body).map_err(unreadable)?;
        let all = map_of(&value, "Permission")
            .and_then(|it| permissions::of_each(&it))
            .map_err(unreadable)?;
        for (asked, permission) in all {
            let path = daemon
                .environment
                .absolute(asked.as_ref())
                .map_err(|why| Failure::said(why).into_api())?;
            if path.metadata().is_ok_and(|it| it.is_dir()) {
                continue;
            }
            make_all(&path, 0o777)
                .and_then(|()| permissions::apply(&path, &permission))
                .map_err(Failure::into_api)?;
        }
        Ok(empty())
    })
    .await
}

/// `DELETE /directories?path=`: everything below, and files too; what is missing counts as done.
pub(crate) async fn remove(
    daemon: &Arc<Daemon>,
    paths: Vec<OsString>,
) -> Result<Response<Body>, ApiError> {
    let daemon = daemon.clone();
    blocking(move || {
        for asked in &paths {
            let path = daemon
                .environment
                .path(asked)
                .map_err(|why| Failure::said(why).runtime("error resolving directory ", asked))?;
            remove_all(&path).map_err(|it| it.runtime("error removing directory ", asked))?;
        }
        Ok(empty())
    })
    .await
}

fn remove_all(path: &Path) -> Result<(), Failure> {
    if crate::environment::clean(path.as_os_str()) == "/" {
        return Err(Failure::said("refusing to remove the root directory"));
    }
    let removed = match path.symlink_metadata() {
        Ok(it) if it.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::io("unlinkat", path, &error))
        }
        _ => Ok(()),
    }
}

/// `GET /directories/list?path=&depth=`.
pub(crate) async fn list(daemon: &Arc<Daemon>, query: &Query) -> Result<Response<Body>, ApiError> {
    let asked = query
        .path()
        .ok_or_else(|| ApiError::missing_query("path"))?;
    let depth = query.text("depth");
    let levels = if depth.is_empty() {
        1
    } else {
        let bad = || ApiError::invalid(format!("invalid query parameter 'depth': {depth}"));
        usize::try_from(depth.parse::<i64>().map_err(|_| bad())?).map_err(|_| bad())?
    };
    let daemon = daemon.clone();
    blocking(move || {
        let path = daemon.environment.absolute(&asked).map_err(|why| {
            // The path itself is not named, here as there.
            Failure::said(why).runtime_plain("error converting path  to absolute")
        })?;
        let metadata = path
            .symlink_metadata()
            .map_err(|it| Failure::io("lstat", &path, &it).into_api())?;
        let refuse =
            |why: &str| ApiError::invalid([why.as_bytes(), path.as_os_str().as_bytes()].concat());
        if metadata.is_symlink() {
            return Err(refuse("path is a symbolic link, refusing to traverse: "));
        }
        if !metadata.is_dir() {
            return Err(refuse("path is not a directory: "));
        }
        let mut listing = Listing::new();
        walk(
            &path,
            levels,
            daemon.options.profile.is_stock(),
            &mut listing,
        )
        .map_err(|it| it.runtime("error listing directory ", path.as_os_str()))?;
        Ok(listing.into_response())
    })
    .await
}

/// The names in a directory, sorted by their bytes.
///
/// # Errors
///
/// When it can't be read.
pub(super) fn names(path: &Path) -> io::Result<Vec<OsString>> {
    let mut names = path
        .read_dir()?
        .map(|it| it.map(|it| it.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

fn walk(root: &Path, levels: usize, stock: bool, listing: &mut Listing) -> Result<(), Failure> {
    if levels == 0 {
        return Ok(());
    }
    let read = |path: &Path| -> Result<_, Failure> {
        let names = names(path).map_err(|it| Failure::io("open", path, &it))?;
        Ok((path.to_owned(), names.into_iter()))
    };
    let mut open: Vec<(PathBuf, std::vec::IntoIter<OsString>)> = vec![read(root)?];
    while let Some((directory, names)) = open.last_mut() {
        let Some(name) = names.next() else {
            open.pop();
            continue;
        };
        let path = directory.join(name);
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            // It went away while we looked; the stock profile gives up on it all.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !stock => continue,
            Err(error) => return Err(Failure::io("lstat", &path, &error)),
        };
        listing.add(&path, &metadata)?;
        if metadata.is_dir() && open.len() < levels {
            open.push(read(&path)?);
        }
    }
    Ok(())
}
