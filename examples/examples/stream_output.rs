//! Shows a command's output while it runs.
//!
//!     cargo run -p sandbox-examples --example stream_output

use std::time::{Duration, Instant};

use sandbox::{Command, ExecuteEvent, SandboxSpec, Status};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example's output")]
async fn main() -> sandbox_examples::Result<()> {
    let sandbox = sandbox::connect("mock:")
        .await?
        .create(SandboxSpec::new())
        .await?;

    let started = Instant::now();
    let mut first = None;
    let mut text = String::new();
    let mut ending = None;
    let command =
        Command::shell("for i in 1 2 3; do echo step $i; sleep 0.2; done; echo oops >&2; exit 3");
    let mut events = sandbox.stream(command).await?;
    while let Some(event) = events.next().await {
        match event {
            ExecuteEvent::Output(stream, bytes) => {
                let bytes = String::from_utf8_lossy(&bytes);
                first.get_or_insert(started.elapsed());
                println!(
                    "{:>5.2} s {stream:?}: {}",
                    started.elapsed().as_secs_f64(),
                    bytes.trim_end()
                );
                text.push_str(&bytes);
            }
            ExecuteEvent::Ended { status, .. } => ending = Some(status),
            // Events may be added.
            _ => {}
        }
    }
    println!("ended: {ending:?}");
    assert_eq!(ending, Some(Status::Exited(3)));
    assert_eq!(text, "step 1\nstep 2\nstep 3\noops\n");
    // The first line came long before the command ended.
    assert!(first.is_some_and(|t| t + Duration::from_millis(300) < started.elapsed()));

    // Dropping the stream kills the command: this one would run for a day.
    let mut endless = sandbox
        .stream("echo going; sleep 86400; touch /workspace/survived")
        .await?;
    assert!(endless.next().await.is_some());
    drop(endless);
    assert!(sandbox.download("/workspace/survived").await.is_err());

    sandbox.kill().await?;
    Ok(())
}
