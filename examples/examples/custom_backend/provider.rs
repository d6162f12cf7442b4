//! A provider in one file, over a vendor's SDK. Copy it, replace `vendor` by the real client, and
//! prove it with the conformance kit's profile `minimal`.
//!
//! What a backend owes is said at each method. What it can't do it does not claim: core lowers
//! argv, cwd, variables and stdin to shell text, and refuses what can't be lowered.

use std::fmt;
use std::sync::Arc;

use sandbox_core::{
    BackendUrl, Bytes, Capabilities, Command, Error, ErrorKind, ExecuteResponse, FileDownload,
    FileUpload, Filter, Program, Result, SandboxBackend, SandboxId, SandboxInfo, SandboxProvider,
    SandboxSpec, SandboxState, SpecSupport, Status, async_trait,
};

/// Makes sandboxes at the vendor.
#[derive(Clone, Debug)]
pub(crate) struct VendorProvider {
    api: vendor::Api,
}

impl VendorProvider {
    /// A provider with the vendor's default settings.
    ///
    /// # Errors
    ///
    /// When the vendor can't be reached.
    pub(crate) async fn new() -> Result<Self> {
        Ok(Self {
            api: vendor::Api::open().await.map_err(translate)?,
        })
    }
}

#[async_trait]
impl SandboxProvider for VendorProvider {
    /// One word, the same in URLs, logs and errors.
    fn name(&self) -> &'static str {
        "vendor"
    }

    fn url(&self) -> BackendUrl {
        BackendUrl::new("vendor", "")
    }

    /// Which fields of a spec are honoured. A field that is set and not named here is refused by
    /// core; a default that is not honoured becomes a warning.
    fn spec_support(&self) -> SpecSupport {
        SpecSupport::none().with(|s| s.workdir = true)
    }

    /// Returns when the sandbox takes commands. The vendor's own deadline ends one that nobody
    /// asks for; a vendor without one needs a `KillGuard` here.
    async fn create(&self, spec: &SandboxSpec) -> Result<Arc<dyn SandboxBackend>> {
        let session = self
            .api
            .start(spec.effective_workdir())
            .await
            .map_err(translate)?;
        Ok(Arc::new(VendorSandbox::new(session)))
    }

    async fn connect(&self, id: &SandboxId) -> Result<Arc<dyn SandboxBackend>> {
        let session = self.api.find(id.as_str()).await.map_err(translate)?;
        Ok(Arc::new(VendorSandbox::new(session)))
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<SandboxInfo>> {
        // The vendor has no labels: with any asked for, none matches.
        let ids = self.api.all().await.map_err(translate)?;
        Ok(ids
            .into_iter()
            .map(|id| SandboxInfo::new(SandboxId::new(id), [].into(), SandboxState::Running))
            .filter(|info| filter.matches(&info.labels))
            .collect())
    }
}

/// One sandbox at the vendor.
struct VendorSandbox {
    id: SandboxId,
    session: vendor::Session,
}

impl VendorSandbox {
    fn new(session: vendor::Session) -> Self {
        Self {
            id: SandboxId::new(session.id()),
            session,
        }
    }
}

#[async_trait]
impl SandboxBackend for VendorSandbox {
    fn id(&self) -> &SandboxId {
        &self.id
    }

    /// What is claimed works. This vendor: shell text and a timeout, both streams apart.
    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(|c| c.separate_streams = true)
    }

    /// Method one. Called with what is claimed only: shell text here. A non-zero exit and a timeout
    /// are values; an error means that the command did not start. Dropping the future has to kill
    /// the command, and so has the deadline, with all its children.
    async fn execute(&self, command: &Command) -> Result<ExecuteResponse> {
        let Program::Shell(text) = &command.program else {
            return Err(Error::unsupported("argv"));
        };
        let run = self
            .session
            .run(text, command.timeout, command.effective_output_limit())
            .await
            .map_err(translate)?;
        let status = match run.end {
            vendor::End::Code(code) => Status::Exited(code),
            vendor::End::Deadline => Status::TimedOut,
            vendor::End::Unknown(why) => Status::Lost(why),
        };
        let mut response = ExecuteResponse::new(status, Bytes::new(), Bytes::new());
        response.stdout = run.stdout;
        response.stderr = run.stderr;
        response.elapsed = run.elapsed;
        Ok(response)
    }

    /// Method two. One result a file, in order; one round trip if the vendor can.
    async fn upload_files(&self, files: &[FileUpload]) -> Vec<Result<()>> {
        let files = files
            .iter()
            .map(|f| (f.path.to_string(), f.content.clone()))
            .collect();
        let results = self.session.put(files).await;
        results.into_iter().map(|r| r.map_err(translate)).collect()
    }

    /// Method three. The limit of each file holds: more is `TooLarge`, never a cut file.
    async fn download_files(&self, files: &[FileDownload]) -> Vec<Result<Bytes>> {
        let paths = files.iter().map(|f| f.path.to_string()).collect();
        let results = self.session.get(paths).await;
        results
            .into_iter()
            .zip(files)
            .map(|(result, file)| match result.map_err(translate)? {
                bytes if bytes.len() as u64 > file.limit => Err(Error::new(
                    ErrorKind::TooLarge,
                    format!(
                        "the file has {} bytes; the limit is {}",
                        bytes.len(),
                        file.limit
                    ),
                )
                .with("path", &file.path)),
                bytes => Ok(bytes),
            })
            .collect()
    }

    /// Method four. Ending one that has ended is a success.
    async fn kill(&self) -> Result<()> {
        match self.session.stop().await {
            Err(e) if e.code == vendor::Code::NoSession => Ok(()),
            result => result.map_err(translate),
        }
    }
}

impl fmt::Debug for VendorSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VendorSandbox").field(&self.id).finish()
    }
}

/// The vendor's errors in the words of the contract. What fits none is `Unexpected`.
fn translate(e: vendor::Failure) -> Error {
    let kind = match e.code {
        vendor::Code::NoSession => ErrorKind::SandboxGone,
        vendor::Code::NoFile => ErrorKind::NotFound,
        vendor::Code::IsFolder => ErrorKind::IsADirectory,
        vendor::Code::NoFolder => ErrorKind::NotADirectory,
        vendor::Code::NotAllowed => ErrorKind::PermissionDenied,
        vendor::Code::Other => ErrorKind::Unexpected,
    };
    let error = Error::new(kind, e.text);
    match e.path {
        Some(path) => error.with("path", path),
        None => error,
    }
}

/// Stands in for the vendor's SDK: a client with sessions, commands and files. A real one talks to a
/// server; this one keeps mock sandboxes, because nothing may run on the user's own machine.
mod vendor {
    use std::time::Duration;

    use sandbox_core::{
        Bytes, Captured, Client, Command, Error, ErrorKind, Filter, Sandbox, SandboxId,
        SandboxSpec, Status,
    };
    use sandbox_mock::{MockConfig, MockProvider};

    #[derive(Clone, Debug)]
    pub(super) struct Api(Client);

    #[derive(Debug)]
    pub(super) struct Session(Sandbox);

    pub(super) struct Run {
        pub(super) stdout: Captured,
        pub(super) stderr: Captured,
        pub(super) end: End,
        pub(super) elapsed: Duration,
    }

    pub(super) enum End {
        Code(i32),
        Deadline,
        /// The session was lost while the command ran.
        Unknown(String),
    }

    #[derive(Debug)]
    pub(super) struct Failure {
        pub(super) code: Code,
        pub(super) text: String,
        pub(super) path: Option<String>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Code {
        NoSession,
        NoFile,
        IsFolder,
        NoFolder,
        NotAllowed,
        Other,
    }

    impl Api {
        // A real client would connect here.
        #[allow(clippy::unused_async, reason = "as a real SDK has it")]
        pub(super) async fn open() -> Result<Self, Failure> {
            // Without the mock's own file operations: all that is beyond the four is derived.
            let config = MockConfig::new().hide_families();
            Ok(Self(Client::new(MockProvider::with(config))))
        }

        pub(super) async fn start(&self, folder: &str) -> Result<Session, Failure> {
            let spec = SandboxSpec::new().workdir(folder);
            let sandbox = self.0.create(spec).await?;
            // The server owns its sessions: a client that goes away does not end them.
            sandbox.detach().await?;
            Ok(Session(sandbox))
        }

        pub(super) async fn find(&self, id: &str) -> Result<Session, Failure> {
            Ok(Session(self.0.connect(&SandboxId::new(id)).await?))
        }

        pub(super) async fn all(&self) -> Result<Vec<String>, Failure> {
            let all = self.0.list(&Filter::all()).await?;
            Ok(all.into_iter().map(|s| s.id.to_string()).collect())
        }
    }

    impl Session {
        pub(super) fn id(&self) -> &str {
            self.0.id().as_str()
        }

        pub(super) async fn run(
            &self,
            text: &str,
            deadline: Option<Duration>,
            keep: u64,
        ) -> Result<Run, Failure> {
            let mut command = Command::shell(text).output_limit(keep);
            command.timeout = deadline;
            let r = self.0.execute(command).await?;
            Ok(Run {
                end: match &r.status {
                    Status::TimedOut => End::Deadline,
                    Status::Lost(why) => End::Unknown(why.clone()),
                    // This vendor does not tell signals apart: 137 is all it says.
                    status => End::Code(status.exit_code().unwrap_or(1)),
                },
                stdout: r.stdout,
                stderr: r.stderr,
                elapsed: r.elapsed,
            })
        }

        pub(super) async fn put(&self, files: Vec<(String, Bytes)>) -> Vec<Result<(), Failure>> {
            let results = self.0.upload_files(files).await;
            results.into_iter().map(|r| Ok(r?)).collect()
        }

        pub(super) async fn get(&self, paths: Vec<String>) -> Vec<Result<Bytes, Failure>> {
            let results = self.0.download_files(paths).await;
            results.into_iter().map(|r| Ok(r?)).collect()
        }

        pub(super) async fn stop(&self) -> Result<(), Failure> {
            Ok(self.0.kill().await?)
        }
    }

    impl From<Error> for Failure {
        fn from(e: Error) -> Self {
            Self {
                code: match e.kind() {
                    ErrorKind::SandboxGone => Code::NoSession,
                    ErrorKind::NotFound => Code::NoFile,
                    ErrorKind::IsADirectory => Code::IsFolder,
                    ErrorKind::NotADirectory => Code::NoFolder,
                    ErrorKind::PermissionDenied => Code::NotAllowed,
                    _ => Code::Other,
                },
                text: e.message().to_owned(),
                path: e.context("path").map(str::to_owned),
            }
        }
    }
}
