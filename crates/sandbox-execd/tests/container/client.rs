//! What tests ask of the daemon, and how they look at its answers.

use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::container::Container;
use crate::http::{Answer, Until, exchange};

pub(crate) type Outcome = Result<(), Failed>;

pub(crate) fn ensure(holds: bool, why: impl std::fmt::Debug) -> Outcome {
    if holds {
        Ok(())
    } else {
        Err(format!("{why:?}").into())
    }
}

impl Container {
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Result<Answer, Failed> {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        let request = [head.as_bytes(), body].concat();
        Ok(exchange(self.address, &request, &Until::default(), |_| {})?)
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer, Failed> {
        self.send("GET", path, "", b"")
    }

    pub(crate) fn run(&self, request: &Value) -> Result<Answer, Failed> {
        self.send("POST", "/command", "", request.to_string().as_bytes())
    }

    /// Runs a command, and gives its standard output and its last event.
    pub(crate) fn sh(&self, command: &str) -> Result<(String, Value), Failed> {
        Ok(outcome(
            &self.run(&json!({"command": command, "timeout": 20_000}))?,
        ))
    }

    pub(crate) fn ping(&self) -> Outcome {
        let begun = Instant::now();
        let answer = self.get("/ping")?;
        ensure(
            answer.status == 200 && begun.elapsed() < Duration::from_secs(3),
            answer,
        )
    }

    pub(crate) fn upload(&self, path: &str, content: &[u8]) -> Result<Answer, Failed> {
        let metadata = json!({"path": path, "mode": 644});
        let head = format!(
            "--Q\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"m\"\r\n\r\n{metadata}\r\n\
             --Q\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
        );
        let form = [head.as_bytes(), content, b"\r\n--Q--\r\n"].concat();
        let kind = "Content-Type: multipart/form-data; boundary=Q\r\n";
        self.send("POST", "/files/upload", kind, &form)
    }

    /// The daemon's memory in KiB, at its peak.
    pub(crate) fn peak_memory(&self) -> Result<u64, Failed> {
        let status =
            self.exec("cat $(grep -l '^Name:.execd$' /proc/[0-9]*/status | head -1) | grep VmHWM")?;
        let kib = status
            .split_whitespace()
            .nth(1)
            .and_then(|it| it.parse().ok());
        kib.ok_or_else(|| status.into())
    }

    pub(crate) fn open_files(&self) -> Result<usize, Failed> {
        let count = self.exec(
            "ls $(dirname $(grep -l '^Name:.execd$' /proc/[0-9]*/status | head -1))/fd | wc -l",
        )?;
        Ok(count.trim().parse().map_err(|_| count)?)
    }
}

pub(crate) fn events(answer: &Answer) -> Vec<Value> {
    String::from_utf8_lossy(&answer.body)
        .split("\n\n")
        .filter_map(|it| serde_json::from_str(it).ok())
        .collect()
}

pub(crate) fn outcome(answer: &Answer) -> (String, Value) {
    let events = events(answer);
    let lines: Vec<&str> = events
        .iter()
        .filter(|it| it["type"] == "stdout")
        .filter_map(|it| it["text"].as_str())
        .collect();
    let last = events
        .iter()
        .rfind(|it| it["type"] != "ping")
        .cloned()
        .unwrap_or_default();
    (lines.join("\n"), last)
}

pub(crate) fn ended(event: &Value) -> bool {
    event["type"] == "execution_complete"
}
