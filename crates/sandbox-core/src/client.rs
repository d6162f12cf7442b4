//! What makes sandboxes for people.

use std::sync::Arc;

use crate::{
    Error, ErrorKind, Filter, Operation, Result, Sandbox, SandboxBackend, SandboxId, SandboxInfo,
    SandboxProvider, SandboxRef, SandboxSpec,
};

/// Makes and finds sandboxes of one provider. Cheap to clone. Belongs to the runtime that made it.
#[derive(Clone, Debug)]
pub struct Client {
    provider: Arc<dyn SandboxProvider>,
}

impl Client {
    /// A client of `provider`.
    pub fn new(provider: impl SandboxProvider) -> Self {
        Self {
            provider: Arc::new(provider),
        }
    }

    /// A client of a shared provider.
    pub fn from_arc(provider: Arc<dyn SandboxProvider>) -> Self {
        Self { provider }
    }

    /// The provider's one word.
    pub fn backend_name(&self) -> &'static str {
        self.provider.name()
    }

    /// The URL that makes an equal client.
    pub fn url(&self) -> String {
        self.provider.url().to_string()
    }

    /// Makes a sandbox that this process owns: its last drop kills it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`], naming the field, for what is set in the spec and can't be
    /// honoured; [`ErrorKind::InvalidArgument`] for values that can't be; those of the backend.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no sandbox behind.
    pub async fn create(&self, spec: SandboxSpec) -> Result<Sandbox> {
        self.named(Operation::Create, async {
            let warnings = spec.check(&self.provider.spec_support())?;
            let backend = self.provider.create(&spec).await?;
            Ok(self.sandbox(backend, true, warnings))
        })
        .await
    }

    /// Picks up a living sandbox without owning it: dropping never kills it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SandboxGone`] if there is none with this id.
    pub async fn connect(&self, id: &SandboxId) -> Result<Sandbox> {
        self.named(Operation::Connect, async {
            let backend = self
                .provider
                .connect(id)
                .await
                .map_err(|e| e.with("sandbox", id))?;
            Ok(self.sandbox(backend, false, Vec::new()))
        })
        .await
    }

    /// As [`connect`](Self::connect), by a reference that must belong to this backend.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if it belongs to another.
    pub async fn connect_ref(&self, reference: &SandboxRef) -> Result<Sandbox> {
        if reference.url != self.url() {
            return Err(Error::new(
                ErrorKind::Config,
                "the reference belongs to another backend",
            )
            .at(Operation::Connect)
            .with("url", &reference.url)
            .with("backend", self.url()));
        }
        self.connect(&reference.id).await
    }

    /// Picks up the sandbox of that name or makes it, at most once however many ask at a time. It
    /// is not owned by this process: it lives until it is killed or its lifetime ends.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] where the provider can't; as [`create`](Self::create).
    pub async fn get_or_create(&self, name: &str, spec: SandboxSpec) -> Result<Sandbox> {
        self.named(Operation::GetOrCreate, async {
            if name.is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    "a name is 1 to 128 bytes without control characters",
                ));
            }
            let warnings = spec.check(&self.provider.spec_support())?;
            let (backend, made) = self.provider.get_or_create(name, &spec).await?;
            Ok(self.sandbox(backend, false, if made { warnings } else { Vec::new() }))
        })
        .await
    }

    /// The living sandboxes that have all the labels of `filter`.
    ///
    /// # Errors
    ///
    /// Those of the backend.
    pub async fn list(&self, filter: &Filter) -> Result<Vec<SandboxInfo>> {
        self.named(Operation::List, self.provider.list(filter))
            .await
    }

    /// Removes what is left of sandboxes that have ended, and those whose owner has ended without
    /// them. Never a living one that was detached, renewed or belongs to another machine. Gives
    /// what was removed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] where nothing can be left, those of the backend.
    pub async fn gc(&self) -> Result<Vec<SandboxId>> {
        self.named(Operation::Gc, self.provider.gc()).await
    }

    async fn named<T>(
        &self,
        operation: Operation,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        call.await
            .map_err(|e| e.at(operation).with("backend", self.provider.name()))
    }

    fn sandbox(
        &self,
        backend: Arc<dyn SandboxBackend>,
        owned: bool,
        mut warnings: Vec<String>,
    ) -> Sandbox {
        warnings.extend(backend.warnings());
        for warning in &warnings {
            tracing::warn!(backend = self.provider.name(), sandbox.id = %backend.id(), "{warning}");
        }
        Sandbox::new(backend, self.provider.name(), self.url(), owned, warnings)
    }
}
