//! What a container is like by default, and how each default is loosened or tightened.
//!
//!     cargo run -p sandbox-examples --example docker            # cargo xtask images python
//!     cargo run -p sandbox-examples --example docker -- debian:bookworm-slim

use std::time::Duration;

use sandbox::{Client, Hardening, Mount, Network, Sandbox, SandboxSpec};
use sandbox_examples::Result;

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example's output")]
async fn main() -> Result<()> {
    let image = std::env::args().nth(1);
    let image = image.as_deref().unwrap_or("sandbox-python");
    let client = sandbox::connect(&format!("docker://{image}")).await?;

    println!("== by default");
    let sandbox = client.create(SandboxSpec::new()).await?;
    // Only the loopback; no capability even for root; no more rights by a setuid program.
    assert_eq!(interfaces(&sandbox).await?, "lo");
    assert_eq!(status(&sandbox, "CapEff").await?, "0000000000000000");
    assert_eq!(status(&sandbox, "NoNewPrivs").await?, "1");
    // Nothing of the host, 1 GiB of memory, one CPU, 512 processes, half an hour to live. It ends
    // with this process too, however that ends.
    println!("interfaces: lo; capabilities: none; new privileges: none");
    sandbox.kill().await?;

    println!("== a network, to install packages");
    let spec = SandboxSpec::new().network(Network::Full);
    let sandbox = client.create(spec).await?;
    let interfaces = interfaces(&sandbox).await?;
    println!("interfaces: {interfaces}");
    assert_ne!(interfaces, "lo");
    sandbox.kill().await?;

    println!(
        "== the engine's own capabilities: apt and chown work for root, so does more of what harms"
    );
    let spec = SandboxSpec::new().hardening(Hardening::Standard);
    let sandbox = client.create(spec).await?;
    let capabilities = status(&sandbox, "CapEff").await?;
    println!("capabilities: {capabilities}");
    assert_ne!(capabilities, "0000000000000000");
    sandbox.kill().await?;

    println!("== a user that is not root: even the keeper is out of its reach");
    let sandbox = client.create(SandboxSpec::new().user("1000")).await?;
    let who = sandbox
        .execute("id -u; touch /workspace/mine; touch /etc/not-mine")
        .await?;
    print!("{}", who.output());
    assert_eq!(who.stdout, "1000\n");
    assert!(!who.success());
    sandbox.kill().await?;

    println!("== limits of one's own");
    let spec = SandboxSpec::new()
        .memory(256 << 20)
        .milli_cpus(500)
        .pids(64)
        .lifetime(Duration::from_mins(5));
    let sandbox = client.create(spec).await?;
    // More processes than that can't be.
    let many = "i=0; while [ $i -lt 100 ]; do sleep 1 & i=$((i+1)); done 2>/dev/null; wait";
    let many = sandbox.execute(many).await?;
    println!("100 processes at once: {}", many.status);
    sandbox.kill().await?;

    println!("== a folder of this machine, to be read only");
    let folder = std::env::current_dir()?.join("docker-example");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("data.txt"), "from outside\n")?;
    let source = folder.to_str().ok_or("the folder's name is not UTF-8")?;
    let spec = SandboxSpec::new().mount(Mount::read_only(source, "/data"));
    let sandbox = client.create(spec).await?;
    let read = sandbox.execute("cat /data/data.txt").await?;
    print!("{}", read.output());
    assert_eq!(read.stdout, "from outside\n");
    assert!(sandbox.write("/data/data.txt", "changed").await.is_err());
    sandbox.kill().await?;
    std::fs::remove_dir_all(&folder)?;

    engine_socket_is_refused(&client).await;
    Ok(())
}

/// Who can write to the engine's socket owns the machine: a mount that holds it has to be forced,
/// by `DockerConfig::allow_engine_socket`.
async fn engine_socket_is_refused(client: &Client) {
    let spec = SandboxSpec::new().mount(Mount::writable("/var/run", "/run/host"));
    let refused = client.create(spec).await;
    assert!(refused.is_err());
}

/// The names of the network's interfaces.
async fn interfaces(sandbox: &Sandbox) -> Result<String> {
    let run = sandbox.execute("ls /sys/class/net").await?.into_result()?;
    Ok(run.output().trim().replace('\n', " "))
}

/// A field of what the kernel says about a command.
async fn status(sandbox: &Sandbox, field: &str) -> Result<String> {
    let page = sandbox
        .execute("cat /proc/self/status")
        .await?
        .into_result()?;
    let text = page.output();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    Ok(value.ok_or("the kernel does not say")?.trim().to_owned())
}
