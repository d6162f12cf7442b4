//! Writing files: pairs of a part that says where and a part that is the content.
//!
//! The whole form is read before anything is written, so that a form that is cut or wrong leaves
//! nothing behind. It waits in memory while it is small and in a file without a name beyond.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};

use super::failure::Failure;
use super::multipart::{Event, Malformed, Parser};
use super::{dirs, permissions, write};
use crate::body::{self, Budget, Share};
use crate::command::spool_file;
use crate::daemon::{Daemon, blocking};
use crate::decode::{Permission, Struct, only_value};
use crate::names::error_text;
use crate::respond::{ApiError, Body, Code, empty};

/// How much of a form's files waits in memory.
const IN_MEMORY: usize = 1 << 20;
/// The largest description of one file, and of all of them.
const METADATA_LIMIT: usize = 256 * 1024;
const ALL_METADATA_LIMIT: usize = 8 << 20;

fn refuse(code: Code, why: impl Into<Vec<u8>>) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, code, why)
}

fn no_form() -> ApiError {
    refuse(Code::InvalidFile, "multipart form is empty")
}

/// `POST /files/upload`.
pub(crate) async fn upload(
    daemon: &Arc<Daemon>,
    content_type: Option<HeaderValue>,
    body: Incoming,
) -> Result<Response<Body>, ApiError> {
    let kind = content_type.ok_or_else(no_form)?;
    let parser = Parser::new(kind.as_bytes()).map_err(|Malformed| no_form())?;
    let form = Form::read(&daemon.budget, parser, body).await?;
    form.check()?;
    let daemon = daemon.clone();
    blocking(move || {
        let Form {
            metadata,
            files,
            mut spool,
            share: _share,
        } = form;
        for (metadata, (start, length)) in metadata.iter().zip(files) {
            let target = Target::parse(metadata)?;
            let path = target.prepare(&daemon)?;
            let failed = |what: &str, error: &io::Error| {
                Failure::io("open", &path, error).runtime(what, path.as_os_str())
            };
            let mut file =
                write::open(&path).map_err(|it| failed("error opening destination file ", &it))?;
            spool
                .read(start, length)
                .and_then(|content| write::content(&mut file, content, length))
                .map_err(|it| failed("error copying file ", &it))?;
            drop(file);
            permissions::apply(&path, &target.permission)
                .map_err(|it| it.runtime("error chmoding file ", path.as_os_str()))?;
        }
        Ok(empty())
    })
    .await
}

/// Where one file goes.
struct Target {
    path: String,
    permission: Permission,
}

impl Target {
    fn parse(metadata: &[u8]) -> Result<Self, ApiError> {
        let target = only_value(metadata)
            .and_then(|value| {
                let it = Struct::new(&value, "FileMetadata", "model.FileMetadata")?;
                Ok(Self {
                    path: it.string("path")?,
                    permission: it.permission("Permission.")?,
                })
            })
            .map_err(|why| {
                refuse(
                    Code::InvalidFileMetadata,
                    format!("invalid metadata format. {why}"),
                )
            })?;
        if target.path.is_empty() {
            return Err(refuse(Code::InvalidFileMetadata, "metadata path is empty"));
        }
        Ok(target)
    }

    /// Makes the directories above it.
    fn prepare(&self, daemon: &Daemon) -> Result<PathBuf, ApiError> {
        let asked = OsStr::new(&self.path);
        let path = daemon
            .environment
            .path(asked)
            .map_err(|why| Failure::said(why).runtime("error resolving target path ", asked))?;
        if let Some(parent) = path.parent().filter(|it| *it != Path::new("")) {
            dirs::make_all(parent, 0o777)
                .map_err(|it| it.runtime("error creating target directory ", parent.as_os_str()))?;
        }
        Ok(path)
    }
}

/// A form that has arrived.
#[derive(Default)]
struct Form {
    metadata: Vec<Vec<u8>>,
    /// Where each file is in the spool, and how long.
    files: Vec<(u64, u64)>,
    spool: Spool,
    /// What it holds of the memory all requests share.
    share: Share,
}

/// Which part is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Metadata,
    File,
    Other,
}

impl Form {
    async fn read(
        budget: &Budget,
        mut parser: Parser,
        mut body: Incoming,
    ) -> Result<Self, ApiError> {
        let mut share = Share::default();
        budget.enlarge(&mut share, IN_MEMORY)?;
        let mut form = Self::default();
        let mut part = Part::Other;
        let mut described = 0;
        let mut ended = false;
        while let Some(data) = body::next(&mut body).await? {
            parser.feed(&data);
            while let Some(event) = parser.next().map_err(|Malformed| no_form())? {
                match event {
                    Event::Part { name, is_file } => {
                        part = match name.as_str() {
                            "metadata" if is_file => Part::Metadata,
                            "file" if is_file => Part::File,
                            _ => Part::Other,
                        };
                        match part {
                            Part::Metadata => form.metadata.push(Vec::new()),
                            Part::File => form.files.push((form.spool.length, 0)),
                            Part::Other => {}
                        }
                    }
                    Event::Data(data) => match part {
                        Part::Metadata => {
                            described += data.len();
                            budget.enlarge(&mut share, IN_MEMORY + described)?;
                            if let Some(metadata) = form.metadata.last_mut() {
                                metadata.extend_from_slice(&data);
                                if metadata.len() > METADATA_LIMIT || described > ALL_METADATA_LIMIT
                                {
                                    return Err(refuse(
                                        Code::InvalidFileMetadata,
                                        "metadata is too large",
                                    ));
                                }
                            }
                        }
                        Part::File => {
                            if let Some(file) = form.files.last_mut() {
                                file.1 += data.len() as u64;
                            }
                            form.spool.memory.extend_from_slice(&data);
                            form.spool.length += data.len() as u64;
                        }
                        Part::Other => {}
                    },
                    Event::End => ended = true,
                }
                if form.spool.memory.len() > IN_MEMORY {
                    let spool = std::mem::take(&mut form.spool);
                    form.spool = blocking(move || spool.flush()).await?;
                }
            }
        }
        if !ended {
            return Err(no_form());
        }
        form.share = share;
        Ok(form)
    }

    fn check(&self) -> Result<(), ApiError> {
        let (metadata, files) = (self.metadata.len(), self.files.len());
        if metadata == 0 {
            return Err(refuse(
                Code::InvalidFileMetadata,
                "metadata file is missing",
            ));
        }
        if files == 0 {
            return Err(refuse(Code::InvalidFileContent, "file is missing"));
        }
        if metadata != files {
            let why = format!("metadata and file count mismatch: {metadata} vs {files}");
            return Err(refuse(Code::InvalidFile, why));
        }
        Ok(())
    }
}

/// The files of a form, one after the other.
#[derive(Default)]
struct Spool {
    /// What is not in the file yet; all of it where there is no file.
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
}

impl Spool {
    /// Moves what is in memory to the file.
    fn flush(mut self) -> Result<Self, ApiError> {
        let failed = |error: &io::Error| {
            let text = error_text(error);
            ApiError::runtime(format!("error storing the upload. {text}"))
        };
        let mut file = match self.file.take() {
            Some(file) => file,
            None => spool_file().map_err(|it| failed(&it))?,
        };
        file.write_all(&self.memory).map_err(|it| failed(&it))?;
        self.memory.clear();
        self.file = Some(file);
        Ok(self)
    }

    /// The `length` bytes from `start` on.
    fn read(&mut self, start: u64, length: u64) -> io::Result<Box<dyn Read + '_>> {
        let Some(file) = &mut self.file else {
            let start = usize::try_from(start).unwrap_or(usize::MAX);
            return Ok(Box::new(
                self.memory.get(start..).unwrap_or_default().take(length),
            ));
        };
        if !self.memory.is_empty() {
            file.seek(SeekFrom::End(0))?;
            file.write_all(&self.memory)?;
            self.memory.clear();
        }
        file.seek(SeekFrom::Start(start))?;
        Ok(Box::new(file.take(length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_gives_back_what_it_was_given() {
        let mut spool = Spool {
            memory: b"onetwo".to_vec(),
            file: None,
            length: 6,
        };
        let read = |spool: &mut Spool, start, length| {
            let mut text = String::new();
            spool
                .read(start, length)
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
            text
        };
        assert_eq!(read(&mut spool, 3, 3), "two");
        let mut spool = spool.flush().unwrap();
        spool.memory.extend_from_slice(b"three");
        assert_eq!(read(&mut spool, 6, 5), "three");
        assert_eq!(read(&mut spool, 0, 3), "one");
        assert_eq!(read(&mut spool, 3, 5), "twoth");
    }
}
