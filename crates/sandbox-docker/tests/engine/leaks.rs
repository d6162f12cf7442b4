//! Futures dropped at points that a seed chooses. The engine itself is asked what is left.

use std::time::{Duration, Instant};

use sandbox_core::{SandboxSpec, flush};
use tokio::time::timeout;

use crate::support::{BUSYBOX, GNU, Random, client, labelled, sandbox, unique};

pub(crate) async fn dropped_creates_leave_no_container() {
    let client = client(BUSYBOX, "1000").await;
    let (tag, mut random) = (unique("create"), Random(11));
    for _ in 0..30 {
        let create = client.create(SandboxSpec::new().label("leak", &tag));
        // One that was made in time is dropped here too.
        let _ = timeout(Duration::from_millis(random.below(400)), create).await;
    }
    let start = Instant::now();
    assert!(flush(Duration::from_mins(1)));
    while !labelled("leak", &tag).is_empty() {
        assert!(start.elapsed() < Duration::from_mins(1));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub(crate) async fn dropped_commands_leave_no_process() {
    let (sandbox, mut random) = (sandbox(GNU, "1000").await, Random(12));
    for _ in 0..50 {
        let run = sandbox.execute("(setsid sleep 111 &); sleep 111 & sleep 111");
        let _ = timeout(Duration::from_millis(random.below(150)), run).await;
    }
    assert!(flush(Duration::from_mins(1)));
    let left =
        "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done | grep -c '^sleep 111'";
    let left = sandbox.execute(left).await.unwrap();
    assert_eq!(left.stdout, "0\n");
}

pub(crate) async fn dropped_uploads_leave_the_sandbox_usable() {
    let (sandbox, mut random) = (sandbox(GNU, "1000").await, Random(13));
    let big = vec![7; 20 << 20];
    for _ in 0..20 {
        let upload = sandbox.upload("/workspace/big", big.clone());
        let _ = timeout(Duration::from_millis(random.below(300)), upload).await;
    }
    assert!(flush(Duration::from_mins(1)));
    let left = "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done | grep -c '^dd '";
    let left = sandbox.execute(left).await.unwrap();
    assert_eq!(left.stdout, "0\n");
    sandbox.upload("/workspace/big", "whole").await.unwrap();
    assert_eq!(sandbox.download("/workspace/big").await.unwrap(), "whole");
}
