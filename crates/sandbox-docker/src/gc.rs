//! The third net: removes what the tether and the lifetime could not.

use std::time::Duration;

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum as State};
use sandbox_core::{Result, SandboxId};

use crate::client::Engine;
use crate::container::{Container, Place};
use crate::owner::Owner;
use crate::{keeper, labels};

/// How long asking a container may take.
const ASK: Duration = Duration::from_secs(20);

/// A container that nobody owns is being made at most this long.
const BEING_MADE: Duration = Duration::from_mins(10);

/// Removes containers that have stopped, those that a dead owner never started, and those that run
/// on without their owner though it did not let them go.
pub(crate) async fn collect(engine: &Engine) -> Result<Vec<SandboxId>> {
    let mut removed = Vec::new();
    for found in engine.list(vec![format!("{}=1", labels::MANAGED)]).await? {
        let Some(id) = found.id.clone() else { continue };
        let dead = match found.state {
            Some(State::EXITED | State::DEAD) => true,
            Some(State::CREATED) => left_unstarted(&found),
            Some(State::RUNNING) => left_by_owner(&found) && !let_go(engine, &id).await,
            // What is paused was paused by somebody who wants it.
            _ => false,
        };
        if dead {
            engine.remove(&id).await?;
            removed.push(SandboxId::new(id));
        }
    }
    Ok(removed)
}

/// Removes only what a dead owner never started: nothing else ends that.
pub(crate) async fn never_started(engine: &Engine) -> Result<()> {
    for found in engine.list(vec![format!("{}=1", labels::MANAGED)]).await? {
        if found.state == Some(State::CREATED)
            && left_by_owner(&found)
            && let Some(id) = &found.id
        {
            engine.remove(id).await?;
        }
    }
    Ok(())
}

fn owner(found: &ContainerSummary) -> Option<Owner> {
    Owner::from_label(found.labels.as_ref()?.get(labels::OWNER)?)
}

fn left_by_owner(found: &ContainerSummary) -> bool {
    owner(found).is_some_and(|o| o.is_dead())
}

fn left_unstarted(found: &ContainerSummary) -> bool {
    if owner(found).is_some() {
        return left_by_owner(found);
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let made = found.created.and_then(|t| u64::try_from(t).ok());
    let (Ok(now), Some(made)) = (now, made) else {
        return false;
    };
    now.as_secs().saturating_sub(made) > BEING_MADE.as_secs()
}

/// Whether its owner let it go and its lifetime is not over. One that can't be asked is left alone.
async fn let_go(engine: &Engine, id: &str) -> bool {
    let container = Container::new(engine.clone(), id.to_owned(), Place::default(), 0);
    let ask = keeper::script(keeper::LET_GO_OF);
    match container.program(&ask, ASK).await {
        Ok((code, _)) => code == 0,
        Err(error) => {
            tracing::warn!(sandbox.id = id, %error, "could not be asked whether it was let go");
            true
        }
    }
}
