//! Sixteen agents at once, each in a sandbox of its own. Nothing is shared: files, environment,
//! processes.
//!
//!     cargo run -p sandbox-examples --example many_agents

use std::time::Instant;

use sandbox::{Client, SandboxSpec};
use tokio::task::JoinSet;

const AGENTS: usize = 16;

/// One agent's work: every agent uses the same names and must not notice the others.
async fn agent(client: Client, number: usize) -> sandbox_examples::Result<String> {
    let spec = SandboxSpec::new().env("AGENT", number.to_string());
    let sandbox = client.create(spec).await?;

    sandbox
        .write("/workspace/mine.txt", format!("secret of {number}"))
        .await?;
    sandbox.write("/tmp/mine.txt", number.to_string()).await?;
    // A command in the background, which only its own sandbox may know of.
    sandbox
        .execute("(sleep 0.3; echo done >/workspace/background.txt) >/dev/null 2>&1 &")
        .await?;
    for _ in 0..5 {
        let seen = sandbox
            .execute("export LOCAL=$AGENT; cat /workspace/mine.txt; echo; echo \"$AGENT $LOCAL\"; ls /workspace /tmp")
            .await?;
        let text = seen.output();
        let expected = format!("secret of {number}\n{number} {number}\n");
        assert!(text.starts_with(&expected), "agent {number} saw: {text}");
    }
    // A variable of one command is not there in the next one.
    let local = sandbox.execute("echo \"[$LOCAL]\"").await?;
    assert_eq!(local.stdout, "[]\n");

    let mut files = Vec::new();
    for _ in 0..40 {
        files = sandbox.glob("*", "/workspace").await?.paths;
        if files.len() == 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let names: Vec<String> = files.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["/workspace/background.txt", "/workspace/mine.txt"]);
    sandbox.kill().await?;
    Ok(format!("agent {number}: {}", names.join(", ")))
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example's output")]
async fn main() -> sandbox_examples::Result<()> {
    let client = sandbox::connect("mock:").await?;
    let started = Instant::now();
    let mut agents = JoinSet::new();
    for number in 0..AGENTS {
        agents.spawn(agent(client.clone(), number));
    }
    let mut done = 0;
    while let Some(result) = agents.join_next().await {
        println!("{}", result??);
        done += 1;
    }
    println!(
        "{done} agents in {:.2} s, nothing shared",
        started.elapsed().as_secs_f64()
    );
    assert_eq!(done, AGENTS);
    Ok(())
}
