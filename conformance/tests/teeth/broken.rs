//! A backend with one fault: the mock behind hooks on the four primitives and on the derived
//! operations.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use sandbox_core::files::{EditReport, GlobMatches, GrepMatches, Listing, TreeReport, WriteMode};
use sandbox_core::{
    BackendUrl, Bytes, Capabilities, Command, ExecuteResponse, FileDownload, FileUpload, Filter,
    GrepOptions, KillTicket, NativeFiles, ReadOptions, ReadPage, Result, SandboxBackend, SandboxId,
    SandboxInfo, SandboxPath, SandboxProvider, SandboxSpec, SpecSupport, async_trait, derive,
};
use sandbox_mock::{MockConfig, MockProvider};

/// A hook that is a whole operation: it gets the broken sandbox, whose `inner` is a good one.
type Hook<A, T> = Option<for<'a> fn(&'a Broken, A) -> BoxFuture<'a, T>>;

/// What a fault changes. What is `None` works as it should.
#[derive(Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools, reason = "a set of independent facts")]
pub(crate) struct Hooks {
    /// Changes what is run.
    pub(crate) command: Option<fn(&mut Command)>,
    /// Changes what comes of it.
    pub(crate) response: Option<fn(&Command, &mut ExecuteResponse)>,
    /// Changes the bytes of both output streams.
    pub(crate) bytes: Option<fn(Vec<u8>) -> Vec<u8>>,
    /// Runs a command.
    pub(crate) execute: Hook<Command, Result<ExecuteResponse>>,
    /// Changes each file that is uploaded.
    pub(crate) upload: Option<fn(&mut FileUpload)>,
    /// Shell text to run as the user before each upload, with the path as `$1`.
    pub(crate) before_upload: Option<&'static str>,
    /// Shell text to run as the user after each upload, with the path as `$1`.
    pub(crate) after_upload: Option<&'static str>,
    /// Changes the results of an upload.
    pub(crate) uploaded: Option<fn(&mut Vec<Result<()>>)>,
    /// Changes the results of a download.
    pub(crate) downloaded: Option<fn(&mut Vec<Result<Bytes>>)>,
    pub(crate) kill: Hook<(), Result<()>>,
    pub(crate) ls: Hook<SandboxPath, Result<Listing>>,
    pub(crate) read: Hook<(SandboxPath, ReadOptions), Result<ReadPage>>,
    pub(crate) write: Hook<(SandboxPath, Bytes, WriteMode), Result<()>>,
    pub(crate) edit: Hook<(SandboxPath, String, String, bool), Result<EditReport>>,
    pub(crate) glob: Hook<(String, SandboxPath), Result<GlobMatches>>,
    pub(crate) grep: Hook<(String, SandboxPath, GrepOptions), Result<GrepMatches>>,
    pub(crate) delete: Hook<SandboxPath, Result<()>>,
    /// Changes what is claimed.
    pub(crate) claims: Option<fn(&mut Capabilities)>,
    /// Changes the spec behind the caller's back.
    pub(crate) spec: Option<fn(&mut SandboxSpec)>,
    /// All `create` give one sandbox, as long as it lives.
    pub(crate) one_sandbox_for_all: bool,
    /// Dropping a connected handle kills.
    pub(crate) drop_kills: bool,
    /// `connect` makes a sandbox where there is none.
    pub(crate) connect_makes: bool,
    /// `list` remembers the dead.
    pub(crate) lists_the_dead: bool,
    /// `list` looks at no label.
    pub(crate) lists_unfiltered: bool,
}

/// Makes broken sandboxes.
#[derive(Clone)]
pub(crate) struct BrokenProvider {
    hooks: Hooks,
    inner: MockProvider,
    first: Arc<tokio::sync::Mutex<Option<SandboxId>>>,
    seen: Arc<Mutex<Vec<SandboxInfo>>>,
}

/// A broken sandbox.
pub(crate) struct Broken {
    pub(crate) inner: Arc<dyn SandboxBackend>,
    hooks: Hooks,
    connected: bool,
    /// How many commands ran.
    pub(crate) count: AtomicUsize,
    /// What an earlier command left.
    pub(crate) env: Mutex<BTreeMap<String, String>>,
    pub(crate) killed: AtomicUsize,
}

impl Broken {
    /// Runs shell text as the user, as it should be run.
    pub(crate) async fn sh(&self, text: &str, path: &SandboxPath) -> Result<ExecuteResponse> {
        sandbox_core::call::execute(&*self.inner, Command::shell(text).arg(path.as_str())).await
    }

    /// Whether this is the call number 0, `n`, `2n`….
    pub(crate) fn every(&self, n: usize) -> bool {
        self.count.fetch_add(1, Ordering::SeqCst) % n == n - 1
    }
}

impl BrokenProvider {
    pub(crate) fn new(hooks: Hooks) -> Self {
        Self {
            hooks,
            inner: MockProvider::with(MockConfig::new().hide_families()),
            first: Arc::default(),
            seen: Arc::default(),
        }
    }

    fn broken(&self, inner: Arc<dyn SandboxBackend>, connected: bool) -> Arc<dyn SandboxBackend> {
        Arc::new(Broken {
            inner,
            hooks: self.hooks,
            connected,
            count: AtomicUsize::new(0),
            env: Mutex::default(),
            killed: AtomicUsize::new(0),
        })
    }
}

impl fmt::Debug for BrokenProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BrokenProvider")
    }
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Broken")
    }
}

#[async_trait]
impl SandboxProvider for BrokenProvider {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn url(&self) -> BackendUrl {
        self.inner.url()
    }

    fn spec_support(&self) -> SpecSupport {
        self.inner.spec_support()
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Arc<dyn SandboxBackend>> {
        let mut spec = spec.clone();
        if let Some(change) = self.hooks.spec {
            change(&mut spec);
        }
        let mut first = self.first.lock().await;
        if let (true, Some(id)) = (self.hooks.one_sandbox_for_all, &*first) {
            if let Ok(inner) = self.inner.connect(id).await {
                return Ok(self.broken(inner, false));
            }
            *first = None;
        }
        let inner = self.inner.create(&spec).await?;
        first.get_or_insert_with(|| inner.id().clone());
        Ok(self.broken(inner, false))
    }

    async fn connect(&self, id: &SandboxId) -> Result<Arc<dyn SandboxBackend>> {
        match self.inner.connect(id).await {
            Err(_) if self.hooks.connect_makes => {
                Ok(self.broken(self.inner.create(&SandboxSpec::new()).await?, true))
            }
            inner => Ok(self.broken(inner?, true)),
        }
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<SandboxInfo>> {
        let all = Filter::all();
        let filter = if self.hooks.lists_unfiltered {
            &all
        } else {
            filter
        };
        let living = self.inner.list(filter).await?;
        if !self.hooks.lists_the_dead {
            return Ok(living);
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let first = self.first.try_lock().ok().and_then(|f| f.clone());
        let dead = first
            .map(|id| SandboxInfo::new(id, BTreeMap::new(), sandbox_core::SandboxState::Running));
        for info in living.into_iter().chain(dead) {
            if seen.iter().all(|s| s.id != info.id) {
                seen.push(info);
            }
        }
        Ok(seen.clone())
    }
}

#[async_trait]
impl SandboxBackend for Broken {
    fn id(&self) -> &SandboxId {
        self.inner.id()
    }

    fn capabilities(&self) -> Capabilities {
        let mut caps = self.inner.capabilities();
        if let Some(change) = self.hooks.claims {
            change(&mut caps);
        }
        caps
    }

    async fn execute(&self, command: &Command) -> Result<ExecuteResponse> {
        let mut changed = command.clone();
        if let Some(change) = self.hooks.command {
            change(&mut changed);
        }
        let mut response = match self.hooks.execute {
            Some(execute) => execute(self, changed).await?,
            None => self.inner.execute(&changed).await?,
        };
        if let Some(change) = self.hooks.bytes {
            response.stdout = whole(change(response.stdout.bytes().to_vec()));
            response.stderr = whole(change(response.stderr.bytes().to_vec()));
            response.ordered = response.ordered.map(|o| whole(change(o.bytes().to_vec())));
        }
        if let Some(change) = self.hooks.response {
            change(command, &mut response);
        }
        Ok(response)
    }

    async fn upload_files(&self, files: &[FileUpload]) -> Vec<Result<()>> {
        let mut files = files.to_vec();
        for file in &mut files {
            if let Some(change) = self.hooks.upload {
                change(file);
            }
            if let Some(text) = self.hooks.before_upload {
                let _ = self.sh(text, &file.path).await;
            }
        }
        let mut results = self.inner.upload_files(&files).await;
        if let Some(text) = self.hooks.after_upload {
            for file in &files {
                let _ = self.sh(text, &file.path).await;
            }
        }
        if let Some(change) = self.hooks.uploaded {
            change(&mut results);
        }
        results
    }

    async fn download_files(&self, files: &[FileDownload]) -> Vec<Result<Bytes>> {
        let mut results = self.inner.download_files(files).await;
        if let Some(change) = self.hooks.downloaded {
            change(&mut results);
        }
        results
    }

    async fn kill(&self) -> Result<()> {
        match self.hooks.kill {
            Some(kill) => kill(self, ()).await,
            None => self.inner.kill().await,
        }
    }

    fn kill_ticket(&self) -> Option<KillTicket> {
        let inner = self.inner.clone();
        match self.hooks.kill {
            // Then core calls `kill`, which is what is broken.
            Some(_) => None,
            None => Some(KillTicket::new(self.id().clone(), move || async move {
                inner.kill().await
            })),
        }
    }

    fn native_files(&self) -> Option<&dyn NativeFiles> {
        let h = &self.hooks;
        let one = h.ls.is_some()
            || h.read.is_some()
            || h.write.is_some()
            || h.edit.is_some()
            || h.glob.is_some()
            || h.grep.is_some()
            || h.delete.is_some();
        one.then_some(self)
    }
}

/// Each operation is the hook's, or derived as everywhere.
#[async_trait]
impl NativeFiles for Broken {
    async fn ls(&self, path: &SandboxPath) -> Result<Listing> {
        match self.hooks.ls {
            Some(ls) => ls(self, path.clone()).await,
            None => derive::ls(self, path).await,
        }
    }

    async fn read(&self, path: &SandboxPath, options: ReadOptions) -> Result<ReadPage> {
        match self.hooks.read {
            Some(read) => read(self, (path.clone(), options)).await,
            None => derive::read(self, path, options).await,
        }
    }

    async fn write(&self, path: &SandboxPath, content: Bytes, mode: WriteMode) -> Result<()> {
        match self.hooks.write {
            Some(write) => write(self, (path.clone(), content, mode)).await,
            None => derive::write(self, path, content, mode).await,
        }
    }

    async fn edit(
        &self,
        path: &SandboxPath,
        old: &str,
        new: &str,
        replace_all: bool,
    ) -> Result<EditReport> {
        match self.hooks.edit {
            Some(edit) => edit(self, (path.clone(), old.into(), new.into(), replace_all)).await,
            None => derive::edit(self, path, old, new, replace_all).await,
        }
    }

    async fn glob(&self, pattern: &str, path: &SandboxPath) -> Result<GlobMatches> {
        match self.hooks.glob {
            Some(glob) => glob(self, (pattern.into(), path.clone())).await,
            None => derive::glob(self, pattern, path).await,
        }
    }

    async fn grep(
        &self,
        text: &str,
        path: &SandboxPath,
        options: &GrepOptions,
    ) -> Result<GrepMatches> {
        match self.hooks.grep {
            Some(grep) => grep(self, (text.into(), path.clone(), options.clone())).await,
            None => derive::grep(self, text, path, options).await,
        }
    }

    async fn delete(&self, path: &SandboxPath) -> Result<()> {
        match self.hooks.delete {
            Some(delete) => delete(self, path.clone()).await,
            None => derive::delete(self, path).await,
        }
    }

    async fn upload_dir(&self, local: &Path, path: &SandboxPath) -> Result<TreeReport> {
        derive::upload_dir(self, local, path).await
    }

    async fn download_dir(&self, path: &SandboxPath, local: &Path) -> Result<TreeReport> {
        derive::download_dir(self, path, local).await
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        if self.hooks.drop_kills && self.connected {
            let inner = self.inner.clone();
            // Cases run on a runtime.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { inner.kill().await });
            }
        }
    }
}

/// All of a stream.
pub(crate) fn whole(bytes: Vec<u8>) -> sandbox_core::Captured {
    sandbox_core::Captured::whole(bytes)
}
