//! The least that a provider can be: four methods on shell text and a timeout, over the mock.

use std::sync::Arc;

use sandbox_core::{
    BackendUrl, Bytes, Capabilities, Command, ExecuteResponse, FileDownload, FileUpload, Filter,
    Program, Result, SandboxBackend, SandboxId, SandboxInfo, SandboxProvider, SandboxSpec,
    SpecSupport, async_trait,
};
use sandbox_mock::MockProvider;

/// Makes sandboxes that only run text.
#[derive(Debug, Default)]
pub(crate) struct MinimalProvider(MockProvider);

#[derive(Debug)]
struct MinimalSandbox(Arc<dyn SandboxBackend>);

#[async_trait]
impl SandboxProvider for MinimalProvider {
    fn name(&self) -> &'static str {
        "minimal"
    }

    fn url(&self) -> BackendUrl {
        self.0.url()
    }

    fn spec_support(&self) -> SpecSupport {
        SpecSupport::none()
    }

    async fn create(&self, _: &SandboxSpec) -> Result<Arc<dyn SandboxBackend>> {
        Ok(Arc::new(MinimalSandbox(
            self.0.create(&SandboxSpec::new()).await?,
        )))
    }

    async fn connect(&self, id: &SandboxId) -> Result<Arc<dyn SandboxBackend>> {
        Ok(Arc::new(MinimalSandbox(self.0.connect(id).await?)))
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<SandboxInfo>> {
        self.0.list(filter).await
    }
}

#[async_trait]
impl SandboxBackend for MinimalSandbox {
    fn id(&self) -> &SandboxId {
        self.0.id()
    }

    /// What a sandbox behind it is like, and nothing of what its `execute` could do more.
    fn capabilities(&self) -> Capabilities {
        let inner = self.0.capabilities();
        Capabilities::none().with(|c| {
            c.execute_max_text = Some(1 << 20);
            c.separate_streams = inner.separate_streams;
            c.reports_signals = inner.reports_signals;
            c.file_owners = inner.file_owners;
            c.hard_links = inner.hard_links;
            c.fifos = inner.fifos;
        })
    }

    async fn execute(&self, command: &Command) -> Result<ExecuteResponse> {
        let Program::Shell(text) = &command.program else {
            unreachable!("core lowers a program to text");
        };
        let mut plain = Command::shell(text.as_str());
        plain.timeout = command.timeout;
        plain.output_limit = command.output_limit;
        assert_eq!(
            plain, *command,
            "core passes on more than text and a timeout"
        );
        self.0.execute(&plain).await
    }

    async fn upload_files(&self, files: &[FileUpload]) -> Vec<Result<()>> {
        self.0.upload_files(files).await
    }

    async fn download_files(&self, files: &[FileDownload]) -> Vec<Result<Bytes>> {
        self.0.download_files(files).await
    }

    async fn kill(&self) -> Result<()> {
        self.0.kill().await
    }
}
