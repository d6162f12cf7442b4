//! Faults in the life of a sandbox and in what it claims.

use std::sync::atomic::Ordering;

use sandbox_core::{Error, ErrorKind};

use super::{Fault, SEEN, none};
use crate::broken::Hooks;

pub(super) fn all() -> Vec<Fault> {
    let life = |from, name, hooks| Fault {
        from,
        name,
        groups: &["lifecycle", "ownership"],
        hooks,
    };
    let claim = |name, claims| Fault {
        from: SEEN,
        name,
        groups: &["capabilities", "ls", "stream", "output", "execute"],
        hooks: Hooks {
            claims: Some(claims),
            ..none()
        },
    };
    vec![
        life(
            "B157",
            "the second kill is an error",
            Hooks {
                kill: Some(|b, ()| {
                    Box::pin(async move {
                        if b.killed.fetch_add(1, Ordering::SeqCst) > 0 {
                            return Err(Error::new(ErrorKind::Unavailable, "status 404"));
                        }
                        b.inner.kill().await
                    })
                }),
                ..none()
            },
        ),
        life(
            "B157",
            "killing does nothing",
            Hooks {
                kill: Some(|_, ()| Box::pin(async { Ok(()) })),
                ..none()
            },
        ),
        life(
            "B158",
            "dropping a connected handle kills",
            Hooks {
                drop_kills: true,
                ..none()
            },
        ),
        life(
            "B166",
            "connecting makes what is not there",
            Hooks {
                connect_makes: true,
                ..none()
            },
        ),
        life(
            "B157",
            "the list remembers the dead",
            Hooks {
                lists_the_dead: true,
                ..none()
            },
        ),
        life(
            "B159",
            "the list looks at no label",
            Hooks {
                lists_unfiltered: true,
                ..none()
            },
        ),
        life(
            "B186",
            "all share one sandbox",
            Hooks {
                one_sandbox_for_all: true,
                ..none()
            },
        ),
        Fault {
            from: "B165",
            name: "the lifetime is not passed on",
            groups: &["spec"],
            hooks: Hooks {
                spec: Some(|s| s.lifetime = None),
                ..none()
            },
        },
        Fault {
            from: SEEN,
            name: "the variables of the spec are not passed on",
            groups: &["spec"],
            hooks: Hooks {
                spec: Some(|s| s.env.clear()),
                ..none()
            },
        },
        Fault {
            from: SEEN,
            name: "the workdir of the spec is not passed on",
            groups: &["spec"],
            hooks: Hooks {
                spec: Some(|s| s.workdir = None),
                ..none()
            },
        },
        Fault {
            from: SEEN,
            name: "the user of the spec is not passed on",
            groups: &["spec"],
            hooks: Hooks {
                spec: Some(|s| s.user = None),
                ..none()
            },
        },
        claim("stderr is said to be apart and is not kept apart", |c| {
            c.separate_streams = !c.separate_streams;
        }),
        claim("signals are said to be told and are not", |c| {
            c.reports_signals = !c.reports_signals;
        }),
        claim("file owners are said to be otherwise", |c| {
            c.file_owners = !c.file_owners;
        }),
        claim("hard links are said to be otherwise", |c| {
            c.hard_links = !c.hard_links;
        }),
        claim("fifos are said to be otherwise", |c| {
            c.fifos = !c.fifos;
        }),
    ]
}
