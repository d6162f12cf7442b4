//! What others build on: what stops compiling here breaks them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::Duration;

use sandbox_core::{
    BackendUrl, Bytes, Capabilities, Client, Command, Error, ExecuteResponse, ExecuteStream,
    FileDownload, FileUpload, Filter, GrepOptions, KillGuard, KillTicket, Lease, LogCursor,
    NativeFiles, Process, Processes, ReadOptions, Result, Sandbox, SandboxBackend, SandboxId,
    SandboxInfo, SandboxProvider, SandboxRef, SandboxSpec, Snapshots, SpecSupport, Status,
    Streaming, async_trait, blocking,
};

/// A provider with the required methods and no other: one more required method, and it does not
/// compile.
#[derive(Debug)]
struct Four(SandboxId);

#[async_trait]
impl SandboxProvider for Four {
    fn name(&self) -> &'static str {
        "four"
    }

    fn url(&self) -> BackendUrl {
        BackendUrl::parse("four:").unwrap()
    }

    fn spec_support(&self) -> SpecSupport {
        SpecSupport::none()
    }

    async fn create(&self, _: &SandboxSpec) -> Result<Arc<dyn SandboxBackend>> {
        Ok(Arc::new(Self(self.0.clone())))
    }

    async fn connect(&self, _: &SandboxId) -> Result<Arc<dyn SandboxBackend>> {
        Ok(Arc::new(Self(self.0.clone())))
    }

    async fn list(&self, _: &Filter) -> Result<Vec<SandboxInfo>> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl SandboxBackend for Four {
    fn id(&self) -> &SandboxId {
        &self.0
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::none()
    }

    async fn execute(&self, _: &Command) -> Result<ExecuteResponse> {
        Ok(ExecuteResponse::new(Status::Exited(0), "out", "err"))
    }

    async fn upload_files(&self, files: &[FileUpload]) -> Vec<Result<()>> {
        files.iter().map(|_| Ok(())).collect()
    }

    async fn download_files(&self, files: &[FileDownload]) -> Vec<Result<Bytes>> {
        files.iter().map(|_| Ok(Bytes::new())).collect()
    }

    async fn kill(&self) -> Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_required_methods_make_a_sandbox() {
    let client = Client::new(Four(SandboxId::new("4")));
    let sandbox = client.create(SandboxSpec::new()).await.unwrap();
    assert_eq!(sandbox.execute("true").await.unwrap().stdout.bytes(), "out");
    let (url, id) = ("four:".to_owned(), SandboxId::new("4"));
    assert_eq!(sandbox.reference(), SandboxRef { url, id });
    sandbox.kill().await.unwrap();
}

#[test]
fn what_people_hold_goes_to_any_thread() {
    fn cloned<T: Clone + Send + Sync + 'static>() {}
    fn shared<T: Send + Sync + 'static>() {}
    fn sent<T: Send + 'static>() {}
    cloned::<Client>();
    cloned::<Sandbox>();
    cloned::<Process>();
    cloned::<SandboxSpec>();
    cloned::<Command>();
    cloned::<blocking::Client>();
    cloned::<blocking::Sandbox>();
    cloned::<blocking::Process>();
    shared::<Error>();
    shared::<ExecuteResponse>();
    shared::<KillGuard>();
    shared::<KillTicket>();
    sent::<ExecuteStream>();
    sent::<blocking::Events>();
}

#[test]
fn every_trait_is_dyn_compatible() {
    fn object<T: ?Sized>() {}
    object::<dyn SandboxProvider>();
    object::<dyn SandboxBackend>();
    object::<dyn Streaming>();
    object::<dyn Processes>();
    object::<dyn NativeFiles>();
    object::<dyn Lease>();
    object::<dyn Snapshots>();
}

#[test]
fn every_future_goes_to_any_thread() {
    fn sent(_: impl Send) {}
    fn calls(client: &Client, sandbox: &Sandbox, process: &Process, id: &SandboxId) {
        sent(client.create(SandboxSpec::new()));
        sent(client.connect(id));
        sent(client.get_or_create("name", SandboxSpec::new()));
        sent(client.list(&Filter::all()));
        sent(client.gc());
        sent(sandbox.execute("true"));
        sent(sandbox.stream("true"));
        sent(sandbox.spawn("true"));
        sent(sandbox.upload_files([("/a", "")]));
        sent(sandbox.upload("/a", ""));
        sent(sandbox.download_files(["/a"]));
        sent(sandbox.download("/a"));
        sent(sandbox.upload_dir("a", "/a"));
        sent(sandbox.download_dir("/a", "a"));
        sent(sandbox.ls("/"));
        sent(sandbox.read("/a", ReadOptions::default()));
        sent(sandbox.write("/a", ""));
        sent(sandbox.create_new("/a", ""));
        sent(sandbox.edit("/a", "a", "b", false));
        sent(sandbox.glob("*", "/"));
        sent(sandbox.grep("a", "/", GrepOptions::default()));
        sent(sandbox.delete("/a"));
        sent(sandbox.renew(Duration::from_secs(1)));
        sent(sandbox.detach());
        sent(sandbox.kill());
        sent(process.logs(LogCursor::default(), 1));
        sent(process.wait());
        sent(process.kill());
    }
    // That it compiles is the test.
    let _ = calls;
}
