//! Faults in moving files in and out.

use sandbox_core::{Error, ErrorKind, SandboxPath};

use super::{Fault, SEEN, none};
use crate::broken::Hooks;

pub(super) fn all() -> Vec<Fault> {
    [uploads(), paths(), downloads()].concat()
}

fn before(from: &'static str, name: &'static str, text: &'static str) -> Fault {
    let hooks = Hooks {
        before_upload: Some(text),
        ..none()
    };
    Fault {
        from,
        name,
        groups: &["upload"],
        hooks,
    }
}

fn after(from: &'static str, name: &'static str, text: &'static str) -> Fault {
    let hooks = Hooks {
        after_upload: Some(text),
        ..none()
    };
    Fault {
        from,
        name,
        groups: &["upload"],
        hooks,
    }
}

fn uploads() -> Vec<Fault> {
    vec![
        Fault {
            from: "B091",
            name: "one bad file fails the whole batch",
            groups: &["upload"],
            hooks: Hooks {
                uploaded: Some(|results| {
                    if let Some(Err(e)) = results.iter().find(|r| r.is_err()) {
                        let kind = e.kind();
                        let fail = |_| Err(Error::new(kind, "a file of the batch failed"));
                        *results = (0..results.len()).map(fail).collect();
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: SEEN,
            name: "results of a batch come in the wrong order",
            groups: &["upload"],
            hooks: Hooks {
                uploaded: Some(|results| results.reverse()),
                ..none()
            },
        },
        Fault {
            from: SEEN,
            name: "a batch with a bad file gets one answer",
            groups: &["upload"],
            hooks: Hooks {
                uploaded: Some(|results| {
                    if results.iter().any(Result::is_err) {
                        results.truncate(1);
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B169",
            name: "a failed upload is a success",
            groups: &["upload"],
            hooks: Hooks {
                uploaded: Some(|results| results.iter_mut().for_each(|r| *r = Ok(()))),
                ..none()
            },
        },
        Fault {
            from: "B087",
            name: "all failures are of one kind",
            groups: &["upload"],
            hooks: Hooks {
                uploaded: Some(|results| {
                    for r in results.iter_mut().filter(|r| r.is_err()) {
                        *r = Err(Error::new(ErrorKind::Unexpected, "the upload failed"));
                    }
                }),
                ..none()
            },
        },
        before(
            "B082",
            "an upload replaces a directory",
            "[ ! -d \"$1\" ] || rm -rf -- \"$1\"",
        ),
        before(
            "B082",
            "an upload replaces a file by a directory",
            "d=${1%/*}; [ ! -f \"$d\" ] || rm -f -- \"$d\"",
        ),
        before(
            "B118",
            "an upload replaces a link and forgets the mode",
            "[ -d \"$1\" ] || rm -f -- \"$1\"",
        ),
        before(
            "B075",
            "an upload has more rights than the user",
            "chmod u+w -- \"${1%/*}\" \"$1\"",
        ),
        after(
            "B077",
            "every file is made executable",
            "chmod 755 -- \"$1\"",
        ),
        after(
            "B078",
            "a new file is for its owner only",
            "chmod 600 -- \"$1\"",
        ),
        after(
            "B077",
            "a mode is taken as a decimal number",
            "[ ! -f \"$1\" ] || chmod 420 -- \"$1\"",
        ),
        after(
            "B079",
            "parents that are there get another mode",
            "chmod 755 -- \"${1%/*}\"",
        ),
        after(
            "B101",
            "a temporary file is left",
            "cp -- \"$1\" \"$1.tmp\"",
        ),
        after("B074", "a newline is added at the end", "echo >>\"$1\""),
        after(
            "B078",
            "a new file is from 1970",
            "touch -d @0 -- \"$1\" || touch -t 197001010000 -- \"$1\"",
        ),
        Fault {
            from: "B102",
            name: "line endings are changed on the way in",
            groups: &["upload"],
            hooks: Hooks {
                upload: Some(|file| {
                    let text: Vec<u8> = file
                        .content
                        .iter()
                        .copied()
                        .filter(|b| *b != b'\r')
                        .collect();
                    file.content = text.into();
                }),
                ..none()
            },
        },
        Fault {
            from: "B090",
            name: "a large file is cut at a megabyte",
            groups: &["upload"],
            hooks: Hooks {
                upload: Some(|file| file.content.truncate(1 << 20)),
                ..none()
            },
        },
        Fault {
            from: "B103",
            name: "a byte order mark is dropped",
            groups: &["upload", "write"],
            hooks: Hooks {
                upload: Some(|file| {
                    if let Some(rest) = file.content.strip_prefix(b"\xef\xbb\xbf") {
                        file.content = rest.to_vec().into();
                    }
                }),
                ..none()
            },
        },
    ]
}

/// A server that reads more into a path than a name.
fn paths() -> Vec<Fault> {
    let path = |from, name, change| Fault {
        from,
        name,
        groups: &["paths"],
        hooks: Hooks {
            upload: Some(change),
            ..none()
        },
    };
    vec![
        path("B069", "variables in a path are expanded", |file| {
            set(&mut file.path, |p| {
                p.replace("$HOME", "/root").replace("$undefined", "")
            });
        }),
        path("B070", "percent codes in a path are decoded", |file| {
            set(&mut file.path, |p| {
                p.replace("%41", "A").replace("%2F", "/")
            });
        }),
        path("B071", "a path is cut at what begins a query", |file| {
            set(&mut file.path, |p| {
                p.split(['?', '#']).next().unwrap_or_default().to_owned()
            });
        }),
        path("B071", "a plus in a path is a space", |file| {
            set(&mut file.path, |p| p.replace('+', " "));
        }),
        path(
            "B071",
            "characters beyond ASCII are replaced in a path",
            |file| {
                set(&mut file.path, |p| {
                    p.chars()
                        .map(|c| if c.is_ascii() { c } else { '?' })
                        .collect()
                });
            },
        ),
        path("B070", "a quote ends a name", |file| {
            set(&mut file.path, |p| {
                p.split('"').next().unwrap_or_default().to_owned()
            });
        }),
        path("B067", "spaces around a name are trimmed", |file| {
            set(&mut file.path, |p| {
                p.replace("/ ", "/").trim_end().to_owned()
            });
        }),
        Fault {
            from: "B058",
            name: "a path becomes shell code",
            groups: &["paths"],
            hooks: Hooks {
                delete: Some(|broken, path| {
                    Box::pin(async move {
                        let text = format!("rm -rf '{}'", path.as_str());
                        let command = sandbox_core::Command::shell(text);
                        sandbox_core::call::execute(&*broken.inner, command)
                            .await
                            .map(|_| ())
                    })
                }),
                ..none()
            },
        },
    ]
}

fn set(path: &mut SandboxPath, change: fn(&str) -> String) {
    if let Ok(changed) = SandboxPath::new(change(path.as_str())) {
        *path = changed;
    }
}

fn downloads() -> Vec<Fault> {
    let download = |from, name, change| Fault {
        from,
        name,
        groups: &["download"],
        hooks: Hooks {
            downloaded: Some(change),
            ..none()
        },
    };
    vec![
        download("B095", "a missing file is an empty one", |results| {
            for r in results.iter_mut().filter(|r| r.is_err()) {
                *r = Ok(bytes::Bytes::new());
            }
        }),
        download(
            "B091",
            "one missing file fails the whole batch",
            |results| {
                if results.iter().any(Result::is_err) {
                    let fail = |_| Err(Error::new(ErrorKind::NotFound, "no such file"));
                    *results = (0..results.len()).map(fail).collect();
                }
            },
        ),
        download("B114", "an empty file is an error", |results| {
            for r in results.iter_mut() {
                if r.as_ref().is_ok_and(bytes::Bytes::is_empty) {
                    *r = Err(Error::new(ErrorKind::NotFound, "no content"));
                }
            }
        }),
        download("B022", "bytes that are no UTF-8 are replaced", |results| {
            for b in results.iter_mut().flatten() {
                *b = String::from_utf8_lossy(b).into_owned().into();
            }
        }),
        download(
            "B087",
            "every failure says that nothing is there",
            |results| {
                for r in results.iter_mut().filter(|r| r.is_err()) {
                    *r = Err(Error::new(ErrorKind::NotFound, "no such file"));
                }
            },
        ),
        download("B089", "a download ends at a megabyte", |results| {
            for b in results.iter_mut().flatten() {
                b.truncate(1 << 20);
            }
        }),
        download(
            "B086",
            "results of a batch come in the wrong order",
            |results| results.reverse(),
        ),
    ]
}
