//! Modes, owners and links, as root without capabilities and as another user, in commands and in
//! file operations alike.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use sandbox_core::{Client, Command, ErrorKind, Sandbox, SandboxSpec};
use sandbox_mock::{MockConfig, MockProvider};

async fn sandbox(user: &str) -> Sandbox {
    Client::new(MockProvider::with(MockConfig::new().user(user)))
        .create(SandboxSpec::new())
        .await
        .unwrap()
}

async fn out(s: &Sandbox, text: &str) -> String {
    s.execute(Command::shell(text).merge_stderr())
        .await
        .unwrap()
        .output()
}

#[tokio::test]
async fn number_0_is_no_exception() {
    for user in ["root", "1000"] {
        let s = sandbox(user).await;
        out(
            &s,
            "echo x >f; chmod 000 f; mkdir d; echo y >d/g; chmod 000 d",
        )
        .await;
        for text in [
            "cat f",
            "echo z >f",
            "echo z >>f",
            "cat d/g",
            "ls d",
            "cd d",
            "echo >d/h",
        ] {
            let r = s.execute(text).await.unwrap();
            assert!(!r.success(), "{user}: {text}");
            let told = r.stderr.to_text().to_lowercase();
            assert!(told.contains("permission denied"), "{user}: {text}: {told}");
        }
        let denied = [
            s.download("/workspace/f").await.err(),
            s.upload("/workspace/f", "z").await.err(),
            s.download("/workspace/d/g").await.err(),
            s.upload("/workspace/d/h", "z").await.err(),
            s.ls("/workspace/d").await.err(),
            s.write("/workspace/f", "z").await.err(),
            s.edit("/workspace/f", "x", "z", false).await.err(),
        ];
        for e in denied {
            assert_eq!(e.unwrap().kind(), ErrorKind::PermissionDenied, "{user}");
        }
        // A directory that can't be emptied is not removed; one's own file is.
        let d = s.delete("/workspace/d").await.unwrap_err();
        assert_eq!(d.kind(), ErrorKind::PermissionDenied);
        s.delete("/workspace/f").await.unwrap();
        assert_eq!(out(&s, "chmod 700 d; cat d/g").await, "y\n");
    }
}

#[tokio::test]
async fn another_user_may_do_what_modes_say() {
    let s = sandbox("1000").await;
    for text in [
        "echo x >/etc/x",
        "rm /etc/passwd",
        "echo x >>/etc/passwd",
        "mkdir /x",
        "ls /root",
        "chmod 777 /etc",
    ] {
        assert!(!s.execute(text).await.unwrap().success(), "{text}");
    }
    for text in [
        "head -1 /etc/passwd",
        "echo x >/tmp/x",
        "echo x >~/x",
        "echo x >f",
    ] {
        let r = s.execute(text).await.unwrap();
        assert!(r.success(), "{text}: {r:?}");
    }
    assert_eq!(
        s.upload("/etc/x", "x").await.unwrap_err().kind(),
        ErrorKind::PermissionDenied
    );
    // In a sticky directory only one's own can be removed.
    let other = Command::shell("rm -f /tmp/x || mv /tmp/x /tmp/y").user("nobody");
    assert!(!s.execute(other).await.unwrap().success());
    let reads = Command::shell("cat /tmp/x; echo >>/tmp/x").user("nobody");
    let r = s.execute(reads).await.unwrap();
    assert_eq!((r.stdout.to_text().as_str(), r.success()), ("x\n", false));
    assert!(s.execute("rm /tmp/x").await.unwrap().success());
}

#[tokio::test]
async fn modes_survive_what_writes_a_file() {
    let s = sandbox("root").await;
    out(&s, "echo a >f; chmod 640 f; echo x >src; chmod 755 src").await;
    for text in [
        "echo b >f",
        "echo c >>f",
        "sed -i s/b/d/ f",
        "cp src f",
        "cat src | tee f >/dev/null",
    ] {
        out(&s, text).await;
        assert_eq!(out(&s, "stat -c %a f").await, "640\n", "{text}");
    }
    s.upload("/workspace/f", "up").await.unwrap();
    s.write("/workspace/f", "written").await.unwrap();
    s.edit("/workspace/f", "written", "edited", false)
        .await
        .unwrap();
    assert_eq!(out(&s, "stat -c %a f; cat f").await, "640\nedited");
    assert_eq!(out(&s, "cp src new; stat -c %a new").await, "755\n");
    assert_eq!(
        out(&s, "umask; umask 077; echo >u; mkdir ud; stat -c %a u ud").await,
        "0022\n600\n700\n"
    );
    s.upload("/workspace/p/q/new", "x").await.unwrap();
    assert_eq!(out(&s, "stat -c %a p p/q p/q/new").await, "755\n755\n644\n");
}

#[tokio::test]
async fn links_lead_where_they_say() {
    let s = sandbox("root").await;
    out(&s, "echo a >f; ln -s f l; ln -s l ll; ln -s /nowhere dead; ln -s loop loop; mkdir d; ln -s d dl").await;
    assert_eq!(&s.download("/workspace/ll").await.unwrap()[..], b"a\n");
    s.upload("/workspace/ll", "b\n").await.unwrap();
    assert_eq!(out(&s, "cat f; readlink l").await, "b\nf\n");
    let looped = s.download("/workspace/loop").await.unwrap_err();
    assert!(looped.message().contains("symbolic links"), "{looped}");
    assert_eq!(
        s.download("/workspace/dead").await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    s.upload("/workspace/dl/in", "x").await.unwrap();
    assert_eq!(out(&s, "cat d/in").await, "x");
    // A link is removed, not what it leads to.
    s.delete("/workspace/dl/").await.unwrap();
    s.delete("/workspace/dead").await.unwrap();
    assert_eq!(out(&s, "cat d/in").await, "x");
    assert_eq!(
        s.create_new("/workspace/l", "x").await.unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
}

#[tokio::test]
async fn every_name_works_in_file_operations() {
    let s = sandbox("1000").await;
    let names = [
        "x'; touch pwned; '",
        "$(touch pwned)",
        "a$HOME.txt",
        "q\"uote",
        "new\nline",
        "a b+c%41#?x=1",
        "-n",
        "--help",
        "*",
        "\\",
        "tab\t",
        "é",
        "\u{7f}",
        "\u{1}",
        "\u{200d}",
        " ",
        "...",
    ];
    for name in names {
        let path = format!("/workspace/odd/{name}");
        s.upload(&path, name).await.unwrap();
        assert_eq!(s.download(&path).await.unwrap(), name.as_bytes());
    }
    let listed = s.ls("/workspace/odd").await.unwrap();
    assert_eq!(listed.entries.len(), names.len());
    assert_eq!(s.ls("/workspace").await.unwrap().entries.len(), 1);
    s.delete("/workspace/odd").await.unwrap();
    assert!(s.ls("/workspace").await.unwrap().entries.is_empty());
    let long = format!("/workspace/{}", "n".repeat(256));
    assert_eq!(
        s.upload(long, "x").await.unwrap_err().kind(),
        ErrorKind::InvalidPath
    );
}

#[tokio::test]
async fn the_budget_is_one_for_all_files() {
    let provider = MockProvider::with(MockConfig::new().memory(1 << 20));
    let s = Client::new(provider)
        .create(SandboxSpec::new())
        .await
        .unwrap();
    let e = s.upload("/tmp/big", vec![0; 2 << 20]).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::LimitExceeded);
    s.upload("/tmp/a", vec![0; 900 << 10]).await.unwrap();
    let told = out(&s, "cp /tmp/a /tmp/b").await;
    assert!(told.contains("No space left"), "{told}");
    s.delete("/tmp/a").await.unwrap();
    s.upload("/tmp/b", vec![0; 900 << 10]).await.unwrap();
}
