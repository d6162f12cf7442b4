//! The engine's errors in terms of the contract.

use std::error::Error as StdError;
use std::io;

use bollard::errors::Error as Engine;
use sandbox_core::{Error, ErrorKind, Retry};

/// What of the engine's own words goes into a message.
const WORDS: usize = 400;

/// What an engine says that was too slow for its own deadlines: many containers start at once.
const BUSY: &str = "context deadline exceeded";

/// Turns an error of the engine into one of the contract. `what` says what was tried.
pub(crate) fn from_engine(what: &'static str, error: Engine) -> Error {
    match &error {
        Engine::DockerResponseServerError {
            status_code,
            message,
        } => answered(what, *status_code, message),
        Engine::RequestTimeoutError => timed_out(what),
        Engine::JsonDataError { .. }
        | Engine::JsonSerdeError { .. }
        | Engine::APIVersionParseError {}
        | Engine::StrParseError { .. }
        | Engine::HttpHeaderNotFoundError(_)
        | Engine::HttpHeaderToStrError { .. }
        | Engine::Base64DecodeError { .. } => garbled(what).because(error),
        Engine::SocketNotFoundError(_) => no_socket(),
        Engine::DockerStreamError { error: words } => Error::new(
            ErrorKind::Unexpected,
            format!("the engine could not {what}: {}", shorten(words)),
        ),
        _ => transport(what, error),
    }
}

/// An answer that the Engine API does not allow.
pub(crate) fn garbled(what: &'static str) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!("what answers at the engine's address does not speak the Engine API ({what})"),
    )
}

/// No answer within the deadline.
pub(crate) fn timed_out(what: &'static str) -> Error {
    Error::new(
        ErrorKind::Timeout,
        format!("the engine did not answer in time ({what})"),
    )
}

/// There is no such sandbox any more.
pub(crate) fn gone() -> Error {
    Error::new(
        ErrorKind::SandboxGone,
        "the container is gone or has stopped: create a new sandbox",
    )
}

/// The sandbox is paused.
pub(crate) fn paused() -> Error {
    Error::new(
        ErrorKind::SandboxPaused,
        "the container is paused: `docker unpause` it",
    )
}

fn answered(what: &'static str, code: u16, message: &str) -> Error {
    let has = |text: &str| message.contains(text);
    if has("is paused") {
        return paused();
    }
    if has("is not running") || has("No such container") || has("no such container") {
        return gone();
    }
    if has("marked for removal") || has("No such exec instance") || has("no such exec") {
        return gone();
    }
    if code == 404 && (has("No such image") || has("no such image") || has("image not known")) {
        return Error::new(ErrorKind::ImageNotFound, "the engine has no such image");
    }
    let kind = match code {
        _ if has("no space left on device") => ErrorKind::LimitExceeded,
        _ if has("does not match the specified platform") => ErrorKind::ImageNotFound,
        400 => ErrorKind::InvalidArgument,
        401 | 403 => ErrorKind::Unauthorized,
        409 => ErrorKind::AlreadyExists,
        429 => ErrorKind::RateLimited,
        502..=504 => ErrorKind::Unavailable,
        500 if has(BUSY) => ErrorKind::Unavailable,
        _ => ErrorKind::Unexpected,
    };
    Error::new(
        kind,
        format!("the engine could not {what}: {}", shorten(message)),
    )
    .with("status", code)
}

/// Whether the engine gave up because of its own load.
pub(crate) fn is_busy(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable && error.message().contains(BUSY)
}

fn no_socket() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "there is no engine's socket: start Docker, or say with DOCKER_HOST where it is",
    )
    .retry(Retry::Safe)
}

/// The engine could not be talked to at all.
fn transport(what: &'static str, error: Engine) -> Error {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(&error);
    let mut io_kind = None;
    let mut parse = false;
    while let Some(e) = cause {
        if let Some(e) = e.downcast_ref::<io::Error>() {
            io_kind.get_or_insert(e.kind());
        }
        // hyper hides its parser's errors from the types, not from the text.
        let text = e.to_string();
        parse |= text.contains("invalid HTTP") || text.contains("parsing");
        cause = e.source();
    }
    let (kind, message) = match io_kind {
        Some(io::ErrorKind::PermissionDenied) => (
            ErrorKind::Unauthorized,
            "no permission for the engine's socket: join its group (`docker`), or use a rootless \
             engine"
                .to_owned(),
        ),
        Some(io::ErrorKind::NotFound) => return no_socket().because(error),
        Some(io::ErrorKind::ConnectionRefused) => (
            ErrorKind::Unavailable,
            "nothing answers at the engine's address: start Docker".to_owned(),
        ),
        Some(io::ErrorKind::InvalidData) => return garbled(what).because(error),
        _ if parse => return garbled(what).because(error),
        _ => (
            ErrorKind::Unavailable,
            format!("the connection to the engine was lost ({what})"),
        ),
    };
    let never_sent = matches!(
        io_kind,
        Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ConnectionRefused)
    );
    let error = Error::new(kind, message).because(error);
    if never_sent && kind == ErrorKind::Unavailable {
        error.retry(Retry::Safe)
    } else {
        error
    }
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

    fn kind(code: u16, message: &str) -> ErrorKind {
        let error = Engine::DockerResponseServerError {
            status_code: code,
            message: message.into(),
        };
        from_engine("test", error).kind()
    }

    #[test]
    fn answers_of_the_engine_become_kinds() {
        for (code, message, want) in [
            (404, "No such container: abc", ErrorKind::SandboxGone),
            (409, "Container abc is not running", ErrorKind::SandboxGone),
            (
                409,
                "Container abc is paused, unpause",
                ErrorKind::SandboxPaused,
            ),
            (404, "No such image: x:latest", ErrorKind::ImageNotFound),
            (
                409,
                "Conflict. The container name is in use",
                ErrorKind::AlreadyExists,
            ),
            (400, "bad parameter", ErrorKind::InvalidArgument),
            (500, "something", ErrorKind::Unexpected),
            (
                500,
                "mkdir /x: no space left on device",
                ErrorKind::LimitExceeded,
            ),
        ] {
            assert_eq!(kind(code, message), want, "{message}");
        }
    }
}
