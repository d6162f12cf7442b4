//! One sandbox as all parts of this crate see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sandbox_core::{Command, Error, ErrorKind, Result, SandboxId};

use tokio::time::sleep;

use crate::client::Lifecycle;
use crate::error;
use crate::events::{ExecdEnding, ExecdEvent};
use crate::execd::Execd;
use crate::launch::Launch;
use crate::litter::Litter;
use crate::place::Place;

/// How long is waited before each look for what explains an error.
const EXPLAIN: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(200),
    Duration::from_millis(500),
];

/// How long the daemon may take to begin an answer before the server is asked what the sandbox
/// does.
const SUSPICIOUS: Duration = Duration::from_secs(3);

/// A sandbox that takes commands. Cheap to clone. Belongs to the runtime that uses it first.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) id: SandboxId,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) execd: Execd,
    pub(crate) place: Place,
    /// This client has paused it.
    pub(crate) paused: Arc<AtomicBool>,
    pub(crate) litter: Litter,
}

/// What a sandbox does, as far as it matters to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    Paused,
    Gone,
}

/// What the server's word for a state means; words that are not known are no end.
pub(crate) fn state_of(word: &str) -> State {
    match word.to_ascii_lowercase().as_str() {
        "paused" | "pausing" | "resuming" => State::Paused,
        "terminated" | "failed" | "stopping" => State::Gone,
        _ => State::Running,
    }
}

impl Live {
    /// The same for another runtime. No I/O.
    pub(crate) fn elsewhere(&self) -> Result<Self> {
        Ok(Self {
            lifecycle: self.lifecycle.elsewhere()?,
            execd: self.execd.elsewhere()?,
            ..self.clone()
        })
    }

    pub(crate) async fn pause(&self) -> Result<()> {
        self.lifecycle.pause(&self.id).await?;
        self.paused.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) async fn resume(&self) -> Result<()> {
        self.lifecycle.resume(&self.id).await?;
        self.paused.store(false, Ordering::Release);
        Ok(())
    }

    /// Refuses if this client has paused the sandbox: a request would wait in it, and be carried
    /// out when it goes on.
    pub(crate) async fn check_running(&self) -> Result<()> {
        if self.paused.load(Ordering::Acquire) {
            if self.state().await == Some(State::Paused) {
                return Err(error::paused());
            }
            // Somebody else ended the pause.
            self.paused.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Waits for the answer to a request to start a command. One that takes long has a reason,
    /// which the server may know.
    pub(crate) async fn answered<T>(&self, answer: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::pin!(answer);
        loop {
            tokio::select! {
                answer = &mut answer => return answer,
                () = sleep(SUSPICIOUS) => match self.state().await {
                    Some(State::Paused) => return Err(error::paused()),
                    Some(State::Gone) => return Err(error::gone()),
                    _ => {}
                },
            }
        }
    }

    /// Waits for the preparation.
    pub(crate) async fn prepare(
        &mut self,
        place: impl Future<Output = Result<Place>>,
    ) -> Result<()> {
        self.place = match place.await {
            Ok(place) => place,
            Err(e) => return Err(self.explain(e).await),
        };
        Ok(())
    }

    /// Starts a program that nobody waits for, as the sandbox's user.
    ///
    /// # Errors
    ///
    /// It did not start.
    pub(crate) async fn begin(&self, argv: &[String]) -> Result<()> {
        let [program, args @ ..] = argv else {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "the entrypoint is empty: leave it unset for none",
            ));
        };
        // Nobody takes what it prints: it goes nowhere.
        let command = Command::new("/bin/sh")
            .args(["-c", r#"exec >/dev/null 2>&1 && exec "$@""#, "sh"])
            .arg(program)
            .args(args)
            .checked()?;
        let mut launch = Launch::new(&self.place, &command, self.place.user, Vec::new())?;
        // In the foreground, its stream would have to be read as long as it lives.
        launch.run.background = true;
        let mut events = self.execd.run(&launch.run).await?;
        while let Some(event) = events.next().await? {
            match event {
                ExecdEvent::Ended(ExecdEnding::NotStarted(why)) => {
                    return Err(error::not_started(&why));
                }
                ExecdEvent::Ended(_) => return Ok(()),
                _ => {}
            }
        }
        Err(error::garbled("start the entrypoint"))
    }

    /// What the server says of the sandbox; `None` if it can't be asked.
    pub(crate) async fn state(&self) -> Option<State> {
        match self.lifecycle.get(&self.id).await {
            Ok(object) => Some(state_of(&object.status.state)),
            Err(e) if e.kind() == ErrorKind::SandboxGone => Some(State::Gone),
            Err(_) => None,
        }
    }

    /// The same error, or what the server says where that explains it.
    ///
    /// A sandbox that is being ended loses its daemon first: so this looks more than once.
    pub(crate) async fn explain(&self, error: Error) -> Error {
        let explicable = matches!(
            error.kind(),
            ErrorKind::Timeout | ErrorKind::Unavailable | ErrorKind::Protocol | ErrorKind::NotFound
        );
        for wait in EXPLAIN.iter().filter(|_| explicable) {
            sleep(*wait).await;
            match self.state().await {
                Some(State::Gone) => return error::gone().because(error),
                Some(State::Paused) => return error::paused().because(error),
                _ => {}
            }
        }
        error
    }
}
