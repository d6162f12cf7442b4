//! Where this daemon's answer is meant to differ from the recorded one, and how.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::replay::Recorded;

/// The answer to a recorded request that is right for a profile.
pub(crate) fn expected(profile: &str, recorded: &Recorded) -> Answer {
    let mut answer = recorded.answer();
    let name = recorded.name();
    if name == "token/good_token" {
        // Its second command prints the access token. Here no command has it, in either profile,
        // and `grep` finds nothing.
        answer.body = each_event(&answer.body, |mut event| {
            if event["text"] == "EXECD_ACCESS_TOKEN=s3cret" {
                return None;
            }
            if event["type"] == "execution_complete" {
                event = failure("1", "exit status 1");
            }
            Some(event)
        });
    }
    if profile == "default" {
        without_surprises(name, &mut answer);
    }
    answer
}

fn failure(value: &str, text: &str) -> Value {
    let error = json!({"ename": "CommandExecError", "evalue": value, "traceback": [text]});
    json!({"type": "error", "timestamp": 0, "error": error})
}

/// An answer as the default profile gives it.
fn without_surprises(name: &str, answer: &mut Answer) {
    let kind = answer.header("content-type").unwrap_or_default().to_owned();
    if kind.starts_with("text/event-stream") {
        answer.body = each_event(&answer.body, |event| Some(plain_event(name, event)));
    }
    if name.starts_with("background/status") || name.starts_with("interrupt/") {
        plain_status(name, answer);
    }
    match name {
        // A `$` means itself.
        "command/cwd_var_undefined" => {
            let why = "invalid request, validation error working directory does not exist: \
                $NOPE_X/a: stat $NOPE_X/a: no such file or directory";
            refuse(answer, 400, "INVALID_REQUEST_BODY", why);
        }
        "files/upload_dollar_name" => *answer = bodiless(),
        "files/info_dollar_name" => {
            let path = "/tmp/f/a$NOPE.txt";
            *answer = of_json(200, &json!({path: dollar_file(path)}));
        }
        "files/info_env_path" => {
            *answer = of_json(
                200,
                &json!({"$HOME/envp.txt": dollar_file("/$HOME/envp.txt")}),
            );
        }
        "files/info_tilde" => {
            let why = "file not found. file not found: ~/envp.txt: \
                lstat /root/envp.txt: no such file or directory";
            refuse(answer, 404, "FILE_NOT_FOUND", why);
        }
        "files/search_default" | "files/search_txt" | "files/search_starstar_txt" => {
            let mut list: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let list = list.as_array_mut().expect("a list");
            list.push(dollar_file("/tmp/f/a$NOPE.txt"));
            list.sort_by_key(|it| it["path"].as_str().map(str::to_owned));
            *answer = of_json(200, &json!(list));
        }
        "files/rel_check" => {
            let line = "-rw-r--r-- 1 root root 1 Nov 29 13:04 a$NOPE.txt";
            insert_before(answer, "a.txt", &[line]);
        }
        // No `rm -rf /tmp` takes output away, and none is there to be seen.
        "command/rm_rf_tmp_in_cmd" => insert_before(answer, "", &["a", "b", "c"]),
        "command/tmp_listing" => {
            answer.body = each_event(&answer.body, |event| {
                let text = event["text"].as_str().unwrap_or_default();
                let capture = text.ends_with(".stdout") || text.ends_with(".stderr");
                (!capture).then_some(event)
            });
        }
        // What can't be downloaded is said to be so, and what can is.
        "files/download_directory" | "direct/download_directory" => {
            refuse(
                answer,
                500,
                "RUNTIME_ERROR",
                "error accessing file: read /tmp/f: is a directory",
            );
        }
        "files/range_bad"
        | "files/range_reversed"
        | "direct/range_bad"
        | "direct/range_reversed" => {
            *answer = of_json(416, &json!({"code": "UNKNOWN"}));
        }
        "files/download_proc" | "direct/download_proc" => made_up_file(answer, "status", b"LINES"),
        "files/download_sys" => made_up_file(answer, "mtu", b"65536\n"),
        // A link that leads nowhere can be deleted.
        "files/delete_dangling_info" => {
            let why = "file not found. file not found: /tmp/f/dangling: \
                lstat /tmp/f/dangling: no such file or directory";
            refuse(answer, 404, "FILE_NOT_FOUND", why);
        }
        "background/logs_negative_cursor" => {
            let why = "error seek file: seek the output: invalid argument";
            refuse(answer, 400, "INVALID_REQUEST_BODY", why);
        }
        _ => {}
    }
}

fn plain_event(name: &str, mut event: Value) -> Value {
    let output = event["type"] == "stdout" || event["type"] == "stderr";
    if output && event["text"] == "\n" {
        event["text"] = "".into();
    }
    if let Some(error) = event.get("error").filter(|it| it["evalue"] == "-1") {
        let text = error["traceback"][0].as_str().unwrap_or_default();
        let (code, text) = plain_end(name, text);
        return failure(&code.to_string(), &text);
    }
    match (name, event["text"].as_str()) {
        ("command/invalid_utf8", Some("x\u{fffd}\u{fffd}y\u{fffd}")) => {
            event["base64"] = "eP/+ecM=".into();
        }
        ("command/tty_check", Some(path)) if path.starts_with("/tmp/") => {
            event["text"] = "pipe:[N]".into();
        }
        _ => {}
    }
    event
}

/// The code and the text of a command that a signal ended.
fn plain_end(name: &str, text: &str) -> (i32, String) {
    let timed_out = match name {
        "command/timeout_1000" => Some(1000),
        "command/timeout_trap" => Some(700),
        "background/status_timeout" => Some(500),
        _ => None,
    };
    if let Some(after) = timed_out {
        return (124, format!("timed out after {after}ms: {text}"));
    }
    let number = match text {
        "signal: killed" => 9,
        "signal: terminated" => 15,
        "signal: segmentation fault" => 11,
        other => panic!("{name}: {other}"),
    };
    (128 + number, text.to_owned())
}

fn plain_status(name: &str, answer: &mut Answer) {
    let Ok(mut status) = serde_json::from_slice::<Value>(&answer.body) else {
        return;
    };
    if status["exit_code"] == -1 {
        let (code, text) = plain_end(name, status["error"].as_str().unwrap_or_default());
        status["exit_code"] = code.into();
        status["error"] = text.into();
        answer.body = status.to_string().into_bytes();
    }
}

fn each_event(body: &[u8], mut change: impl FnMut(Value) -> Option<Value>) -> Vec<u8> {
    let mut out = String::new();
    for event in String::from_utf8_lossy(body)
        .split("\n\n")
        .filter(|it| !it.is_empty())
    {
        match serde_json::from_str(event) {
            Ok(event) => {
                if let Some(event) = change(event) {
                    out.push_str(&event.to_string());
                    out.push_str("\n\n");
                }
            }
            // One that was recorded in short.
            Err(_) => out += event,
        }
    }
    out.into_bytes()
}

/// Puts lines of output before the first that ends with `end`, or before the last event.
fn insert_before(answer: &mut Answer, end: &str, lines: &[&str]) {
    let mut events = Vec::new();
    let mut inserted = false;
    each_event(&answer.body, |event| {
        let place = if end.is_empty() {
            event["type"] == "execution_complete"
        } else {
            event["text"].as_str().is_some_and(|it| it.ends_with(end))
        };
        if place && !inserted {
            inserted = true;
            for line in lines {
                events.push(json!({"type": "stdout", "text": line, "timestamp": 0}));
            }
        }
        events.push(event);
        None
    });
    answer.body = events
        .iter()
        .flat_map(|it| format!("{it}\n\n").into_bytes())
        .collect();
}

fn dollar_file(path: &str) -> Value {
    json!({
        "path": path, "type": "file", "size": 1, "modified_at": "", "created_at": "",
        "owner": "root", "group": "root", "mode": 644,
    })
}

fn refuse(answer: &mut Answer, status: u16, code: &str, why: &str) {
    *answer = of_json(status, &json!({"code": code, "message": why}));
}

fn of_json(status: u16, body: &Value) -> Answer {
    let kind = "application/json; charset=utf-8";
    Answer {
        status,
        headers: vec![("Content-Type".into(), kind.into())],
        body: body.to_string().into_bytes(),
        complete: true,
    }
}

fn bodiless() -> Answer {
    Answer {
        status: 200,
        headers: vec![("Content-Length".into(), "0".into())],
        body: Vec::new(),
        complete: true,
    }
}

/// A file whose length nobody knows before it is read.
fn made_up_file(answer: &mut Answer, name: &str, body: &[u8]) {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    *answer = Answer {
        status: 200,
        headers: vec![
            header("Accept-Ranges", "bytes"),
            header(
                "Content-Disposition",
                &format!("attachment; filename=\"{name}\""),
            ),
            header("Content-Type", "application/octet-stream"),
            header("Last-Modified", ""),
        ],
        body: body.to_vec(),
        complete: true,
    };
}
