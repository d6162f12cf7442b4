//! An agent analyses a CSV; its code runs in a sandbox. Leaves a report with charts.
//!
//!     cargo run -p sandbox-examples --example data_analysis
//!     cargo run -p sandbox-examples --example data_analysis -- --csv my.csv --out report
//!     OPENAI_API_KEY=... cargo run -p sandbox-examples --example data_analysis -- --model gpt-5.2
//!
//! Without `--model` a stand-in follows a fixed plan, so that this runs without key and network. The
//! agent's code is the same: see `examples/src/data_analysis/`.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use sandbox_examples::data_analysis::{self, Options};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "a program's output")]
async fn main() -> ExitCode {
    let options = Options::parse();
    let progress = Arc::new(|line: &str| println!("{line}"));
    let code = match data_analysis::run(&options, progress).await {
        Ok(outcome) => {
            for refused in &outcome.refused {
                println!("not taken: {refused}");
            }
            println!(
                "report.md and {} images are in {}",
                outcome.images.len(),
                options.out.display()
            );
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    };
    // What is still being cleaned up in the background is waited for.
    if !sandbox::flush(std::time::Duration::from_secs(5)) {
        eprintln!("warning: a sandbox may live on until its lifetime ends");
    }
    code
}
