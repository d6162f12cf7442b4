//! The operations against a backend that answers what a test says: how many calls they make, what
//! travels how, and what they make of hostile answers.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;

use super::*;
use crate::files::WriteMode;
use crate::{
    Capabilities, Command, Error, ErrorKind, ExecuteResponse, FileDownload, FileUpload,
    GrepOptions, Program, ReadOptions, Result, SandboxBackend, SandboxId, SandboxPath, Status,
};

/// Answers from a list; a call too many is an error that no operation hides.
#[derive(Debug)]
struct Scripted {
    id: SandboxId,
    answers: Mutex<VecDeque<ExecuteResponse>>,
    files: Mutex<VecDeque<Bytes>>,
    seen: Mutex<Vec<Command>>,
}

impl Scripted {
    fn new(answers: impl IntoIterator<Item = (Status, &'static [u8])>) -> Self {
        let answers = answers
            .into_iter()
            .map(|(status, stdout)| ExecuteResponse::new(status, stdout, ""));
        Self {
            id: SandboxId::new("scripted"),
            answers: Mutex::new(answers.collect()),
            files: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    fn files(self, files: impl IntoIterator<Item = &'static [u8]>) -> Self {
        *self.files.lock().unwrap() = files.into_iter().map(Bytes::from_static).collect();
        self
    }

    fn calls(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

#[async_trait]
impl SandboxBackend for Scripted {
    fn id(&self) -> &SandboxId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(|c| {
            c.execute_argv = true;
            c.execute_stdin = true;
        })
    }

    async fn execute(&self, command: &Command) -> Result<ExecuteResponse> {
        self.seen.lock().unwrap().push(command.clone());
        self.answers
            .lock()
            .unwrap()
            .pop_front()
            .ok_or_else(|| Error::new(ErrorKind::Unexpected, "a call too many"))
    }

    async fn upload_files(&self, files: &[FileUpload]) -> Vec<Result<()>> {
        files.iter().map(|_| Ok(())).collect()
    }

    async fn download_files(&self, files: &[FileDownload]) -> Vec<Result<Bytes>> {
        let mut answers = self.files.lock().unwrap();
        files
            .iter()
            .map(|_| {
                answers
                    .pop_front()
                    .ok_or_else(|| Error::new(ErrorKind::NotFound, "no such file"))
            })
            .collect()
    }

    async fn kill(&self) -> Result<()> {
        Ok(())
    }
}

const OK: Status = Status::Exited(0);

fn path(text: &str) -> SandboxPath {
    SandboxPath::new(text).unwrap()
}

#[tokio::test]
async fn data_travels_beside_the_script_never_in_it() {
    let evil = path("/w/x'; touch /tmp/pwned; '$(id)`id`\n-rf");
    let content = Bytes::from_static(b"EOF\n$1 `id` {0} %s");
    let backend = Scripted::new([(OK, &b""[..]), (OK, b"")]);
    write(&backend, &evil, content.clone(), WriteMode::Overwrite)
        .await
        .unwrap();
    write(
        &backend,
        &path("/w/plain"),
        content.clone(),
        WriteMode::Overwrite,
    )
    .await
    .unwrap();
    let seen = backend.seen.lock().unwrap();
    let [first, second] = seen.as_slice() else {
        panic!("{seen:?}")
    };
    let (Program::Argv(first_argv), Program::Argv(second_argv)) = (&first.program, &second.program)
    else {
        panic!("{seen:?}")
    };
    assert_eq!(first_argv[..4], second_argv[..4]);
    assert_eq!(first_argv[4], evil.as_str());
    assert_eq!(first.stdin.as_ref(), Some(&content));
    assert!(first.timeout.is_some());
}

#[tokio::test]
async fn what_can_not_be_looked_at_is_never_nothing_found() {
    for (status, output, kind) in [
        (Status::Exited(68), &b"find"[..], ErrorKind::MissingTool),
        (Status::Exited(127), b"", ErrorKind::MissingTool),
        (Status::Exited(61), b"", ErrorKind::NotFound),
        (Status::Exited(62), b"", ErrorKind::PermissionDenied),
        (Status::Exited(1), b"", ErrorKind::Unexpected),
        (Status::Exited(137), b"", ErrorKind::Unexpected),
        (Status::Lost("cut".into()), b"", ErrorKind::Unavailable),
    ] {
        let answer = || Scripted::new([(status.clone(), output)]);
        let root = path("/w");
        let kinds = [
            ls(&answer(), &root).await.unwrap_err().kind(),
            glob(&answer(), "*", &root).await.unwrap_err().kind(),
            grep(&answer(), "x", &root, &GrepOptions::default())
                .await
                .unwrap_err()
                .kind(),
            read(&answer(), &root, ReadOptions::default())
                .await
                .unwrap_err()
                .kind(),
            delete(&answer(), &root).await.unwrap_err().kind(),
        ];
        assert_eq!(kinds, [kind; 5], "{status}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_add_up_is_looked_at_again_and_then_an_error() {
    let whole = &b"1\x002 1 regular file\x00./a\x000\x000\x00"[..];
    let backend = Scripted::new([(OK, &whole[..9]), (OK, whole)]);
    let listing = ls(&backend, &path("/w")).await.unwrap();
    assert_eq!((listing.entries.len(), backend.calls()), (1, 2));
    let backend = Scripted::new(vec![(OK, &whole[..9]); 9]);
    let e = ls(&backend, &path("/w")).await.unwrap_err();
    assert_eq!((e.kind(), backend.calls()), (ErrorKind::Protocol, 3));
    let backend = Scripted::new([(OK, &b"T9 9999999\n"[..]), (OK, b"Wa\nb\n")]);
    let page = read(&backend, &path("/w"), ReadOptions::default())
        .await
        .unwrap();
    assert_eq!((page.text(), backend.calls()), (Some("a\nb"), 2));
}

#[tokio::test]
async fn a_lost_race_is_run_again_on_the_new_content() {
    let raced = (Status::Exited(67), &b""[..]);
    let backend = Scripted::new([
        (OK, &b"=a b"[..]),
        raced.clone(),
        (OK, b"=a b c"),
        (OK, b""),
    ]);
    let report = edit(&backend, &path("/w/f"), "a", "A", false)
        .await
        .unwrap();
    assert_eq!((report.replaced, backend.calls()), (1, 4));
    let last = backend.seen.lock().unwrap().pop().unwrap();
    assert_eq!(last.stdin.unwrap(), "a b cA b c");
    let busy = Scripted::new((0..60).map(|n| {
        if n % 2 == 0 {
            (OK, &b"=a"[..])
        } else {
            raced.clone()
        }
    }));
    let e = edit(&busy, &path("/w/f"), "a", "A", false)
        .await
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    assert!(busy.calls() < 30);
    // The script has waited for the lock already.
    let held = Scripted::new(vec![(Status::Exited(72), &b""[..]); 2]);
    let e = edit(&held, &path("/w/f"), "a", "A", false)
        .await
        .unwrap_err();
    assert_eq!((e.kind(), held.calls()), (ErrorKind::Conflict, 1));
}

#[tokio::test]
async fn an_edit_is_one_command_unless_only_the_content_can_tell() {
    let edit = async |answers: &[&'static [u8]], old: &str, new: &str, all| {
        let backend = Scripted::new(answers.iter().map(|a| (OK, *a))).files([&b"a\0b"[..]]);
        let result = edit(&backend, &path("/w/f"), old, new, all).await;
        let result = result.map(|report| report.replaced).map_err(|e| e.kind());
        (result, backend.seen.into_inner().unwrap())
    };
    let (result, seen) = edit(&[b"1"], "a\r\nb", "c\r\nd", false).await;
    assert_eq!((result, seen.len()), (Ok(1), 1));
    let Program::Argv(argv) = &seen[0].program else {
        panic!("{seen:?}")
    };
    assert_eq!(argv[6..], ["text", "3", "3", "a\nb", "c\nd", ""]);
    assert_eq!(seen[0].stdin, None);
    for (answers, all, expected, calls) in [
        (&[&b"7"[..]][..], true, Ok(7), 1),
        (&[b"7"], false, Err(ErrorKind::NotUnique), 1),
        (&[b"0"], true, Err(ErrorKind::NoMatch), 1),
        (&[b""], true, Err(ErrorKind::Protocol), 1),
        (&[b"1 2"], true, Err(ErrorKind::Protocol), 1),
        (&[b"="], true, Err(ErrorKind::NoMatch), 1),
        (&[b"=a\r\na", b""], true, Ok(2), 2),
    ] {
        let (result, seen) = edit(answers, "a", "b", all).await;
        assert_eq!((result, seen.len()), (expected, calls), "{answers:?}");
    }
    // What can't travel as an argument.
    for (old, new) in [("a\0", ""), ("a", "\0"), ("a", &"x".repeat(100 << 10))] {
        let (result, seen) = edit(&[b""], old, new, false).await;
        assert_eq!((result, seen.len()), (Ok(1), 1), "{old:?}");
        assert!(seen[0].stdin.is_some());
    }
}

#[tokio::test]
async fn nothing_is_sent_where_the_answer_is_known() {
    let backend = Scripted::new([]);
    let root = path("/w");
    for pattern in ["../*", ""] {
        let e = glob(&backend, pattern, &root).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidPattern);
    }
    let long = "x".repeat(200 << 10);
    let e = grep(&backend, &long, &root, &GrepOptions::default())
        .await
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TooLarge);
    for text in ["", "ab\ncd", "\n"] {
        let e = grep(&backend, text, &root, &GrepOptions::default())
            .await
            .unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    }
    let none = read(&backend, &root, ReadOptions::new(5, 0)).await.unwrap();
    assert_eq!(none, crate::ReadPage::NothingAsked);
    assert_eq!(backend.calls(), 0);
}
