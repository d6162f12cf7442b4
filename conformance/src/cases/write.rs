//! Writing a file.

use std::time::Duration;

use futures_util::future::join_all;
use sandbox_core::{ErrorKind, ReadOptions};

use super::needs::{FIFOS, FILE_OWNERS, HARD_LINKS};
use super::random_bytes;
use crate::check::refused;
use crate::{CaseResult, Cx, Failure};

cases! { "write":
    content_is_exact minimal;
    content_is_never_run_or_expanded minimal;
    content_of_any_size_arrives minimal;
    what_is_written_reads_back_whatever_it_is minimal;
    parents_are_made minimal;
    a_new_file_is_0644 minimal;
    overwriting_replaces_all_of_the_content minimal;
    overwriting_keeps_the_mode minimal;
    a_link_is_written_through minimal;
    a_dangling_link_gets_its_target minimal;
    hard_links_stay_together needs(HARD_LINKS);
    the_owner_is_the_sandboxes_user needs(FILE_OWNERS);
    a_directory_is_refused_and_stays minimal;
    below_a_file_is_an_error_and_the_file_stays minimal;
    create_new_makes_a_file minimal;
    create_new_refuses_what_is_there minimal;
    of_many_create_new_at_once_one_wins;
    a_reader_never_sees_half_a_file;
    of_many_writes_at_once_one_is_whole;
    a_directory_that_cannot_be_written_is_no_obstacle needs(FILE_OWNERS);
    rights_are_those_of_the_user needs(FILE_OWNERS);
    a_fifo_does_not_block needs(FIFOS);
    a_device_is_refused_and_stays minimal;
    nothing_else_is_left minimal;
    a_failed_write_leaves_nothing_else needs(FILE_OWNERS);
}

async fn content_is_exact(cx: Cx) -> CaseResult {
    let texts = [
        "",
        "\n",
        "x",
        "x\n",
        "x\n\n",
        "\n\n\n",
        "\r\n",
        "a\rb",
        "   ",
        "\t",
        "a\0b",
        "\u{feff}x",
        "naïve 漢 😀",
        "-n",
        "-e x",
        "\\n",
        "a\\",
        "'",
        "\"",
        "EOF",
        "EOF\n",
        "&amp; &lt;",
    ];
    let paths: Vec<String> = (0..texts.len())
        .map(|i| cx.path(&format!("f{i}")))
        .collect();
    for (path, text) in paths.iter().zip(texts) {
        cx.sandbox.write(path, text).await?;
    }
    for (got, text) in cx
        .sandbox
        .download_files(&paths)
        .await
        .into_iter()
        .zip(texts)
    {
        check_eq!(got?.to_vec(), text.as_bytes().to_vec());
    }
    Ok(())
}

async fn content_is_never_run_or_expanded(cx: Cx) -> CaseResult {
    let pwned = cx.path("pwned");
    let text = format!(
        "EOF\nE\nPY\n__END__\nSANDBOX_EOF\n{{0}} {{path}} {{{{x}}}} %s %d $1 \\1 \\n `touch {pwned}` \
         $(touch {pwned})\n'; touch {pwned}; '\n\"; touch {pwned}; \"\nEOF\ntouch {pwned}\n"
    );
    cx.sandbox.write(cx.path("f"), text.clone()).await?;
    check_eq!(String::from_utf8_lossy(&cx.get("f").await?), text);
    check!(!cx.exists("pwned").await?, "the content was run");
    Ok(())
}

async fn content_of_any_size_arrives(cx: Cx) -> CaseResult {
    for n in [90_000, 131_071, 131_072, 150_000, 2_100_000] {
        let bytes = random_bytes(n as u64, n);
        cx.sandbox.write(cx.path("f"), bytes.clone()).await?;
        check!(cx.get("f").await? == bytes, "{n} bytes");
    }
    Ok(())
}

async fn what_is_written_reads_back_whatever_it_is(cx: Cx) -> CaseResult {
    let mut written = Vec::new();
    for seed in 0..24 {
        let bytes = random_bytes(seed, usize::try_from(seed * seed * 7).unwrap_or(0));
        // Half of them rich in what shells and line tools stumble over.
        let sharp = b"\n\r\0'\"\\$`%{}\x7f\xff ";
        let bytes: Vec<u8> = if seed % 2 == 0 {
            bytes
        } else {
            bytes
                .iter()
                .map(|b| sharp[usize::from(*b) % sharp.len()])
                .collect()
        };
        let path = cx.path(&format!("f{seed}"));
        cx.sandbox.write(&path, bytes.clone()).await?;
        written.push((path, bytes));
    }
    let paths: Vec<&String> = written.iter().map(|(path, _)| path).collect();
    let back = cx.sandbox.download_files(paths).await;
    for (got, (path, bytes)) in back.into_iter().zip(&written) {
        check_eq!(got?.to_vec(), *bytes, "{path}");
    }
    Ok(())
}

async fn parents_are_made(cx: Cx) -> CaseResult {
    cx.sandbox.write(cx.path("a/b/c/f"), "x").await?;
    check_eq!(cx.get("a/b/c/f").await?, b"x".to_vec());
    check_eq!(cx.mode("a/b").await?, "755");
    Ok(())
}

async fn a_new_file_is_0644(cx: Cx) -> CaseResult {
    cx.sandbox.write(cx.path("f"), "x").await?;
    cx.sandbox.create_new(cx.path("g"), "x").await?;
    check_eq!(
        (cx.mode("f").await?.as_str(), cx.mode("g").await?.as_str()),
        ("644", "644")
    );
    Ok(())
}

async fn overwriting_replaces_all_of_the_content(cx: Cx) -> CaseResult {
    for text in ["a long first content\n", "short", "", "x\n"] {
        cx.sandbox.write(cx.path("f"), text).await?;
        check_eq!(cx.get("f").await?, text.as_bytes().to_vec());
    }
    Ok(())
}

async fn overwriting_keeps_the_mode(cx: Cx) -> CaseResult {
    for mode in ["755", "600", "640", "711", "664"] {
        cx.ok(&format!("echo old >f; chmod {mode} f")).await?;
        cx.sandbox.write(cx.path("f"), "new").await?;
        check_eq!(
            (cx.mode("f").await?.as_str(), cx.get("f").await?),
            (mode, b"new".to_vec())
        );
    }
    Ok(())
}

async fn a_link_is_written_through(cx: Cx) -> CaseResult {
    cx.ok("mkdir real; echo old >real/t; chmod 755 real/t; ln -s real/t f; ln -s f g")
        .await?;
    for name in ["f", "g"] {
        cx.sandbox.write(cx.path(name), name.to_owned()).await?;
        check_eq!(cx.get("real/t").await?, name.as_bytes().to_vec());
    }
    check_eq!(
        cx.ok("readlink f; readlink g; ls -A . real").await?,
        "real/t\nf\n.:\nf\ng\nreal\n\nreal:\nt\n"
    );
    check_eq!(cx.mode("real/t").await?, "755");
    Ok(())
}

async fn a_dangling_link_gets_its_target(cx: Cx) -> CaseResult {
    cx.ok("mkdir real; ln -s real/t f").await?;
    cx.sandbox.write(cx.path("f"), "x").await?;
    check_eq!(cx.ok("readlink f; cat real/t").await?, "real/t\nx");
    Ok(())
}

async fn hard_links_stay_together(cx: Cx) -> CaseResult {
    cx.ok("echo old >f; ln f g").await?;
    cx.sandbox.write(cx.path("f"), "new").await?;
    check_eq!(cx.get("g").await?, b"new".to_vec());
    Ok(())
}

async fn the_owner_is_the_sandboxes_user(cx: Cx) -> CaseResult {
    cx.sandbox.write(cx.path("d/f"), "x").await?;
    let owners = cx.ok("stat -c %u d; stat -c %u d/f; id -u").await?;
    let owners: Vec<&str> = owners.split_whitespace().collect();
    check!(
        owners.len() == 3 && owners.iter().all(|o| *o == owners[2]),
        "{owners:?}"
    );
    Ok(())
}

async fn a_directory_is_refused_and_stays(cx: Cx) -> CaseResult {
    cx.ok("mkdir d e; echo keep >d/k; ln -s d l").await?;
    for name in ["d", "e", "d/", "l"] {
        refused(
            cx.sandbox.write(cx.path(name), "x").await,
            ErrorKind::IsADirectory,
        )?;
    }
    check_eq!(
        cx.ok("cat d/k; ls -A d; test -d e && test -L l && echo still")
            .await?,
        "keep\nk\nstill\n"
    );
    Ok(())
}

async fn below_a_file_is_an_error_and_the_file_stays(cx: Cx) -> CaseResult {
    cx.put([("f", b"keep")]).await?;
    refused(
        cx.sandbox.write(cx.path("f/x"), "y").await,
        ErrorKind::NotADirectory,
    )?;
    check_eq!(cx.get("f").await?, b"keep".to_vec());
    Ok(())
}

async fn create_new_makes_a_file(cx: Cx) -> CaseResult {
    cx.sandbox.create_new(cx.path("d/f"), "x\n").await?;
    check_eq!(cx.get("d/f").await?, b"x\n".to_vec());
    Ok(())
}

async fn create_new_refuses_what_is_there(cx: Cx) -> CaseResult {
    cx.ok("echo old >f; : >e; ln -s f l").await?;
    for name in ["f", "e", "l"] {
        refused(
            cx.sandbox.create_new(cx.path(name), "x").await,
            ErrorKind::AlreadyExists,
        )?;
    }
    check_eq!(cx.ok("cat f e").await?, "old\n");
    Ok(())
}

async fn of_many_create_new_at_once_one_wins(cx: Cx) -> CaseResult {
    let calls = (0..10).map(|i| cx.sandbox.create_new(cx.path("f"), format!("{i}")));
    let results = join_all(calls).await;
    let winners: Vec<usize> = (0..10).filter(|i| results[*i].is_ok()).collect();
    check_eq!(winners.len(), 1, "winners {winners:?}");
    for result in results {
        if let Err(e) = result {
            check_eq!(e.kind(), ErrorKind::AlreadyExists);
        }
    }
    check_eq!(cx.get("f").await?, winners[0].to_string().into_bytes());
    Ok(())
}

async fn a_reader_never_sees_half_a_file(cx: Cx) -> CaseResult {
    const SIZE: usize = 150_000;
    cx.sandbox.write(cx.path("f"), vec![b'a'; SIZE]).await?;
    let writer = async {
        for i in 0..12 {
            cx.sandbox.write(cx.path("f"), vec![b'a' + i; SIZE]).await?;
        }
        Ok::<_, Failure>(())
    };
    let reader = async {
        for _ in 0..24 {
            let bytes = cx.get("f").await?;
            check!(
                bytes.len() == SIZE && bytes.iter().all(|b| *b == bytes[0]),
                "{} bytes, not all the same",
                bytes.len()
            );
        }
        Ok::<_, Failure>(())
    };
    let (written, read) = tokio::join!(writer, reader);
    written?;
    read
}

async fn of_many_writes_at_once_one_is_whole(cx: Cx) -> CaseResult {
    let writes = (b'a'..=b'j').map(|c| cx.sandbox.write(cx.path("f"), vec![c; 100_000]));
    for result in join_all(writes).await {
        result?;
    }
    let bytes = cx.get("f").await?;
    check!(
        bytes.len() == 100_000 && bytes.iter().all(|b| *b == bytes[0]),
        "{} bytes, mixed",
        bytes.len()
    );
    check_eq!(cx.ok("ls -A").await?, "f\n");
    Ok(())
}

async fn a_directory_that_cannot_be_written_is_no_obstacle(cx: Cx) -> CaseResult {
    cx.ok("mkdir d; echo old >d/f; chmod 555 d").await?;
    let written = cx.sandbox.write(cx.path("d/f"), "new").await;
    check_eq!(cx.ok("chmod 755 d; ls -A d").await?, "f\n");
    written?;
    check_eq!(cx.get("d/f").await?, b"new".to_vec());
    Ok(())
}

async fn rights_are_those_of_the_user(cx: Cx) -> CaseResult {
    cx.ok("echo keep >f; chmod 444 f; mkdir d; chmod 555 d")
        .await?;
    refused(
        cx.sandbox.write(cx.path("f"), "x").await,
        ErrorKind::PermissionDenied,
    )?;
    refused(
        cx.sandbox.write(cx.path("d/new"), "x").await,
        ErrorKind::PermissionDenied,
    )?;
    refused(
        cx.sandbox.create_new(cx.path("d/new"), "x").await,
        ErrorKind::PermissionDenied,
    )?;
    check_eq!(cx.ok("cat f; chmod 755 d; ls -A d").await?, "keep\n");
    Ok(())
}

async fn a_fifo_does_not_block(cx: Cx) -> CaseResult {
    cx.ok("mkfifo p").await?;
    let call = cx.sandbox.write(cx.path("p"), "x");
    check!(
        tokio::time::timeout(Duration::from_secs(10), call)
            .await
            .is_ok(),
        "it blocks"
    );
    Ok(())
}

async fn a_device_is_refused_and_stays(cx: Cx) -> CaseResult {
    for device in ["/dev/null", "/dev/zero"] {
        check!(cx.sandbox.upload(device, "x").await.is_err(), "{device}");
        check!(cx.sandbox.download(device).await.is_err(), "{device}");
        let read = cx.sandbox.read(device, ReadOptions::default()).await;
        let calls = [
            cx.sandbox.write(device, "x").await,
            cx.sandbox.create_new(device, "x").await,
            cx.sandbox.edit(device, "x", "y", false).await.map(drop),
            read.map(drop),
        ];
        for call in calls {
            refused(call, ErrorKind::InvalidPath)?;
        }
        let r = cx.raw(&format!("[ -c {device} ] && echo yes")).await?;
        check_eq!(r.stdout, "yes\n", "{device}");
    }
    Ok(())
}

async fn nothing_else_is_left(cx: Cx) -> CaseResult {
    cx.sandbox.write(cx.path("f"), "x").await?;
    cx.sandbox.write(cx.path("f"), "y").await?;
    cx.sandbox.create_new(cx.path("g"), "z").await?;
    let _ = cx.sandbox.create_new(cx.path("g"), "again").await;
    check_eq!(cx.ok("ls -A").await?, "f\ng\n");
    Ok(())
}

async fn a_failed_write_leaves_nothing_else(cx: Cx) -> CaseResult {
    cx.ok("echo keep >f; chmod 444 f; mkdir d").await?;
    for name in ["f", "d", "f/x"] {
        check!(
            cx.sandbox.write(cx.path(name), "x").await.is_err(),
            "{name} can be written"
        );
    }
    check_eq!(cx.ok("ls -A . d").await?, ".:\nd\nf\n\nd:\n");
    Ok(())
}
