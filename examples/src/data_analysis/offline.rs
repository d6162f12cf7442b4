//! What speaks when no model is named: a fixed plan. It is no language model.
//!
//! It sees what a model sees, the conversation, and says what a model says, tool calls and a final
//! answer. It knows nothing of CSV: the analysis is a script that it writes into the sandbox with
//! `write_file` and runs with `execute`, and every figure in its report is what that script printed
//! there. It reads each answer and takes another step where one fails.

use sandbox_testkit::chat::{Conversation, Message, Reply, Script};
use serde_json::{Value, json};

const AWK: &str = include_str!("plan/analyse.awk");
const PYTHON: &str = include_str!("plan/analyse.py");

const OUT: &str = "/workspace/out";
const PROBE: &str = "for tool in awk iconv od; do command -v $tool >/dev/null 2>&1 && echo \"has $tool\"; done; \
python3 -c 'import pandas, seaborn' >/dev/null 2>&1 && echo 'has pandas'; true";

/// The plan, and what it knows so far.
#[derive(Debug)]
pub struct Plan {
    step: Step,
    csv: String,
    /// Where the text in UTF-8 is: the CSV or a converted copy.
    source: String,
    note: String,
    delimiter: String,
    has: Vec<String>,
    runs: usize,
    report: String,
    images: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Look,
    Read,
    Probe,
    Encoding,
    Convert,
    Script,
    Run,
    Report(u64),
    Images,
    End,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            step: Step::Look,
            csv: String::new(),
            source: String::new(),
            note: String::new(),
            // What the name says, until the file says something else.
            delimiter: ",".to_owned(),
            has: Vec::new(),
            runs: 0,
            report: String::new(),
            images: Vec::new(),
        }
    }
}

impl Script for Plan {
    fn reply(&mut self, conversation: &Conversation) -> Reply {
        let answer = match conversation.messages.last() {
            Some(Message::Answer(text)) => text.clone(),
            Some(Message::User(prompt)) if self.step == Step::Look => {
                match prompt.split('`').nth(1) {
                    Some(path) if path.starts_with('/') => {
                        path.clone_into(&mut self.csv);
                        path.clone_into(&mut self.source);
                        return self.go(Step::Look);
                    }
                    _ => return finish(conversation, &failure("the prompt names no file")),
                }
            }
            _ => return finish(conversation, &failure("an answer of a tool was expected")),
        };
        match self.next(&answer) {
            Ok(Step::End) => finish(
                conversation,
                &json!({"report": self.report, "images": self.images}),
            ),
            Ok(step) => self.go(step),
            Err(why) => finish(conversation, &failure(&why)),
        }
    }
}

impl Plan {
    /// What the answer to the last step means for the next one.
    fn next(&mut self, answer: &str) -> Result<Step, String> {
        let failed = answer.starts_with("Error: ") || !answer.contains("[Command succeeded");
        match self.step {
            Step::Look => {
                if !answer
                    .lines()
                    .any(|line| line.starts_with(&format!("{} (", self.csv)))
                {
                    return Err(format!(
                        "{} is not in the sandbox; ls says: {}",
                        self.csv,
                        first_lines(answer, 3)
                    ));
                }
                Ok(Step::Read)
            }
            // Text that is not UTF-8 is refused by `read_file`: then its encoding has to be found.
            Step::Read if answer.contains("not UTF-8") && !answer.contains("image") => {
                Ok(Step::Probe)
            }
            Step::Read if answer.starts_with("Error: ") => {
                Err(answer.trim_start_matches("Error: ").to_owned())
            }
            Step::Read if answer.starts_with("System reminder") => {
                Err("the file is empty".to_owned())
            }
            Step::Read => Ok(Step::Probe),
            Step::Probe => {
                self.has = answer
                    .lines()
                    .filter_map(|line| line.strip_prefix("has "))
                    .map(str::to_owned)
                    .collect();
                if self.has("pandas") {
                    // It reads other encodings itself.
                    Ok(Step::Script)
                } else if !self.has("awk") {
                    Err(format!(
                        "the sandbox has neither pandas nor awk: {}",
                        first_lines(answer, 5)
                    ))
                } else if self.has("iconv") {
                    Ok(Step::Encoding)
                } else {
                    Ok(Step::Script)
                }
            }
            Step::Encoding if failed => Ok(Step::Convert),
            Step::Encoding => Ok(Step::Script),
            Step::Convert if failed => {
                // The script reads what it can without it.
                self.note = "The file is not UTF-8 and could not be converted; some characters may be wrong.".into();
                Ok(Step::Script)
            }
            Step::Convert => {
                self.source = "/workspace/utf8.csv".into();
                self.note = "The file is not UTF-8; it was read as Latin-1.".into();
                Ok(Step::Script)
            }
            Step::Script if answer.starts_with("Error: ") => {
                Err(format!("the script can't be written: {answer}"))
            }
            Step::Script => Ok(Step::Run),
            Step::Run if failed => self.repair(answer),
            Step::Run => {
                self.images = answer
                    .lines()
                    .filter_map(|line| line.strip_prefix("chart\t")?.split('\t').next())
                    .map(str::to_owned)
                    .collect();
                Ok(Step::Report(0))
            }
            Step::Report(_) => self.collect(answer),
            Step::Images => {
                // What the script says it drew counts only where `glob` finds it.
                self.images
                    .retain(|image| answer.lines().any(|line| line == image));
                Ok(Step::End)
            }
            Step::End => Err("the run went on after its end".to_owned()),
        }
    }

    /// The script failed: what it printed says what to do.
    fn repair(&mut self, answer: &str) -> Result<Step, String> {
        self.runs += 1;
        let hint = answer
            .split("run again with -v D='")
            .nth(1)
            .and_then(|h| h.split('\'').next());
        match hint {
            Some(delimiter) if self.runs < 3 => {
                delimiter.clone_into(&mut self.delimiter);
                Ok(Step::Run)
            }
            _ => Err(format!(
                "the analysis did not run: {}",
                first_lines(answer, 6)
            )),
        }
    }

    /// A page of the report: the lines after the header, and where the next page begins.
    fn collect(&mut self, answer: &str) -> Result<Step, String> {
        let Some((header, body)) = answer.split_once(" @@\n") else {
            return Err(format!(
                "the report can't be read: {}",
                first_lines(answer, 3)
            ));
        };
        self.report.push_str(body);
        self.report.push('\n');
        let next = header
            .split("next offset ")
            .nth(1)
            .and_then(|n| n.split(' ').next()?.parse().ok());
        Ok(next.map_or(Step::Images, Step::Report))
    }

    /// Takes the step: the tool call that stands for it.
    fn go(&mut self, step: Step) -> Reply {
        self.step = step;
        let run =
            |command: String| Reply::call("execute", json!({"command": command, "timeout": 300}));
        let source = quote(&self.source);
        match step {
            Step::Look => Reply::call("ls", json!({"path": "/workspace"})),
            Step::Read => Reply::call("read_file", json!({"file_path": self.csv, "limit": 5})),
            Step::Probe => run(PROBE.to_owned()),
            Step::Encoding => run(format!("iconv -f UTF-8 -t UTF-8 {source} >/dev/null")),
            Step::Convert => run(format!(
                "iconv -f LATIN1 -t UTF-8 {source} >/workspace/utf8.csv"
            )),
            Step::Script => {
                let (path, content) = if self.has("pandas") {
                    ("/workspace/analyse.py", PYTHON)
                } else {
                    ("/workspace/analyse.awk", AWK)
                };
                Reply::call("write_file", json!({"file_path": path, "content": content}))
            }
            Step::Run => {
                let (title, note, d) = (
                    quote(name(&self.csv)),
                    quote(&self.note),
                    quote(&self.delimiter),
                );
                run(if self.has("pandas") {
                    format!(
                        "python3 /workspace/analyse.py {source} --out {OUT} --delimiter {d} --title {title} --note {note}"
                    )
                } else {
                    format!(
                        "mkdir -p {OUT} && LC_ALL=C awk -f /workspace/analyse.awk -v OUT={OUT} -v D={d} -v TITLE={title} -v NOTE={note} {source}"
                    )
                })
            }
            Step::Report(offset) => Reply::call(
                "read_file",
                json!({"file_path": format!("{OUT}/report.md"), "offset": offset, "limit": 2000}),
            ),
            Step::Images => Reply::call("glob", json!({"pattern": "*.{svg,png}", "path": OUT})),
            Step::End => Reply::Text(String::new()),
        }
    }

    fn has(&self, tool: &str) -> bool {
        self.has.iter().any(|t| t == tool)
    }
}

/// The final answer, by the tool that is on offer for it.
fn finish(conversation: &Conversation, answer: &Value) -> Reply {
    let last = conversation
        .tools
        .iter()
        .find(|t| !sandbox_tools::NAMES.contains(&t.as_str()));
    match last {
        Some(tool) => Reply::call(tool, answer.clone()),
        None => Reply::Text(answer.to_string()),
    }
}

fn failure(why: &str) -> Value {
    json!({"report": "", "images": [], "failure": why})
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn first_lines(text: &str, n: usize) -> String {
    text.lines().take(n).collect::<Vec<_>>().join(" ")
}

/// One word of the shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
