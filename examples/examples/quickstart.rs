//! The shortest way in: make a sandbox, run a command, look at what it left.
//!
//!     cargo run -p sandbox-examples --example quickstart

use sandbox::SandboxSpec;

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example's output")]
async fn main() -> sandbox_examples::Result<()> {
    // Another URL, as docker://debian:bookworm-slim, is all it takes to run elsewhere.
    let sandbox = sandbox::connect("mock:")
        .await?
        .create(SandboxSpec::new())
        .await?;

    let result = sandbox
        .execute("printf 'b\\na\\nb\\n' | sort | uniq -c | tee counts.txt")
        .await?;
    print!("{}", result.output());
    assert!(result.success());

    // Commands start in /workspace. A non-zero exit is a value, not an error.
    let content = sandbox.download("/workspace/counts.txt").await?;
    assert_eq!(content, result.stdout.bytes());
    let failed = sandbox.execute("ls /nowhere").await?;
    println!("ls ended with {}", failed.status);
    assert!(!failed.success());

    sandbox.kill().await?;
    Ok(())
}
