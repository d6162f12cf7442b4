//! A backend of one's own: the template for everyone who offers sandboxes.
//!
//! `provider.rs` beside this file is all of it: four methods on shell text, and `kill`. Everything
//! else, from `glob` to `upload_dir`, is derived from them.
//!
//!     cargo run -p sandbox-examples --example custom_backend

mod provider;

use std::time::Duration;

use provider::VendorProvider;
use sandbox_core::{Client, Command, ErrorKind, SandboxSpec, Status};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example's output")]
async fn main() -> sandbox_examples::Result<()> {
    let client = Client::new(VendorProvider::new().await?);
    let sandbox = client.create(SandboxSpec::new()).await?;
    println!("sandbox {} of {}", sandbox.id(), client.backend_name());
    for warning in sandbox.warnings() {
        println!("warning: {warning}");
    }

    // The vendor takes shell text only. Arguments, variables, a directory, stdin: core lowers them.
    let command = Command::new("sh")
        .args(["-c", "cat; echo \"$GREETING from $PWD\""])
        .env("GREETING", "it's me")
        .cwd("/tmp")
        .stdin("read\n")
        .timeout(Duration::from_secs(10));
    let result = sandbox.execute(command).await?;
    print!("{}", result.output());
    assert_eq!(result.stdout, "read\nit's me from /tmp\n");
    assert_eq!(sandbox.execute("exit 7").await?.status, Status::Exited(7));

    // Operations that the vendor never heard of.
    sandbox.write("/workspace/a/b.txt", "one\ntwo\n").await?;
    sandbox
        .edit("/workspace/a/b.txt", "two", "2", false)
        .await?;
    let found = sandbox.glob("**/*.txt", "/workspace").await?;
    println!("found {}", found.paths[0]);
    assert_eq!(found.paths.len(), 1);

    // What it can't do is refused by name, before any call.
    let refused = sandbox.execute(Command::shell("id").user("nobody")).await;
    let refused = refused.map(|_| ()).map_err(|e| e.kind());
    assert_eq!(refused, Err(ErrorKind::Unsupported));

    let id = sandbox.id().clone();
    sandbox.kill().await?;
    let gone = client.connect(&id).await.map(|_| ()).map_err(|e| e.kind());
    assert_eq!(gone, Err(ErrorKind::SandboxGone));
    Ok(())
}
