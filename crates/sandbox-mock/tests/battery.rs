//! Fidelity is measured: snippets of shell, with what bash 5.2 answered to them as root in a fresh
//! Debian container, run on the mock.
//!
//! Where the answers differ, the block stands with its reason in `docs/fidelity.md`. A block that
//! begins to differ fails this test, and so does one that no longer does: the list is exact. Only
//! what depends on how fast the machine is counts as unequal either way, and its reason says so.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::StreamExt;
use sandbox_core::{Client, Command, ExecuteResponse, SandboxSpec, Status};
use sandbox_mock::MockProvider;
use serde::Deserialize;

const BLOCKS: &str = include_str!("data/battery.jsonl");
const LIST: &str = include_str!("../docs/fidelity.md");

/// How long a block may take that ended by itself when it was recorded, in 6 s at most.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long one runs that never ended: any deadline shows it.
const ENDLESS: Duration = Duration::from_millis(1500);

/// Blocks at once.
const AT_ONCE: usize = 3;

#[derive(Deserialize)]
struct Block {
    name: String,
    script: String,
    exit: i32,
    stdout: Stdout,
}

/// What was recorded of stdout: all of it, or how much it was and how it began.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stdout {
    Text { text: String },
    Base64 { base64: String },
    Cut { bytes: u64, head: String },
}

fn blocks() -> Vec<Block> {
    let parse = |line: &str| serde_json::from_str(line).expect("a block a line");
    BLOCKS.lines().map(parse).collect()
}

/// The rows of the table of differences: name and reason.
fn listed() -> BTreeMap<&'static str, &'static str> {
    LIST.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(name, reason)| (name, reason.trim_end_matches([' ', '|'])))
        .collect()
}

async fn run(block: &Block) -> ExecuteResponse {
    let spec = SandboxSpec::new().workdir("/w");
    let sandbox = Client::new(MockProvider::new())
        .create(spec)
        .await
        .expect("a sandbox");
    let limit = if block.exit == 124 { ENDLESS } else { PATIENCE };
    let command = Command::new("bash")
        .arg("-c")
        .arg(&block.script)
        .timeout(limit);
    sandbox.execute(command).await.expect("an answer")
}

/// How the answer differs from what was recorded; nothing if it does not.
fn difference(block: &Block, answer: &ExecuteResponse) -> Option<String> {
    // `timeout 6` recorded what did not end; here the deadline is the command's.
    if block.exit == 124 && answer.status != Status::TimedOut {
        return Some(format!("{:?} in place of a timeout", answer.status));
    }
    if answer.exit_code() != Some(block.exit) {
        return Some(format!("{:?} in place of {}", answer.status, block.exit));
    }
    let stdout = answer.stdout.head();
    let expected = match &block.stdout {
        // What never ends is compared by how it begins.
        Stdout::Cut { head, .. } if block.exit == 124 => {
            let same = stdout.starts_with(head.as_bytes());
            return (!same).then(|| "another beginning".to_owned());
        }
        Stdout::Cut { bytes, head } => {
            let same = stdout.len() as u64 == *bytes && stdout.starts_with(head.as_bytes());
            return (!same).then(|| format!("{} bytes in place of {bytes}", stdout.len()));
        }
        Stdout::Text { text } => text.clone().into_bytes(),
        Stdout::Base64 { base64 } => decode(base64),
    };
    let (got, expected) = (without_clock(stdout), without_clock(&expected));
    (got != expected).then(|| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!(
            "printed {:?}\n  in place of {:?}",
            text(&got),
            text(&expected)
        )
    })
}

/// Times of files made in the run, as `find -printf %T@` gives them, are of the run's day.
fn without_clock(bytes: &[u8]) -> Vec<u8> {
    const PLACES: usize = "1795962869.6625630200".len();
    let mut kept = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let time = bytes
            .get(at..at + PLACES)
            .and_then(|piece| std::str::from_utf8(piece).ok());
        let now = time.is_some_and(|time| {
            time.as_bytes()[10] == b'.' && time.parse::<f64>().is_ok_and(|seconds| seconds > 1.76e9)
        });
        if now {
            kept.extend_from_slice(b"NOW");
            at += PLACES;
        } else {
            kept.push(bytes[at]);
            at += 1;
        }
    }
    kept
}

fn decode(base64: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = base64
        .bytes()
        .filter_map(|digit| DIGITS.iter().position(|known| *known == digit));
    let (mut bytes, mut bits, mut value) = (Vec::new(), 0, 0_usize);
    for digit in digits {
        value = (value << 6 | digit) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((value >> bits & 0xff).to_le_bytes()[0]);
        }
    }
    bytes
}

#[tokio::test]
async fn the_mock_answers_as_the_container_did() {
    let blocks = blocks();
    let listed = listed();
    let names: BTreeSet<&str> = blocks.iter().map(|block| block.name.as_str()).collect();
    for name in listed.keys() {
        assert!(
            names.contains(name),
            "docs/fidelity.md lists `{name}`, which is no block"
        );
    }
    // What ends by itself first, so that it does not wait behind what uses up its time.
    let (endless, ending): (Vec<&Block>, Vec<&Block>) =
        blocks.iter().partition(|block| block.exit == 124);
    let varies = |name: &str| {
        listed
            .get(name)
            .is_some_and(|reason| reason.starts_with("Varies"))
    };
    let (mut differing, mut varying) = (BTreeMap::new(), 0);
    for group in [ending, endless] {
        let mut answers = futures_util::stream::iter(group)
            .map(|block| async move { (block, run(block).await) })
            .buffer_unordered(AT_ONCE);
        while let Some((block, answer)) = answers.next().await {
            if varies(block.name.as_str()) {
                varying += 1;
            } else if let Some(how) = difference(block, &answer) {
                differing.insert(block.name.as_str(), (how, answer.stderr.to_text()));
            }
        }
    }
    let equal = blocks.len() - differing.len() - varying;
    let mut wrong = Vec::new();
    for (name, (how, stderr)) in &differing {
        if !listed.contains_key(name) {
            wrong.push(format!(
                "`{name}` differs and is not listed:\n  {how}\n  stderr: {stderr:?}"
            ));
        }
    }
    // What the mock's limits end, a deadline may end before them on a slow machine.
    let ends = |name: &str| blocks.iter().any(|b| b.name == name && b.exit != 124);
    for name in listed
        .keys()
        .filter(|name| !differing.contains_key(*name) && !varies(name) && ends(name))
    {
        wrong.push(format!("`{name}` is equal now: take it off the list"));
    }
    assert!(
        wrong.is_empty(),
        "{equal} of {} equal\n{}",
        blocks.len(),
        wrong.join("\n")
    );
    assert!(equal >= 95, "only {equal} of {} equal", blocks.len());
}
