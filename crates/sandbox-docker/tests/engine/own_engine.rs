//! An engine of the test's own, to be stopped, frozen, killed and filled: the machine's serves
//! others too.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use sandbox_core::Client;
use sandbox_docker::{Docker, DockerConfig, Pull};
use tempfile::TempDir;

use crate::support::BUSYBOX;

const SCRIPT: &str = include_str!("scripts/own_engine.sh");

/// The size of its disk.
const DISK: u64 = 200 << 20;

/// How long it may take to come up.
const UP: Duration = Duration::from_mins(1);

/// What it needs besides a shell.
const PROGRAMS: [&str; 6] = [
    "dockerd",
    "docker",
    "unshare",
    "mount",
    "mkfs.ext4",
    "timeout",
];

/// Why there can be no such engine here.
pub(crate) fn available() -> Result<(), String> {
    for program in PROGRAMS {
        if !succeeds(Command::new("sh").args(["-c", "command -v \"$1\"", "sh", program])) {
            return Err(format!("an engine of the tests' own needs `{program}`"));
        }
    }
    let mut try_it = as_root("unshare");
    if succeeds(try_it.args(["--mount", "--net", "losetup", "--find"])) {
        return Ok(());
    }
    let needs = "root or sudo without a password, name spaces and a free loop device";
    Err(format!("an engine of the tests' own needs {needs}"))
}

/// A program as root.
fn as_root(program: &str) -> Command {
    if succeeds(Command::new("sh").args(["-c", "[ \"$(id -u)\" = 0 ]"])) {
        return Command::new(program);
    }
    let mut sudo = Command::new("sudo");
    sudo.args(["-n", program]);
    sudo
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// An engine with the `BusyBox` image. Dropping it takes it down.
pub(crate) struct OwnEngine {
    dir: TempDir,
    script: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl OwnEngine {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("disk");
        File::create(&disk).unwrap().set_len(DISK).unwrap();
        assert!(succeeds(Command::new("mkfs.ext4").arg("-q").arg(&disk)));
        let group = Command::new("id").arg("-g").output().unwrap().stdout;
        let group = String::from_utf8(group).unwrap();
        let mut script = as_root("unshare")
            .args(["--mount", "--net", "sh", "-c", SCRIPT, "sh"])
            .arg(dir.path())
            .arg(group.trim())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut engine = Self {
            dir,
            orders: script.stdin.take(),
            answers: BufReader::new(script.stdout.take().unwrap()),
            script,
        };
        engine.answered("mount the disk");
        engine.up();
        let load = "docker save \"$1\" | docker -H \"$2\" load";
        let mut load_image = Command::new("sh");
        load_image.args(["-c", load, "sh", BUSYBOX, &engine.host()]);
        assert!(succeeds(&mut load_image), "{}", engine.log());
        engine
    }

    fn host(&self) -> String {
        format!("unix://{}", self.dir.path().join("sock").display())
    }

    pub(crate) async fn client(&self) -> Client {
        let config = DockerConfig::new(BUSYBOX)
            .pull(Pull::Never)
            .host(self.host())
            .user("1000");
        Client::new(Docker::connect(config).await.unwrap())
    }

    /// Runs `docker` on it and gives what it printed.
    pub(crate) fn docker(&self, args: &[&str]) -> String {
        let mut docker = Command::new("docker");
        docker.args(["-H", &self.host()]).args(args);
        let out = docker.stdin(Stdio::null()).output().unwrap();
        assert!(out.status.success(), "{out:?} {}", self.log());
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    /// Whether it has this container.
    pub(crate) fn has(&self, id: &str) -> bool {
        let mut docker = Command::new("docker");
        succeeds(docker.args(["-H", &self.host(), "container", "inspect", id]))
    }

    /// Starts the engine, and waits until it answers.
    pub(crate) fn up(&mut self) {
        self.order("start");
        let start = Instant::now();
        let host = self.host();
        while !succeeds(Command::new("timeout").args(["5", "docker", "-H", &host, "version"])) {
            assert!(start.elapsed() < UP, "{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends it a signal, and waits for its end if that is what the signal is for.
    pub(crate) fn signal(&mut self, name: &str) {
        self.order(name);
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
        self.answered(order);
    }

    fn answered(&mut self, what: &str) {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n", "{what}: {}", self.log());
    }

    /// The last it said.
    fn log(&self) -> String {
        let log = fs::read(self.dir.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(4000)..]).into_owned()
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Err(e) = self.script.wait() {
            eprintln!("the test's own engine may live on: {e}");
        }
        // Root's files.
        if !succeeds(as_root("rm").arg("-rf").arg(self.dir.path())) {
            eprintln!("{} is left", self.dir.path().display());
        }
    }
}
