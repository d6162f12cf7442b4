//! Faults in what comes out of a command.

use std::sync::atomic::Ordering;

use sandbox_core::Status;

use super::{Fault, SEEN, none};
use crate::broken::{Hooks, whole};

pub(super) fn all() -> Vec<Fault> {
    let bytes = |from, name, change: fn(Vec<u8>) -> Vec<u8>| Fault {
        from,
        name,
        groups: &["output"],
        hooks: Hooks {
            bytes: Some(change),
            ..none()
        },
    };
    vec![
        bytes("B001", "the final newline is lost", |mut b| {
            b.pop_if(|b| *b == b'\n');
            b
        }),
        bytes(
            "B001",
            "a last line without a newline never arrives",
            |mut b| {
                let end = b.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
                b.truncate(end);
                b
            },
        ),
        bytes("B002", "blank lines are dropped", |b| {
            let text: Vec<&[u8]> = b
                .split_inclusive(|b| *b == b'\n')
                .filter(|l| *l != b"\n")
                .collect();
            text.concat()
        }),
        bytes("B002", "blank lines are doubled", |b| {
            let lines = b.split_inclusive(|b| *b == b'\n');
            lines
                .flat_map(|l| if l == b"\n" { &b"\n\n"[..] } else { l }.to_vec())
                .collect()
        }),
        bytes("B003", "a carriage return becomes a line end", |b| {
            b.into_iter()
                .map(|b| if b == b'\r' { b'\n' } else { b })
                .collect()
        }),
        bytes("B003", "carriage returns are dropped", |b| {
            b.into_iter().filter(|b| *b != b'\r').collect()
        }),
        bytes("B125", "NUL is dropped", |b| {
            b.into_iter().filter(|b| *b != 0).collect()
        }),
        bytes("B022", "bytes that are no UTF-8 are replaced", |b| {
            String::from_utf8_lossy(&b).into_owned().into_bytes()
        }),
        bytes("B022", "output that is no UTF-8 is lost", |b| {
            String::from_utf8(b).unwrap_or_default().into_bytes()
        }),
        bytes("B023", "a character at the edge of a chunk is torn", |b| {
            b.chunks(4096)
                .map(String::from_utf8_lossy)
                .collect::<String>()
                .into_bytes()
        }),
        bytes("B030", "output is trimmed", |b| b.trim_ascii().to_vec()),
        bytes("B029", "escape sequences are stripped", |b| {
            let mut inside = false;
            b.into_iter()
                .filter(|b| {
                    let dropped = inside || *b == 0x1b;
                    inside = dropped && *b != b'm';
                    !dropped
                })
                .collect()
        }),
        bytes(
            "B073",
            "text is unescaped as if it were HTML",
            |b| match String::from_utf8(b) {
                Ok(text) => text.replace("&lt;", "<").replace("&amp;", "&").into_bytes(),
                Err(e) => e.into_bytes(),
            },
        ),
        bytes("B006", "a line ends at 64 KiB", |b| {
            let lines = b.split_inclusive(|b| *b == b'\n');
            lines
                .flat_map(|l| if l.len() > 65_536 { &l[..65_536] } else { l }.to_vec())
                .collect()
        }),
        bytes(
            "B026",
            "the middle of a burst is lost without a word",
            |mut b| {
                if b.len() > 300_000 {
                    b.drain(100_000..200_000);
                }
                b
            },
        ),
        bytes(
            "B013",
            "a carriage return is put in as by a terminal",
            |b| {
                b.into_iter()
                    .flat_map(|b| {
                        if b == b'\n' {
                            vec![b'\r', b'\n']
                        } else {
                            vec![b]
                        }
                    })
                    .collect()
            },
        ),
        Fault {
            from: "B019",
            name: "a cut is not told",
            groups: &["output"],
            hooks: Hooks {
                response: Some(|_, r| {
                    r.stdout = whole(r.stdout.bytes().to_vec());
                    r.stderr = whole(r.stderr.bytes().to_vec());
                }),
                ..none()
            },
        },
        Fault {
            from: "B019",
            name: "only the head of long output is kept",
            groups: &["output"],
            hooks: Hooks {
                bytes: Some(|mut b| {
                    b.truncate(512);
                    b
                }),
                ..none()
            },
        },
        Fault {
            from: SEEN,
            name: "stderr is lost",
            groups: &["output"],
            hooks: Hooks {
                response: Some(|_, r| r.stderr = whole(Vec::new())),
                ..none()
            },
        },
        Fault {
            from: "B027",
            name: "stderr comes in stdout though it is said to be apart",
            groups: &["output"],
            hooks: Hooks {
                response: Some(|_, r| {
                    let both = [r.stdout.bytes().as_ref(), r.stderr.bytes()].concat();
                    (r.stdout, r.stderr) = (whole(both), whole(Vec::new()));
                }),
                ..none()
            },
        },
        Fault {
            from: "B027",
            name: "merged output comes stream after stream",
            groups: &["output"],
            hooks: Hooks {
                command: Some(|c| c.merge_stderr = false),
                response: Some(|c, r| {
                    if c.merge_stderr {
                        let both = [r.stdout.bytes().as_ref(), r.stderr.bytes()].concat();
                        (r.stdout, r.stderr, r.ordered) = (whole(both), whole(Vec::new()), None);
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B017",
            name: "now and then output is empty",
            groups: &["execute", "limits"],
            hooks: Hooks {
                execute: Some(|broken, c| {
                    Box::pin(async move {
                        let mut r = broken.inner.execute(&c).await?;
                        if broken.every(20) {
                            r.stdout = whole(Vec::new());
                        }
                        Ok(r)
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: "B017",
            name: "commands at once get each other's output",
            groups: &["execute"],
            hooks: Hooks {
                execute: Some(|broken, c| {
                    Box::pin(async move {
                        let at = broken.count.fetch_add(1, Ordering::SeqCst);
                        let mut r = broken.inner.execute(&c).await?;
                        if broken.count.load(Ordering::SeqCst) > at + 3 {
                            r.stdout = whole(b"running-0\n".to_vec());
                        }
                        Ok(r)
                    })
                }),
                ..none()
            },
        },
        Fault {
            from: "B021",
            name: "what was printed before a timeout is thrown away",
            groups: &["timeout"],
            hooks: Hooks {
                response: Some(|_, r| {
                    if r.status == Status::TimedOut {
                        (r.stdout, r.stderr, r.ordered) =
                            (whole(Vec::new()), whole(Vec::new()), None);
                    }
                }),
                ..none()
            },
        },
        Fault {
            from: "B031",
            name: "the output of a failed command is thrown away",
            groups: &["execute", "output"],
            hooks: Hooks {
                response: Some(|_, r| {
                    if !r.success() {
                        (r.stdout, r.stderr, r.ordered) =
                            (whole(Vec::new()), whole(Vec::new()), None);
                    }
                }),
                ..none()
            },
        },
    ]
}
