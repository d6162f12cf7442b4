//! Both ways of the file operations, on the tree itself and derived from commands, give the same.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Debug;

use sandbox_core::{Client, GrepOptions, ReadOptions, Result, Sandbox, SandboxSpec};
use sandbox_mock::{MockConfig, MockProvider};

/// A result without what may differ: of an error its kind.
fn plain<T: Debug>(result: Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(e) => format!("error {}", e.kind()),
    }
}

async fn sandbox(config: MockConfig) -> Sandbox {
    let client = Client::new(MockProvider::with(config));
    client.create(SandboxSpec::new()).await.unwrap()
}

async fn all(s: &Sandbox) -> Vec<(&'static str, String)> {
    let setup = "mkdir -p d/e no; echo needle >d/a.txt; printf 'x\\r\\nneedle\\r\\n' >d/e/b.txt; \
        echo secret >no/x; chmod 000 no; ln -s d l; ln -s /none dead; mkfifo fifo; : >empty; \
        printf 'a\\0needle' >bin; echo locked >locked; chmod 000 locked; mkdir ro; echo r >ro/f; chmod 555 ro; \
        touch -d @1000000000 d/a.txt d/e/b.txt";
    let r = s.execute(setup).await.unwrap();
    assert!(r.success(), "{r:?}");
    let w = |path: &str| format!("/workspace/{path}");
    let mut told = Vec::new();
    macro_rules! tell {
        ($what:literal, $call:expr) => {
            told.push(($what, plain($call.await)));
        };
    }
    tell!("ls d", s.ls(w("d/e")));
    tell!("ls link", s.ls(w("l/e")));
    tell!("ls missing", s.ls(w("none")));
    tell!("ls file", s.ls(w("empty")));
    tell!("ls no", s.ls(w("no")));
    tell!("read", s.read(w("d/a.txt"), ReadOptions::default()));
    tell!("read crlf", s.read(w("d/e/b.txt"), ReadOptions::new(1, 5)));
    tell!("read past", s.read(w("d/a.txt"), ReadOptions::new(9, 5)));
    tell!("read empty", s.read(w("empty"), ReadOptions::default()));
    tell!("read binary", s.read(w("bin"), ReadOptions::default()));
    tell!("read dir", s.read(w("d"), ReadOptions::default()));
    tell!("read locked", s.read(w("locked"), ReadOptions::default()));
    tell!("read below no", s.read(w("no/x"), ReadOptions::default()));
    tell!("read dead", s.read(w("dead"), ReadOptions::default()));
    tell!("read fifo", s.read(w("fifo"), ReadOptions::default()));
    tell!("glob name", s.glob("*.txt", "/workspace"));
    tell!("glob path", s.glob("d/**/*.txt", "/workspace"));
    tell!("glob missing", s.glob("*", w("none")));
    tell!(
        "grep",
        s.grep("needle", "/workspace", GrepOptions::default())
    );
    tell!(
        "grep glob",
        s.grep("needle", w("d"), GrepOptions::default().glob("e/*"))
    );
    tell!(
        "grep file",
        s.grep("needle", w("d/a.txt"), GrepOptions::default())
    );
    tell!(
        "grep missing",
        s.grep("needle", w("none"), GrepOptions::default())
    );
    tell!("write new", s.write(w("n/e/w"), "text"));
    tell!("write over", s.write(w("d/a.txt"), "needle two"));
    tell!("write locked", s.write(w("ro/new"), "x"));
    tell!("write dir", s.write(w("d"), "x"));
    tell!("write below file", s.write(w("empty/x"), "x"));
    tell!("create there", s.create_new(w("empty"), "x"));
    tell!("create on dir", s.create_new(w("d"), "x"));
    tell!("create dead", s.create_new(w("dead"), "x"));
    tell!("edit", s.edit(w("d/a.txt"), "two", "2", false));
    tell!(
        "edit crlf",
        s.edit(w("d/e/b.txt"), "x\nneedle", "y\nz", false)
    );
    tell!("edit none", s.edit(w("d/a.txt"), "zz", "2", false));
    tell!("edit twice", s.edit(w("d/a.txt"), "e", "E", false));
    tell!("edit all", s.edit(w("d/a.txt"), "e", "E", true));
    tell!("edit missing", s.edit(w("none"), "e", "E", true));
    tell!("edit locked", s.edit(w("locked"), "e", "E", true));
    tell!("delete link", s.delete(w("l")));
    tell!("delete missing", s.delete(w("none")));
    tell!("delete ro", s.delete(w("ro")));
    tell!("delete dead", s.delete(w("dead")));
    tell!("delete tree", s.delete(w("n")));
    tell!("download", s.download(w("d/a.txt")));
    tell!("download crlf", s.download(w("d/e/b.txt")));
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::create_dir_all(from.path().join("sub/empty")).unwrap();
    std::fs::write(from.path().join("sub/f"), "one").unwrap();
    std::fs::write(from.path().join("g"), [0, 255]).unwrap();
    tell!("upload dir", s.upload_dir(from.path(), w("up/there")));
    tell!("upload dir again", s.upload_dir(from.path(), w("up/there")));
    tell!(
        "upload dir on a file",
        s.upload_dir(from.path(), w("empty"))
    );
    tell!(
        "upload no dir",
        s.upload_dir(from.path().join("none"), w("up"))
    );
    tell!("download dir", s.download_dir(w("up"), to.path()));
    tell!("download dir missing", s.download_dir(w("none"), to.path()));
    tell!(
        "download dir of a file",
        s.download_dir(w("empty"), to.path())
    );
    let got = std::fs::read(to.path().join("there/g"));
    told.push(("downloaded", format!("{got:?}")));
    let left = s
        .execute("find . | sort; stat -c '%a %n' d/a.txt")
        .await
        .unwrap();
    told.push(("left", left.output()));
    told
}

#[tokio::test]
async fn native_and_derived_operations_answer_alike() {
    for user in ["root", "1000"] {
        let config = || MockConfig::new().user(user);
        let native = all(&sandbox(config()).await).await;
        let derived = all(&sandbox(config().hide_families()).await).await;
        let differ: Vec<_> = native
            .iter()
            .zip(&derived)
            .filter(|(n, d)| n != d)
            .collect();
        assert!(differ.is_empty(), "{user}: {differ:#?}");
    }
}
