//! Output as it comes.

use std::sync::Arc;

use futures_util::stream;
use sandbox_core::{
    Bytes, Command, ExecuteEvent, ExecuteStream, Operation, Result, Status, Stream, Streaming,
    async_trait,
};
use tokio::sync::mpsc;

use crate::backend::{LOST, MockSandbox, summary};
use crate::record::{Active, Outcome};
use crate::shell::{Ended, Run, Sink, StopOnDrop};

/// A command whose output is read.
struct Reading {
    output: mpsc::UnboundedReceiver<(Stream, Bytes)>,
    run: Arc<Run>,
    call: Active,
    _stop: StopOnDrop,
}

#[async_trait]
impl Streaming for MockSandbox {
    async fn execute_streaming(&self, command: &Command) -> Result<ExecuteStream> {
        let call = self.begin(Operation::Stream, &summary(command)).await?;
        let (sink, output) = Sink::send(command.merge_stderr, call.verdict.cut);
        let run = self.start(command, sink, call.verdict)?;
        let reading = Reading {
            output,
            _stop: StopOnDrop(run.clone()),
            run,
            call,
        };
        Ok(ExecuteStream::new(stream::unfold(
            Some(reading),
            async |reading| next(reading?).await,
        )))
    }
}

async fn next(mut reading: Reading) -> Option<(ExecuteEvent, Option<Reading>)> {
    if let Some((stream, bytes)) = reading.output.recv().await {
        reading.run.sink.taken(bytes.len());
        return Some((ExecuteEvent::Output(stream, bytes), Some(reading)));
    }
    let Ended {
        mut status,
        sandbox_killed,
    } = reading.run.wait().await;
    if reading.call.verdict.cut.is_some() {
        status = Status::Lost(LOST.to_owned());
    }
    reading.call.end(Outcome::Ended(status.clone()));
    let event = ExecuteEvent::Ended {
        status,
        sandbox_killed,
    };
    Some((event, None))
}
