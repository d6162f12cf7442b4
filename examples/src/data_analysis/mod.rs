//! An agent that analyses a CSV in a sandbox: the parts of the example `data_analysis`.
//!
//! - [`Options`]: what to analyse, where, with which model.
//! - [`run`]: sandbox, upload, agent, download, `report.md`.
//! - `agent` gives a sandbox's tools to rig's agent loop; `model` connects one of four APIs; `retry`
//!   is what the network needs.
//! - `offline` is what speaks when no model is named: a fixed plan, no language model.
//! - `delivery` takes what the model returned for hostile, and puts it on the user's disk.

mod agent;
mod delivery;
mod image;
mod input;
mod markdown;
mod model;
pub mod offline;
mod options;
mod retry;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use sandbox::{Sandbox, SandboxSpec};
use sandbox_testkit::chat::{ChatServer, Wire};

pub use agent::{Answer, PLAN_TURNS};
pub use model::{ModelOptions, Provider};
pub use options::Options;

use crate::Result;

/// Takes one line of progress.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;

/// What [`run`] left on the disk.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The report.
    pub report: PathBuf,
    /// The images beside it.
    pub images: Vec<PathBuf>,
    /// What the model listed and did not deliver, and why.
    pub refused: Vec<String>,
}

/// Analyses one CSV: makes a sandbox, lets an agent work in it, and leaves the report.
///
/// # Errors
///
/// The CSV can't be read or is none; the sandbox or the model can't be reached; the model did not
/// come to an end or said why it can't. Then nothing is written.
pub async fn run(options: &Options, progress: Progress) -> Result<Outcome> {
    let input = input::read(&options.csv)?;
    // Without a model's name, a stand-in in this process speaks the protocol over the loopback.
    let mut stand_in = None;
    let chosen = if let Some(model) = options.model_options() {
        progress(&format!("model: {}", model.describe()));
        model
    } else {
        progress(
            "model: none named, so a stand-in answers: a fixed plan, no language model (--model NAME for a real one)",
        );
        let server = ChatServer::start(Wire::OpenAi, offline::Plan::default()).await?;
        let model = ModelOptions::stand_in(Provider::Openai, server.base_url());
        stand_in = Some(server);
        model
    };
    let started = Instant::now();
    let sandbox = sandbox::connect(&options.backend)
        .await?
        .create(SandboxSpec::new())
        .await?;
    progress(&format!(
        "sandbox: {} ({:.2} s)",
        options.backend,
        started.elapsed().as_secs_f64()
    ));
    let outcome = in_sandbox(&sandbox, &input, &chosen, options, progress).await;
    let killed = sandbox.kill().await;
    drop(stand_in);
    let outcome = outcome?;
    killed?;
    Ok(outcome)
}

async fn in_sandbox(
    sandbox: &Sandbox,
    input: &input::Input,
    model: &ModelOptions,
    options: &Options,
    progress: Progress,
) -> Result<Outcome> {
    let path = format!("/workspace/{}", input.name);
    sandbox.upload(&path, input.bytes.clone()).await?;
    progress(&format!("upload: {path}, {} bytes", input.bytes.len()));
    let answer = agent::analyse(sandbox, &path, model, options.max_turns, progress).await?;
    delivery::deliver(sandbox, &answer, &options.out).await
}
