//! Sends a request again when the server is busy or broken for a moment.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header::RETRY_AFTER};
use rig_core::http_client::{
    Error, HttpClientExt, LazyBody, MultipartForm, Result, StreamingResponse,
};
use rig_reqwest::ReqwestClient;

use super::Progress;

/// Attempts of one request at most.
const ATTEMPTS: u32 = 5;
/// The longest wait that a server may ask for.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// An HTTP client that retries 429 and 5xx, as long as the server asks for or twice as long each
/// time. A completion costs money but changes nothing: sending it twice is safe.
#[derive(Clone)]
pub(super) struct Retrying {
    inner: ReqwestClient,
    progress: Progress,
}

impl Retrying {
    pub(super) fn new(inner: ReqwestClient, progress: Progress) -> Self {
        Self { inner, progress }
    }
}

impl fmt::Debug for Retrying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Retrying")
    }
}

impl HttpClientExt for Retrying {
    fn send<T, U>(
        &self,
        request: Request<T>,
    ) -> impl Future<Output = Result<Response<LazyBody<U>>>> + Send + 'static
    where
        T: Into<Bytes> + Send,
        U: From<Bytes> + Send + 'static,
    {
        let (parts, body) = request.into_parts();
        let body: Bytes = body.into();
        let Self { inner, progress } = self.clone();
        async move {
            let mut attempt = 1;
            loop {
                let again = Request::from_parts(parts.clone(), body.clone());
                let error = match inner.send::<_, U>(again).await {
                    Err(e) if attempt < ATTEMPTS => e,
                    settled => return settled,
                };
                let Some((status, wait)) = wait_for(&error, attempt) else {
                    return Err(error);
                };
                progress(&format!(
                    "model: the server answered {status}, again in {:.1} s",
                    wait.as_secs_f64()
                ));
                tokio::time::sleep(wait).await;
                attempt += 1;
            }
        }
    }

    fn send_multipart<U>(
        &self,
        request: Request<MultipartForm>,
    ) -> impl Future<Output = Result<Response<LazyBody<U>>>> + Send + 'static
    where
        U: From<Bytes> + Send + 'static,
    {
        self.inner.send_multipart(request)
    }

    async fn send_streaming<T>(&self, request: Request<T>) -> Result<StreamingResponse>
    where
        T: Into<Bytes> + Send,
    {
        self.inner.send_streaming(request).await
    }
}

/// How long to wait before the next attempt; `None` when it would be of no use.
fn wait_for(error: &Error, attempt: u32) -> Option<(StatusCode, Duration)> {
    let status = error.non_success_status()?;
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let asked = error
        .non_success_headers()
        .and_then(|h| h.get(RETRY_AFTER))
        .and_then(|v| v.to_str().ok()?.parse().ok())
        .map(Duration::from_secs);
    match asked {
        Some(wait) if wait > WAIT_MAX => None,
        Some(wait) => Some((status, wait)),
        None => Some((status, Duration::from_millis(250) * 2u32.pow(attempt))),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn waits_as_asked_within_reason_and_only_where_it_helps() {
        let wait = |status: u16, after: Option<&str>, attempt| {
            let mut headers = HeaderMap::new();
            if let Some(after) = after {
                headers.insert(RETRY_AFTER, after.parse().unwrap());
            }
            let status = StatusCode::from_u16(status).unwrap();
            let error = Error::non_success_with_details(status, headers, String::new());
            wait_for(&error, attempt).map(|(_, wait)| wait)
        };
        assert_eq!(wait(429, Some("7"), 1), Some(Duration::from_secs(7)));
        assert_eq!(wait(429, Some("3600"), 1), None);
        assert_eq!(wait(503, None, 1), Some(Duration::from_millis(500)));
        assert_eq!(wait(529, None, 4), Some(Duration::from_secs(4)));
        assert_eq!(wait(500, Some("soon"), 1), Some(Duration::from_millis(500)));
        assert_eq!(wait(400, Some("1"), 1), None);
        assert_eq!(wait(401, None, 1), None);
    }
}
