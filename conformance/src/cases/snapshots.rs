//! Keeping the files of a moment.

use sandbox_core::{ErrorKind, SnapshotId};

use super::needs::SNAPSHOTS;
use crate::check::refused;
use crate::{CaseResult, Cx};

cases! { "snapshots":
    restoring_puts_the_files_back fresh needs(SNAPSHOTS);
    a_snapshot_can_be_restored_twice fresh needs(SNAPSHOTS);
    an_unknown_snapshot_is_not_found fresh needs(SNAPSHOTS);
}

async fn restoring_puts_the_files_back(cx: Cx) -> CaseResult {
    cx.ok("echo kept >f; chmod 750 f; ln -s f l; mkdir d; echo x >d/g")
        .await?;
    let id = cx.sandbox.snapshot().await?;
    cx.ok("echo changed >f; rm -rf d l; echo new >new; chmod 600 f")
        .await?;
    cx.sandbox.restore(&id).await?;
    check_eq!(
        cx.ok("cat f l d/g; ls -A").await?,
        "kept\nkept\nx\nd\nf\nl\n"
    );
    check_eq!(cx.mode("f").await?, "750");
    Ok(())
}

async fn a_snapshot_can_be_restored_twice(cx: Cx) -> CaseResult {
    cx.put([("f", b"1")]).await?;
    let first = cx.sandbox.snapshot().await?;
    cx.put([("f", b"2")]).await?;
    let second = cx.sandbox.snapshot().await?;
    for (id, right) in [(&first, b"1"), (&second, b"2"), (&first, b"1")] {
        cx.put([("f", b"other")]).await?;
        cx.sandbox.restore(id).await?;
        check_eq!(cx.get("f").await?, right.to_vec());
    }
    Ok(())
}

async fn an_unknown_snapshot_is_not_found(cx: Cx) -> CaseResult {
    cx.put([("f", b"1")]).await?;
    cx.sandbox.snapshot().await?;
    refused(
        cx.sandbox.restore(&SnapshotId("none".to_owned())).await,
        ErrorKind::NotFound,
    )?;
    check_eq!(cx.get("f").await?, b"1".to_vec());
    Ok(())
}
