//! What is known of a file without reading it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use hyper::Response;

use super::failure::Failure;
use crate::clock::Instant;
use crate::daemon::{Daemon, blocking};
use crate::json::{Object, push_string};
use crate::process::accounts::Accounts;
use crate::respond::{ApiError, Body, json};

/// One file as the protocol describes it.
pub(super) fn describe(path: &Path, metadata: &Metadata, accounts: &Accounts) -> Vec<u8> {
    let kind = metadata.file_type();
    let kind = if kind.is_symlink() {
        "symlink"
    } else if kind.is_dir() {
        "directory"
    } else if kind.is_file() {
        "file"
    } else {
        "other"
    };
    // Written as if it were a decimal number: 0644 is 644.
    let mode = format!("{:o}", metadata.mode() & 0o777);
    let time = |seconds, nanos| {
        Instant {
            seconds,
            nanos: u32::try_from(nanos).unwrap_or(0),
        }
        .rfc3339()
    };
    Object::new()
        .str("path", path.as_os_str().as_bytes())
        .str("type", kind)
        .int("size", i64::try_from(metadata.len()).unwrap_or(i64::MAX))
        .str("modified_at", time(metadata.mtime(), metadata.mtime_nsec()))
        // The last change of the inode: the real one knows no better.
        .str("created_at", time(metadata.ctime(), metadata.ctime_nsec()))
        .str("owner", accounts.user_name(metadata.uid()))
        .str("group", accounts.group_name(metadata.gid()))
        .raw("mode", mode.as_bytes())
        .finish()
}

/// `GET /files/info?path=`: an object with what each path was asked as; all or none.
pub(crate) async fn info(
    daemon: &Arc<Daemon>,
    paths: Vec<OsString>,
) -> Result<Response<Body>, ApiError> {
    let daemon = daemon.clone();
    blocking(move || {
        let accounts = Accounts::load();
        let mut found = BTreeMap::new();
        for asked in paths {
            let path = daemon.environment.absolute(&asked).map_err(|why| {
                Failure::said(why)
                    .within_named("invalid path ", &asked)
                    .into_api()
            })?;
            let metadata = path.symlink_metadata().map_err(|error| {
                let what = if error.kind() == io::ErrorKind::NotFound {
                    "file not found: "
                } else {
                    "error accessing file "
                };
                Failure::io("lstat", &path, &error)
                    .within_named(what, &asked)
                    .into_api()
            })?;
            found.insert(asked.into_vec(), describe(&path, &metadata, &accounts));
        }
        let mut out = vec![b'{'];
        for (path, description) in found {
            if out.len() > 1 {
                out.push(b',');
            }
            push_string(&mut out, &path);
            out.push(b':');
            out.extend_from_slice(&description);
        }
        out.push(b'}');
        Ok(json(out))
    })
    .await
}

/// A list of descriptions, as one JSON array of a bounded size.
#[derive(Debug)]
pub(super) struct Listing {
    out: Vec<u8>,
    accounts: Accounts,
}

impl Listing {
    const LARGEST: usize = 64 << 20;

    pub(super) fn new() -> Self {
        Self {
            out: vec![b'['],
            accounts: Accounts::load(),
        }
    }

    /// # Errors
    ///
    /// When the list is too long.
    pub(super) fn add(&mut self, path: &Path, metadata: &Metadata) -> Result<(), Failure> {
        if self.out.len() > Self::LARGEST {
            return Err(Failure::said(
                "there are too many; ask for a smaller directory",
            ));
        }
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        self.out.extend(describe(path, metadata, &self.accounts));
        Ok(())
    }

    pub(super) fn into_response(mut self) -> Response<Body> {
        self.out.push(b']');
        json(self.out)
    }
}
