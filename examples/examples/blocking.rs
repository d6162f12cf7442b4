//! Without `async`: for scripts, tests and programs that have no runtime.
//!
//!     cargo run -p sandbox-examples --example blocking

use std::time::Duration;

use sandbox::{Command, SandboxSpec, Status, blocking};

#[allow(clippy::print_stdout, reason = "an example's output")]
fn main() -> sandbox_examples::Result<()> {
    let sandbox = blocking::connect("mock:")?.create(SandboxSpec::new())?;

    sandbox.write("/workspace/names", "Grace\nAda\n")?;
    let sorted = sandbox.execute(Command::new("sort").arg("names"))?;
    print!("{}", sorted.output());
    assert_eq!(sorted.stdout, "Ada\nGrace\n");

    // A deadline ends the command and its children, and keeps what it printed.
    let slow = Command::shell("echo begun; sleep 60").timeout(Duration::from_millis(200));
    let slow = sandbox.execute(slow)?;
    println!("{}: {:?}", slow.status, slow.output());
    assert_eq!(slow.status, Status::TimedOut);
    assert_eq!(slow.stdout, "begun\n");

    // It works within a runtime as well: nothing here blocks the runtime's own work.
    let inner = sandbox.clone();
    let said =
        tokio::runtime::Runtime::new()?.block_on(async move { inner.execute("echo inside") })?;
    assert_eq!(said.stdout, "inside\n");

    sandbox.kill()?;
    Ok(())
}
