//! Answers: their shapes, and the error form `{"code","message"}`.

use std::io;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use crate::json::Object;

/// A body of any kind; an error in it cuts the connection.
pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
pub(crate) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// A body that is all there.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// 200 without a body.
pub(crate) fn empty() -> Response<Body> {
    Response::new(whole(Bytes::new()))
}

/// 200 with JSON.
pub(crate) fn json(bytes: impl Into<Bytes>) -> Response<Body> {
    with_type(StatusCode::OK, JSON, bytes)
}

pub(crate) fn with_type(
    status: StatusCode,
    kind: HeaderValue,
    bytes: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(whole(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// 200 with a stream of events.
pub(crate) fn event_stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("X-Accel-Buffering", HeaderValue::from_static("no"));
    response
}

/// `text` and a line end as plain text, the way Go's `http.Error` answers.
pub(crate) fn plain_error(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = with_type(status, TEXT, format!("{text}\n"));
    response.headers_mut().insert(
        "X-Content-Type-Options",
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// The codes of the protocol that this daemon uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    InvalidRequest,
    MissingQuery,
    Runtime,
    InvalidFile,
    InvalidFileContent,
    InvalidFileMetadata,
    FileNotFound,
    NotSupported,
}

impl Code {
    fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "INVALID_REQUEST_BODY",
            Self::MissingQuery => "MISSING_QUERY",
            Self::Runtime => "RUNTIME_ERROR",
            Self::InvalidFile => "INVALID_FILE",
            Self::InvalidFileContent => "INVALID_FILE_CONTENT",
            Self::InvalidFileMetadata => "INVALID_FILE_METADATA",
            Self::FileNotFound => "FILE_NOT_FOUND",
            Self::NotSupported => "NOT_SUPPORTED",
        }
    }
}

/// A request that failed.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: Code,
    /// Bytes, for it may name a file that is not UTF-8.
    pub(crate) message: Vec<u8>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: Code, message: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    pub(crate) fn invalid(message: impl Into<Vec<u8>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::InvalidRequest, message)
    }

    pub(crate) fn runtime(message: impl Into<Vec<u8>>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::Runtime, message)
    }

    pub(crate) fn missing_query(name: &str) -> Self {
        let message = format!("missing query parameter '{name}'");
        Self::new(StatusCode::BAD_REQUEST, Code::MissingQuery, message)
    }

    /// `{"code":...,"message":...}`.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        Object::new()
            .str("code", self.code.name())
            .str("message", &self.message)
            .finish()
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        with_type(self.status, JSON, self.to_json())
    }
}
