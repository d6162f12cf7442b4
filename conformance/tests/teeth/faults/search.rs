//! Faults in the operations that look for files: ls, glob, grep; and in delete.

use sandbox_core::files::{EntryKind, Gap, GlobMatches, GrepMatches, Listing};
use sandbox_core::{Command, Error, ErrorKind, Result, SandboxPath, call, derive};

use super::{Fault, SEEN, fault, none};
use crate::broken::Hooks;

pub(super) fn all() -> Vec<Fault> {
    [listing(), globbing(), grepping(), deleting()].concat()
}

fn listing() -> Vec<Fault> {
    vec![
        fault(
            "B126",
            "ls of what is not there is empty",
            &["ls"],
            Hooks {
                ls: Some(|b, path| {
                    Box::pin(
                        async move { Ok(derive::ls(&*b.inner, &path).await.unwrap_or_default()) },
                    )
                }),
                ..none()
            },
        ),
        fault(
            "B133",
            "ls hides what begins with a dot",
            &["ls"],
            Hooks {
                ls: Some(|b, path| {
                    Box::pin(async move {
                        let mut all = derive::ls(&*b.inner, &path).await?;
                        all.entries
                            .retain(|e| e.path.file_name().is_some_and(|n| !n.starts_with('.')));
                        Ok(all)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B138",
            "ls follows links",
            &["ls"],
            Hooks {
                ls: Some(|b, path| {
                    Box::pin(async move {
                        let mut all = derive::ls(&*b.inner, &path).await?;
                        for entry in &mut all.entries {
                            if entry.kind == EntryKind::Symlink
                                && b.sh("test -d \"$1\"", &entry.path).await?.success()
                            {
                                entry.kind = EntryKind::Dir;
                            }
                        }
                        Ok(all)
                    })
                }),
                ..none()
            },
        ),
        fault(
            SEEN,
            "ls gives names in place of paths",
            &["ls"],
            Hooks {
                ls: Some(|b, path| {
                    Box::pin(async move {
                        let mut all = derive::ls(&*b.inner, &path).await?;
                        for entry in &mut all.entries {
                            entry.path = SandboxPath::new(format!(
                                "/{}",
                                entry.path.file_name().unwrap_or("")
                            ))?;
                        }
                        Ok(Listing::new(all.entries, all.gaps))
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B019",
            "a long listing is cut without a word",
            &["ls"],
            Hooks {
                ls: Some(|b, path| {
                    Box::pin(async move {
                        let mut all = derive::ls(&*b.inner, &path).await?;
                        all.entries.truncate(1000);
                        Ok(all)
                    })
                }),
                ..none()
            },
        ),
    ]
}

fn globbing() -> Vec<Fault> {
    vec![
        fault(
            "B129",
            "a failed glob is an empty one",
            &["glob"],
            Hooks {
                glob: Some(|b, (pattern, path)| {
                    Box::pin(async move {
                        match derive::glob(&*b.inner, &pattern, &path).await {
                            Err(e) if e.kind() != ErrorKind::InvalidPattern => {
                                Ok(GlobMatches::default())
                            }
                            other => other,
                        }
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B143",
            "a star crosses slashes",
            &["glob"],
            Hooks {
                glob: Some(|b, (pattern, path)| {
                    Box::pin(async move {
                        let pattern = pattern.replace("src/*.", "src/**/*.");
                        derive::glob(&*b.inner, &pattern, &path).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B131",
            "two stars want a directory between",
            &["glob"],
            Hooks {
                glob: Some(|b, (pattern, path)| {
                    Box::pin(async move {
                        let pattern = pattern.replace("**/", "**/*/");
                        derive::glob(&*b.inner, &pattern, &path).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B131",
            "a base name matches only at the top",
            &["glob"],
            Hooks {
                glob: Some(|b, (pattern, path)| {
                    Box::pin(async move {
                        let pattern = if pattern.contains('/') {
                            pattern
                        } else {
                            format!("/{pattern}")
                        };
                        derive::glob(&*b.inner, &pattern, &path).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B133",
            "a star matches hidden names",
            &["glob"],
            Hooks {
                glob: Some(|b, (pattern, path)| {
                    Box::pin(async move {
                        let mut all = derive::glob(&*b.inner, &pattern, &path).await?;
                        if pattern.starts_with('*') && !pattern.contains('/') {
                            let hidden =
                                derive::glob(&*b.inner, &format!(".{pattern}"), &path).await?;
                            all.paths.extend(hidden.paths);
                        }
                        Ok(GlobMatches::new(all.paths, all.gaps))
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B138",
            "glob follows links",
            &["glob"],
            Hooks {
                glob: Some(|b, (pattern, path)| {
                    Box::pin(async move {
                        let mut all = derive::glob(&*b.inner, &pattern, &path).await?;
                        for entry in derive::ls(&*b.inner, &path).await?.entries {
                            if entry.kind == EntryKind::Symlink {
                                let below = derive::glob(&*b.inner, &pattern, &entry.path).await;
                                all.paths.extend(below.unwrap_or_default().paths);
                            }
                        }
                        Ok(GlobMatches::new(all.paths, all.gaps))
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B202",
            "an unreadable directory is not told",
            &["glob"],
            Hooks {
                glob: Some(|b, (pattern, path)| {
                    Box::pin(async move {
                        let all = derive::glob(&*b.inner, &pattern, &path).await?;
                        Ok(GlobMatches::new(all.paths, Vec::new()))
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B134",
            "paths are relative to the root of the search",
            &["glob"],
            Hooks {
                glob: Some(|b, (pattern, path)| {
                    Box::pin(async move {
                        let all = derive::glob(&*b.inner, &pattern, &path).await?;
                        let strip = |p: &SandboxPath| {
                            SandboxPath::new(
                                p.as_str().strip_prefix(path.as_str()).unwrap_or(p.as_str()),
                            )
                        };
                        let paths = all.paths.iter().map(strip).collect::<Result<Vec<_>>>()?;
                        Ok(GlobMatches::new(paths, all.gaps))
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B149",
            "in a byte locale a question mark is one byte",
            &["glob"],
            Hooks {
                glob: Some(|b, (pattern, path)| {
                    Box::pin(async move {
                        let mut all = derive::glob(&*b.inner, &pattern, &path).await?;
                        if pattern.contains('?') {
                            all.paths.retain(|p| p.as_str().is_ascii());
                        }
                        Ok(all)
                    })
                }),
                ..none()
            },
        ),
    ]
}

fn grepping() -> Vec<Fault> {
    vec![
        fault(
            "B126",
            "a failed grep finds nothing",
            &["grep"],
            Hooks {
                grep: Some(|b, (text, path, options)| {
                    Box::pin(async move {
                        match derive::grep(&*b.inner, &text, &path, &options).await {
                            Err(e) if e.kind() != ErrorKind::InvalidPattern => {
                                Ok(GrepMatches::default())
                            }
                            other => other,
                        }
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B137",
            "the text is a regular expression",
            &["grep"],
            Hooks {
                grep: Some(|b, (text, path, options)| {
                    Box::pin(async move {
                        // What `.` matches in a regular expression, near enough.
                        let before = text.split('.').next().filter(|t| !t.is_empty());
                        derive::grep(&*b.inner, before.unwrap_or(&text), &path, &options).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B147",
            "each line of the text is a pattern of its own",
            &["grep"],
            Hooks {
                grep: Some(|b, (text, path, options)| {
                    Box::pin(async move {
                        let text = text.trim_end_matches('\r');
                        derive::grep(&*b.inner, text, &path, &options).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B133",
            "grep skips hidden files",
            &["grep"],
            Hooks {
                grep: Some(|b, (text, path, options)| {
                    Box::pin(async move {
                        let mut all = derive::grep(&*b.inner, &text, &path, &options).await?;
                        all.matches.retain(|m| !m.path.as_str().contains("/."));
                        Ok(all)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B145",
            "grep obeys ignore files",
            &["grep"],
            Hooks {
                grep: Some(|b, (text, path, options)| {
                    Box::pin(async move {
                        let mut all = derive::grep(&*b.inner, &text, &path, &options).await?;
                        all.matches
                            .retain(|m| !m.path.as_str().contains("/node_modules/"));
                        Ok(all)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B127",
            "a binary file is a hit",
            &["grep"],
            Hooks {
                grep: Some(|b, (text, path, options)| {
                    Box::pin(async move {
                        let all = derive::grep(&*b.inner, &text, &path, &options).await?;
                        let mut matches = all.matches;
                        let binary = path.join("n.bin")?;
                        if b.sh("test -e \"$1\"", &binary).await?.success() {
                            let line = format!("Binary file {binary} matches");
                            matches
                                .push(sandbox_core::files::GrepMatch::new(binary, 1, line, false));
                        }
                        Ok(GrepMatches::new(matches, all.gaps))
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B126",
            "a colon in a name ends it",
            &["grep"],
            Hooks {
                grep: Some(|b, (text, path, options)| {
                    Box::pin(async move {
                        let mut all = derive::grep(&*b.inner, &text, &path, &options).await?;
                        for m in &mut all.matches {
                            m.path =
                                SandboxPath::new(m.path.as_str().split(':').next().unwrap_or("/"))?;
                        }
                        Ok(all)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B146",
            "a long line comes whole",
            &["grep"],
            Hooks {
                grep: Some(|b, (text, path, options)| {
                    Box::pin(async move {
                        let mut all = derive::grep(&*b.inner, &text, &path, &options).await?;
                        all.matches.iter_mut().for_each(|m| m.cut = false);
                        Ok(all)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B019",
            "more hits than asked are not told",
            &["grep"],
            Hooks {
                grep: Some(|b, (text, path, options)| {
                    Box::pin(async move {
                        let mut all = derive::grep(&*b.inner, &text, &path, &options).await?;
                        all.gaps.retain(|g| !matches!(g, Gap::MatchLimit(_)));
                        Ok(all)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B019",
            "exactly as many hits as asked count as cut",
            &["grep"],
            Hooks {
                grep: Some(|b, (text, path, options)| {
                    Box::pin(async move {
                        let mut all = derive::grep(&*b.inner, &text, &path, &options).await?;
                        if all.matches.len() as u64 == options.max_count {
                            all.gaps = vec![Gap::MatchLimit(options.max_count)];
                        }
                        Ok(all)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B091",
            "what can't be read is not told",
            &["grep"],
            Hooks {
                grep: Some(|b, (text, path, options)| {
                    Box::pin(async move {
                        let mut all = derive::grep(&*b.inner, &text, &path, &options).await?;
                        all.gaps.retain(|g| !matches!(g, Gap::Unreadable(_)));
                        Ok(all)
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B135",
            "one file as the root finds nothing",
            &["grep"],
            Hooks {
                grep: Some(|b, (text, path, options)| {
                    Box::pin(async move {
                        if b.sh("test -f \"$1\"", &path).await?.success() {
                            return Ok(GrepMatches::default());
                        }
                        derive::grep(&*b.inner, &text, &path, &options).await
                    })
                }),
                ..none()
            },
        ),
    ]
}

fn deleting() -> Vec<Fault> {
    vec![
        fault(
            "B150",
            "deleting what is not there is a success",
            &["delete"],
            Hooks {
                delete: Some(|b, path| {
                    Box::pin(async move {
                        match derive::delete(&*b.inner, &path).await {
                            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
                            other => other,
                        }
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B150",
            "a dangling link is not there",
            &["delete"],
            Hooks {
                delete: Some(|b, path| {
                    Box::pin(async move {
                        if !b.sh("test -e \"$1\"", &path).await?.success() {
                            return Err(Error::new(ErrorKind::NotFound, "no such file"));
                        }
                        derive::delete(&*b.inner, &path).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B203",
            "delete of a link empties its target",
            &["delete"],
            Hooks {
                delete: Some(|b, path| {
                    Box::pin(async move {
                        b.sh("[ ! -L \"$1\" ] || rm -rf -- \"$1\"/* 2>/dev/null", &path)
                            .await?;
                        derive::delete(&*b.inner, &path).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B151",
            "delete follows links inside a tree",
            &["delete"],
            Hooks {
                delete: Some(|b, path| {
                    Box::pin(async move {
                        b.sh(
                            "for l in \"$1\"/*; do [ ! -L \"$l\" ] || rm -rf -- \"$l\"/*; done",
                            &path,
                        )
                        .await?;
                        derive::delete(&*b.inner, &path).await
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B150",
            "what can't be removed is a success",
            &["delete"],
            Hooks {
                delete: Some(|b, path| {
                    Box::pin(async move {
                        match derive::delete(&*b.inner, &path).await {
                            Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(()),
                            other => other,
                        }
                    })
                }),
                ..none()
            },
        ),
        fault(
            "B067",
            "a name is taken as a pattern",
            &["delete"],
            Hooks {
                delete: Some(|b, path| {
                    Box::pin(async move {
                        let dir = path.parent().unwrap_or_else(|| path.clone());
                        let name = path.file_name().unwrap_or_default().to_owned();
                        let text =
                            "cd -- \"$1\" && eval \"set -- $2\" 2>/dev/null && rm -rf -- \"$@\"";
                        if name.contains('*') {
                            let command = Command::shell(text).args([dir.as_str(), &name]);
                            return call::execute(&*b.inner, command).await.map(|_| ());
                        }
                        derive::delete(&*b.inner, &path).await
                    })
                }),
                ..none()
            },
        ),
    ]
}
