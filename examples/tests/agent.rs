//! The whole example: the agent's loop over a stand-in's wire, in a mock sandbox, down to the files
//! on the user's disk. And models that are hostile, slow, endless or wrong.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use clap::Parser as _;
use sandbox_examples::Result;
use sandbox_examples::data_analysis::offline::Plan;
use sandbox_examples::data_analysis::{self, Options, Outcome};
use sandbox_testkit::chat::{ChatServer, Conversation, Message, Reply, Script, Wire};
use serde_json::{Value, json};
use tempfile::TempDir;

const CUSTOMERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/customers-1000.csv");

fn options(csv: &Path, out: &Path, more: &[&str]) -> Options {
    let (csv, out) = (csv.to_str().unwrap(), out.to_str().unwrap());
    let base = ["data_analysis", "--csv", csv, "--out", out];
    Options::parse_from(base.iter().chain(more))
}

fn provider(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAi => "openai",
        Wire::Anthropic => "anthropic",
        Wire::Gemini => "gemini",
        Wire::Ollama => "ollama",
    }
}

/// Runs against a script of one's own and gives the lines of progress too.
async fn run_with(
    csv: &Path,
    out: &Path,
    wire: Wire,
    script: impl Script,
    more: &[&str],
) -> (Result<Outcome>, Vec<String>) {
    let server = ChatServer::start(wire, script).await.unwrap();
    let url = server.base_url();
    let mut args = vec![
        "--model",
        "stand-in",
        "--provider",
        provider(wire),
        "--base-url",
        &url,
    ];
    args.extend(more);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = lines.clone();
    let progress = Arc::new(move |line: &str| seen.lock().unwrap().push(line.to_owned()));
    let outcome = data_analysis::run(&options(csv, out, &args), progress).await;
    let lines = lines.lock().unwrap().clone();
    (outcome, lines)
}

fn small_csv(dir: &TempDir) -> std::path::PathBuf {
    let path = dir.path().join("small.csv");
    std::fs::write(&path, "kind,n\na,1\nb,2\na,3\nb,4\na,6\n").unwrap();
    path
}

/// The final answer, by the tool that is on offer for it.
fn answer(c: &Conversation, value: Value) -> Reply {
    match c
        .tools
        .iter()
        .find(|t| !sandbox_tools::NAMES.contains(&t.as_str()))
    {
        Some(tool) => Reply::call(tool, value),
        None => Reply::Text(value.to_string()),
    }
}

/// How many answers of tools there were: the step that a script is at.
fn step(c: &Conversation) -> usize {
    c.messages
        .iter()
        .filter(|m| matches!(m, Message::Answer(_)))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_a_report_with_charts_is_left() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("deep/out");
    let outcome = data_analysis::run(
        &options(Path::new(CUSTOMERS), &out, &[]),
        Arc::new(|_: &str| {}),
    )
    .await
    .unwrap();
    assert!(
        outcome.images.len() >= 4 && outcome.refused.is_empty(),
        "{outcome:?}"
    );
    let report = std::fs::read_to_string(&outcome.report).unwrap();
    assert!(report.contains("1000 rows and 12 columns"), "{report}");
    assert!(!report.contains("/workspace"));
    for image in &outcome.images {
        let name = image.file_name().unwrap().to_str().unwrap();
        assert!(report.contains(&format!("]({name})")), "{name}");
        assert_eq!(image.parent(), Some(out.as_path()));
    }
    // Nothing but the report and its images.
    assert_eq!(
        std::fs::read_dir(&out).unwrap().count(),
        outcome.images.len() + 1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_four_wires_give_the_same_report() {
    let dir = TempDir::new().unwrap();
    let csv = small_csv(&dir);
    let mut reports = Vec::new();
    for wire in Wire::ALL {
        let out = dir.path().join(provider(wire));
        let (outcome, lines) = run_with(&csv, &out, wire, Plan::default(), &[]).await;
        let outcome = outcome.unwrap_or_else(|e| panic!("{wire:?}: {e}"));
        assert!(
            lines.iter().any(|l| l.contains(" s  execute ")),
            "{lines:?}"
        );
        reports.push(std::fs::read_to_string(outcome.report).unwrap());
    }
    assert!(reports[0].contains("| n | 5 | 3.2 |"), "{}", reports[0]);
    assert!(reports.iter().all(|r| *r == reports[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_reacts_to_what_the_tools_answer() {
    let dir = TempDir::new().unwrap();
    for (name, bytes, says) in [
        (
            "semi.csv",
            "a;b\n1,5;x\n2,5;x\n".as_bytes(),
            "separated by semicolons",
        ),
        (
            "latin.csv",
            b"name,n\nM\xfcller,1\nM\xfcller,2\n",
            "was read as Latin-1",
        ),
        ("header.csv", b"a,b\n", "only a header"),
    ] {
        let csv = dir.path().join(name);
        std::fs::write(&csv, bytes).unwrap();
        let out = dir.path().join(format!("{name}.out"));
        let (outcome, _) = run_with(&csv, &out, Wire::OpenAi, Plan::default(), &[]).await;
        let report = std::fs::read_to_string(outcome.unwrap().report).unwrap();
        assert!(report.contains(says), "{name}: {report}");
    }
    let latin = std::fs::read_to_string(dir.path().join("latin.csv.out/report.md")).unwrap();
    assert!(latin.contains("Müller"));
}

/// Lets another model's call happen before the plan's call number `at`.
struct Inject {
    plan: Plan,
    at: usize,
    command: &'static str,
}

impl Script for Inject {
    fn reply(&mut self, c: &Conversation) -> Reply {
        let n = step(c);
        if n == self.at {
            return Reply::call("execute", json!({"command": self.command}));
        }
        let mut c = c.clone();
        if n > self.at {
            // The plan knows nothing of that call.
            let injected = c.messages.iter().position(
                |m| matches!(m, Message::Call { args, .. } if args["command"] == self.command),
            );
            let injected = injected.unwrap();
            c.messages.drain(injected..injected + 2);
        }
        self.plan.reply(&c)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_csv_in_the_sandbox_there_is_no_report() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("out");
    // After the script was written, before it runs.
    let script = Inject {
        plan: Plan::default(),
        at: 5,
        command: "rm /workspace/customers-1000.csv",
    };
    let (outcome, lines) = run_with(Path::new(CUSTOMERS), &out, Wire::OpenAi, script, &[]).await;
    let why = outcome.unwrap_err().to_string();
    assert!(why.contains("customers-1000.csv"), "{why}\n{lines:?}");
    assert!(!out.exists(), "nothing is written of a run that failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_hostile_model_returns_stays_in_the_folder() {
    let dir = TempDir::new().unwrap();
    let csv = small_csv(&dir);
    let out = dir.path().join("out");
    let write = |path: &'static str, content: &'static str| {
        Reply::call("write_file", json!({"file_path": path, "content": content}))
    };
    let good = "<svg xmlns=\"http://www.w3.org/2000/svg\"><rect width=\"1\" height=\"1\"/></svg>";
    let script = move |c: &Conversation| match step(c) {
        0 => write("/tmp/good.svg", good),
        1 => write("/workspace/good.svg", good),
        2 => write(
            "/workspace/page.png",
            "<html><script>alert(1)</script></html>",
        ),
        3 => write(
            "/workspace/script.svg",
            "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>",
        ),
        4 => Reply::call(
            "execute",
            json!({"command": "head -c 9000000 /dev/zero >/workspace/huge.png || dd if=/dev/zero of=/workspace/huge.png bs=1000000 count=9; i=0; while [ $i -lt 20 ]; do cat /workspace/huge.png /workspace/huge.png >/tmp/h; [ $(wc -c </tmp/h) -gt 9000000 ] && mv /tmp/h /workspace/huge.png && break; mv /tmp/h /workspace/huge.png; i=$((i+1)); done"}),
        ),
        _ => answer(
            c,
            json!({
                "report": "# R\n![a](/tmp/good.svg) ![b](/workspace/good.svg) ![p](/workspace/page.png) <script>x</script> ![n](http://evil/x.png)\n",
                "images": ["/tmp/good.svg", "/workspace/good.svg", "/workspace/page.png", "/workspace/script.svg", "/workspace/huge.png",
                    "/workspace/../../etc/passwd", "../../../../etc/passwd", "/etc/passwd", "relative.svg", "", "/", "/workspace/none.svg\u{0}"],
            }),
        ),
    };
    let (outcome, _) = run_with(&csv, &out, Wire::OpenAi, script, &[]).await;
    let outcome = outcome.unwrap();
    let mut names: Vec<String> = std::fs::read_dir(&out)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["good-2.svg", "good.svg", "report.md"]);
    assert_eq!(outcome.refused.len(), 10, "{:?}", outcome.refused);
    assert!(
        outcome
            .refused
            .iter()
            .any(|r| r.contains("huge.png") && r.contains("limit")),
        "{:?}",
        outcome.refused
    );
    let report = std::fs::read_to_string(outcome.report).unwrap();
    assert!(
        report.contains("![a](good.svg) ![b](good-2.svg)"),
        "{report}"
    );
    assert!(
        !report.contains("<script") && !report.contains("evil"),
        "{report}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_server_is_asked_again_and_a_refusing_one_is_not() {
    let dir = TempDir::new().unwrap();
    let csv = small_csv(&dir);
    let mut busy = 3;
    let mut plan = Plan::default();
    let script = move |c: &Conversation| {
        if busy > 0 {
            busy -= 1;
            return Reply::Status([503, 500, 429][busy], Some(0));
        }
        plan.reply(c)
    };
    let (outcome, lines) = run_with(&csv, &dir.path().join("a"), Wire::OpenAi, script, &[]).await;
    outcome.unwrap();
    assert_eq!(
        lines.iter().filter(|l| l.contains("again in")).count(),
        3,
        "{lines:?}"
    );

    let server = ChatServer::start(Wire::Gemini, |_: &Conversation| Reply::Status(403, None))
        .await
        .unwrap();
    let url = server.base_url();
    let o = options(
        &csv,
        &dir.path().join("b"),
        &["--model", "m", "--provider", "gemini", "--base-url", &url],
    );
    let why = data_analysis::run(&o, Arc::new(|_: &str| {}))
        .await
        .unwrap_err()
        .to_string();
    assert!(why.contains("403"), "{why}");
    assert_eq!(server.requests().len(), 1);
    assert!(!dir.path().join("b").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn models_that_never_end_or_answer_nonsense_end_as_errors() {
    let dir = TempDir::new().unwrap();
    let csv = small_csv(&dir);
    let out = dir.path().join("out");
    let endless = |_: &Conversation| Reply::call("ls", json!({"path": "/workspace"}));
    let (outcome, _) = run_with(&csv, &out, Wire::OpenAi, endless, &["--max-turns", "5"]).await;
    let why = outcome.unwrap_err().to_string();
    assert!(why.contains("within 5 calls"), "{why}");

    for (script, says) in [
        (Reply::Text("I am done.".into()), "final answer"),
        (Reply::Text(String::new()), "answer"),
        (Reply::Raw("{\"choices\": 7}".into()), "asked"),
        (Reply::Raw("not json".into()), "asked"),
    ] {
        let reply = script.clone();
        let (outcome, _) = run_with(
            &csv,
            &out,
            Wire::OpenAi,
            move |_: &Conversation| reply.clone(),
            &["--max-turns", "6"],
        )
        .await;
        let why = outcome.unwrap_err().to_string();
        assert!(
            why.contains(says) || why.contains("within 6 calls"),
            "{script:?}: {why}"
        );
    }

    // A tool that does not exist is answered, and the model may go on.
    let mut plan = Plan::default();
    let mut first = true;
    let confused = move |c: &Conversation| {
        if std::mem::take(&mut first) {
            return Reply::call("python", json!({"code": "1"}));
        }
        let mut c = c.clone();
        c.messages.drain(1..3);
        plan.reply(&c)
    };
    let (outcome, _) = run_with(&csv, &out, Wire::OpenAi, confused, &[]).await;
    outcome.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_csv_is_refused_with_the_reason() {
    let dir = TempDir::new().unwrap();
    for (name, bytes, says) in [
        ("empty.csv", &b""[..], "empty"),
        ("blank.csv", b" \n\n", "blank"),
        ("image.csv", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", "PNG"),
        ("book.csv", b"PK\x03\x04", "Excel"),
        ("wide.csv", b"\xff\xfea\0,\0b\0", "UTF-16"),
        ("nul.csv", b"a,b\n\0,1\n", "NUL"),
    ] {
        let csv = dir.path().join(name);
        std::fs::write(&csv, bytes).unwrap();
        let out = dir.path().join("out");
        let why = data_analysis::run(&options(&csv, &out, &[]), Arc::new(|_: &str| {}))
            .await
            .unwrap_err()
            .to_string();
        assert!(why.contains(says) && why.contains(name), "{why}");
        assert!(!out.exists());
    }
    let missing = options(&dir.path().join("none.csv"), dir.path(), &[]);
    assert!(
        data_analysis::run(&missing, Arc::new(|_: &str| {}))
            .await
            .is_err()
    );
    let other = options(Path::new(CUSTOMERS), dir.path(), &["--backend", "warp:"]);
    assert!(
        data_analysis::run(&other, Arc::new(|_: &str| {}))
            .await
            .is_err()
    );
}
