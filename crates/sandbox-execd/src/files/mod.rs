//! The files of the sandbox, with the rights of the daemon.

pub(crate) mod dirs;
pub(crate) mod download;
mod failure;
mod glob;
pub(crate) mod info;
mod multipart;
pub(crate) mod permissions;
mod range;
pub(crate) mod replace;
pub(crate) mod search;
pub(crate) mod upload;
mod write;

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;

use hyper::Response;

use self::failure::Failure;
use crate::body::Share;
use crate::daemon::{Daemon, blocking};
use crate::decode::{first_value, list_of};
use crate::respond::{ApiError, Body, empty};

/// The complaint about a body that is not what was asked for.
fn unreadable(why: impl std::fmt::Display) -> ApiError {
    ApiError::invalid(format!(
        "error parsing request, MAYBE invalid body format. {why}"
    ))
}

/// `DELETE /files?path=`: files only; what is missing counts as deleted.
pub(crate) async fn remove(
    daemon: &Arc<Daemon>,
    paths: Vec<OsString>,
) -> Result<Response<Body>, ApiError> {
    let daemon = daemon.clone();
    blocking(move || {
        for path in &paths {
            remove_file(&daemon, path).map_err(|it| it.runtime("error removing file ", path))?;
        }
        Ok(empty())
    })
    .await
}

fn remove_file(daemon: &Daemon, asked: &OsStr) -> Result<(), Failure> {
    let path = daemon
        .environment
        .absolute(asked)
        .map_err(|why| Failure::said(format!("invalid path: {why}")))?;
    // The stock profile looks through a link, and so leaves one behind that leads nowhere.
    let looked = if daemon.options.profile.is_stock() {
        path.metadata()
    } else {
        path.symlink_metadata()
    };
    match looked {
        Ok(it) if it.is_dir() => return Err(Failure::named("path is a directory: ", asked)),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::io("stat", &path, &error)),
    }
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::io("remove", &path, &error).within("failed to remove file"))
        }
        _ => Ok(()),
    }
}

/// `POST /files/mv`: renames, never over something that is there.
pub(crate) async fn mv(
    daemon: &Arc<Daemon>,
    body: Vec<u8>,
    share: Share,
) -> Result<Response<Body>, ApiError> {
    let daemon = daemon.clone();
    blocking(move || {
        let _share = share;
        let value = first_value(&body).map_err(unreadable)?;
        let moves = list_of(&value, "RenameFileItem")
            .and_then(|items| {
                items
                    .iter()
                    .map(|it| Ok((it.string("src")?, it.string("dest")?)))
                    .collect::<Result<Vec<_>, String>>()
            })
            .map_err(unreadable)?;
        for (source, target) in moves {
            rename(&daemon, source.as_ref(), target.as_ref()).map_err(Failure::into_api)?;
        }
        Ok(empty())
    })
    .await
}

fn rename(daemon: &Daemon, asked_source: &OsStr, asked_target: &OsStr) -> Result<(), Failure> {
    let absolute = |which: &str, path: &OsStr| {
        let expanded = daemon.environment.absolute(path);
        expanded.map_err(|why| Failure::said(format!("invalid {which} path: {why}")))
    };
    let source = absolute("source", asked_source)?;
    let target = absolute("destination", asked_target)?;
    if let Err(error) = source.metadata()
        && error.kind() == io::ErrorKind::NotFound
        && (daemon.options.profile.is_stock() || source.symlink_metadata().is_err())
    {
        return Err(Failure::io("stat", &source, &error)
            .within_named("source path not found: ", asked_source));
    }
    if let Some(parent) = target.parent() {
        dirs::make_all(parent, 0o755)
            .map_err(|it| it.within("failed to create destination directory"))?;
    }
    if target.metadata().is_ok() {
        return Err(Failure::named(
            "destination path already exists: ",
            asked_target,
        ));
    }
    std::fs::rename(&source, &target).map_err(|error| {
        Failure::io_between("rename", &source, &target, &error).within("failed to rename file")
    })
}
