//! Answers and transport in terms of the contract.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use sandbox_core::{Error, ErrorKind, Retry};
use serde_json::Value;

/// What of foreign words goes into a message.
const WORDS: usize = 400;

/// A refusal in the words of a server or a daemon, whichever of its shapes it has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Refusal {
    /// Reads `{code, message}`, `{detail}` (text or a list), `{error}`, or plain text.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let Ok(Value::Object(body)) = serde_json::from_slice::<Value>(body) else {
            return Self {
                code: String::new(),
                message: shorten(&String::from_utf8_lossy(body)),
            };
        };
        let message = if let Some(detail) = body.get("detail") {
            match detail {
                Value::Array(items) => items.iter().map(complaint).collect::<Vec<_>>().join("; "),
                other => text(other),
            }
        } else {
            let words = body.get("message").or_else(|| body.get("error"));
            words.map(text).unwrap_or_default()
        };
        Self {
            code: shorten(&body.get("code").map(text).unwrap_or_default()),
            message: shorten(&message),
        }
    }

    /// True for a code of this name, whatever the runtime in front of it.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.code.rsplit("::").next() == Some(name)
    }
}

/// One complaint of a validation: where, and what.
fn complaint(item: &Value) -> String {
    let place: Vec<String> = item["loc"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|part| {
            part.as_str()
                .map_or_else(|| part.to_string(), str::to_owned)
        })
        .collect();
    format!(
        "{}: {}",
        place.join("."),
        item["msg"].as_str().unwrap_or_default()
    )
}

/// An answer other than success. `what` says what was tried.
pub(crate) fn answered(
    what: &'static str,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Error {
    let refusal = Refusal::parse(body);
    let error = told(what, status, &refusal);
    let error = if refusal.code.is_empty() {
        error
    } else {
        error.with("code", &refusal.code)
    };
    let header = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
    let error = match header("x-request-id") {
        Some(id) => error.with("request_id", shorten(id)),
        None => error,
    };
    match retry_after(headers) {
        Some(wait) => error.with("retry_after_seconds", wait.as_secs()),
        None => error,
    }
    .with("status", status.as_u16())
}

fn told(what: &'static str, status: StatusCode, refusal: &Refusal) -> Error {
    if status.is_redirection() {
        return Error::new(
            ErrorKind::Protocol,
            format!(
                "the server sends on to another address, which is not followed, to {what}: name \
                 the right address"
            ),
        );
    }
    if refusal.is("SANDBOX_NOT_FOUND") {
        return gone();
    }
    if refusal.is("SANDBOX_IMAGE_PULL_FAILED") {
        return Error::new(
            ErrorKind::ImageNotFound,
            format!(
                "the server has no such image and can't get it: {}",
                refusal.message
            ),
        );
    }
    let (kind, advice) = match status.as_u16() {
        401 => (
            ErrorKind::Unauthorized,
            ": set the server's key (OPEN_SANDBOX_API_KEY), or correct it",
        ),
        403 => (ErrorKind::Unauthorized, ""),
        404 => (ErrorKind::NotFound, ""),
        409 => (ErrorKind::Conflict, ""),
        429 => (ErrorKind::RateLimited, ": wait, then repeat"),
        400 | 405 | 413 | 416 | 422 => (ErrorKind::InvalidArgument, ""),
        501 => (ErrorKind::Unsupported, ""),
        502..=504 => (ErrorKind::Unavailable, ""),
        _ => (ErrorKind::Unexpected, ""),
    };
    let words = if refusal.message.is_empty() {
        status.canonical_reason().unwrap_or("no reason given")
    } else {
        refusal.message.as_str()
    };
    let error = Error::new(kind, format!("could not {what}: {words}{advice}"));
    match status.as_u16() {
        // The server refuses before it does anything.
        503 => error.retry(Retry::Safe),
        409 => error.retry(Retry::Never),
        _ => error,
    }
}

/// How long a server asks to wait, in seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    Some(
        at.duration_since(std::time::SystemTime::now())
            .unwrap_or_default(),
    )
}

/// There is no such sandbox any more.
pub(crate) fn gone() -> Error {
    Error::new(
        ErrorKind::SandboxGone,
        "the server has no such sandbox (any more): its lifetime may have ended; create a new one",
    )
}

/// The sandbox is paused.
pub(crate) fn paused() -> Error {
    Error::new(
        ErrorKind::SandboxPaused,
        "the sandbox is paused: call `resume`",
    )
}

/// No answer within the deadline.
pub(crate) fn timed_out(what: &'static str) -> Error {
    Error::new(
        ErrorKind::Timeout,
        format!("no answer in time, trying to {what}"),
    )
}

/// An answer that the API does not allow.
pub(crate) fn garbled(what: &'static str) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!("the answer is not one of this API, trying to {what}"),
    )
}

/// Nothing that the API allows is so large.
pub(crate) fn endless(what: &'static str) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!("the answer is larger than any of this API, trying to {what}"),
    )
}

/// The connection failed, or the answer broke off.
pub(crate) fn transport(what: &'static str, error: reqwest::Error) -> Error {
    if error.is_timeout() {
        return timed_out(what).because(error.without_url());
    }
    let refused = is_refused(&error);
    let (message, retry) = if refused {
        ("nothing listens at the address", Retry::Safe)
    } else if error.is_connect() {
        ("the address can't be reached", Retry::Safe)
    } else {
        ("the connection was lost", Retry::Unsure)
    };
    Error::new(
        ErrorKind::Unavailable,
        format!("{message}, trying to {what}"),
    )
    .because(error.without_url())
    .retry(retry)
}

/// True when nothing was sent, because nothing listens.
pub(crate) fn is_refused(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(e) = cause {
        if let Some(e) = e.downcast_ref::<io::Error>() {
            return error.is_connect() && e.kind() == io::ErrorKind::ConnectionRefused;
        }
        cause = e.source();
    }
    false
}

/// Why the daemon could not start the command's shell, from its words.
pub(crate) fn not_started(why: &str) -> Error {
    let has = |words: &str| why.to_ascii_lowercase().contains(words);
    let (kind, message) = if has("argument list too long") {
        (
            ErrorKind::TooLarge,
            "the command and its variables are longer than the system takes",
        )
    } else if has("temporarily unavailable") || has("cannot allocate memory") {
        (
            ErrorKind::LimitExceeded,
            "no room for another process in the sandbox",
        )
    } else if has("operation not permitted") || has("permission denied") {
        (
            ErrorKind::PermissionDenied,
            "the daemon may not start a command of this user",
        )
    } else {
        (
            ErrorKind::Unexpected,
            "the daemon could not start the command",
        )
    };
    Error::new(kind, message).with("why", shorten(why))
}

/// The beginning of foreign words, on one line.
pub(crate) fn shorten(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(WORDS)
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, body: &str) -> ErrorKind {
        let status = StatusCode::from_u16(status).unwrap();
        answered("test", status, &HeaderMap::new(), body.as_bytes()).kind()
    }

    #[test]
    fn every_shape_of_a_refusal_is_read() {
        for (body, code, message) in [
            (r#"{"code":"A::B","message":"m"}"#, "A::B", "m"),
            (r#"{"detail":"Not Found"}"#, "", "Not Found"),
            (
                r#"{"detail":[{"loc":["body","timeout",0],"msg":"too small"}]}"#,
                "",
                "body.timeout.0: too small",
            ),
            (r#"{"error":"no token"}"#, "", "no token"),
            ("Bad\nGateway", "", "Bad Gateway"),
            (r#"{"code":7,"message":[]}"#, "", ""),
            ("", "", ""),
        ] {
            let refusal = Refusal::parse(body.as_bytes());
            assert_eq!(
                (refusal.code.as_str(), refusal.message.as_str()),
                (code, message)
            );
        }
        assert!(Refusal::parse(&[b'x'; 9000]).message.len() <= WORDS);
    }

    #[test]
    fn answers_become_kinds() {
        for (status, body, want) in [
            (
                404,
                r#"{"code":"DOCKER::SANDBOX_NOT_FOUND"}"#,
                ErrorKind::SandboxGone,
            ),
            (
                500,
                r#"{"code":"DOCKER::SANDBOX_IMAGE_PULL_FAILED"}"#,
                ErrorKind::ImageNotFound,
            ),
            (
                401,
                r#"{"code":"INVALID_API_KEY","message":"no"}"#,
                ErrorKind::Unauthorized,
            ),
            (302, "", ErrorKind::Protocol),
            (422, r#"{"detail":[]}"#, ErrorKind::InvalidArgument),
            (429, "slow down", ErrorKind::RateLimited),
            (503, "busy", ErrorKind::Unavailable),
            (500, "Internal Server Error", ErrorKind::Unexpected),
        ] {
            assert_eq!(kind(status, body), want, "{status} {body}");
        }
    }

    #[test]
    fn how_long_to_wait_is_a_number_or_a_date() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(7)));
        headers.insert(
            RETRY_AFTER,
            "Sun, 06 Nov 1994 08:49:37 GMT".parse().unwrap(),
        );
        assert_eq!(retry_after(&headers), Some(Duration::ZERO));
        headers.insert(RETRY_AFTER, "soon".parse().unwrap());
        assert_eq!(retry_after(&headers), None);
    }
}
