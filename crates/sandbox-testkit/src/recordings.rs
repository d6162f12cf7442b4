//! What a real `OpenSandbox` server and its daemon were asked and what they answered: server 1.1.1,
//! daemon of June 2026. One request and its answer on a line, in the order in which they were made.

use std::io;

use serde_json::Value;

/// One recorded request and its answer.
#[derive(Clone, Debug)]
pub struct Recorded(pub Value);

impl Recorded {
    /// All of a group: `command`, `files`, `lifecycle` and so on.
    ///
    /// # Errors
    ///
    /// There is no such group, or it can't be read.
    pub fn load(group: &str) -> io::Result<Vec<Self>> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/data/opensandbox");
        let text = std::fs::read_to_string(format!("{folder}/{group}.jsonl"))?;
        text.lines()
            .map(|line| Ok(Self(serde_json::from_str(line)?)))
            .collect()
    }

    /// As `group/name`.
    pub fn name(&self) -> &str {
        self.0["case"].as_str().unwrap_or_default()
    }

    /// The request's method.
    pub fn method(&self) -> &str {
        self.0["request"]["method"].as_str().unwrap_or_default()
    }

    /// The request's path and query, without the way through the daemon's own proxy.
    pub fn target(&self) -> &str {
        let path = self.0["request"]["path"].as_str().unwrap_or_default();
        path.strip_prefix("/proxy/44772").unwrap_or(path)
    }

    /// The request's body as text; empty for none.
    pub fn sent(&self) -> &str {
        self.0["request"]["body_text"].as_str().unwrap_or_default()
    }

    /// The answer's status; 0 for none.
    pub fn status(&self) -> u16 {
        let status = self.0["response"]["status"].as_u64().unwrap_or(0);
        u16::try_from(status).unwrap_or(0)
    }

    /// The answer's headers.
    pub fn headers(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pairs = self.0["response"]["headers"].as_array();
        let pairs = pairs.into_iter().flatten();
        pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
    }

    /// The answer's body, without the framing. Of the largest ones the beginning, or the length
    /// alone, was recorded: see [`is_whole`](Self::is_whole).
    pub fn body(&self) -> Vec<u8> {
        let answer = &self.0["response"];
        match (answer["body_base64"].as_str(), answer["body"].as_str()) {
            (Some(encoded), _) => decode_base64(encoded),
            (None, Some("")) => vec![0; self.body_length()],
            (None, body) => body.unwrap_or_default().as_bytes().to_vec(),
        }
    }

    /// How long the body was.
    pub fn body_length(&self) -> usize {
        let length = self.0["response"]["body_len"].as_u64().unwrap_or(0);
        usize::try_from(length).unwrap_or(0)
    }

    /// Whether all of the body was recorded.
    pub fn is_whole(&self) -> bool {
        self.0["response"]["body_truncated_to"].is_null()
    }

    /// Whether the answer came to its end.
    pub fn is_complete(&self) -> bool {
        self.0["response"]["complete"].as_bool().unwrap_or(false)
    }
}

/// Reads base64 of the usual alphabet.
pub fn decode_base64(text: &str) -> Vec<u8> {
    let value = |it: u8| match it {
        b'A'..=b'Z' => it - b'A',
        b'a'..=b'z' => it - b'a' + 26,
        b'0'..=b'9' => it - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, &it| word << 6 | u32::from(value(it)));
        let word = word << (6 * (4 - chunk.len()));
        out.extend_from_slice(&word.to_be_bytes()[1..chunk.len()]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        assert_eq!(decode_base64("AAH+/w=="), [0, 1, 254, 255]);
        assert!(decode_base64("").is_empty());
    }

    #[test]
    fn a_recording_has_its_request_and_its_answer() {
        let recorded = Recorded::load("command").unwrap();
        let echo = recorded.iter().find(|r| r.name() == "command/echo_hi");
        let echo = echo.unwrap();
        assert_eq!((echo.method(), echo.target()), ("POST", "/command"));
        assert_eq!(
            (echo.status(), echo.body().len()),
            (200, echo.body_length())
        );
        assert!(Recorded::load("no-such-group").is_err());
    }
}
