//! Sending what was recorded, in its order.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sandbox_testkit::recordings::decode_base64;
use serde_json::Value;

use crate::http::{Answer, Until, exchange};

/// Ids in the recording, and those of the same commands here.
type Ids = Arc<Mutex<BTreeMap<String, String>>>;

/// One recorded request and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Recorded(pub(crate) Value);

impl Recorded {
    /// All of a group.
    pub(crate) fn load(group: &str) -> Vec<Self> {
        let all = sandbox_testkit::recordings::Recorded::load(group).expect(group);
        all.into_iter().map(|it| Self(it.0)).collect()
    }

    pub(crate) fn name(&self) -> &str {
        self.0["case"].as_str().unwrap_or_default()
    }

    /// Not recorded: it makes what recorded requests need.
    pub(crate) fn is_set_up(&self) -> bool {
        self.name().starts_with("setup/")
    }

    pub(crate) fn answer(&self) -> Answer {
        let it = sandbox_testkit::recordings::Recorded(self.0.clone());
        Answer {
            status: it.status(),
            headers: it.headers(),
            body: it.body(),
            complete: it.is_complete(),
        }
    }

    /// How long a body was that was recorded in short: its beginning only.
    pub(crate) fn shortened(&self) -> Option<usize> {
        let it = &self.0["response"];
        it["body_truncated_to"].as_u64()?;
        it["body_len"]
            .as_u64()
            .and_then(|it| usize::try_from(it).ok())
    }

    /// The id its first event tells.
    fn id(&self) -> Option<String> {
        if let Some(id) = self.0["id"].as_str() {
            return Some(id.to_owned());
        }
        init_id(&self.answer().body)
    }

    fn body(&self) -> Vec<u8> {
        let request = &self.0["request"];
        if let Some(encoded) = request["body_b64"].as_str() {
            return decode_base64(encoded);
        }
        let body = request["body_text"].as_str().unwrap_or_default();
        match body.rfind("...[").filter(|_| body.ends_with(" bytes]")) {
            Some(_) => self.shortened_body(body),
            None => body.as_bytes().to_vec(),
        }
    }

    /// Some bodies were recorded in short. They are regular, but for the content of one file.
    fn shortened_body(&self, body: &str) -> Vec<u8> {
        let length = self.0["request"]["headers"]["Content-Length"]
            .as_str()
            .unwrap_or_default();
        let length: usize = length.parse().expect("a length");
        let many = |count: usize| -> Vec<u8> {
            let pairs = (0..count).map(|at| {
                format!(
                    "--XbOuNdArY\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"metadata\"\r\n\
                     Content-Type: application/json\r\n\r\n{{\"path\": \"/tmp/many/{at}\", \"mode\": 644}}\r\n\
                     --XbOuNdArY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f{at}\"\r\n\r\nx\r\n"
                )
            });
            (pairs.collect::<String>() + "--XbOuNdArY--\r\n").into_bytes()
        };
        let filled = |before: &str, sign: u8, after: &str| -> Vec<u8> {
            let fill = vec![sign; length - before.len() - after.len()];
            [before.as_bytes(), &fill, after.as_bytes()].concat()
        };
        let whole = match self.name() {
            "files/upload_500_files" => many(500),
            "files/upload_501_files" => many(501),
            "files/upload_5mb" => {
                let head = body.find("octet-stream\r\n\r\n").expect("the file's head");
                filled(&body[..head + 16], 0xA7, "\r\n--XbOuNdArY--\r\n")
            }
            name => {
                let fill = body.rfind("x...[").expect("a row of x");
                let start = body[..fill].trim_end_matches('x');
                let after = if body.contains("\"BIG\"") {
                    "\"}}"
                } else {
                    "\"}"
                };
                assert!(
                    name.contains("e2big"),
                    "{name}: its body was recorded in short"
                );
                filled(start, b'x', after)
            }
        };
        assert_eq!(whole.len(), length, "{}", self.name());
        whole
    }

    /// The bytes to send, with the ids of this run in place of those recorded.
    fn request(&self, ids: &Ids, direct: bool) -> Vec<u8> {
        let request = &self.0["request"];
        let mut path = request["path"].as_str().unwrap_or_default().to_owned();
        if direct && let Some(rest) = path.strip_prefix("/proxy/44772") {
            path = rest.to_owned();
        }
        for (recorded, own) in ids.lock().unwrap().iter() {
            path = path.replace(recorded, own);
        }
        let method = request["method"].as_str().unwrap_or_default();
        let mut out = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n").into_bytes();
        for (name, value) in request["headers"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.body());
        out
    }

    /// The recorded id its path has in it.
    fn wants_id(&self) -> Option<&str> {
        let path = self.0["request"]["path"].as_str()?;
        path.split(['/', '=', '?'])
            .find(|it| it.len() == 32 && it.bytes().all(|it| it.is_ascii_hexdigit()))
    }
}

/// The id in the first event of a stream.
fn init_id(body: &[u8]) -> Option<String> {
    let end = body.windows(2).position(|it| it == b"\n\n")?;
    let event: Value = serde_json::from_slice(&body[..end]).ok()?;
    if event["type"] != "init" {
        return None;
    }
    event["text"].as_str().map(str::to_owned)
}

/// Sends all of `recorded`, and gives what came back by name.
pub(crate) fn replay(
    address: SocketAddr,
    recorded: &[Recorded],
    direct: bool,
) -> BTreeMap<String, Result<Answer, String>> {
    let ids = Ids::default();
    let mut answers = BTreeMap::new();
    let mut running = Vec::new();
    for one in recorded {
        let number = |key: &str| one.0[key].as_u64().map(Duration::from_millis);
        std::thread::sleep(number("before_ms").unwrap_or_default());
        if let Some(id) = one.wants_id() {
            let begun = Instant::now();
            while !ids.lock().unwrap().contains_key(id) && begun.elapsed() < Duration::from_secs(5)
            {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let request = one.request(&ids, direct);
        let until = Until {
            time: number("read_ms"),
            seen: one.0["hang_up_after"].as_str().map(str::to_owned),
        };
        let (recorded_id, ids) = (one.id(), ids.clone());
        let send = move || {
            let watch = |body: &[u8]| {
                if let (Some(recorded), Some(own)) = (&recorded_id, init_id(body)) {
                    ids.lock().unwrap().insert(recorded.clone(), own);
                }
            };
            exchange(address, &request, &until, watch).map_err(|it| it.to_string())
        };
        if one.0["spawn"] == true {
            running.push((one.name().to_owned(), std::thread::spawn(send)));
        } else {
            answers.insert(one.name().to_owned(), send());
        }
    }
    for (name, thread) in running {
        answers.insert(name, thread.join().expect("a thread that sends"));
    }
    answers
}
