//! The script of faults, the record, the seed, and that sandboxes share nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use sandbox_core::{Client, Command, ErrorKind, Operation, SandboxSpec, Status};
use sandbox_mock::{Faults, MockConfig, MockProvider, Outcome};

fn provider(faults: Faults) -> MockProvider {
    MockProvider::with_faults(MockConfig::new(), faults)
}

#[tokio::test]
async fn the_nth_call_fails_is_late_is_cut_or_loses_the_sandbox() {
    let provider = provider(
        Faults::new()
            .fail(Operation::Create, 1, ErrorKind::Unavailable)
            .fail(Operation::Execute, 2, ErrorKind::RateLimited)
            .delay(Operation::Execute, 3, Duration::from_millis(300))
            .cut_output(Operation::Execute, 4, 3)
            .lose_sandbox(Operation::Execute, 5),
    );
    let client = Client::new(provider.clone());
    let refused = client.create(SandboxSpec::new()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    let s = client.create(SandboxSpec::new()).await.unwrap();
    assert!(s.execute("true").await.unwrap().success());
    assert_eq!(
        s.execute("touch /tmp/x").await.unwrap_err().kind(),
        ErrorKind::RateLimited
    );
    let start = Instant::now();
    assert!(!s.execute("test -e /tmp/x").await.unwrap().success());
    assert!(start.elapsed() >= Duration::from_millis(300));
    let cut = s.execute("echo 123456; sleep 30").await.unwrap();
    assert!(matches!(cut.status, Status::Lost(_)));
    assert_eq!(cut.stdout, "123");
    let lost = s.execute("sleep 30").await.unwrap();
    assert!(matches!(lost.status, Status::Lost(_)));
    assert_eq!(
        s.execute("true").await.unwrap_err().kind(),
        ErrorKind::SandboxGone
    );
    assert_eq!(
        s.download("/tmp/x").await.unwrap_err().kind(),
        ErrorKind::SandboxGone
    );
    assert_eq!(s.ls("/").await.unwrap_err().kind(), ErrorKind::SandboxGone);
}

#[tokio::test]
async fn a_batch_fails_as_one_call() {
    let provider = provider(Faults::new().fail(Operation::UploadFiles, 1, ErrorKind::Timeout));
    let s = Client::new(provider)
        .create(SandboxSpec::new())
        .await
        .unwrap();
    let results = s.upload_files([("/tmp/a", "a"), ("/tmp/b", "b")]).await;
    assert!(
        results
            .iter()
            .all(|r| r.as_ref().unwrap_err().kind() == ErrorKind::Timeout)
    );
    assert_eq!(
        s.download("/tmp/a").await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn the_record_tells_what_reached_the_backend() {
    let provider = MockProvider::new();
    let s = Client::new(provider.clone())
        .create(SandboxSpec::new())
        .await
        .unwrap();
    provider.record().clear();
    s.execute(Command::new("printf").arg("a b")).await.unwrap();
    s.write("/tmp/f", "x").await.unwrap();
    let _ = s
        .read("/tmp/missing", sandbox_core::ReadOptions::default())
        .await;
    let dropped = tokio::time::timeout(Duration::from_millis(50), s.execute("sleep 30"));
    assert!(dropped.await.is_err());
    let calls = provider.record().calls();
    let told: Vec<_> = calls
        .iter()
        .map(|c| (c.operation, c.summary.as_str(), &c.outcome))
        .collect();
    assert_eq!(
        told,
        [
            (
                Operation::Execute,
                "printf 'a b'",
                &Outcome::Ended(Status::Exited(0))
            ),
            (Operation::Write, "/tmp/f", &Outcome::Done),
            (
                Operation::Read,
                "/tmp/missing",
                &Outcome::Failed(ErrorKind::NotFound)
            ),
            (Operation::Execute, "sleep 30", &Outcome::Dropped),
        ]
    );
    assert_eq!(provider.record().count(Operation::Execute), 2);
    assert_eq!(provider.record().total(), 4);
    // A path that can't be never reaches the backend.
    s.ls("relative").await.unwrap_err();
    assert_eq!(provider.record().total(), 4);
}

#[tokio::test]
async fn a_seed_gives_the_same_again() {
    let once = async |seed| {
        let provider = MockProvider::with(MockConfig::new().seed(seed));
        let s = Client::new(provider)
            .create(SandboxSpec::new())
            .await
            .unwrap();
        let noise = s.execute("head -c 16 /dev/urandom").await.unwrap();
        let id = s.id().clone();
        s.kill().await.unwrap();
        (id, noise.stdout.bytes().clone())
    };
    let (first, again, other) = (once(41).await, once(41).await, once(42).await);
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[tokio::test]
async fn sandboxes_share_nothing() {
    let client = Client::new(MockProvider::new());
    let spec = |n: &str| SandboxSpec::new().env("WHO", n);
    let (a, b) = (
        client.create(spec("a")).await.unwrap(),
        client.create(spec("b")).await.unwrap(),
    );
    a.execute("echo secret >/tmp/s; chmod 700 /usr/bin; rm /etc/hosts; (sleep 30 &)")
        .await
        .unwrap();
    let r = b
        .execute("cat /tmp/s; echo $WHO; cat /etc/hosts | wc -l; ls -d /usr/bin; env")
        .await
        .unwrap();
    let out = r.stdout.to_text();
    assert!(
        !out.contains("secret") && out.starts_with("b\n2\n/usr/bin\n"),
        "{out}"
    );
    // Nor does anything of the host show.
    for name in ["CARGO", "RUST_", "LD_LIBRARY_PATH"] {
        assert!(!out.contains(name), "{out}");
    }
    let host = b
        .execute("cat /proc/1/environ /etc/machine-id; ls /work /target 2>&1")
        .await
        .unwrap();
    assert!(!host.success());
    assert_ne!(a.id(), b.id());
}
