//! Moving the end of a sandbox, and pausing it.

use std::time::{Duration, SystemTime};

use sandbox_core::ErrorKind;

use super::needs::LEASE;
use crate::check::refused;
use crate::{CaseResult, Cx};

cases! { "lease":
    the_end_is_known fresh needs(LEASE);
    renewing_moves_the_end fresh needs(LEASE);
    renewing_to_zero_is_refused needs(LEASE);
    pausing_freezes_and_resuming_ends_it_or_is_refused fresh needs(LEASE);
}

async fn the_end_is_known(cx: Cx) -> CaseResult {
    let end = cx.sandbox.expires_at().await?;
    let lifetime = cx.spec.effective_lifetime();
    if let Some(end) = end {
        let left = end.duration_since(SystemTime::now()).unwrap_or_default();
        check!(
            left <= lifetime + Duration::from_mins(1),
            "{left:?} of {lifetime:?}"
        );
        check!(
            left + Duration::from_mins(2) >= lifetime,
            "{left:?} of {lifetime:?}"
        );
    }
    Ok(())
}

async fn renewing_moves_the_end(cx: Cx) -> CaseResult {
    let lifetime = Duration::from_mins(50);
    cx.sandbox.renew(lifetime).await?;
    let end = cx
        .sandbox
        .expires_at()
        .await?
        .unwrap_or(SystemTime::UNIX_EPOCH);
    let left = end.duration_since(SystemTime::now()).unwrap_or_default();
    check!(left.abs_diff(lifetime) < Duration::from_mins(1), "{left:?}");
    check_eq!(cx.raw("echo ok").await?.stdout, "ok\n");
    Ok(())
}

async fn renewing_to_zero_is_refused(cx: Cx) -> CaseResult {
    cx.sandbox.expires_at().await?;
    refused(
        cx.sandbox.renew(Duration::ZERO).await,
        ErrorKind::InvalidArgument,
    )?;
    check_eq!(cx.raw("echo ok").await?.stdout, "ok\n");
    Ok(())
}

async fn pausing_freezes_and_resuming_ends_it_or_is_refused(cx: Cx) -> CaseResult {
    cx.sandbox.expires_at().await?;
    match cx.sandbox.pause().await {
        Err(e) if e.kind() == ErrorKind::Unsupported => {
            refused(cx.sandbox.resume().await, ErrorKind::Unsupported)?;
        }
        paused => {
            paused?;
            refused(cx.raw("echo hi").await, ErrorKind::SandboxPaused)?;
            cx.sandbox.resume().await?;
        }
    }
    check_eq!(cx.raw("echo ok").await?.stdout, "ok\n");
    Ok(())
}
