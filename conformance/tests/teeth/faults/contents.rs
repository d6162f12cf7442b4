//! Faults in the operations on the content of files: read, write, edit.

use std::time::Duration;

use sandbox_core::files::{EditReport, WriteMode};
use sandbox_core::{
    Error, ErrorKind, FileDownload, FileUpload, ReadPage, Result, SandboxPath, call, derive,
};

use super::{Fault, fault, none};
use crate::broken::{Broken, Hooks};

pub(super) fn all() -> Vec<Fault> {
    [reading(), writing(), editing()].concat()
}

fn reading() -> Vec<Fault> {
    vec![
        fault(
            "B110",
            "a page that was capped continues too far",
            &["read"],
            Hooks {
                read: Some(|b, (path, options)| {
                    Box::pin(async move {
                        let mut page = derive::read(&*b.inner, &path, options).await?;
                        if let ReadPage::Text(p) = &mut page {
                            let next = options.offset.saturating_add(options.limit);
                            p.next_offset = (next < p.total_lines).then_some(next);
                        }
                        Ok(page)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B111",
            "an offset past the end gives nothing",
            &["read"],
            Hooks {
                read: Some(|b, (path, options)| {
                    Box::pin(async move {
                        match derive::read(&*b.inner, &path, options).await {
                            Err(e) if e.kind() == ErrorKind::OffsetPastEnd => Ok(ReadPage::Empty),
                            other => other,
                        }
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B114",
            "an empty file is an error",
            &["read"],
            Hooks {
                read: Some(|b, (path, options)| {
                    Box::pin(async move {
                        match derive::read(&*b.inner, &path, options).await? {
                            ReadPage::Empty => Err(Error::new(ErrorKind::NotText, "no text")),
                            page => Ok(page),
                        }
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B115",
            "bytes are handed out as broken text",
            &["read"],
            Hooks {
                read: Some(|b, (path, options)| {
                    Box::pin(async move {
                        Ok(match derive::read(&*b.inner, &path, options).await? {
                            ReadPage::Binary(bytes) => {
                                let text = String::from_utf8_lossy(&bytes).into_owned();
                                ReadPage::Text(sandbox_core::files::TextPage::new(text, 1, 1, 1))
                            }
                            page => page,
                        })
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B113",
            "lines are numbered already",
            &["read"],
            Hooks {
                read: Some(|b, (path, options)| {
                    Box::pin(async move {
                        let mut page = derive::read(&*b.inner, &path, options).await?;
                        if let ReadPage::Text(p) = &mut page {
                            let lines = p.text.split('\n').zip(p.start_line..);
                            let lines: Vec<String> =
                                lines.map(|(l, n)| format!("{n:6}\t{l}")).collect();
                            p.text = lines.join("\n");
                        }
                        Ok(page)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B030",
            "a page is trimmed",
            &["read"],
            Hooks {
                read: Some(|b, (path, options)| {
                    Box::pin(async move {
                        let mut page = derive::read(&*b.inner, &path, options).await?;
                        if let ReadPage::Text(p) = &mut page {
                            p.text = p.text.trim().to_owned();
                        }
                        Ok(page)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B106",
            "the last newline counts as a line",
            &["read"],
            Hooks {
                read: Some(|b, (path, options)| {
                    Box::pin(async move {
                        let mut page = derive::read(&*b.inner, &path, options).await?;
                        if let ReadPage::Text(p) = &mut page {
                            p.total_lines += 1;
                        }
                        Ok(page)
                    })
                }),
                ..none()
            },
        ),
    ]
}

/// Writes a file as a simple tool does: in place, in one go.
async fn put(b: &Broken, path: &SandboxPath, content: impl Into<bytes::Bytes>) -> Result<()> {
    let files = [FileUpload::new(path.clone(), content)];
    call::upload_files(&*b.inner, &files)
        .await
        .into_iter()
        .collect::<Result<Vec<()>>>()
        .map(|_| ())
}

async fn get(b: &Broken, path: &SandboxPath) -> Result<Vec<u8>> {
    let files = [FileDownload::new(path.clone())];
    let all: Result<Vec<_>> = call::download_files(&*b.inner, &files)
        .await
        .into_iter()
        .collect();
    Ok(all?.concat())
}

fn writing() -> Vec<Fault> {
    vec![
        fault(
            "B118",
            "write replaces link, mode and hard link",
            &["write"],
            Hooks {
                write: Some(|b, (path, content, mode)| {
                    Box::pin(async move {
                        if mode == WriteMode::Overwrite {
                            b.sh("[ -d \"$1\" ] || rm -f -- \"$1\"", &path).await?;
                        }
                        derive::write(&*b.inner, &path, content, mode).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B101",
            "a reader sees half of what is written",
            &["write"],
            Hooks {
                write: Some(|b, (path, content, mode)| {
                    Box::pin(async move {
                        if mode == WriteMode::Overwrite && content.len() > 1000 {
                            put(b, &path, content.slice(..content.len() / 2)).await?;
                            tokio::time::sleep(Duration::from_millis(30)).await;
                        }
                        derive::write(&*b.inner, &path, content, mode).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B074",
            "write adds a newline at the end",
            &["write"],
            Hooks {
                write: Some(|b, (path, content, mode)| {
                    Box::pin(async move {
                        let mut content = content.to_vec();
                        if content.last() != Some(&b'\n') {
                            content.push(b'\n');
                        }
                        derive::write(&*b.inner, &path, content.into(), mode).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B122",
            "write refuses what is only white space",
            &["write"],
            Hooks {
                write: Some(|b, (path, content, mode)| {
                    Box::pin(async move {
                        if content.trim_ascii().is_empty() {
                            return Err(Error::new(
                                ErrorKind::InvalidArgument,
                                "content is required",
                            ));
                        }
                        derive::write(&*b.inner, &path, content, mode).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B122",
            "create_new overwrites",
            &["write"],
            Hooks {
                write: Some(|b, (path, content, _)| {
                    Box::pin(async move {
                        derive::write(&*b.inner, &path, content, WriteMode::Overwrite).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B059",
            "content goes through a here document",
            &["write"],
            Hooks {
                write: Some(|b, (path, content, mode)| {
                    Box::pin(async move {
                        let text = String::from_utf8_lossy(&content);
                        if mode == WriteMode::CreateNew || !text.contains("EOF") {
                            return derive::write(&*b.inner, &path, content, mode).await;
                        }
                        b.sh(&format!("cat >\"$1\" <<'EOF'\n{text}\nEOF"), &path)
                            .await
                            .map(|_| ())
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B063",
            "content of 128 KiB is too long an argument",
            &["write"],
            Hooks {
                write: Some(|b, (path, content, mode)| {
                    Box::pin(async move {
                        if content.len() > 98_000 {
                            return Err(Error::new(
                                ErrorKind::Unexpected,
                                "Argument list too long",
                            ));
                        }
                        derive::write(&*b.inner, &path, content, mode).await
                    })
                }),
                ..none()
            },
        ),
    ]
}

/// An edit as a simple tool does it: read, change, write.
async fn simple_edit(
    b: &Broken,
    path: &SandboxPath,
    change: impl FnOnce(String) -> Result<(String, u64)>,
) -> Result<EditReport> {
    let text = String::from_utf8_lossy(&get(b, path).await?).into_owned();
    let (text, count) = change(text)?;
    put(b, path, text.into_bytes()).await?;
    Ok(EditReport::new(count))
}

fn editing() -> Vec<Fault> {
    vec![
        fault(
            "B119",
            "of edits at once some are lost",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, all)| {
                    Box::pin(async move {
                        let before = get(b, &path).await;
                        let report = derive::edit(&*b.inner, &path, &old, &new, all).await?;
                        let text = String::from_utf8_lossy(&before?).into_owned();
                        if text.contains("<t") {
                            tokio::task::yield_now().await;
                            put(b, &path, text.replace(&old, &new).into_bytes()).await?;
                        }
                        Ok(report)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B121",
            "edit replaces the first of several",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, all)| {
                    Box::pin(async move {
                        match derive::edit(&*b.inner, &path, &old, &new, all).await {
                            Err(e) if e.kind() == ErrorKind::NotUnique => {
                                simple_edit(b, &path, |t| Ok((t.replacen(&old, &new, 1), 1))).await
                            }
                            other => other,
                        }
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B121",
            "edit counts lines, not occurrences",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, all)| {
                    Box::pin(async move {
                        let text =
                            String::from_utf8_lossy(&get(b, &path).await.unwrap_or_default())
                                .into_owned();
                        let lines = text.lines().filter(|l| l.contains(&*old)).count() as u64;
                        let report = derive::edit(&*b.inner, &path, &old, &new, all).await?;
                        Ok(if lines > 0 {
                            EditReport::new(lines)
                        } else {
                            report
                        })
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B201",
            "edit replaces all without being asked",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, _)| {
                    Box::pin(async move { derive::edit(&*b.inner, &path, &old, &new, true).await })
                }),
                ..none()
            },
        ),
        fault(
            "B201",
            "an edit that finds nothing is a success",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, all)| {
                    Box::pin(async move {
                        match derive::edit(&*b.inner, &path, &old, &new, all).await {
                            Err(e) if e.kind() == ErrorKind::NoMatch => Ok(EditReport::new(0)),
                            other => other,
                        }
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B117",
            "new text is a template",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, all)| {
                    Box::pin(async move {
                        let new = new.replace("$&", &old).replace("$$", "$");
                        derive::edit(&*b.inner, &path, &old, &new, all).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B102",
            "old text with LF is not found in a CRLF file",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, all)| {
                    Box::pin(async move {
                        let bytes = get(b, &path).await.unwrap_or_default();
                        if old.contains('\n')
                            && bytes.windows(2).any(|w| w == b"\r\n")
                            && !old.contains('\r')
                        {
                            return Err(Error::new(
                                ErrorKind::NoMatch,
                                "the text is not in the file",
                            ));
                        }
                        derive::edit(&*b.inner, &path, &old, &new, all).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B102",
            "edit makes all line endings alike",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, all)| {
                    Box::pin(async move {
                        let report = derive::edit(&*b.inner, &path, &old, &new, all).await?;
                        simple_edit(b, &path, |t| Ok((t.replace("\r\n", "\n"), report.replaced)))
                            .await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B103",
            "edit replaces bytes that are no UTF-8",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, all)| {
                    Box::pin(async move {
                        let report = derive::edit(&*b.inner, &path, &old, &new, all).await?;
                        simple_edit(b, &path, |t| Ok((t, report.replaced))).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B103",
            "edit drops a byte order mark",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, all)| {
                    Box::pin(async move {
                        let report = derive::edit(&*b.inner, &path, &old, &new, all).await?;
                        if let Some(rest) = get(b, &path).await?.strip_prefix(b"\xef\xbb\xbf") {
                            put(b, &path, rest.to_vec()).await?;
                        }
                        Ok(report)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B106",
            "edit ends the file with a newline",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, all)| {
                    Box::pin(async move {
                        let report = derive::edit(&*b.inner, &path, &old, &new, all).await?;
                        b.sh("[ -z \"$(tail -c 1 -- \"$1\")\" ] || echo >>\"$1\"", &path)
                            .await?;
                        Ok(report)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B118",
            "edit resets the mode",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, all)| {
                    Box::pin(async move {
                        let report = derive::edit(&*b.inner, &path, &old, &new, all).await?;
                        b.sh("chmod 644 -- \"$1\"", &path).await?;
                        Ok(report)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B118",
            "edit replaces a link by a file",
            &["edit"],
            Hooks {
                edit: Some(|b, (path, old, new, all)| {
                    Box::pin(async move {
                        let report = derive::edit(&*b.inner, &path, &old, &new, all).await?;
                        let text = "[ ! -L \"$1\" ] || { cat -- \"$1\" >\"$1.new\" && mv -f -- \"$1.new\" \"$1\"; }";
                        b.sh(text, &path).await?;
                        Ok(report)
                    })
                }),
                ..none()
            },
        ),
    ]
}
