//! What a hostile command or client, a full disk or a lost directory must not do.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use sandbox_testkit::engine::docker;
use serde_json::{Value, json};

use crate::client::{Outcome, ended, ensure, events, outcome};
use crate::container::Container;
use crate::http::{Until, exchange};

type Test = fn() -> Outcome;

const IMAGE: &str = "sandbox-python";
const EXECD: &str = "/opt/opensandbox/execd";

pub(crate) fn trials() -> Vec<Trial> {
    let tests: [(&str, Test); 21] = [
        ("no_command_sees_the_token", no_command_sees_the_token),
        ("the_image_s_script_leaves_no_token", images_script),
        (
            "process_1_collects_zombies_and_ends_with_its_program",
            process_1,
        ),
        ("zombies_are_collected_by_others_too", zombies),
        (
            "signals_reach_the_program_of_process_1",
            signals_of_process_1,
        ),
        ("life_goes_on_without_tmp", without_tmp),
        (
            "a_full_disk_is_said_and_leaves_files_as_they_were",
            full_disk,
        ),
        ("a_fork_bomb_takes_nothing_away", fork_bomb),
        ("a_client_that_does_not_read_costs_no_memory", slow_client),
        ("an_endless_line_costs_no_memory", endless_line),
        ("endless_requests_are_refused", endless_requests),
        ("malformed_requests_are_refused", malformed_requests),
        ("too_many_connections_wait", too_many_connections),
        ("what_is_not_served_says_so", not_served),
        ("a_signal_ends_commands_and_then_the_daemon", graceful_end),
        ("a_large_command_is_a_start_failure", large_command),
        ("ports_of_the_sandbox_are_reached", ports),
        ("special_files_end", special_files),
        ("stock_holds_the_stream", stock_holds),
        ("stock_loses_runs_and_leaks_behind_its_proxy", stock_proxy),
        ("the_default_profile_leaks_nothing", default_proxy),
    ];
    tests
        .into_iter()
        .map(|(name, test)| Trial::test(format!("faults::{name}"), test))
        .collect()
}

fn start() -> Result<Container, String> {
    Container::start(IMAGE, &[])
}

const TOKEN: (&str, &str) = ("EXECD_ACCESS_TOKEN", "s3cret");

fn finds_no_token(container: &Container) -> Outcome {
    let token = "X-EXECD-ACCESS-TOKEN: s3cret\r\n";
    let look = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' \
        | grep -c 's3cre[t]'; env | grep -c EXECD_ACCESS";
    for request in [
        json!({"command": look}),
        json!({"command": look, "uid": 65534}),
        json!({"command": look, "uid": 0}),
    ] {
        let body = request.to_string();
        let answer = container.send("POST", "/command", token, body.as_bytes())?;
        let (text, _) = outcome(&answer);
        ensure(text == "0\n0", (request, text))?;
    }
    ensure(
        container.get("/ping")?.status == 401,
        "a request without the token",
    )
}

fn no_command_sees_the_token() -> Outcome {
    let process = [EXECD, "--init", "--", "sleep", "1000"];
    finds_no_token(&Container::start_with(IMAGE, &[TOKEN], &[], &process)?)
}

fn images_script() -> Outcome {
    let program = ["/opt/opensandbox/init.sh", "-c", "sleep 4; exit 7"];
    let container = Container::start_with(IMAGE, &[TOKEN], &[], &program)?;
    finds_no_token(&container)?;
    let code = docker(&["wait", container.id()])?;
    ensure(code == "7", code)
}

fn zombies_in(container: &Container) -> Outcome {
    let (_, last) = container.sh("for i in 1 2 3; do (setsid sleep 0.2 &); (sleep 0.1 &); done")?;
    ensure(ended(&last), last)?;
    std::thread::sleep(Duration::from_secs(1));
    let left = container.exec("grep -l '^State:.Z' /proc/[0-9]*/status || true")?;
    ensure(left.is_empty(), left)
}

fn process_1() -> Outcome {
    let process = [EXECD, "--init", "--", "sh", "-c", "sleep 4; exit 7"];
    let container = Container::start_with(IMAGE, &[], &[], &process)?;
    zombies_in(&container)?;
    let code = docker(&["wait", container.id()])?;
    ensure(code == "7", code)
}

fn zombies() -> Outcome {
    // Process 1 is `tail`, which collects nothing.
    let process = [
        "/bin/sh",
        "-c",
        "/opt/opensandbox/execd & exec tail -f /dev/null",
    ];
    zombies_in(&Container::start_with(IMAGE, &[], &[], &process)?)
}

fn signals_of_process_1() -> Outcome {
    let program = "trap 'exit 5' TERM; sleep 100 & wait";
    let process = [EXECD, "--init", "--", "sh", "-c", program];
    let container = Container::start_with(IMAGE, &[], &[], &process)?;
    docker(&["kill", "--signal", "TERM", container.id()])?;
    let code = docker(&["wait", container.id()])?;
    ensure(code == "5", code)
}

fn without_tmp() -> Outcome {
    let container = start()?;
    let (text, last) = container.sh("echo a; rm -rf /tmp /var/tmp; echo b; sleep 0.2; echo c")?;
    ensure(text == "a\nb\nc" && ended(&last), (text, last))?;
    let begun = container.run(&json!({"command": "echo one; echo two >&2", "background": true}))?;
    let id = events(&begun)[0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    std::thread::sleep(Duration::from_millis(500));
    let logs = container.get(&format!("/command/{id}/logs"))?;
    ensure(logs.body == b"one\ntwo\n", logs)?;
    // Larger than what waits in memory.
    let uploaded = container.upload("/root/large", &vec![7; 3 << 20])?;
    ensure(uploaded.status == 200, uploaded)?;
    ensure(
        container.get("/files/download?path=/root/large")?.body == vec![7; 3 << 20],
        "content",
    )
}

fn full_disk() -> Outcome {
    let options = ["--tmpfs", "/small:size=64k", "--tmpfs", "/tmp:size=64k"];
    let process = [EXECD, "--init", "--", "sleep", "1000"];
    let container = Container::start_with(IMAGE, &[], &options, &process)?;
    ensure(
        container.upload("/small/f", b"before")?.status == 200,
        "a small file",
    )?;
    let refused = container.upload("/small/f", &vec![1; 512 << 10])?;
    let said = String::from_utf8_lossy(&refused.body).into_owned();
    ensure(
        refused.status == 500 && said.contains("no space left on device"),
        &said,
    )?;
    let kept = container.get("/files/download?path=/small/f")?.body;
    ensure(kept == b"before", kept)?;
    let larger = json!({"/small/f": {"old": "before", "new": "x".repeat(512 << 10)}});
    let body = larger.to_string();
    let refused = container.send("POST", "/files/replace", "", body.as_bytes())?;
    ensure(refused.status == 500, &refused)?;
    ensure(
        container.get("/files/download?path=/small/f")?.body == b"before",
        "after a replace",
    )?;

    // With a full /tmp commands still run, in the background too.
    container.sh("cat /dev/zero > /tmp/all; cat /dev/zero > /tmp/inodes")?;
    let (text, last) = container.sh("echo still")?;
    ensure(text == "still" && ended(&last), (text, last))?;
    ensure(
        container.upload("/root/f", b"small")?.status == 200,
        "an upload beside",
    )?;
    container.ping()
}

fn fork_bomb() -> Outcome {
    let process = [EXECD, "--init", "--", "sleep", "1000"];
    let options = ["--pids-limit", "256"];
    let container = Container::start_with(IMAGE, &[], &options, &process)?;
    ensure(
        container.upload("/root/f", b"here")?.status == 200,
        "before",
    )?;
    let bomb = json!({"command": "b() { b | b & }; b; wait; sleep 100", "timeout": 4000});
    let address = container.address;
    let body = bomb.to_string();
    let request = format!(
        "POST /command HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let running = std::thread::spawn(move || {
        exchange(address, request.as_bytes(), &Until::default(), |_| {})
    });
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        container.ping()?;
        ensure(
            container.get("/files/download?path=/root/f")?.body == b"here",
            "a download",
        )?;
        // It starts or it can't be: either is an answer.
        let answer = container.run(&json!({"command": "echo x", "timeout": 1000}))?;
        ensure(answer.status == 200 && answer.complete, answer)?;
    }
    let (_, last) = outcome(&running.join().map_err(|_| "the bomb's thread")??);
    ensure(last["type"] == "error", &last)?;
    // What left the group before it was killed goes on for a moment only.
    let begun = Instant::now();
    loop {
        let (text, last) = container.sh("echo after")?;
        if text == "after" && ended(&last) {
            return container.ping();
        }
        ensure(begun.elapsed() < Duration::from_secs(10), (text, last))?;
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn slow_client() -> Outcome {
    let container = start()?;
    let body = json!({"command": "yes", "timeout": 2000}).to_string();
    let mut sleepers = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(container.address)?;
        let length = body.len();
        write!(
            stream,
            "POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        sleepers.push(stream);
    }
    // The timeout is kept although nobody reads.
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs(3));
    loop {
        container.ping()?;
        let left = container.exec("grep -l '^yes' /proc/[0-9]*/cmdline || true")?;
        if left.is_empty() {
            break;
        }
        ensure(begun.elapsed() < Duration::from_secs(15), left)?;
    }
    let mut text = vec![0; 1000];
    sleepers[0].read_exact(&mut text)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let id = text
        .split("\"text\":\"")
        .nth(1)
        .map_or("", |it| &it[..32])
        .to_owned();
    let status = container.get(&format!("/command/status/{id}"))?;
    let status: Value = serde_json::from_slice(&status.body)?;
    ensure(
        status["running"] == false && status["exit_code"] == 124,
        status,
    )?;
    let memory = container.peak_memory()?;
    ensure(memory < 64 << 10, memory)
}

fn endless_line() -> Outcome {
    let container = start()?;
    let answer =
        container.run(&json!({"command": "head -c 20000000 /dev/zero | tr '\\0' x; echo end"}))?;
    let events = events(&answer);
    let parts = events.iter().filter(|it| it["partial"] == true).count();
    let bytes: usize = events
        .iter()
        .filter(|it| it["type"] == "stdout")
        .filter_map(|it| it["text"].as_str())
        .map(str::len)
        .sum();
    ensure(parts >= 15 && bytes == 20_000_003, (parts, bytes))?;
    let memory = container.peak_memory()?;
    ensure(memory < 64 << 10, memory)
}

/// Sends `start` and then `more` again and again, until the daemon has had enough.
fn send_until_refused(container: &Container, start: &str, more: &[u8]) -> Result<String, Failed> {
    let mut stream = TcpStream::connect(container.address)?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(start.as_bytes())?;
    let begun = Instant::now();
    let mut sent = 0;
    while sent < 64 << 20 && begun.elapsed() < Duration::from_secs(20) {
        if stream.write_all(more).is_err() {
            break;
        }
        sent += more.len();
    }
    ensure(sent < 64 << 20, "it took everything")?;
    let mut answer = Vec::new();
    // A connection may be reset with the answer still unread.
    let _ = stream.take(10_000).read_to_end(&mut answer);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn endless_requests() -> Outcome {
    let container = start()?;
    let chunk = [b"4000\r\n".to_vec(), vec![b'x'; 0x4000], b"\r\n".to_vec()].concat();
    let head = |path: &str, kind: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: x\r\n{kind}Transfer-Encoding: chunked\r\n\r\n")
    };
    let form = "Content-Type: multipart/form-data; boundary=Q\r\n";
    send_until_refused(&container, "GET / HTTP/1.1\r\nX: ", &[b'x'; 4096])?;
    send_until_refused(&container, "GET /", &[b'x'; 4096])?;
    send_until_refused(&container, "GET / HTTP/1.1\r\n", b"X: y\r\n")?;
    for path in ["/command", "/files/replace", "/directories"] {
        let said = send_until_refused(&container, &head(path, ""), &chunk)?;
        ensure(said.is_empty() || said.contains(" 413 "), &said)?;
    }
    // The head of a part, and the description of a file.
    let part = "5\r\n--Q\r\n\r\n";
    let said = send_until_refused(&container, &(head("/files/upload", form) + part), &chunk)?;
    ensure(said.is_empty() || said.contains(" 400 "), &said)?;
    let description = "Content-Disposition: form-data; name=\"metadata\"; filename=\"m\"\r\n\r\n";
    let part = format!("{:x}\r\n--Q\r\n{description}\r\n", description.len() + 5);
    let said = send_until_refused(&container, &(head("/files/upload", form) + &part), &chunk)?;
    ensure(said.is_empty() || said.contains(" 400 "), &said)?;
    container.ping()?;
    let memory = container.peak_memory()?;
    ensure(memory < 100 << 10, memory)
}

fn malformed_requests() -> Outcome {
    let container = start()?;
    for request in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"POST /command HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /command HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /command HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /files/info?path=%zz&path=%00 HTTP/1.1\r\n\r\n",
        b"GET /files/search?path=/&pattern=%5B HTTP/1.1\r\n\r\n",
        b"GET /proxy/99999999/ HTTP/1.1\r\n\r\n",
        b"GET /proxy// HTTP/1.1\r\n\r\n",
        b"GET /command/status/%00%ff HTTP/1.1\r\n\r\n",
        b"DELETE /command?id=%00 HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let until = Until {
            time: Some(Duration::from_secs(2)),
            seen: None,
        };
        // Any answer or none, but not the end of the daemon.
        let answer = exchange(container.address, request, &until, |_| {})?;
        ensure(
            answer.status == 0 || answer.status >= 300,
            (request, answer),
        )?;
    }
    let deep = "[".repeat(1 << 20);
    for path in [
        "/command",
        "/files/mv",
        "/files/permissions",
        "/files/replace",
        "/directories",
    ] {
        for body in [
            deep.as_str(),
            "",
            "null",
            "1",
            "\"x\"",
            "{\"a\":1}",
            "[{\"a\":[]}]",
            "{\"\\ud800\":{}}",
        ] {
            let answer = container.send("POST", path, "", body.as_bytes())?;
            ensure(
                answer.complete && answer.status != 0,
                (path, body.len(), answer),
            )?;
        }
    }
    container.ping()?;
    let logs = docker(&["logs", container.id()])?;
    ensure(!logs.contains("panicked"), logs)
}

fn too_many_connections() -> Outcome {
    let container = start()?;
    let idle: Vec<TcpStream> = (0..1100)
        .map(|_| TcpStream::connect(container.address))
        .collect::<std::io::Result<_>>()?;
    std::thread::sleep(Duration::from_millis(500));
    drop(idle);
    container.ping()?;
    let memory = container.peak_memory()?;
    ensure(memory < 100 << 10, memory)
}

fn not_served() -> Outcome {
    let container = start()?;
    for (method, path) in [
        ("POST", "/session"),
        ("POST", "/session/x/run"),
        ("DELETE", "/session/x"),
        ("POST", "/pty"),
        ("GET", "/pty/x"),
        ("GET", "/pty/x/ws"),
        ("POST", "/code"),
        ("POST", "/code/context"),
        ("GET", "/code/contexts"),
        ("DELETE", "/code/contexts/x"),
    ] {
        let answer = container.send(method, path, "", b"{}")?;
        let body: Value = serde_json::from_slice(&answer.body)?;
        ensure(
            answer.status == 501 && body["code"] == "NOT_SUPPORTED",
            (path, answer),
        )?;
    }
    Ok(())
}

fn graceful_end() -> Outcome {
    let process = [
        "/bin/sh",
        "-c",
        "/opt/opensandbox/execd & wait; exec sleep 100",
    ];
    let container = Container::start_with(IMAGE, &[], &[], &process)?;
    let address = container.address;
    let body =
        json!({"command": "trap 'echo bye; exit 3' TERM; echo up; sleep 100 & wait"}).to_string();
    let request = format!(
        "POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let running = std::thread::spawn(move || {
        exchange(address, request.as_bytes(), &Until::default(), |_| {})
    });
    std::thread::sleep(Duration::from_millis(700));
    container.exec("kill -TERM $(grep -l '^Name:.execd$' /proc/[0-9]*/status | cut -d/ -f3)")?;
    let (text, last) = outcome(&running.join().map_err(|_| "the stream's thread")??);
    ensure(
        text == "up\nbye" && last["error"]["evalue"] == "3",
        (text, last),
    )?;
    std::thread::sleep(Duration::from_millis(500));
    let left = container.exec("grep -l '^Name:.execd$' /proc/[0-9]*/status || true")?;
    ensure(left.is_empty(), left)
}

fn large_command() -> Outcome {
    let container = start()?;
    for size in [140 << 10, 2 << 20] {
        let answer = container.run(&json!({"command": format!("true {}", "x".repeat(size))}))?;
        let (_, last) = outcome(&answer);
        let value = last["error"]["evalue"].as_str().unwrap_or_default();
        ensure(
            value == "fork/exec /usr/bin/bash: argument list too long",
            last.clone(),
        )?;
    }
    Ok(())
}

fn ports() -> Outcome {
    let container = start()?;
    ensure(
        container.upload("/srv/x/hello.txt", b"from a port")?.status == 200,
        "upload",
    )?;
    let server = "exec python3 -m http.server --directory /srv/x 8123";
    container.run(&json!({"command": server, "background": true}))?;
    let begun = Instant::now();
    loop {
        let answer = container.get("/proxy/8123/hello.txt?query=1")?;
        if answer.status == 200 {
            return ensure(answer.body == b"from a port", answer);
        }
        ensure(
            answer.status == 502 && begun.elapsed() < Duration::from_secs(10),
            answer,
        )?;
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn special_files() -> Outcome {
    let container = start()?;
    container.sh("mkfifo /tmp/fifo; mkdir /tmp/d; ln -s loop /tmp/loop; ln -s / /tmp/d/root")?;
    for path in ["/tmp/fifo", "/tmp/loop", "/tmp/d", "/proc/kmsg", "/dev/tty"] {
        for _ in 0..4 {
            // Four times as many as would fit the threads, if one stayed behind.
            for _ in 0..4 {
                let answer = container.get(&format!("/files/download?path={path}"))?;
                ensure(answer.status >= 400, (path, answer))?;
                let answer = container.get(&format!("/files/download?path={path}&limit=1"))?;
                ensure(answer.status >= 400, (path, answer))?;
            }
        }
    }
    let zero = container.get("/files/download?path=/dev/zero")?;
    ensure(zero.status == 200 && zero.body.is_empty(), zero.status)?;
    let answer = container.upload("/tmp/fifo", b"x")?;
    ensure(answer.status == 500, answer)?;
    let replace =
        json!({"/tmp/fifo": {"old": "a", "new": "b"}, "/dev/zero": {"old": "a", "new": "b"}});
    let body = replace.to_string();
    let answer = container.send("POST", "/files/replace", "", body.as_bytes())?;
    ensure(answer.status == 500, answer)?;
    // A link to the root is not walked into.
    let found = container.get("/files/search?path=/tmp/d&pattern=*")?;
    let found: Value = serde_json::from_slice(&found.body)?;
    ensure(found.as_array().is_some_and(|it| it.len() == 1), found)?;
    let refused = container.send("DELETE", "/directories?path=//", "", b"")?;
    ensure(refused.status == 500, refused)?;
    container.ping()
}

fn stock_holds() -> Outcome {
    let container = Container::start(IMAGE, &[("EXECD_PROFILE", "stock")])?;
    let begun = Instant::now();
    let (text, last) = container.sh("echo x")?;
    let held = begun.elapsed();
    ensure(text == "x" && ended(&last), (text, last))?;
    ensure(
        held > Duration::from_millis(950) && held < Duration::from_millis(2500),
        held,
    )?;
    // Known only after it was announced.
    let body = json!({"command": "sleep 2", "background": true}).to_string();
    let mut unknown = 0;
    for _ in 0..10 {
        let request = format!(
            "POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let until = Until {
            time: None,
            seen: Some("\"init\"".into()),
        };
        let begun = exchange(container.address, request.as_bytes(), &until, |_| {})?;
        let text = String::from_utf8_lossy(&begun.body).into_owned();
        let id = text
            .split("\"text\":\"")
            .nth(1)
            .map_or("", |it| &it[..32])
            .to_owned();
        if container.get(&format!("/command/status/{id}"))?.status == 404 {
            unknown += 1;
        }
    }
    ensure(unknown > 0, unknown)
}

fn stock_proxy() -> Outcome {
    let variables = [
        ("EXECD_PROFILE", "stock"),
        ("EXECD_STOCK_LOSE_ONE_OF", "3"),
        ("EXECD_API_GRACE_SHUTDOWN", "0"),
    ];
    let container = Container::start(IMAGE, &variables)?;
    let body = json!({"command": "echo x >> /tmp/runs"}).to_string();
    let mut lost = 0;
    for _ in 0..9 {
        let answer = container.send("POST", "/proxy/44772/command", "", body.as_bytes())?;
        ensure(answer.status == 200 && answer.complete, &answer)?;
        lost += usize::from(!ended(&outcome(&answer).1));
    }
    ensure(lost == 3, lost)?;
    let (runs, _) = container.sh("grep -c x /tmp/runs")?;
    ensure(runs == "6", runs)?;
    let before = container.open_files()?;
    for _ in 0..50 {
        container.get("/proxy/44772/ping")?;
    }
    let after = container.open_files()?;
    ensure(after >= before + 100, (before, after))
}

fn default_proxy() -> Outcome {
    let container = start()?;
    let before = container.open_files()?;
    for _ in 0..300 {
        let answer = container.get("/proxy/44772/ping")?;
        ensure(answer.status == 200, answer)?;
    }
    for _ in 0..50 {
        container.get("/proxy/9999/")?;
        container.sh("sleep 30 > /dev/null 2>&1 & true")?;
    }
    std::thread::sleep(Duration::from_millis(300));
    let after = container.open_files()?;
    ensure(after <= before + 5, (before, after))
}
