//! Reading request bodies within bounds.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::respond::{ApiError, Code};

/// The largest body that is held in memory.
const LARGEST: usize = 16 << 20;
/// What all requests together may hold, in KiB.
const BUDGET_KIB: usize = 128 << 10;
/// How long a client may take between two pieces of a body.
const PATIENCE: Duration = Duration::from_mins(1);

/// The memory all request bodies share.
#[derive(Debug)]
pub(crate) struct Budget {
    kib: Arc<Semaphore>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            kib: Arc::new(Semaphore::new(BUDGET_KIB)),
        }
    }
}

/// A part of the budget, given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Share {
    permit: Option<OwnedSemaphorePermit>,
    bytes: usize,
}

impl Budget {
    /// Enlarges `share` to `bytes`. Never waits: requests that hold a part while they wait for
    /// more could wait for each other.
    ///
    /// # Errors
    ///
    /// 503 when there is not so much left.
    pub(crate) fn enlarge(&self, share: &mut Share, bytes: usize) -> Result<(), ApiError> {
        let have = share.bytes.div_ceil(1024);
        let more = bytes.div_ceil(1024).saturating_sub(have);
        let permits = u32::try_from(more).unwrap_or(u32::MAX);
        let permit = self
            .kib
            .clone()
            .try_acquire_many_owned(permits)
            .map_err(|_| {
                let why = "too many large requests at once";
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, Code::Runtime, why)
            })?;
        match &mut share.permit {
            Some(held) => held.merge(permit),
            None => share.permit = Some(permit),
        }
        share.bytes = share.bytes.max(bytes);
        Ok(())
    }
}

/// The next piece of a body; `None` at its end.
///
/// # Errors
///
/// 400 when the body is cut or malformed, 408 when it does not come.
pub(crate) async fn next(body: &mut Incoming) -> Result<Option<Bytes>, ApiError> {
    loop {
        let frame = tokio::time::timeout(PATIENCE, body.frame())
            .await
            .map_err(|_| {
                let why = "the request's body did not come";
                ApiError::new(StatusCode::REQUEST_TIMEOUT, Code::InvalidRequest, why)
            })?;
        let Some(frame) = frame else {
            return Ok(None);
        };
        let frame = frame.map_err(|error| {
            ApiError::invalid(format!("error reading the request's body: {error}"))
        })?;
        // Trailers are of no interest.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

/// The whole body, with the share of the budget it holds.
///
/// # Errors
///
/// As [`next`]; 413 when it is too large, 503 when there is no room for it now.
pub(crate) async fn read(
    budget: &Budget,
    mut body: Incoming,
) -> Result<(Vec<u8>, Share), ApiError> {
    let mut share = Share::default();
    let mut out = Vec::new();
    let too_large = || {
        let why = format!("the request's body is larger than {LARGEST} bytes");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, Code::InvalidRequest, why)
    };
    if body.size_hint().lower() > LARGEST as u64 {
        return Err(too_large());
    }
    while let Some(data) = next(&mut body).await? {
        let size = out.len() + data.len();
        if size > LARGEST {
            return Err(too_large());
        }
        budget.enlarge(&mut share, size)?;
        out.extend_from_slice(&data);
    }
    Ok((out, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_shared_and_given_back() {
        let budget = Budget::default();
        let all = BUDGET_KIB * 1024;
        let mut first = Share::default();
        budget.enlarge(&mut first, all - 2048).unwrap();
        let mut second = Share::default();
        budget.enlarge(&mut second, 1024).unwrap();
        budget.enlarge(&mut second, 2048).unwrap();
        assert_eq!(budget.enlarge(&mut second, 4096).unwrap_err().status, 503);
        drop(first);
        budget.enlarge(&mut second, 4096).unwrap();
    }
}
