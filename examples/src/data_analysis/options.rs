//! The command line.

use std::path::PathBuf;

use clap::Parser;

use super::model::{ModelOptions, Provider};

/// Analyses a CSV with an agent whose code runs in a sandbox.
///
/// Without --model a stand-in follows a fixed plan: no key, no network, no language model.
#[derive(Clone, Debug, Parser)]
#[command(name = "data_analysis")]
pub struct Options {
    /// The CSV to analyse.
    #[arg(long, value_name = "PATH", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data/customers-1000.csv"))]
    pub csv: PathBuf,

    /// The folder for report.md and its images; made if it is missing.
    #[arg(long, value_name = "DIR", default_value = "data_analysis-report")]
    pub out: PathBuf,

    /// The sandbox's backend.
    #[arg(long, value_name = "URL", default_value = "mock:")]
    pub backend: String,

    /// A model's name, as its API calls it.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    /// The API that serves the model. Its key is read from `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`,
    /// `GEMINI_API_KEY` or `OLLAMA_API_KEY`.
    #[arg(long, value_enum, default_value_t = Provider::Openai)]
    pub provider: Provider,

    /// Another address of that API: any OpenAI-compatible server, a proxy, a remote Ollama.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// Calls of the model at most.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub max_turns: usize,
}

impl Options {
    /// The model asked for; `None` for the stand-in.
    pub(super) fn model_options(&self) -> Option<ModelOptions> {
        let name = self.model.clone()?;
        Some(ModelOptions {
            provider: self.provider,
            name,
            base_url: self.base_url.clone(),
            key: std::env::var(self.provider.key_variable())
                .ok()
                .filter(|key| !key.is_empty()),
        })
    }
}
