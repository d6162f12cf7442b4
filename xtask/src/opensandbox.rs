//! `cargo xtask opensandbox`: a local server of `OpenSandbox`, for whoever wants to try one.

use std::fs::File;
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Result, command, images};

const USAGE: &str = "usage: cargo xtask opensandbox up|down";

/// The server's container, and the network that its sandboxes are in.
const NAME: &str = "sandbox-opensandbox";

/// How long it may take to listen.
const START: Duration = Duration::from_mins(2);

/// Where a container that is started here finds the engine.
const SOCKET: &str = "/var/run/docker.sock";

pub(crate) fn run(args: &[&str]) -> Result {
    match args {
        ["up"] => up(),
        ["down"] => down(),
        _ => Err(USAGE.into()),
    }
}

/// Starts a server that only this machine reaches, unless it is there, and says how to use it.
fn up() -> Result {
    if !command::succeeds(docker().args(["container", "inspect", NAME])) {
        images::run(&["python", "execd", images::SERVER])?;
        if !command::succeeds(docker().args(["network", "inspect", NAME])) {
            command::run(docker().args(["network", "create", NAME]))?;
        }
        start(free_port()?)?;
    }
    let (port, key) = (
        variable("OPENSANDBOX_PORT")?,
        variable("OPENSANDBOX_API_KEY")?,
    );
    wait(port.parse()?)?;
    eprintln!(
        "\nAn OpenSandbox server listens on 127.0.0.1:{port}. Only this machine reaches it.\n\n  \
         export OPEN_SANDBOX_API_KEY={key}\n  \
         sandbox run --backend opensandbox://127.0.0.1:{port}/sandbox-python -- python3 -c 'print(1)'\n\n\
         cargo xtask opensandbox down    ends it and all of its sandboxes"
    );
    Ok(())
}

/// Ends the server, its sandboxes and their network.
fn down() -> Result {
    // The server first: it can't make another one then.
    command::run(docker().args(["rm", "--force", "--volumes", NAME]))?;
    let mut list = docker();
    let network = format!("network={NAME}");
    let left = command::output(list.args(["ps", "--all", "--quiet", "--filter", &network]))?;
    if !left.is_empty() {
        command::run(
            docker()
                .args(["rm", "--force", "--volumes"])
                .args(left.lines()),
        )?;
    }
    command::run(docker().args(["network", "rm", NAME]))
}

fn start(port: u16) -> Result {
    let mut run = docker();
    run.args(["run", "--detach", "--name", NAME, "--network", "host"]);
    run.args(["--volume", &format!("{SOCKET}:{SOCKET}")]);
    for (name, value) in [
        ("OPENSANDBOX_PORT", port.to_string()),
        ("OPENSANDBOX_API_KEY", random_key()?),
        ("OPENSANDBOX_NETWORK", NAME.to_owned()),
        ("OPENSANDBOX_EXECD", "sandbox-execd:latest".to_owned()),
    ] {
        // By name only: the key stands in no list of processes.
        run.args(["--env", name]).env(name, value);
    }
    command::run(run.arg(format!("sandbox-{}:latest", images::SERVER)))
}

/// Waits until it listens.
fn wait(port: u16) -> Result {
    let begin = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        let mut inspect = docker();
        inspect.args(["inspect", "--format", "{{.State.Running}}", NAME]);
        if command::output(&mut inspect)?.trim() != "true" {
            return Err(format!("the server ended; `docker logs {NAME}` says why").into());
        }
        if begin.elapsed() > START {
            return Err(format!("no server listens on port {port} after {START:?}").into());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// A variable that the server was started with.
fn variable(name: &str) -> Result<String> {
    let mut inspect = docker();
    let lines = "{{range .Config.Env}}{{println .}}{{end}}";
    let variables = command::output(inspect.args(["inspect", "--format", lines, NAME]))?;
    let value = variables
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let missing = || format!("the container {NAME} is none of this task's");
    Ok(value.ok_or_else(missing)?.to_owned())
}

/// A port that nothing listens on.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

fn random_key() -> Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

fn docker() -> Command {
    Command::new("docker")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_long_and_never_the_same() {
        let (a, b) = (random_key().unwrap(), random_key().unwrap());
        assert_eq!(a.len(), 32);
        assert_ne!(a, b);
    }

    #[test]
    fn anything_but_up_and_down_is_refused() {
        assert!(run(&[]).is_err() && run(&["up", "down"]).is_err());
    }
}
