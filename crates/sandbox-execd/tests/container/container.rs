//! The daemon in a throwaway container: recorded commands never run on the host's own shell.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sandbox_testkit::engine::docker;

use crate::http::{Until, exchange};

const TARGET: &str = "x86_64-unknown-linux-musl";

/// A container with the daemon in it, removed when dropped.
pub(crate) struct Container {
    id: String,
    pub(crate) address: SocketAddr,
}

/// The static binary: that of `SANDBOX_EXECD_BINARY`, or one built now.
fn binary() -> Result<Vec<u8>, String> {
    let path = if let Some(path) = std::env::var_os("SANDBOX_EXECD_BINARY") {
        PathBuf::from(path)
    } else {
        let mut build = Command::new(env!("CARGO"));
        build.args([
            "build",
            "--quiet",
            "--package",
            "sandbox-execd",
            "--target",
            TARGET,
        ]);
        let built = build.output().map_err(|e| e.to_string())?;
        if !built.status.success() {
            let why = String::from_utf8_lossy(&built.stderr);
            return Err(format!(
                "`rustup target add {TARGET}` may be missing: {why}"
            ));
        }
        // Two folders above the one of the profile that this test was built in.
        let own = PathBuf::from(env!("CARGO_BIN_EXE_execd"));
        let targets = own.ancestors().nth(2).ok_or("a binary in no folder")?;
        targets.join(TARGET).join("debug/execd")
    };
    std::fs::read(&path).map_err(|it| format!("{}: {it}", path.display()))
}

/// What OpenSandbox's script does, in short.
const BOOTSTRAP: &[u8] = b"#!/bin/sh\n\
    touch \"$EXECD_ENVS\"\n\
    /opt/opensandbox/execd &\n\
    \"$@\" &\n\
    wait\n";

/// The files of the container, as a server puts them there.
fn archive() -> Result<Vec<u8>, String> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |path: &str, mode: u32, content: Option<&[u8]>| {
        let kind = content.map_or(tar::EntryType::Directory, |_| tar::EntryType::Regular);
        let content = content.unwrap_or_default();
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        header.set_mtime(1_700_000_000);
        archive
            .append_data(&mut header, path, content)
            .map_err(|it| it.to_string())
    };
    add("opt/", 0o755, None)?;
    add("opt/opensandbox/", 0o755, None)?;
    // What an image need not have.
    add("tmp/", 0o1777, None)?;
    add("opt/opensandbox/execd", 0o755, Some(&binary()?))?;
    add("opt/opensandbox/bootstrap.sh", 0o755, Some(BOOTSTRAP))?;
    // That of the daemon's own image.
    let script = include_bytes!("../../image/bootstrap.sh");
    add("opt/opensandbox/init.sh", 0o755, Some(script))?;
    archive.into_inner().map_err(|it| it.to_string())
}

impl Container {
    /// Starts one as a server does, and waits for the daemon to answer.
    pub(crate) fn start(image: &str, variables: &[(&str, &str)]) -> Result<Self, String> {
        let script = ["/opt/opensandbox/bootstrap.sh", "tail", "-f", "/dev/null"];
        Self::start_with(image, variables, &[], &script)
    }

    /// Starts one with further options of `docker create` and another first process.
    pub(crate) fn start_with(
        image: &str,
        variables: &[(&str, &str)],
        options: &[&str],
        process: &[&str],
    ) -> Result<Self, String> {
        let mut arguments: Vec<String> = [
            "create",
            "--label",
            "sandbox-execd-test",
            "--publish",
            "127.0.0.1::44772",
            "--workdir",
            "/",
            "--entrypoint",
            process[0],
            "--env",
            "EXECD_ENVS=/opt/opensandbox/.env",
            "--env",
            "OPENSANDBOX_ID=id",
        ]
        .map(String::from)
        .into();
        arguments.extend(options.iter().map(ToString::to_string));
        for (name, value) in variables {
            arguments.extend(["--env".into(), format!("{name}={value}")]);
        }
        arguments.push(image.into());
        arguments.extend(process[1..].iter().map(ToString::to_string));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut container = Self {
            id: docker(&arguments)?,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        container.put(&archive()?)?;
        docker(&["start", &container.id])?;
        let published = docker(&["port", &container.id, "44772"])?;
        let published = published.lines().next().unwrap_or_default();
        container.address = published
            .parse()
            .map_err(|it| format!("{published}: {it}"))?;
        let begun = Instant::now();
        let until = Until {
            time: Some(Duration::from_secs(1)),
            seen: None,
        };
        loop {
            let ping = exchange(
                container.address,
                b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n",
                &until,
                |_| {},
            );
            if ping.is_ok_and(|it| it.status != 0) {
                return Ok(container);
            }
            if begun.elapsed() > Duration::from_secs(10) {
                let logs = docker(&["logs", &container.id]).unwrap_or_default();
                return Err(format!("the daemon does not answer; it said: {logs}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn put(&self, archive: &[u8]) -> Result<(), String> {
        use std::io::Write as _;
        let mut command = Command::new("docker");
        command
            .args(["cp", "-", &format!("{}:/", self.id)])
            .stdin(Stdio::piped());
        let mut child = command.spawn().map_err(|it| it.to_string())?;
        let written = child
            .stdin
            .take()
            .map_or(Ok(()), |mut it| it.write_all(archive));
        let status = child.wait().map_err(|it| it.to_string())?;
        written.map_err(|it| it.to_string())?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("docker cp: {status}"))
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Runs a command beside the daemon, without it.
    pub(crate) fn exec(&self, command: &str) -> Result<String, String> {
        docker(&["exec", &self.id, "sh", "-c", command])
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = docker(&["rm", "--force", "--volumes", &self.id]);
    }
}
