//! A command that runs without a stream: its output goes to a file that is asked for later.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::events::{Batch, EventSink};
use super::foreground::hold;
use super::output::BackgroundOutput;
use super::registry::{End, Record};
use super::request::RunRequest;
use super::{Answer, new_id, prepare, supervise};
use crate::daemon::{Daemon, blocking};
use crate::process::spawn::Started;
use crate::respond::ApiError;

/// How long the stock profile does not know a command that it has announced.
const UNKNOWN_FOR: Duration = Duration::from_millis(5);

/// Starts the command, answers, and stays with it to its end.
pub(super) async fn run(daemon: Arc<Daemon>, request: RunRequest, answer: Answer) {
    let stock = daemon.options.profile.is_stock();
    let id = new_id();
    let (begun, started_at) = (Instant::now(), SystemTime::now());
    let (text, timeout) = (request.command.clone(), request.timeout);
    let launching = daemon.clone();
    let output_id = id.clone();
    let started = blocking(move || {
        // The directory is a matter of the request: a bad one is refused, not failed.
        let mut launch = prepare(&launching, &request, (Stdio::null(), Stdio::null()))?;
        let output = BackgroundOutput::create(&output_id, launching.options.profile);
        Ok(output
            .map_err(|error| {
                let text = crate::names::error_text(&error);
                (
                    format!("failed to get combined output descriptor: {text}"),
                    None,
                )
            })
            .and_then(|(output, writer)| {
                let failed = |error: &std::io::Error| crate::names::error_text(error);
                let started = writer
                    .try_clone()
                    .map_err(|it| failed(&it))
                    .and_then(|other| {
                        (launch.stdout, launch.stderr) = (writer.into(), other.into());
                        launch.start(&launching.reaper, launching.environment.get("PATH"))
                    });
                match started {
                    Ok(started) => Ok((started, output)),
                    Err(why) => Err((
                        format!("failed to start commands: {why}"),
                        Some((why, output)),
                    )),
                }
            }))
    })
    .await;
    let started = match started {
        Ok(started) => started,
        Err(error) => {
            let _ = answer.send(Err(error));
            return;
        }
    };

    let (mut sink, response) = EventSink::open();
    let mut batch = Batch::default();
    batch.init(&id);
    batch.ping();
    let (started, output): (Started, BackgroundOutput) = match started {
        Ok(it) => it,
        Err((why, failed)) => {
            if let Some((why, output)) = failed {
                let record = Record::new(&id, &text, started_at, None, Some(output));
                record.finish(End::now(255, why));
                daemon.commands.insert(record);
            }
            batch.bare_error(&ApiError::runtime(format!("error running commands {why}")));
            let _ = answer.send(Ok(response));
            sink.send(batch).await;
            return;
        }
    };
    batch.complete(begun.elapsed());
    let record = Record::new(&id, &text, started_at, Some(started.leader), Some(output));
    if !stock {
        daemon.commands.insert(record.clone());
    }
    let _ = answer.send(Ok(response));
    sink.send(batch).await;
    if stock {
        tokio::time::sleep(UNKNOWN_FOR).await;
        daemon.commands.insert(record.clone());
    }
    let holding = daemon.clone();
    tokio::spawn(async move { hold(&holding, sink).await });
    record.finish(supervise(&daemon, started, timeout).await);
}
