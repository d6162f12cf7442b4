//! When two answers are the same: what is left of them without what differs from run to run.

use std::fmt::Write as _;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::http::Answer;

/// Headers that are compared. `Date` and the framing are not; lengths are where the body's is the
/// same in every run.
const HEADERS: [&str; 11] = [
    "content-type",
    "content-disposition",
    "content-range",
    "content-length",
    "accept-ranges",
    "location",
    "execd-commands-tail-cursor",
    "x-content-type-options",
    "cache-control",
    "x-accel-buffering",
    "last-modified",
];

/// Fields of JSON that are times or measurements: that they are there is compared.
const VOLATILE: [&str; 10] = [
    "timestamp",
    "execution_time",
    "started_at",
    "finished_at",
    "modified_at",
    "created_at",
    "cpu_count",
    "cpu_used_pct",
    "mem_total_mib",
    "mem_used_mib",
];

/// An answer as text, for people as well.
pub(crate) fn canonical(name: &str, answer: &Answer) -> String {
    let mut out = format!("{}\n", answer.status);
    let kind = answer.header("content-type").unwrap_or_default().to_owned();
    let json = kind.starts_with("application/json");
    let mut headers: Vec<String> = answer
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .filter(|(name, _)| HEADERS.contains(&name.as_str()))
        // A JSON answer has times and ids of other lengths in it, or is sent in chunks.
        .filter(|(name, _)| !(name == "content-length" && json))
        .map(|(name, value)| match name.as_str() {
            "last-modified" => format!("{name}: DATE"),
            _ => format!("{name}: {value}"),
        })
        .collect();
    headers.sort();
    for header in headers {
        let _ = writeln!(out, "{header}");
    }
    // Whether it was cut is compared, but for streams that the recorder itself left.
    if !matches!(
        name,
        "interrupt/disconnect_midway" | "misc/metrics_watch" | "misc/ping_head"
    ) {
        let _ = writeln!(out, "complete: {}", answer.complete);
    }
    if kind.starts_with("text/event-stream") && name != "misc/metrics_watch" {
        out.push_str(&events(name, &answer.body));
    } else if name == "misc/metrics_watch" {
        for line in String::from_utf8_lossy(&answer.body).lines() {
            let _ = writeln!(
                out,
                "{}",
                value(serde_json::from_str(line).unwrap_or_default())
            );
        }
    } else if json {
        let it = serde_json::from_slice(&answer.body).unwrap_or_else(|_| {
            Value::String(format!(
                "not JSON: {}",
                String::from_utf8_lossy(&answer.body)
            ))
        });
        let _ = writeln!(out, "{}", value(it));
    } else if name == "files/download_5mb" {
        // Its content was not recorded.
        let _ = writeln!(out, "{} bytes", answer.body.len());
    } else {
        let body = match name {
            // What a process is like at the moment.
            "files/download_proc" | "direct/download_proc" if answer.body.starts_with(b"Name:") => {
                &b"LINES"[..]
            }
            _ => &answer.body,
        };
        let _ = writeln!(out, "{}", body.escape_ascii());
    }
    out
}

/// JSON with its volatile fields made the same. The order of fields is the map's own.
fn value(mut it: Value) -> Value {
    match &mut it {
        Value::Object(object) => {
            for (key, field) in object.iter_mut() {
                if VOLATILE.contains(&key.as_str()) {
                    *field = "…".into();
                } else if key == "id" {
                    *field = "ID".into();
                } else {
                    *field = value(field.take());
                }
            }
        }
        Value::Array(list) => {
            for item in list {
                *item = value(item.take());
            }
        }
        Value::String(text) => *text = volatile_text(text),
        _ => {}
    }
    it
}

/// The events of a stream: first the one that began it, then what stdout had and what stderr had
/// (the recorder's daemon mixes them by the tenth of a second), then the end. Pings are left out:
/// where they fall is a matter of chance. An error without a type is an event here too.
fn events(name: &str, body: &[u8]) -> String {
    let (mut first, mut stdout, mut stderr, mut last) =
        (String::new(), String::new(), String::new(), String::new());
    for event in String::from_utf8_lossy(body)
        .split("\n\n")
        .filter(|it| !it.is_empty())
    {
        if name == "command/tmp_listing" && stdout.matches("total").count() > 1 {
            // The second listing is of the daemon's own folder.
            break;
        }
        let Ok(mut event) = serde_json::from_str::<Value>(event) else {
            let _ = writeln!(last, "not JSON: {event:.200}");
            continue;
        };
        if let Some(object) = event.as_object_mut()
            // Absent where it was less than a millisecond.
            && let Some(Value::Number(_)) = object.remove("execution_time")
        {}
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let out = match kind.as_str() {
            "ping" => continue,
            "init" => {
                let id = event["text"].as_str().unwrap_or_default();
                let known = id.len() == 32 && id.bytes().all(|it| it.is_ascii_hexdigit());
                event["text"] = if known { "ID".into() } else { Value::from(id) };
                &mut first
            }
            "stdout" if given_by_the_test(&event) => continue,
            "stdout" => &mut stdout,
            "stderr" => &mut stderr,
            _ => &mut last,
        };
        let _ = writeln!(out, "{}", value(event));
    }
    first + &stdout + &stderr + &last
}

/// Whether a line of `env` is of a variable the recorder had not.
fn given_by_the_test(event: &Value) -> bool {
    const OWN: [&str; 4] = [
        "EXECD_PROFILE=",
        "EXECD_API_GRACE_SHUTDOWN=",
        "EXECD_STOCK_LOSE_ONE_OF=",
        "LANG=",
    ];
    event["text"]
        .as_str()
        .is_some_and(|text| OWN.iter().any(|it| text.starts_with(it)))
}

/// Text of commands with what differs from run to run made the same: the dates and sizes in
/// listings, numbers of processes, the name of the host, ids in names of files.
fn volatile_text(text: &str) -> String {
    if text.starts_with("total ") {
        return "total …".into();
    }
    if let Some(line) = listed(text) {
        return hide_ids(&line);
    }
    let mut words: Vec<&str> = text.split(' ').collect();
    if words.first().is_some_and(|it| *it == "bash:")
        && words.last().is_some_and(|it| it.contains("$$"))
    {
        // `bash: line 1:    53 Killed   ...`
        words.retain(|it| !it.is_empty() && !it.bytes().all(|it| it.is_ascii_digit()));
    }
    let text = words.join(" ");
    if text.starts_with("HOSTNAME=") {
        return "HOSTNAME=…".into();
    }
    if text.starts_with("OPENSANDBOX_ID=") {
        return "OPENSANDBOX_ID=…".into();
    }
    if text.starts_with("pipe:[") {
        return "pipe:[N]".into();
    }
    hide_ids(&text)
}

/// A line of a listing: its columns are as wide as needed, a day of the month too, and a directory is
/// as large as its file system likes.
fn listed(line: &str) -> Option<String> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut words: Vec<&str> = line.split(' ').filter(|it| !it.is_empty()).collect();
    let month = words.iter().position(|it| MONTHS.contains(it))?;
    let date = words.get_mut(month..month + 3)?;
    if !date[2].contains(':') {
        return None;
    }
    date.copy_from_slice(&["MONTH", "DAY", "TIME"]);
    if words[0].starts_with('d') {
        *words.get_mut(4)? = "SIZE";
    }
    Some(words.join(" "))
}

/// 32 hexadecimal digits in a row are an id.
fn hide_ids(text: &str) -> String {
    let mut out = String::new();
    let mut run = String::new();
    for sign in text.chars().chain(['\0']) {
        if sign.is_ascii_hexdigit() && !sign.is_ascii_uppercase() {
            run.push(sign);
            continue;
        }
        out.push_str(if run.len() == 32 { "ID" } else { &run });
        run.clear();
        out.push(sign);
    }
    out.pop();
    out
}

/// That a listing of any day is compared: the recordings are all of one.
pub(crate) fn trial() -> Trial {
    Trial::test("compare::a_day_of_the_month_is_any", || {
        let listed = "-rw-r--r-- 1 root root 0 MONTH DAY TIME /tmp/a";
        for day in ["Nov 29", "Dec  1"] {
            let line = format!("-rw-r--r-- 1 root   root    0 {day} 04:34 /tmp/a");
            if volatile_text(&line) != listed {
                return Err(Failed::from(line));
            }
        }
        Ok(())
    })
}
