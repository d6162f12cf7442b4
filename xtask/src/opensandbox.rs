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
        ["down"] => end(NAME),
        _ => Err(USAGE.into()),
    }
}

/// A server that ends with this.
pub(crate) struct Server {
    name: &'static str,
    pub(crate) address: String,
    pub(crate) key: String,
}

impl Server {
    /// Starts one beside that of [`run`], in a container of this name.
    pub(crate) fn start(name: &'static str) -> Result<Self> {
        // What a run that was killed left.
        if there(name) {
            end(name)?;
        }
        let (port, key) = listening(name)?;
        Ok(Self {
            name,
            address: format!("127.0.0.1:{port}"),
            key,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(e) = end(self.name) {
            eprintln!("{} may live on: {e}", self.name);
        }
    }
}

/// Starts a server that only this machine reaches, unless it is there, and says how to use it.
fn up() -> Result {
    let (port, key) = listening(NAME)?;
    eprintln!(
        "\nAn OpenSandbox server listens on 127.0.0.1:{port}. Only this machine reaches it.\n\n  \
         export OPEN_SANDBOX_API_KEY={key}\n  \
         sandbox run --backend opensandbox://127.0.0.1:{port}/sandbox-python -- python3 -c 'print(1)'\n\n\
         cargo xtask opensandbox down    ends it and all of its sandboxes"
    );
    Ok(())
}

/// The port and the key of the server of this name, started unless it is there.
fn listening(name: &str) -> Result<(String, String)> {
    if !there(name) {
        images::run(&["python", "execd", images::SERVER])?;
        if !has_network(name) {
            command::run(docker().args(["network", "create", name]))?;
        }
        start(name, free_port()?)?;
    }
    let (port, key) = (
        variable(name, "OPENSANDBOX_PORT")?,
        variable(name, "OPENSANDBOX_API_KEY")?,
    );
    wait(name, port.parse()?)?;
    Ok((port, key))
}

fn there(name: &str) -> bool {
    command::succeeds(docker().args(["container", "inspect", name]))
}

fn has_network(name: &str) -> bool {
    command::succeeds(docker().args(["network", "inspect", name]))
}

/// Ends a server, its sandboxes and their network, as far as they are there.
fn end(name: &str) -> Result {
    // The server first: it can't make another one then.
    if there(name) {
        command::run(docker().args(["rm", "--force", "--volumes", name]))?;
    }
    if !has_network(name) {
        return Ok(());
    }
    let mut list = docker();
    let network = format!("network={name}");
    let left = command::output(list.args(["ps", "--all", "--quiet", "--filter", &network]))?;
    if !left.is_empty() {
        command::run(
            docker()
                .args(["rm", "--force", "--volumes"])
                .args(left.lines()),
        )?;
    }
    command::run(docker().args(["network", "rm", name]))
}

fn start(name: &str, port: u16) -> Result {
    let mut run = docker();
    run.args(["run", "--detach", "--name", name, "--network", "host"]);
    run.args(["--volume", &format!("{SOCKET}:{SOCKET}")]);
    for (variable, value) in [
        ("OPENSANDBOX_PORT", port.to_string()),
        ("OPENSANDBOX_API_KEY", random_key()?),
        ("OPENSANDBOX_NETWORK", name.to_owned()),
        ("OPENSANDBOX_EXECD", "sandbox-execd:latest".to_owned()),
    ] {
        // By name only: the key stands in no list of processes.
        run.args(["--env", variable]).env(variable, value);
    }
    command::run(run.arg(format!("sandbox-{}:latest", images::SERVER)))
}

/// Waits until it listens.
fn wait(name: &str, port: u16) -> Result {
    let begin = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        let mut inspect = docker();
        inspect.args(["inspect", "--format", "{{.State.Running}}", name]);
        if command::output(&mut inspect)?.trim() != "true" {
            return Err(format!("the server ended; `docker logs {name}` says why").into());
        }
        if begin.elapsed() > START {
            return Err(format!("no server listens on port {port} after {START:?}").into());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// A variable that the server was started with.
fn variable(container: &str, name: &str) -> Result<String> {
    let mut inspect = docker();
    let lines = "{{range .Config.Env}}{{println .}}{{end}}";
    let variables = command::output(inspect.args(["inspect", "--format", lines, container]))?;
    let value = variables
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let missing = || format!("the container {container} is none of this task's");
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
