//! Files into the sandbox, by the primitive.

use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::join_all;
use sandbox_core::ErrorKind;

use super::needs::{FIFOS, FILE_OWNERS, HARD_LINKS};
use super::{kinds, random_bytes};
use crate::check::refused;
use crate::{CaseResult, Cx, Failure};

cases! { "upload":
    bytes_arrive_exactly minimal;
    an_empty_file_arrives minimal;
    commands_see_the_file minimal;
    megabytes_arrive;
    many_files_arrive_in_one_call minimal;
    an_empty_batch_is_an_empty_answer minimal;
    parents_are_made minimal;
    new_files_are_0644 minimal;
    new_parents_serve_the_user minimal;
    parents_that_are_there_keep_their_mode minimal;
    the_time_is_now minimal;
    overwriting_replaces_all_of_the_content minimal;
    overwriting_keeps_the_mode minimal;
    overwriting_keeps_hard_links needs(HARD_LINKS);
    the_owner_is_the_sandboxes_user needs(FILE_OWNERS);
    a_link_is_written_through minimal;
    a_link_in_the_path_is_followed minimal;
    a_directory_is_never_replaced minimal;
    below_a_file_is_an_error_and_the_file_stays minimal;
    results_come_in_order_and_each_file_fails_alone minimal;
    the_root_fails_alone minimal;
    rights_are_those_of_the_user needs(FILE_OWNERS);
    a_file_without_write_permission_stays needs(FILE_OWNERS);
    a_fifo_does_not_block needs(FIFOS);
    of_two_at_once_one_is_whole;
    many_at_once_into_a_new_directory_all_arrive;
    nothing_else_is_left minimal;
    a_stream_of_megabytes_arrives minimal;
    an_empty_stream_makes_an_empty_file;
    a_failing_stream_leaves_the_old_file;
    streaming_keeps_the_mode;
}

async fn bytes_arrive_exactly(cx: Cx) -> CaseResult {
    let all: Vec<u8> = (0..=255).collect();
    let random = random_bytes(1, 100_000);
    for bytes in [
        &all[..],
        b"x",
        b"\n",
        b"a\r\nb\r\n",
        b"\xef\xbb\xbfx",
        b"\0",
        b"no newline",
        &random,
    ] {
        cx.put([("f", bytes)]).await?;
        check_eq!(cx.get("f").await?, bytes.to_vec());
    }
    Ok(())
}

async fn an_empty_file_arrives(cx: Cx) -> CaseResult {
    cx.put([("e", b"")]).await?;
    check_eq!(cx.ok("test -f e && wc -c <e").await?.trim(), "0");
    Ok(())
}

async fn commands_see_the_file(cx: Cx) -> CaseResult {
    cx.put([("f", b"one\ntwo")]).await?;
    check_eq!(
        cx.ok("cat f; echo; wc -c <f")
            .await?
            .split_whitespace()
            .last(),
        Some("7")
    );
    Ok(())
}

async fn megabytes_arrive(cx: Cx) -> CaseResult {
    let bytes = random_bytes(2, 8 << 20);
    cx.put([("big", &bytes)]).await?;
    check_eq!(cx.ok("wc -c <big").await?.trim(), (8 << 20).to_string());
    check!(cx.get("big").await? == bytes, "they differ");
    Ok(())
}

async fn many_files_arrive_in_one_call(cx: Cx) -> CaseResult {
    let files = (0..200).map(|i| (cx.path(&format!("d/{i}")), format!("content {i}")));
    let results = cx.sandbox.upload_files(files).await;
    check_eq!(results.len(), 200);
    for result in results {
        result?;
    }
    check_eq!(
        cx.ok("ls d | wc -l; cat d/0 d/199").await?.trim_start(),
        "200\ncontent 0content 199"
    );
    Ok(())
}

async fn an_empty_batch_is_an_empty_answer(cx: Cx) -> CaseResult {
    let none: [(String, Vec<u8>); 0] = [];
    check_eq!(cx.sandbox.upload_files(none).await.len(), 0);
    Ok(())
}

async fn parents_are_made(cx: Cx) -> CaseResult {
    cx.put([("a/b/c/f", b"x")]).await?;
    check_eq!(cx.ok("cat a/b/c/f").await?, "x");
    Ok(())
}

async fn new_files_are_0644(cx: Cx) -> CaseResult {
    cx.put([("f", b"x"), ("d/g", b"y"), ("e", b"")]).await?;
    for name in ["f", "d/g", "e"] {
        check_eq!(cx.mode(name).await?, "644", "{name}");
    }
    Ok(())
}

async fn new_parents_serve_the_user(cx: Cx) -> CaseResult {
    cx.put([("a/b/f", b"x")]).await?;
    cx.ok("echo y >a/b/g && echo z >a/h && rm a/b/f && echo more >>a/b/g")
        .await?;
    check_eq!(cx.mode("a/b").await?, "755");
    Ok(())
}

async fn parents_that_are_there_keep_their_mode(cx: Cx) -> CaseResult {
    cx.ok("mkdir -p a/b && chmod 700 a && chmod 711 a/b")
        .await?;
    cx.put([("a/b/c/f", b"x"), ("a/b/g", b"y"), ("a/h", b"z")])
        .await?;
    check_eq!(
        (cx.mode("a").await?.as_str(), cx.mode("a/b").await?.as_str()),
        ("700", "711")
    );
    Ok(())
}

async fn the_time_is_now(cx: Cx) -> CaseResult {
    cx.put([("f", b"x")]).await?;
    let now: u64 = cx.ok("date +%s").await?.trim().parse().unwrap_or(0);
    let listing = cx.sandbox.ls(&cx.dir).await?;
    let modified = listing.entries.first().map(|e| e.modified);
    let modified = modified
        .and_then(|t| t.duration_since(UNIX_EPOCH).ok())
        .unwrap_or_default();
    check!(
        modified.as_secs().abs_diff(now) < 120,
        "{modified:?} against {now}"
    );
    Ok(())
}

async fn overwriting_replaces_all_of_the_content(cx: Cx) -> CaseResult {
    for bytes in [&b"a long first content"[..], b"short", b"", b"x"] {
        cx.put([("f", bytes)]).await?;
        check_eq!(cx.get("f").await?, bytes.to_vec());
    }
    Ok(())
}

async fn overwriting_keeps_the_mode(cx: Cx) -> CaseResult {
    for mode in ["755", "600", "640", "700"] {
        cx.ok(&format!("echo old >f; chmod {mode} f")).await?;
        cx.put([("f", b"new")]).await?;
        check_eq!(
            (cx.mode("f").await?.as_str(), cx.get("f").await?),
            (mode, b"new".to_vec())
        );
    }
    Ok(())
}

async fn overwriting_keeps_hard_links(cx: Cx) -> CaseResult {
    cx.ok("echo old >f; ln f g").await?;
    cx.put([("f", b"new")]).await?;
    check_eq!(cx.get("g").await?, b"new".to_vec());
    Ok(())
}

async fn the_owner_is_the_sandboxes_user(cx: Cx) -> CaseResult {
    cx.put([("d/f", b"x")]).await?;
    let owners = cx.ok("stat -c %u d; stat -c %u d/f; id -u").await?;
    let owners: Vec<&str> = owners.split_whitespace().collect();
    check!(
        owners.len() == 3 && owners.iter().all(|o| *o == owners[2]),
        "{owners:?}"
    );
    Ok(())
}

async fn a_link_is_written_through(cx: Cx) -> CaseResult {
    cx.ok("mkdir real; echo old >real/t; ln -s real/t f")
        .await?;
    cx.put([("f", b"new")]).await?;
    check_eq!(cx.get("real/t").await?, b"new".to_vec());
    check_eq!(cx.ok("test -L f && readlink f").await?, "real/t\n");
    Ok(())
}

async fn a_link_in_the_path_is_followed(cx: Cx) -> CaseResult {
    cx.ok("mkdir real; ln -s real link").await?;
    cx.put([("link/a", b"x"), ("link/new/b", b"y")]).await?;
    check_eq!(
        cx.ok("cat real/a real/new/b; test -L link && echo still")
            .await?,
        "xystill\n"
    );
    Ok(())
}

async fn a_directory_is_never_replaced(cx: Cx) -> CaseResult {
    cx.ok("mkdir -p d empty; echo keep >d/k").await?;
    let files = ["ok1", "d", "empty", "ok2"].map(|f| (cx.path(f), "x"));
    let results = cx.sandbox.upload_files(files).await;
    check_eq!(
        kinds(&results),
        [
            None,
            Some(ErrorKind::IsADirectory),
            Some(ErrorKind::IsADirectory),
            None
        ]
    );
    check_eq!(
        cx.ok("cat d/k ok1 ok2; test -d empty && echo still")
            .await?,
        "keep\nxxstill\n"
    );
    Ok(())
}

async fn below_a_file_is_an_error_and_the_file_stays(cx: Cx) -> CaseResult {
    cx.put([("f", b"keep")]).await?;
    refused(
        cx.sandbox.upload(cx.path("f/x"), "y").await,
        ErrorKind::NotADirectory,
    )?;
    check_eq!(cx.get("f").await?, b"keep".to_vec());
    Ok(())
}

async fn results_come_in_order_and_each_file_fails_alone(cx: Cx) -> CaseResult {
    use ErrorKind::{InvalidPath, IsADirectory, NotADirectory};
    cx.ok("mkdir d; echo f >f").await?;
    let files = [
        cx.path("ok1"),
        "rel/path".to_owned(),
        cx.path("d"),
        cx.path("ok2"),
        String::new(),
        cx.path("f/x"),
        cx.path("a\0b"),
        cx.path("../x"),
        cx.path("new/ok3"),
    ];
    let results = cx.sandbox.upload_files(files.map(|f| (f, "content"))).await;
    let right = [
        None,
        Some(InvalidPath),
        Some(IsADirectory),
        None,
        Some(InvalidPath),
        Some(NotADirectory),
        Some(InvalidPath),
        Some(InvalidPath),
        None,
    ];
    check_eq!(kinds(&results), right);
    check_eq!(cx.ok("cat ok1 ok2 new/ok3").await?, "contentcontentcontent");
    Ok(())
}

async fn the_root_fails_alone(cx: Cx) -> CaseResult {
    let files = [
        (cx.path("ok1"), "1"),
        ("/".to_owned(), "x"),
        (cx.path("ok2"), "2"),
    ];
    let results = cx.sandbox.upload_files(files).await;
    check_eq!(kinds(&results), [None, Some(ErrorKind::IsADirectory), None]);
    check_eq!(cx.ok("cat ok1 ok2").await?, "12");
    Ok(())
}

async fn rights_are_those_of_the_user(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; chmod 555 d").await?;
    let files = [
        (cx.path("d/f"), "x"),
        (cx.path("d/new/f"), "x"),
        (cx.path("ok"), "x"),
    ];
    let results = cx.sandbox.upload_files(files).await;
    let denied = Some(ErrorKind::PermissionDenied);
    check_eq!(kinds(&results), [denied, denied, None]);
    check_eq!(cx.ok("chmod 755 d; ls -A d").await?, "");
    Ok(())
}

async fn a_file_without_write_permission_stays(cx: Cx) -> CaseResult {
    cx.ok("echo keep >f; chmod 444 f").await?;
    refused(
        cx.sandbox.upload(cx.path("f"), "x").await,
        ErrorKind::PermissionDenied,
    )?;
    check_eq!(cx.get("f").await?, b"keep\n".to_vec());
    Ok(())
}

async fn a_fifo_does_not_block(cx: Cx) -> CaseResult {
    cx.ok("mkfifo p").await?;
    let call = cx.sandbox.upload(cx.path("p"), "x");
    match tokio::time::timeout(Duration::from_secs(10), call).await {
        Ok(Err(_)) => {}
        Ok(Ok(())) => return Err(Failure::Wrong("a FIFO is no file".to_owned())),
        Err(_) => return Err(Failure::Wrong("it blocks".to_owned())),
    }
    check_eq!(cx.ok("test -p p && echo still").await?, "still\n");
    Ok(())
}

async fn of_two_at_once_one_is_whole(cx: Cx) -> CaseResult {
    let uploads = (b'a'..=b'j').map(|c| cx.sandbox.upload(cx.path("same"), vec![c; 200_000]));
    for result in join_all(uploads).await {
        result?;
    }
    let bytes = cx.get("same").await?;
    check_eq!(bytes.len(), 200_000);
    check!(
        bytes.iter().all(|b| *b == bytes[0]),
        "the contents are mixed"
    );
    Ok(())
}

async fn many_at_once_into_a_new_directory_all_arrive(cx: Cx) -> CaseResult {
    let uploads = (0..30).map(|i| cx.sandbox.upload(cx.path(&format!("new/dir/{i}")), "x"));
    for result in join_all(uploads).await {
        result?;
    }
    check_eq!(cx.ok("ls new/dir | wc -l").await?.trim(), "30");
    Ok(())
}

async fn nothing_else_is_left(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; echo x >old").await?;
    let names = ["f", "old", "d", "sub/g"];
    cx.sandbox
        .upload_files(names.map(|f| (cx.path(f), "x")))
        .await;
    check_eq!(
        cx.ok("ls -A . sub").await?,
        ".:\nd\nf\nold\nsub\n\nsub:\ng\n"
    );
    Ok(())
}

async fn a_stream_of_megabytes_arrives(cx: Cx) -> CaseResult {
    let bytes = random_bytes(4, 3_000_001);
    let n = cx
        .sandbox
        .upload_from(cx.path("new/big"), &mut &bytes[..])
        .await?;
    check_eq!(n, 3_000_001);
    check!(cx.get("new/big").await? == bytes, "they differ");
    check_eq!(cx.ok("ls -A new").await?, "big\n");
    Ok(())
}

async fn an_empty_stream_makes_an_empty_file(cx: Cx) -> CaseResult {
    check_eq!(
        cx.sandbox.upload_from(cx.path("e"), &mut &b""[..]).await?,
        0
    );
    check_eq!(cx.get("e").await?, Vec::<u8>::new());
    Ok(())
}

/// Gives some bytes, then fails.
struct Failing(usize);

impl tokio::io::AsyncRead for Failing {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        if self.0 == 0 {
            return std::task::Poll::Ready(Err(std::io::Error::other("on purpose")));
        }
        let n = buffer.remaining().min(self.0);
        buffer.put_slice(&vec![b'x'; n]);
        self.0 -= n;
        std::task::Poll::Ready(Ok(()))
    }
}

async fn a_failing_stream_leaves_the_old_file(cx: Cx) -> CaseResult {
    cx.put([("f", b"old")]).await?;
    for n in [0, 1000, 3_000_000] {
        let result = cx.sandbox.upload_from(cx.path("f"), &mut Failing(n)).await;
        check!(result.is_err(), "{n} bytes and an error count as a file");
        check_eq!(cx.get("f").await?, b"old".to_vec());
    }
    check_eq!(cx.ok("ls -A").await?, "f\n");
    Ok(())
}

async fn streaming_keeps_the_mode(cx: Cx) -> CaseResult {
    cx.ok("echo old >f; chmod 755 f").await?;
    cx.sandbox
        .upload_from(cx.path("f"), &mut &b"new"[..])
        .await?;
    check_eq!(
        (cx.mode("f").await?.as_str(), cx.get("f").await?),
        ("755", b"new".to_vec())
    );
    Ok(())
}
