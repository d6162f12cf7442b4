//! What a case is, and what it gets.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use sandbox_core::{Capabilities, Client, Command, ExecuteResponse, Result, Sandbox, SandboxSpec};
use serde::{Deserialize, Serialize};

use crate::{CaseResult, Failure};

/// How much of the contract a target promises. Each holds the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Profile {
    /// Four methods on shell text: commands, files and every derived operation.
    Minimal,
    /// The whole contract.
    Core,
    /// Core, and hostile code is held.
    Isolation,
}

/// A capability that a case needs.
#[derive(Clone, Copy)]
pub struct Need {
    /// The field of [`Capabilities`].
    pub name: &'static str,
    /// Whether a sandbox claims it.
    pub claimed: fn(&Capabilities) -> bool,
    /// What must hold where it is not claimed. `None`: the case's own call is refused with
    /// [`sandbox_core::ErrorKind::Unsupported`].
    pub otherwise: Option<CaseFn>,
}

impl fmt::Debug for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The body of a case.
pub(crate) type CaseFn = fn(Cx) -> Pin<Box<dyn Future<Output = CaseResult> + Send>>;

/// One promise and how it is checked.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Case {
    /// The group, one for each part of the contract.
    pub group: &'static str,
    /// The promise, as a sentence in `snake_case`.
    pub name: &'static str,
    /// The smallest profile it belongs to.
    pub profile: Profile,
    /// The capability it needs.
    pub need: Option<Need>,
    /// Whether it gets a sandbox of its own: its subject is the sandbox's life, or damage to it.
    pub fresh: bool,
    /// How long it may take.
    pub limit: Duration,
    pub(crate) run: CaseFn,
}

impl Case {
    pub(crate) const fn new(group: &'static str, name: &'static str, run: CaseFn) -> Self {
        Self {
            group,
            name,
            profile: Profile::Core,
            need: None,
            fresh: false,
            limit: Duration::from_mins(3),
            run,
        }
    }

    pub(crate) const fn minimal(mut self) -> Self {
        self.profile = Profile::Minimal;
        self
    }

    pub(crate) const fn isolation(mut self) -> Self {
        self.profile = Profile::Isolation;
        self
    }

    pub(crate) const fn needs(mut self, need: Need) -> Self {
        self.need = Some(need);
        self
    }

    pub(crate) const fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// `group::name`, unique.
    pub fn full_name(&self) -> String {
        format!("{}::{}", self.group, self.name)
    }
}

/// What a case works with.
#[derive(Clone, Debug)]
pub struct Cx {
    /// The sandbox: the group's own, or a fresh one.
    pub sandbox: Sandbox,
    /// What made it.
    pub client: Client,
    /// What it was made from.
    pub spec: SandboxSpec,
    /// A directory of this case alone.
    pub dir: String,
}

/// How long a command of a case may take that is not about time.
const PATIENCE: Duration = Duration::from_secs(30);

impl Cx {
    /// The absolute path of `name` in the case's directory.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.dir)
    }

    /// What the sandbox can do.
    pub fn caps(&self) -> Capabilities {
        self.sandbox.capabilities()
    }

    /// Another sandbox like the case's.
    pub(crate) async fn another(&self) -> Result<Sandbox> {
        self.client.create(self.spec.clone()).await
    }

    /// Runs shell text as it is.
    pub(crate) async fn raw(&self, text: &str) -> Result<ExecuteResponse> {
        self.sandbox
            .execute(Command::shell(text).timeout(PATIENCE))
            .await
    }

    /// Runs shell text in the case's directory.
    pub(crate) async fn sh(&self, text: &str) -> Result<ExecuteResponse> {
        self.sandbox.execute(self.command(text)).await
    }

    /// Shell text in the case's directory.
    pub(crate) fn command(&self, text: &str) -> Command {
        Command::shell(text).cwd(&self.dir).timeout(PATIENCE)
    }

    /// Runs shell text in the case's directory that has to end with 0; gives what it printed.
    pub(crate) async fn ok(&self, text: &str) -> Result<String, Failure> {
        let r = self.sh(text).await?;
        check!(
            r.success(),
            "`{text}` ended with {}: {:?}",
            r.status,
            r.output()
        );
        Ok(r.stdout.to_text())
    }

    /// Writes files into the case's directory with the primitive.
    pub(crate) async fn put<const N: usize>(&self, files: [(&str, &[u8]); N]) -> CaseResult {
        let files: Vec<(String, Vec<u8>)> = files
            .iter()
            .map(|(name, bytes)| (self.path(name), bytes.to_vec()))
            .collect();
        for result in self.sandbox.upload_files(files).await {
            result?;
        }
        Ok(())
    }

    /// The bytes of a file of the case's directory, by the primitive.
    pub(crate) async fn get(&self, name: &str) -> Result<Vec<u8>> {
        Ok(self.sandbox.download(self.path(name)).await?.to_vec())
    }

    /// Waits until a file of the case's directory has stopped growing: whoever wrote to it every
    /// 50 ms is gone. How soon is no promise, and no measure on a machine that has much to do.
    pub(crate) async fn falls_silent(&self, name: &str) -> CaseResult {
        let started = Instant::now();
        loop {
            let size = self.get(name).await?.len();
            tokio::time::sleep(Duration::from_millis(1500)).await;
            if self.get(name).await?.len() == size {
                return Ok(());
            }
            check!(
                started.elapsed() < PATIENCE,
                "somebody writes on to {name:?}"
            );
        }
    }

    /// The permission bits of a file of the case's directory, in octal.
    pub(crate) async fn mode(&self, name: &str) -> Result<String, Failure> {
        let r = self
            .sandbox
            .execute(
                Command::shell("stat -c %a -- \"$1\"")
                    .arg(self.path(name))
                    .timeout(PATIENCE),
            )
            .await?;
        check!(r.success(), "stat of {name:?}: {}", r.output());
        Ok(r.stdout.to_text().trim_end().to_owned())
    }

    /// Whether something, a dangling link too, is at `name` in the case's directory.
    pub(crate) async fn exists(&self, name: &str) -> Result<bool, Failure> {
        let text = "if [ -e \"$1\" ] || [ -L \"$1\" ]; then echo yes; else echo no; fi";
        let r = self
            .sandbox
            .execute(Command::shell(text).arg(self.path(name)).timeout(PATIENCE))
            .await?;
        match r.stdout.to_text().trim() {
            "yes" => Ok(true),
            "no" => Ok(false),
            other => Err(Failure::Wrong(format!(
                "is {name:?} there? {other:?}, {}",
                r.output()
            ))),
        }
    }
}
