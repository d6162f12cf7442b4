//! What makes sandboxes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sandbox_core::{
    BackendUrl, Filter, Operation, Result, SandboxBackend, SandboxId, SandboxInfo, SandboxPath,
    SandboxProvider, SandboxSpec, SandboxState, SpecSupport, async_trait,
};

use crate::backend::MockSandbox;
use crate::config::{MEMORY, MockConfig};
use crate::faults::Faults;
use crate::machine::{Birth, Machine};
use crate::record::{Control, Record};
use crate::vfs::Accounts;
use crate::{error, registry};

/// Makes sandboxes inside this process. Cloning shares it.
#[derive(Clone, Debug)]
pub struct MockProvider(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: MockConfig,
    control: Arc<Control>,
    made: AtomicU64,
}

impl MockProvider {
    /// A provider with all defaults.
    pub fn new() -> Self {
        Self::with(MockConfig::new())
    }

    /// A provider with a configuration.
    pub fn with(config: MockConfig) -> Self {
        Self::with_faults(config, Faults::new())
    }

    /// A provider whose calls go wrong as the script says.
    pub fn with_faults(config: MockConfig, faults: Faults) -> Self {
        Self(Arc::new(Inner {
            config,
            control: Control::new(faults),
            made: AtomicU64::new(0),
        }))
    }

    /// What reached this provider and its sandboxes.
    pub fn record(&self) -> Record {
        Record::new(self.0.control.clone())
    }

    /// The provider of a `mock:` URL, see [`MockConfig::from_url`].
    ///
    /// # Errors
    ///
    /// [`sandbox_core::ErrorKind::Config`] as there.
    pub fn from_url(url: &BackendUrl) -> Result<Self> {
        Ok(Self::with(MockConfig::from_url(url)?))
    }

    fn handle(&self, machine: Arc<Machine>) -> Arc<dyn SandboxBackend> {
        Arc::new(MockSandbox {
            machine,
            control: self.0.control.clone(),
            hide_families: self.0.config.hide_families,
        })
    }

    fn make(&self, name: Option<&str>, spec: &SandboxSpec) -> Result<(Arc<Machine>, bool)> {
        let config = &self.0.config;
        let user = spec.user.as_deref().or(config.user.as_deref());
        let account = Accounts::find(user.unwrap_or("root"))?;
        let workdir = SandboxPath::new(spec.effective_workdir())?;
        let n = self.0.made.fetch_add(1, Ordering::Relaxed);
        let seed = config.seed.map(|seed| (seed, n));
        let (machine, made) = registry::insert(name, seed, |id| {
            Machine::new(Birth {
                id,
                name: name.map(str::to_owned),
                labels: spec.labels.clone(),
                account,
                workdir: workdir.as_str().to_owned(),
                memory: spec.memory.or(config.memory).unwrap_or(MEMORY),
                env: spec.env.clone(),
                seed: noise(seed),
            })
        })?;
        if made {
            machine.renew(spec.effective_lifetime())?;
        }
        Ok((machine, made))
    }
}

/// What `/dev/urandom` begins with.
fn noise(seed: Option<(u64, u64)>) -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    match seed {
        Some((seed, n)) => (seed ^ n.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        None => RandomState::new().hash_one(0u8),
    }
}

impl Default for MockProvider {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl SandboxProvider for MockProvider {
    fn name(&self) -> &'static str {
        "mock"
    }

    fn url(&self) -> BackendUrl {
        self.0.config.url()
    }

    fn spec_support(&self) -> SpecSupport {
        SpecSupport::none().with(|s| {
            s.env = true;
            s.workdir = true;
            s.user = true;
            s.memory = true;
            s.network_none = true;
            s.lifetime = true;
            s.labels = true;
        })
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Arc<dyn SandboxBackend>> {
        self.0
            .control
            .around(Operation::Create, None, "", async |_| {
                Ok(self.handle(self.make(None, spec)?.0))
            })
            .await
    }

    async fn connect(&self, id: &SandboxId) -> Result<Arc<dyn SandboxBackend>> {
        self.0
            .control
            .around(Operation::Connect, Some(id), "", async |_| {
                let machine = registry::get(id).ok_or_else(error::gone)?;
                Ok(self.handle(machine))
            })
            .await
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<SandboxInfo>> {
        self.0
            .control
            .around(Operation::List, None, "", async |_| {
                let mut found: Vec<SandboxInfo> = registry::all()
                    .into_iter()
                    .filter(|m| filter.matches(&m.labels))
                    .map(|m| (m.id.clone(), m.labels.clone()))
                    .map(|(id, labels)| SandboxInfo::new(id, labels, SandboxState::Running))
                    .collect();
                found.sort_unstable_by(|a, b| a.id.cmp(&b.id));
                Ok(found)
            })
            .await
    }

    async fn get_or_create(
        &self,
        name: &str,
        spec: &SandboxSpec,
    ) -> Result<(Arc<dyn SandboxBackend>, bool)> {
        self.0
            .control
            .around(Operation::GetOrCreate, None, name, async |_| {
                let (machine, made) = self.make(Some(name), spec)?;
                Ok((self.handle(machine), made))
            })
            .await
    }
}
