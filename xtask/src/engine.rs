//! A Docker engine for the tests: the one that answers, else one that is installed and started here
//! for the run, else none.

use std::fs::{self, File};
use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Result, command};

/// How long an engine may take to come up.
const START: Duration = Duration::from_mins(1);

/// How long an engine may take to go down before it is killed.
const STOP: Duration = Duration::from_secs(30);

/// An engine that answers. What was started here is stopped when this is dropped.
pub(crate) struct Engine(Option<Started>);

/// An engine that was started here.
struct Started {
    daemon: Child,
    /// Where it keeps what does not outlive it. Its own, so that nothing a killed engine left behind
    /// keeps it from starting; below `/run`, because the path of a socket has to be short.
    state: PathBuf,
}

/// What it takes to have an engine here.
pub(crate) enum Plan {
    /// Nothing: one answers.
    Use,
    Start,
    InstallAndStart,
}

/// Finds out what it takes, or why there can be none. Whoever is asked something is asked here.
pub(crate) fn plan() -> Result<Plan> {
    let Err(why) = answers() else {
        return Ok(Plan::Use);
    };
    if !Path::new("/etc/debian_version").exists() || !command::is_root()? {
        return Err(format!("{why}; on Debian, as root, this task would start one").into());
    }
    if command::has("dockerd") {
        eprintln!("no Docker engine answers: starting one for this run");
        return Ok(Plan::Start);
    }
    eprintln!("no Docker engine is installed: installing docker.io for the tests");
    if agreed()? {
        Ok(Plan::InstallAndStart)
    } else {
        Err(format!("{why}; installing one was declined").into())
    }
}

/// Does what it takes. What the engine says goes below `out`.
pub(crate) fn get(plan: &Plan, out: &Path) -> Result<Engine> {
    match plan {
        Plan::Use => return Ok(Engine(None)),
        Plan::Start => {}
        Plan::InstallAndStart => command::install("docker.io")?,
    }
    // The package may have started it.
    match answers() {
        Ok(()) => Ok(Engine(None)),
        Err(_) => start(out),
    }
}

fn start(out: &Path) -> Result<Engine> {
    let log = out.join("dockerd.log");
    let state = PathBuf::from(format!("/run/sandbox-xtask-{}", std::process::id()));
    fs::create_dir_all(&state)?;
    let mut daemon = Command::new("dockerd");
    daemon.arg("--pidfile").arg(state.join("pid"));
    daemon.arg("--exec-root").arg(&state);
    daemon.stdin(Stdio::null()).stdout(Stdio::null());
    let daemon = daemon.stderr(File::create(&log)?).spawn()?;
    let mut engine = Engine(Some(Started { daemon, state }));
    let begin = Instant::now();
    loop {
        let Err(why) = answers() else {
            return Ok(engine);
        };
        let ended = engine.0.as_mut().map(|e| e.daemon.try_wait()).transpose()?;
        if let Some(Some(status)) = ended {
            return Err(format!("dockerd: {status}; it says why in {}", log.display()).into());
        }
        if begin.elapsed() > START {
            return Err(format!("{why}, a minute after dockerd was started").into());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Whether the engine that `docker` would use answers.
fn answers() -> Result {
    let mut version = Command::new("docker");
    version.args(["version", "--format", "{{.Server.Version}}"]);
    let out = version
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("no `docker`: {e}"))?;
    if out.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&out.stderr);
    Err(why.trim().lines().last().unwrap_or("no answer").into())
}

/// Whoever sits there is asked; a machine of CI is not.
fn agreed() -> Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Ok(true);
    }
    eprint!("install it? [y/N] ");
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

impl Drop for Engine {
    fn drop(&mut self) {
        let Some(Started { daemon, state }) = &mut self.0 else {
            return;
        };
        eprintln!("stopping the Docker engine that was started for this run");
        if let Err(e) = stop(daemon) {
            eprintln!("dockerd does not end: {e}");
        }
        unmount(&state.join("netns"));
        if let Err(e) = fs::remove_dir_all(&state) {
            eprintln!("{} is left: {e}", state.display());
        }
    }
}

/// Takes away what an engine leaves mounted when it ends: the network of its containers that had
/// the host's. What else is in the way shows when the folder is removed.
fn unmount(namespaces: &Path) {
    for entry in fs::read_dir(namespaces).into_iter().flatten().flatten() {
        let _ = Command::new("umount").arg(entry.path()).status();
    }
}

fn stop(daemon: &mut Child) -> Result {
    if daemon.try_wait()?.is_some() {
        return Ok(());
    }
    // SIGTERM lets it end its containers; std can only send SIGKILL.
    let pid = daemon.id().to_string();
    command::run(Command::new("kill").args(["-TERM", &pid]))?;
    let begin = Instant::now();
    while daemon.try_wait()?.is_none() {
        if begin.elapsed() > STOP {
            daemon.kill()?;
            daemon.wait()?;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
