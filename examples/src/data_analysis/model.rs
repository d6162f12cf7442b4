//! The four APIs that a model can be reached by.

use std::time::Duration;

use rig_core::DynModel;
use rig_core::operation::Completion;
use rig_core::providers::anthropic::AnthropicConfig;
use rig_core::providers::gemini::GeminiConfig;
use rig_core::providers::ollama::OllamaConfig;
use rig_core::providers::openai::OpenAIConfig;
use rig_reqwest::ReqwestClient;

use super::Progress;
use super::retry::Retrying;
use crate::Result;

/// An API of language models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Provider {
    /// Chat completions, of `OpenAI` or of any server that speaks them.
    Openai,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// Ollama's own chat.
    Ollama,
}

impl Provider {
    /// The environment variable with the key.
    pub(super) fn key_variable(self) -> &'static str {
        match self {
            Self::Openai => "OPENAI_API_KEY",
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
            Self::Ollama => "OLLAMA_API_KEY",
        }
    }
}

/// Which model, and how to reach it.
#[derive(Clone)]
pub struct ModelOptions {
    /// The API.
    pub provider: Provider,
    /// The model's name there.
    pub name: String,
    /// Another address of the API.
    pub base_url: Option<String>,
    /// The key. Never shown.
    pub key: Option<String>,
}

impl ModelOptions {
    /// A stand-in on the loopback.
    pub fn stand_in(provider: Provider, base_url: impl Into<String>) -> Self {
        Self {
            provider,
            name: "stand-in".to_owned(),
            base_url: Some(base_url.into()),
            key: Some("no-key".to_owned()),
        }
    }

    /// One line for people.
    pub(super) fn describe(&self) -> String {
        match &self.base_url {
            None => format!("{} ({:?})", self.name, self.provider),
            Some(url) => format!("{} ({:?} at {url})", self.name, self.provider),
        }
    }

    /// The text without the key: Gemini's stands in every address, and so in every error.
    pub(super) fn redact(&self, text: &str) -> String {
        match &self.key {
            Some(key) if key.len() > 3 => text.replace(key.as_str(), "***"),
            _ => text.to_owned(),
        }
    }

    /// A model that retries what the network and a busy server need retried.
    pub(super) fn connect(&self, progress: Progress) -> Result<DynModel<Completion>> {
        let http = Retrying::new(self.client()?, progress);
        let variable = self.provider.key_variable();
        let local = self.base_url.is_some() || self.provider == Provider::Ollama;
        let key = match &self.key {
            Some(key) => key.clone(),
            // Servers of one's own rarely want one.
            None if local => String::from("none"),
            None => {
                return Err(format!(
                    "set {variable}, or --base-url for a server that needs no key"
                )
                .into());
            }
        };
        Ok(match self.provider {
            Provider::Openai => {
                let mut config = OpenAIConfig::new(key);
                if let Some(url) = &self.base_url {
                    config = config.with_base_url(url);
                }
                config.connect(http).chat(&self.name).into()
            }
            Provider::Anthropic => {
                let mut config = AnthropicConfig::new(key);
                if let Some(url) = &self.base_url {
                    config = config.with_base_url(url);
                }
                config.connect(http).completion(&self.name).into()
            }
            Provider::Gemini => {
                let mut config = GeminiConfig::new(key);
                if let Some(url) = &self.base_url {
                    config = config.with_base_url(url);
                }
                config.connect(http).completion(&self.name).into()
            }
            Provider::Ollama => {
                let mut config = OllamaConfig::new();
                if let Some(url) = &self.base_url {
                    config = config.with_base_url(url);
                }
                if let Some(key) = &self.key {
                    config = config.with_api_key(key);
                }
                config.connect(http).native_completion(&self.name).into()
            }
        })
    }

    fn client(&self) -> Result<ReqwestClient> {
        // A second one finds it installed: that is what is wanted.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(20))
            .timeout(Duration::from_mins(10));
        if self
            .base_url
            .as_deref()
            .is_some_and(|url| url.starts_with("http://127.0.0.1:"))
        {
            // The loopback needs neither a proxy nor certificates, which a machine may lack.
            builder = builder.no_proxy().tls_certs_only([]);
        }
        Ok(builder.build()?.into())
    }
}

impl std::fmt::Debug for ModelOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}
