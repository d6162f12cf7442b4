//! Each recorded request that this client can make is made in the same way.

use std::collections::BTreeMap;
use std::time::Duration;

use sandbox_core::{Bytes, SandboxId, SandboxSpec};
use sandbox_opensandbox::{Execd, OpenSandbox, Permissions, RunCommand};
use sandbox_testkit::recordings::Recorded;
use serde_json::{Value, json};

use crate::http::{Listener, Reply, Request};
use crate::server::{self, ID};

fn recorded(name: &str) -> Recorded {
    let group = name.split('/').next().unwrap();
    let all = Recorded::load(group).unwrap();
    let found = all.into_iter().find(|r| r.name() == name);
    found.unwrap_or_else(|| panic!("no recording {name}"))
}

/// A server that answers what the client needs to go on.
async fn taking() -> (Listener, OpenSandbox, Execd) {
    let listener = server::start(|request, _| {
        let line = request.line();
        match line.as_str() {
            "GET /metrics" => Some(Reply::json(
                200,
                &json!({"cpu_count": 2, "cpu_used_pct": 4.0, "mem_total_mib": 1, "mem_used_mib": 1}),
            )),
            "GET /files/search" | "GET /directories/list" => Some(Reply::json(200, &json!([]))),
            "POST /files/replace" => Some(Reply::json(200, &json!({}))),
            line if line.starts_with("GET /command/") && line.ends_with("/logs") => {
                Some(Reply::empty().header("EXECD-COMMANDS-TAIL-CURSOR", "0"))
            }
            line if line.starts_with("GET /command/status/") => {
                Some(Reply::json(200, &json!({"running": true})))
            }
            "POST /command" if !server::is_setup(request) => None,
            line if line.starts_with("POST /files")
                || line == "POST /directories"
                || line.starts_with("DELETE /command")
                || line == "DELETE /directories"
                || line.ends_with("/pause")
                || line.ends_with("/resume") =>
            {
                Some(Reply::empty())
            }
            line if line.ends_with("/metadata") => {
                Some(Reply::json(200, &server::object("Running")))
            }
            line if line.ends_with("/renew-expiration") => Some(Reply::json(
                200,
                &json!({"expiresAt": "2026-11-29T13:37:33Z"}),
            )),
            line if line.contains("/endpoints/") && !line.ends_with("/44772") => {
                Some(Reply::json(200, &json!({"endpoint": "127.0.0.1:9"})))
            }
            _ => None,
        }
    })
    .await;
    let provider = OpenSandbox::connect(server::config(&listener))
        .await
        .unwrap();
    let execd = provider.execd(&SandboxId::new(ID)).await.unwrap();
    (listener, provider, execd)
}

/// A target with its escapes resolved, for one client may escape more than another.
fn plain(target: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = target.bytes();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let hex = [bytes.next().unwrap(), bytes.next().unwrap()];
            let hex = std::str::from_utf8(&hex).unwrap();
            out.push(u8::from_str_radix(hex, 16).unwrap());
        } else {
            out.push(b);
        }
    }
    String::from_utf8(out).unwrap()
}

/// Method, target and body are those of the recording; ids are.
fn assert_same(made: &Request, recorded: &Recorded) {
    let name = recorded.name();
    let ids = |text: &str| {
        let recorded_id = "795896eb-aaf0-4522-84a2-3a0cdccda587";
        text.replace(recorded_id, ID)
    };
    assert_eq!(made.method, recorded.method(), "{name}");
    assert_eq!(
        plain(&made.target),
        plain(&ids(recorded.target())),
        "{name}"
    );
    let sent: Value = serde_json::from_str(recorded.sent()).unwrap_or_default();
    assert_eq!(made.json(), sent, "{name}");
    if !recorded.sent().is_empty() {
        assert_eq!(made.headers["content-type"], "application/json", "{name}");
    }
}

#[tokio::test]
async fn commands_are() {
    let (listener, _, execd) = taking().await;
    let text = |name: &str| {
        let sent: Value = serde_json::from_str(recorded(name).sent()).unwrap();
        sent["command"].as_str().unwrap().to_owned()
    };
    let base = |name: &str| RunCommand {
        command: text(name),
        ..RunCommand::default()
    };
    let envs: Value = serde_json::from_str(recorded("command/envs_given").sent()).unwrap();
    let envs: BTreeMap<String, String> = serde_json::from_value(envs["envs"].clone()).unwrap();
    let (tmp, ids) = (base("command/cwd_tmp"), base("command/uid_gid"));
    let with = |name: &str, set: &dyn Fn(&mut RunCommand)| {
        let mut command = base(name);
        set(&mut command);
        command
    };
    for (name, command) in [
        ("command/echo_hi", base("command/echo_hi")),
        ("command/unicode_command", base("command/unicode_command")),
        (
            "command/cwd_tmp",
            RunCommand {
                cwd: Some("/tmp".into()),
                ..tmp
            },
        ),
        (
            "command/envs_given",
            with("command/envs_given", &|c| c.envs = envs.clone()),
        ),
        (
            "command/uid_gid",
            RunCommand {
                uid: Some(1000),
                gid: Some(1000),
                ..ids
            },
        ),
        (
            "command/uid_only",
            with("command/uid_only", &|c| c.uid = Some(65534)),
        ),
        (
            "command/timeout_1000",
            with("command/timeout_1000", &|c| c.timeout = Some(1000)),
        ),
        (
            "background/bg_sleep",
            with("background/bg_sleep", &|c| c.background = true),
        ),
    ] {
        execd.run(&command).await.unwrap();
        let made = listener.seen_of("POST /command").pop().unwrap();
        assert_same(&made, &recorded(name));
    }
}

#[tokio::test]
async fn questions_about_commands_are() {
    let (listener, _, execd) = taking().await;
    let id = |name: &str| {
        let target = recorded(name).target().to_owned();
        let parts = target.split(['/', '?', '=']);
        parts
            .filter(|p| p.len() == 32)
            .map(str::to_owned)
            .next()
            .unwrap()
    };
    execd.status(&id("background/status_done")).await.unwrap();
    assert_same(
        listener.seen().last().unwrap(),
        &recorded("background/status_done"),
    );
    execd.logs(&id("background/logs_cursor"), 3).await.unwrap();
    assert_same(
        listener.seen().last().unwrap(),
        &recorded("background/logs_cursor"),
    );
    execd
        .interrupt(&id("background/interrupt_running"))
        .await
        .unwrap();
    assert_same(
        listener.seen().last().unwrap(),
        &recorded("background/interrupt_running"),
    );
    execd.ping(Duration::from_secs(20)).await.unwrap();
    assert_same(listener.seen().last().unwrap(), &recorded("misc/ping"));
    execd.metrics().await.unwrap();
    assert_same(listener.seen().last().unwrap(), &recorded("misc/metrics"));
}

#[tokio::test]
async fn questions_about_files_are() {
    let (listener, _, execd) = taking().await;
    let same = |name: &str| assert_same(listener.seen().last().unwrap(), &recorded(name));
    execd.info(&["/tmp/f/a.txt"]).await.unwrap();
    same("files/info");
    execd.info(&["/tmp/f/t1", "/tmp/f/t2"]).await.unwrap();
    same("files/info_two");
    execd.info(&["/tmp/f/new\nline\"q.txt"]).await.unwrap();
    same("files/info_newline_name");
    execd.search("/tmp/f", "*.txt").await.unwrap();
    same("files/search_txt");
    execd.download("/tmp/f/a.txt", None).await.unwrap();
    same("files/download");
    execd.list_directory("/tmp/dd", 2).await.unwrap();
    same("dirs/list_depth2");
    execd.delete(&["/tmp/f/r.txt"]).await.unwrap();
    same("files/delete");
    execd.remove_directories(&["/tmp/dd/a"]).await.unwrap();
    same("dirs/rmdir");
    let asked = execd.download("/tmp/f/a.txt", Some((0, 9))).await;
    // The stand-in answers without a range, which is no answer.
    assert!(asked.is_err());
    same("files/range_0_9");
    assert_eq!(
        listener.seen().last().unwrap().headers["range"],
        "bytes=0-9"
    );
}

#[tokio::test]
async fn changes_of_files_are() {
    let (listener, _, execd) = taking().await;
    let same = |name: &str| assert_same(listener.seen().last().unwrap(), &recorded(name));
    let mode = |mode| Permissions {
        mode: Some(mode),
        ..Permissions::default()
    };
    execd
        .set_permissions("/tmp/f/t1", &mode(600))
        .await
        .unwrap();
    same("files/chmod_600");
    execd.rename("/tmp/f/t1", "/tmp/f/new/t1b").await.unwrap();
    same("files/mv");
    execd.make_directory("/tmp/dd/m", &mode(700)).await.unwrap();
    same("dirs/mkdir_mode700");
    let sent: Value = serde_json::from_str(recorded("files/replace_verbose").sent()).unwrap();
    let edits = sent.as_object().unwrap().iter().map(|(path, edit)| {
        let text = |key: &str| edit[key].as_str().unwrap().to_owned();
        (path.clone(), (text("old"), text("new")))
    });
    execd.replace(&edits.collect()).await.unwrap();
    same("files/replace_verbose");
}

/// The parts of a form: what stands above each content but its type, and the content.
fn form(content_type: &str, body: &str) -> Vec<(String, String)> {
    let (_, boundary) = content_type.split_once("boundary=").unwrap();
    body.split(&format!("--{boundary}"))
        .filter_map(|part| part.trim_start_matches("\r\n").split_once("\r\n\r\n"))
        .map(|(head, content)| {
            let head: Vec<&str> = head.lines().filter(|l| l.contains("form-data")).collect();
            let content = content.strip_suffix("\r\n").unwrap_or(content);
            (
                head.concat(),
                content.replace("\": ", "\":").replace(", \"", ",\""),
            )
        })
        .collect()
}

#[tokio::test]
async fn an_upload_is() {
    let (listener, _, execd) = taking().await;
    let mode = Permissions {
        mode: Some(644),
        ..Permissions::default()
    };
    let parts = vec![Bytes::from("hello\n"), Bytes::from("world\n")];
    execd.upload("/tmp/f/a.txt", &mode, parts).await.unwrap();
    let made = listener.seen_of("POST /files/upload").pop().unwrap();
    let recorded = recorded("files/upload");
    let of = |request: &Request| form(&request.headers["content-type"], &request.text());
    let kind = recorded.0["request"]["headers"]["Content-Type"]
        .as_str()
        .unwrap();
    assert_eq!(of(&made), form(kind, recorded.sent()));
    // A proxy in between does not take a body of unknown length.
    assert_eq!(made.headers["content-length"], made.body.len().to_string());
    assert!(!made.headers.contains_key("transfer-encoding"));
}

#[tokio::test]
async fn lifecycle_calls_are() {
    let (listener, provider, _) = taking().await;
    let (lifecycle, id) = (provider.lifecycle(), SandboxId::new(ID));
    let same = |name: &str| assert_same(listener.seen().last().unwrap(), &recorded(name));
    lifecycle.health().await.unwrap();
    same("lifecycle/health");
    lifecycle.get(&id).await.unwrap();
    same("lifecycle/get");
    lifecycle.endpoint(&id, 44772, false).await.unwrap();
    same("lifecycle/endpoint_44772");
    lifecycle.endpoint(&id, 44772, true).await.unwrap();
    same("lifecycle/endpoint_server_proxy");
    lifecycle.endpoint(&id, 3000, false).await.unwrap();
    same("lifecycle/endpoint_3000");
    lifecycle.pause(&id).await.unwrap();
    same("lifecycle/pause");
    lifecycle.resume(&id).await.unwrap();
    same("lifecycle/resume");
    let sent: Value = serde_json::from_str(recorded("lifecycle/metadata_patch").sent()).unwrap();
    let patch = serde_json::from_value(sent).unwrap();
    lifecycle.patch_metadata(&id, &patch).await.unwrap();
    same("lifecycle/metadata_patch");
    lifecycle.kill(&id).await.unwrap();
    same("lifecycle/delete");
    for request in listener
        .seen()
        .iter()
        .filter(|r| r.target.starts_with("/v1"))
    {
        assert_eq!(request.headers["open-sandbox-api-key"], server::KEY);
    }
}

#[tokio::test]
async fn a_filter_of_a_list_is() {
    let (listener, provider, _) = taking().await;
    for (name, labels) in [
        (
            "lifecycle/list_metadata",
            [("team", "t1"), ("env", "prod")].as_slice(),
        ),
        (
            "lifecycle/list_metadata_slash_key",
            [("example.com/app", "x_1")].as_slice(),
        ),
    ] {
        let labels = labels
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        provider.lifecycle().list(&labels.collect()).await.unwrap();
        let filter = |target: &str| {
            let query = target.split_once('?').unwrap().1.to_owned();
            let found = query
                .split('&')
                .find_map(|p| p.strip_prefix("metadata=").map(plain));
            let mut pairs: Vec<String> = found.unwrap().split('&').map(str::to_owned).collect();
            pairs.sort_unstable();
            pairs
        };
        let made = listener.seen().pop().unwrap();
        assert_eq!(
            filter(&made.target),
            filter(recorded(name).target()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn creating_and_renewing_are() {
    let (listener, provider, _) = taking().await;
    let client = sandbox_core::Client::new(provider);
    let spec = SandboxSpec::new()
        .image("sandbox-test/python:bookworm")
        .lifetime(Duration::from_mins(10))
        .memory(512 << 20)
        .milli_cpus(1000)
        .env("FOO", "bar")
        .label("team", "t1")
        .label("example.com/app", "x_1");
    let sandbox = client.create(spec).await.unwrap();
    let made = listener.seen_of("POST /v1/sandboxes").pop().unwrap().json();
    let sent: Value = serde_json::from_str(recorded("lifecycle/create").sent()).unwrap();
    for key in ["image", "entrypoint", "timeout"] {
        assert_eq!(made[key], sent[key], "{key}");
    }
    assert_eq!(
        made["resourceLimits"]["memory"],
        sent["resourceLimits"]["memory"]
    );
    assert_eq!(made["env"]["FOO"], sent["env"]["FOO"]);
    assert_eq!(made["metadata"]["example.com/app"], "x_1");
    assert!(
        made.as_object()
            .unwrap()
            .keys()
            .all(|key| sent.get(key).is_some())
    );

    sandbox.renew(Duration::from_mins(30)).await.unwrap();
    let made = listener.seen().pop().unwrap();
    let like = recorded("lifecycle/renew");
    assert_eq!(made.method, like.method());
    assert!(made.target.ends_with("/renew-expiration"));
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    let sent: Value = serde_json::from_str(like.sent()).unwrap();
    assert_eq!(keys(&made.json()), keys(&sent));
    sandbox.kill().await.unwrap();
}
