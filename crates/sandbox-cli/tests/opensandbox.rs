//! The built command on the real `OpenSandbox` server.
//!
//! Needs a Docker engine and the images of `cargo xtask images`. Without them it says
//! `NOT RUN: opensandbox (why)`, and fails where `SANDBOX_REQUIRE` names it or `CI` is set.
#![allow(
    clippy::unwrap_used,
    reason = "a test program, with a harness of its own"
)]

mod support;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use sandbox_testkit::engine::{self, ExecdProfile, OpenSandbox};
use support::tasks::{self, label};
use support::{KEY, code, end, run, sandbox, signal, stdout, test, wait_for};

const IMAGE: &str = "sandbox-busybox:latest";

fn main() -> ExitCode {
    let mut args = Arguments::from_args();
    // They wait more than they work.
    args.test_threads.get_or_insert(4);
    let mut server = None;
    let trials = engine::opensandbox_trials(&[IMAGE], || {
        // Listing them needs none.
        let mut address = SocketAddr::from(([127, 0, 0, 1], 0));
        if !args.list {
            let started = OpenSandbox::start(ExecdProfile::Default).unwrap();
            address = started.address();
            KEY.set(started.key().to_owned()).unwrap();
            server = Some(started);
        }
        all(address)
    });
    let conclusion = libtest_mimic::run(&args, trials);
    drop(server);
    conclusion.exit_code()
}

fn all(server: SocketAddr) -> Vec<Trial> {
    let url = format!("opensandbox://{server}/{IMAGE}");
    let with = |name, body: fn(&str)| {
        let url = url.clone();
        test(name, move || body(&url))
    };
    vec![
        with("bytes_and_exit_codes", tasks::bytes_and_exit_codes),
        with("a_sandbox_s_whole_life", |url| {
            tasks::whole_life(url, &label("life"));
        }),
        with("a_signal_leaves_no_sandbox", a_signal_leaves_no_sandbox),
        with("the_doctor_tries_a_sandbox", |url| {
            let (code, found) = doctor(url);
            assert_eq!(code, 0, "{found}");
            assert!(found.contains("ok     opensandbox sandbox"), "{found}");
        }),
        with("the_doctor_misses_an_image", |url| {
            let url = url.replace(IMAGE, "sandbox-nosuch:latest");
            finds(
                &url,
                "opensandbox sandbox",
                "have the server's engine pull the image",
            );
        }),
        with("the_doctor_tells_a_wrong_key", wrong_key),
        test("the_doctor_misses_a_server", || {
            let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("opensandbox://{}", nobody.local_addr().unwrap());
            drop(nobody);
            finds(&url, "opensandbox server", "start one");
        }),
        test("the_doctor_advises_the_server_s_proxy", move || {
            unreachable(server);
        }),
    ]
}

/// Runs the doctor, and gives its exit code and what it found.
fn doctor(url: &str) -> (i32, String) {
    let output = run(&["doctor", "--backend", url]);
    (code(&output), stdout(&output))
}

/// The doctor says that `name` does not work, and what to do.
fn finds(url: &str, name: &str, advice: &str) {
    let (code, found) = doctor(url);
    assert_eq!(code, 1, "{found}");
    assert!(found.contains(&format!("FAILED {name}")), "{found}");
    assert!(found.contains(advice), "{found}");
}

fn wrong_key(url: &str) {
    let mut doctor = sandbox(&["doctor", "--backend", url]);
    let wrong = "a-wrong-key-of-our-own";
    let output = doctor.env("OPEN_SANDBOX_API_KEY", wrong).output().unwrap();
    let found = stdout(&output);
    assert_eq!(code(&output), 1, "{found}");
    assert!(found.contains("FAILED opensandbox server"), "{found}");
    assert!(found.contains("set OPEN_SANDBOX_API_KEY"), "{found}");
    assert!(!found.contains(wrong), "{found}");
}

fn a_signal_leaves_no_sandbox(url: &str) {
    let label = label("signal");
    let script = "echo begun; sleep 600";
    let args = [
        "run",
        "--backend",
        url,
        "--label",
        &label,
        "--",
        "sh",
        "-c",
        script,
    ];
    let mut child = sandbox(&args).spawn().unwrap();
    wait_for(&mut child, "begun\n");
    let list = || stdout(&run(&["list", "--backend", url, "--label", &label]));
    assert!(list().contains("running"));
    signal(&child, "INT");
    assert_eq!(end(&mut child).0.code(), Some(130));
    assert_eq!(list(), "");
}

/// A server that names addresses which this machine does not reach.
fn unreachable(server: SocketAddr) {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let url = format!("opensandbox://{}/{IMAGE}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || relay(client, server));
        }
    });
    finds(
        &format!("{url}?use_server_proxy=off&ready_timeout=2"),
        "opensandbox sandbox",
        "use_server_proxy=on",
    );
    let (code, found) = doctor(&format!("{url}?use_server_proxy=on"));
    assert_eq!(code, 0, "{found}");
}

/// Passes a connection on, with another host in the addresses of sandboxes: the ports are published
/// on 127.0.0.1 only.
fn relay(client: TcpStream, server: SocketAddr) {
    let upstream = TcpStream::connect(server).unwrap();
    let (mut from, mut to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut upstream, mut client) = (upstream, client);
    upstream
        .set_read_timeout(Some(Duration::from_secs(100)))
        .unwrap();
    let mut buffer = vec![0; 64 << 10];
    while let Ok(n @ 1..) = upstream.read(&mut buffer) {
        let text = &mut buffer[..n];
        for at in 0..n.saturating_sub(10) {
            if text[at..].starts_with(b"127.0.0.1:") {
                text[at + 8] = b'2';
            }
        }
        if client.write_all(text).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}
