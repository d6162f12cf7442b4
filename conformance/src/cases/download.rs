//! Files out of the sandbox, by the primitive.

use std::time::Duration;

use sandbox_core::{ErrorKind, FileDownload, SandboxPath, call};

use super::needs::{FIFOS, FILE_OWNERS, PROCESS_TABLE};
use super::{kinds, random_bytes};
use crate::check::refused;
use crate::{CaseResult, Cx, Failure};

cases! { "download":
    what_a_command_wrote_arrives_exactly minimal;
    an_empty_file_is_empty_bytes minimal;
    megabytes_arrive;
    many_files_arrive_in_one_call minimal;
    an_empty_batch_is_an_empty_answer minimal;
    a_missing_file_is_not_found minimal;
    a_directory_is_refused minimal;
    below_a_file_nothing_is_found minimal;
    results_come_in_order_and_each_file_fails_alone minimal;
    a_link_gives_its_target minimal;
    a_dangling_link_is_not_found minimal;
    a_loop_of_links_ends minimal;
    rights_are_those_of_the_user needs(FILE_OWNERS);
    a_fifo_does_not_block needs(FIFOS);
    a_file_over_the_limit_is_too_large minimal;
    a_file_whose_size_reads_zero_has_its_content needs(PROCESS_TABLE);
    downloading_changes_nothing minimal;
    a_stream_of_megabytes_arrives minimal;
    streaming_a_missing_file_is_not_found;
}

async fn what_a_command_wrote_arrives_exactly(cx: Cx) -> CaseResult {
    cx.ok("printf 'a\\000b\\r\\n\\n\\377' >f; printf x >>f")
        .await?;
    check_eq!(cx.get("f").await?, b"a\0b\r\n\n\xffx".to_vec());
    Ok(())
}

async fn an_empty_file_is_empty_bytes(cx: Cx) -> CaseResult {
    cx.ok(": >e").await?;
    check_eq!(cx.get("e").await?, Vec::<u8>::new());
    Ok(())
}

async fn megabytes_arrive(cx: Cx) -> CaseResult {
    let part = random_bytes(8, 1 << 20);
    cx.put([("part", &part)]).await?;
    cx.ok("for i in 1 2 3 4 5 6; do cat part; done >big")
        .await?;
    let bytes = cx.get("big").await?;
    check_eq!(bytes.len(), 6 << 20);
    check!(bytes.chunks(1 << 20).all(|c| c == part), "they differ");
    Ok(())
}

async fn many_files_arrive_in_one_call(cx: Cx) -> CaseResult {
    let paths: Vec<String> = (0..200).map(|i| cx.path(&format!("d/{i}"))).collect();
    let files: Vec<(String, String)> = (0..200)
        .zip(&paths)
        .map(|(i, p)| (p.clone(), format!("content {i}")))
        .collect();
    cx.sandbox.upload_files(files).await;
    let results = cx.sandbox.download_files(&paths).await;
    check_eq!(results.len(), 200);
    for (i, result) in results.into_iter().enumerate() {
        check_eq!(String::from_utf8_lossy(&result?), format!("content {i}"));
    }
    Ok(())
}

async fn an_empty_batch_is_an_empty_answer(cx: Cx) -> CaseResult {
    let none: [String; 0] = [];
    check_eq!(cx.sandbox.download_files(none).await.len(), 0);
    Ok(())
}

async fn a_missing_file_is_not_found(cx: Cx) -> CaseResult {
    for name in ["none", "no/such/dir/f"] {
        refused(
            cx.sandbox.download(cx.path(name)).await,
            ErrorKind::NotFound,
        )?;
    }
    Ok(())
}

async fn a_directory_is_refused(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; echo x >d/f; ln -s d l").await?;
    for path in [cx.path("d"), cx.path("d/"), cx.path("l"), "/".to_owned()] {
        refused(cx.sandbox.download(&path).await, ErrorKind::IsADirectory)?;
    }
    Ok(())
}

async fn below_a_file_nothing_is_found(cx: Cx) -> CaseResult {
    cx.put([("f", b"x")]).await?;
    let e = cx
        .sandbox
        .download(cx.path("f/x"))
        .await
        .err()
        .map(|e| e.kind());
    check!(
        matches!(e, Some(ErrorKind::NotFound | ErrorKind::NotADirectory)),
        "{e:?}"
    );
    Ok(())
}

async fn results_come_in_order_and_each_file_fails_alone(cx: Cx) -> CaseResult {
    use ErrorKind::{InvalidPath, IsADirectory, NotFound};
    cx.ok("mkdir d; printf 1 >a; printf 2 >b").await?;
    let paths = [
        cx.path("a"),
        cx.path("none"),
        cx.path("d"),
        "rel".to_owned(),
        cx.path("b"),
        String::new(),
        cx.path("d/../a"),
        cx.path("a"),
    ];
    let results = cx.sandbox.download_files(&paths).await;
    let right = [
        None,
        Some(NotFound),
        Some(IsADirectory),
        Some(InvalidPath),
        None,
        Some(InvalidPath),
        Some(InvalidPath),
        None,
    ];
    check_eq!(kinds(&results), right);
    let good: Vec<_> = results.into_iter().flatten().collect();
    check_eq!(good, [&b"1"[..], b"2", b"1"]);
    Ok(())
}

async fn a_link_gives_its_target(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; printf x >d/t; ln -s d/t f; ln -s d l")
        .await?;
    check_eq!(cx.get("f").await?, b"x".to_vec());
    check_eq!(cx.get("l/t").await?, b"x".to_vec());
    Ok(())
}

async fn a_dangling_link_is_not_found(cx: Cx) -> CaseResult {
    cx.ok("ln -s nowhere f").await?;
    refused(cx.sandbox.download(cx.path("f")).await, ErrorKind::NotFound)?;
    Ok(())
}

async fn a_loop_of_links_ends(cx: Cx) -> CaseResult {
    cx.ok("ln -s b a; ln -s a b; ln -s self self").await?;
    for name in ["a", "self", "self/x"] {
        check!(
            cx.sandbox.download(cx.path(name)).await.is_err(),
            "{name} can be read"
        );
    }
    Ok(())
}

async fn rights_are_those_of_the_user(cx: Cx) -> CaseResult {
    cx.ok("echo x >f; chmod 000 f; mkdir d; echo y >d/g; chmod 000 d")
        .await?;
    for name in ["f", "d/g"] {
        refused(
            cx.sandbox.download(cx.path(name)).await,
            ErrorKind::PermissionDenied,
        )?;
    }
    cx.ok("chmod 755 d").await?;
    Ok(())
}

async fn a_fifo_does_not_block(cx: Cx) -> CaseResult {
    cx.ok("mkfifo p").await?;
    let call = cx.sandbox.download(cx.path("p"));
    match tokio::time::timeout(Duration::from_secs(10), call).await {
        Ok(Err(_)) => Ok(()),
        Ok(Ok(_)) => Err(Failure::Wrong("a FIFO is no file".to_owned())),
        Err(_) => Err(Failure::Wrong("it blocks".to_owned())),
    }
}

async fn a_file_over_the_limit_is_too_large(cx: Cx) -> CaseResult {
    cx.put([("f", &[b'x'; 1001]), ("g", &[b'y'; 1000])]).await?;
    let mut files = Vec::new();
    for name in ["f", "g"] {
        let mut file = FileDownload::new(SandboxPath::new(cx.path(name))?);
        file.limit = 1000;
        files.push(file);
    }
    let results = call::download_files(cx.sandbox.backend(), &files).await;
    check_eq!(kinds(&results), [Some(ErrorKind::TooLarge), None]);
    Ok(())
}

async fn a_file_whose_size_reads_zero_has_its_content(cx: Cx) -> CaseResult {
    let bytes = cx.sandbox.download("/proc/1/status").await?;
    check!(!bytes.is_empty(), "it came as an empty file");
    Ok(())
}

async fn downloading_changes_nothing(cx: Cx) -> CaseResult {
    cx.ok("printf x >f; chmod 600 f").await?;
    cx.get("f").await?;
    check_eq!(
        (cx.mode("f").await?.as_str(), cx.ok("ls -A").await?.as_str()),
        ("600", "f\n")
    );
    Ok(())
}

async fn a_stream_of_megabytes_arrives(cx: Cx) -> CaseResult {
    let bytes = random_bytes(9, 3_000_003);
    cx.put([("big", &bytes), ("e", b"")]).await?;
    let mut got = Vec::new();
    check_eq!(
        cx.sandbox.download_to(cx.path("big"), &mut got).await?,
        3_000_003
    );
    check!(got == bytes, "they differ");
    got.clear();
    check_eq!(cx.sandbox.download_to(cx.path("e"), &mut got).await?, 0);
    check_eq!(got.len(), 0);
    Ok(())
}

async fn streaming_a_missing_file_is_not_found(cx: Cx) -> CaseResult {
    let mut got = Vec::new();
    refused(
        cx.sandbox.download_to(cx.path("none"), &mut got).await,
        ErrorKind::NotFound,
    )?;
    refused(
        cx.sandbox.download_to(&cx.dir, &mut got).await,
        ErrorKind::IsADirectory,
    )?;
    Ok(())
}
