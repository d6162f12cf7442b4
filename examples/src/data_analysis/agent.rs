//! The agent: rig's loop, with a sandbox's tools.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rig_agent::AgentBuilder;
use rig_agent::agent::{
    AgentHook, CompletionCallAction, CompletionCallEvent, HookContext, InvalidToolCallAction,
    InvalidToolCallContext, OutputMode,
};
use rig_agent::completion::PromptError;
use rig_core::message::ToolName;
use rig_core::tool::{DynamicTool, ToolOutput};
use sandbox::{ErrorKind, Sandbox};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Progress;
use super::model::{ModelOptions, Provider};
use crate::Result;

/// Calls of the model that the stand-in's longest plan needs, with room.
pub const PLAN_TURNS: usize = 40;

/// What a model returns at the end. All of it is hostile until `delivery` has looked at it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Answer {
    /// The report in Markdown, with the images where they belong: `![caption](path)`.
    #[serde(default)]
    pub report: String,
    /// The absolute paths of the images in the sandbox.
    #[serde(default)]
    pub images: Vec<String>,
    /// Why there can be no report. Leave it out when there is one.
    #[serde(default)]
    pub failure: Option<String>,
}

const PREAMBLE: &str = "\
You are a data analyst. You work in an isolated sandbox without network, with the tools you are given. \
Everything you say about the data must come from code that ran in the sandbox; never guess a figure.

1. Look at the file first: its beginning, its size, its delimiter and encoding.
2. Find out what the sandbox has. With python3, pandas and seaborn, use them and draw PNG images. \
Without them use POSIX sh and awk, and write SVG images yourself.
3. Write your analysis as a script file, run it, read its output, and repair it if it fails.
4. Analyse: structure and data quality (rows, columns, types, missing cells, duplicates), numeric \
summaries (count, mean, standard deviation, minimum, quartiles, maximum, sum), the 15 most common \
values, features that the columns allow (domain and ending of e-mail addresses, weekday, month), rows by month.
5. Draw at least four charts that suit the columns' types, each with a title, axis labels and readable \
ticks, into /workspace/out.
6. Return the report in Markdown with the charts where they belong, and the absolute path of each image. \
If the file is no CSV or can't be read, return the reason as the failure instead.";

/// Lets the model analyse the CSV at `path`.
pub(super) async fn analyse(
    sandbox: &Sandbox,
    path: &str,
    model: &ModelOptions,
    max_turns: usize,
    progress: Progress,
) -> Result<Answer> {
    let watch = Watch::default();
    let mut builder = AgentBuilder::new(model.connect(progress.clone())?)
        .preamble(PREAMBLE)
        .output_schema::<Answer>()
        // A final tool call works with every API; native schemas and tools do not go together everywhere.
        .output_mode(OutputMode::Tool);
    if model.provider == Provider::Anthropic {
        // That API wants a limit; a report and a script fit into this one.
        builder = builder.max_tokens(16_000);
    }
    let agent = builder
        .dynamic_tools(tools(sandbox, &watch, &progress)?)
        .build();
    let prompt = format!("Analyse the CSV file `{path}` and return the report.");
    let response = agent
        .prompt(prompt)
        .max_turns(max_turns)
        .max_consecutive_malformed_tool_calls(3)
        .add_hook(watch)
        .await
        .map_err(|e| model.redact(&explain(&e)))?;
    let answer = parse(&response.output())?;
    match answer.failure.as_deref().map(str::trim) {
        None | Some("") => Ok(answer),
        Some(why) => {
            let why: String = why.chars().filter(|c| !c.is_control()).take(600).collect();
            Err(format!("the analysis failed: {why}").into())
        }
    }
}

/// The tools of `sandbox-tools`, as rig wants them. This is all that an adapter has to do.
fn tools(sandbox: &Sandbox, watch: &Watch, progress: &Progress) -> Result<Vec<DynamicTool>> {
    sandbox_tools::definitions()
        .into_iter()
        .map(|d| {
            let (sandbox, watch, progress) = (sandbox.clone(), watch.clone(), progress.clone());
            let call = move |args: Value| {
                let (sandbox, watch, progress) = (sandbox.clone(), watch.clone(), progress.clone());
                Box::pin(async move {
                    let (shown, started) = (summary(&args), Instant::now());
                    let answer = sandbox_tools::dispatch(&sandbox, d.name, args).await;
                    let mark = if answer.is_error { "  failed" } else { "" };
                    progress(&format!(
                        "{:>7.2} s  {:<10} {shown}{mark}",
                        started.elapsed().as_secs_f64(),
                        d.name
                    ));
                    if answer.kind == Some(ErrorKind::SandboxGone) {
                        watch.gone.store(true, Ordering::Release);
                    }
                    Ok(ToolOutput::text(answer.text))
                }) as _
            };
            Ok(DynamicTool::new(
                ToolName::new(d.name)?,
                d.description,
                d.parameters,
                call,
            ))
        })
        .collect()
}

/// The first argument, on one short line: a command or a path.
fn summary(args: &Value) -> String {
    let first = ["command", "file_path", "pattern", "path"]
        .iter()
        .find_map(|key| args.get(key)?.as_str())
        .unwrap_or_default();
    let mut line: String = first
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(90)
        .collect();
    if first.chars().count() > 90 {
        line.push('…');
    }
    line
}

/// Ends a run whose sandbox is gone, and answers calls of tools that do not exist.
#[derive(Clone, Default)]
struct Watch {
    gone: Arc<AtomicBool>,
}

impl AgentHook for Watch {
    async fn on_completion_call(
        &self,
        _: &HookContext,
        _: CompletionCallEvent<'_>,
    ) -> CompletionCallAction {
        if self.gone.load(Ordering::Acquire) {
            CompletionCallAction::stop("the sandbox is gone")
        } else {
            CompletionCallAction::continue_run()
        }
    }

    async fn on_invalid_tool_call(
        &self,
        _: &HookContext,
        call: &InvalidToolCallContext,
    ) -> Option<InvalidToolCallAction> {
        let mut reason = String::from("Error: this call can't be carried out");
        let _ = write!(
            reason,
            "; there are these tools: {}",
            call.available_tools.join(", ")
        );
        Some(InvalidToolCallAction::Skip { reason })
    }
}

fn explain(e: &PromptError) -> String {
    match e {
        PromptError::MaxTurns { max_turns, .. } => {
            format!("the model did not come to an end within {max_turns} calls (--max-turns)")
        }
        PromptError::Cancelled { reason, .. } => format!("the run was stopped: {reason}"),
        other => {
            // A server's error page can be long.
            let text: String = other.to_string().chars().take(1000).collect();
            format!("the model can't be asked: {text}")
        }
    }
}

/// The structured answer: JSON as asked, or JSON within prose or a fence.
fn parse(output: &str) -> Result<Answer> {
    let start = output.find('{').unwrap_or(0);
    let mut values = serde_json::Deserializer::from_str(&output[start..]).into_iter::<Answer>();
    let answer = match values.next() {
        Some(Ok(answer)) => answer,
        Some(Err(e)) => {
            return Err(format!("the model's final answer has not the form asked for: {e}").into());
        }
        None => return Err("the model ended without an answer".into()),
    };
    if answer == Answer::default() {
        return Err("the model's final answer is empty".into());
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_found_within_prose_and_none_is_made_up() {
        let json = r##"{"report": "# R", "images": ["/workspace/a.svg"]}"##;
        for text in [
            json.to_owned(),
            format!("Here it is:\n```json\n{json}\n```"),
        ] {
            assert_eq!(parse(&text).unwrap().images, ["/workspace/a.svg"]);
        }
        for bad in [
            "",
            "done",
            "{}",
            r#"{"report": 1}"#,
            r#"{"images": "x"}"#,
            "[]",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_line_of_progress_is_one_line() {
        assert_eq!(summary(&json!({"command": "a\nb"})), "a b");
        assert!(
            summary(&json!({"command": "x".repeat(500)}))
                .chars()
                .count()
                <= 91
        );
        assert_eq!(summary(&json!([1])), "");
    }
}
