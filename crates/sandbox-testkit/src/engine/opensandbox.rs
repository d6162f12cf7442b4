//! The real `OpenSandbox` server, with our daemon in its sandboxes.

use std::fs::File;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use testcontainers::ImageExt as _;
use testcontainers::core::Mount;

use super::container::{Container, image, orphans, remove, unique_name};
use super::guard::Guard;
use super::{docker, lines};

/// Made by `cargo xtask images`.
const IMAGE: &str = "sandbox-opensandbox-server:latest";

/// How long it may take to listen: seconds, and more beside other work.
const START: Duration = Duration::from_mins(2);

/// How many ports are tried: another program may take one between our look and the start.
const PORTS: usize = 3;

/// The image with the daemon that goes into sandboxes: that of `SANDBOX_EXECD_IMAGE`, or ours.
pub fn execd_image() -> String {
    let named = std::env::var("SANDBOX_EXECD_IMAGE").ok();
    let named = named.filter(|image| !image.is_empty());
    named.unwrap_or_else(|| "sandbox-execd:latest".to_owned())
}

/// How our daemon behaves. Another one pays no heed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecdProfile {
    /// Without surprises.
    Default,
    /// With those of the real one.
    Stock,
}

/// A server on the loopback, with a key. When it is dropped, it and all its sandboxes are removed.
///
/// Every server sees all sandboxes of its engine, those of other servers too.
#[derive(Debug)]
pub struct OpenSandbox {
    address: SocketAddr,
    key: String,
    // Dropped in this order: without the server, nobody makes another sandbox.
    _server: Container,
    _network: Guard,
}

impl OpenSandbox {
    /// What of an engine, the server and these images of sandboxes is missing here.
    pub fn missing(images: &[&str]) -> Option<String> {
        let execd = execd_image();
        let mut all = vec![IMAGE, &execd];
        all.extend(images);
        super::missing(&all)
    }

    /// Starts a server and waits until it listens. Blocks for some seconds.
    ///
    /// # Errors
    ///
    /// What the engine or the server says.
    pub fn start(profile: ExecdProfile) -> Result<Self, String> {
        sweep();
        let key = random_key().map_err(|e| format!("no key: {e}"))?;
        let mut last = Err(String::new());
        for _ in 0..PORTS {
            last = Self::start_once(profile, &key);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    fn start_once(profile: ExecdProfile, key: &str) -> Result<Self, String> {
        let address = free_address().map_err(|e| format!("no free port: {e}"))?;
        let name = unique_name();
        docker(&["network", "create", &name])?;
        let network = name.clone();
        let guard = Guard::new(move || end_network(&network));
        let profile = match profile {
            ExecdProfile::Default => "",
            ExecdProfile::Stock => "stock",
        };
        let socket = Mount::bind_mount(engine_socket(), "/var/run/docker.sock");
        let request = image(IMAGE)
            .with_network("host")
            .with_mount(socket)
            .with_env_var("OPENSANDBOX_PORT", address.port().to_string())
            .with_env_var("OPENSANDBOX_API_KEY", key)
            .with_env_var("OPENSANDBOX_NETWORK", &name)
            .with_env_var("OPENSANDBOX_EXECD", execd_image())
            .with_env_var("OPENSANDBOX_PROFILE", profile);
        let server = Container::named(&name, request)?;
        wait(address, server.id())?;
        Ok(Self {
            address,
            key: key.to_owned(),
            _server: server,
            _network: guard,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it wants in `OPEN-SANDBOX-API-KEY`.
    pub fn key(&self) -> &str {
        &self.key
    }
}

fn wait(address: SocketAddr, container: &str) -> Result<(), String> {
    let begin = Instant::now();
    while TcpStream::connect(address).is_err() {
        if docker(&["inspect", "--format", "{{.State.Running}}", container])? != "true" {
            let said = docker(&["logs", "--tail", "20", container]).unwrap_or_default();
            return Err(format!("the server ended: {said}"));
        }
        if begin.elapsed() > START {
            return Err(format!("the server does not listen after {START:?}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Removes what is in a network, and the network.
fn end_network(name: &str) {
    let filter = format!("network={name}");
    for id in lines(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter]) {
        remove(&id);
    }
    if let Err(why) = docker(&["network", "rm", name]) {
        eprintln!("a network is left: {why}");
    }
}

/// Ends what programs left that were killed.
fn sweep() {
    for name in orphans(&["ps", "--all"]) {
        remove(&name);
    }
    for name in orphans(&["network", "ls"]) {
        end_network(&name);
    }
}

/// The engine's socket on this machine.
fn engine_socket() -> String {
    let host = std::env::var("DOCKER_HOST").unwrap_or_default();
    let path = host.strip_prefix("unix://");
    path.unwrap_or("/var/run/docker.sock").to_owned()
}

/// An address that nothing listens on.
fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn random_key() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
