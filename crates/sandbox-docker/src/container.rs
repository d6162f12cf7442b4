//! A container as all parts of this crate see it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use sandbox_core::{
    Captured, Collector, Command, Error, ErrorKind, Program, Result, Stream, shell,
};
use tokio::time::{sleep, timeout};

use crate::client::{Engine, EngineAddress};
use crate::error;
use crate::exec::{self, EngineExec, Launch, Look, Route};
use crate::running::{Guard, Running, Sink};

/// What is kept of the output of a short program of ours.
const PRINTED: u64 = 64 << 10;

/// A running container, and what commands in it get.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    pub(crate) engine: Engine,
    pub(crate) route: Arc<dyn Route>,
    pub(crate) place: Place,
    /// No process that began before this tick belongs to a command.
    pub(crate) floor: u64,
    pub(crate) id: String,
}

/// Who and where commands are, unless they say otherwise.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) user: Option<String>,
    pub(crate) workdir: Option<String>,
    /// The home directory, if the image knows none for the user.
    pub(crate) home: Option<String>,
}

/// All that makes an equal [`Container`] on another runtime.
#[derive(Clone, Debug)]
pub(crate) struct Elsewhere {
    engine: EngineAddress,
    place: Place,
    floor: u64,
    id: String,
}

impl Elsewhere {
    pub(crate) fn open(self) -> Result<Container> {
        let engine = self.engine.open()?;
        Ok(Container::new(engine, self.id, self.place, self.floor))
    }
}

impl Container {
    pub(crate) fn new(engine: Engine, id: String, place: Place, floor: u64) -> Self {
        Self {
            route: Arc::new(EngineExec::new(engine.clone(), id.clone())),
            engine,
            place,
            floor,
            id,
        }
    }

    pub(crate) fn elsewhere(&self) -> Elsewhere {
        Elsewhere {
            engine: self.engine.address(),
            place: self.place.clone(),
            floor: self.floor,
            id: self.id.clone(),
        }
    }

    /// Why the container does not run any more, or `None` if it does.
    ///
    /// When a container is killed, the engine learns of its commands' ends first: so this looks
    /// twice.
    pub(crate) async fn died(&self) -> Option<String> {
        for wait in [0, 150] {
            sleep(Duration::from_millis(wait)).await;
            match self.engine.inspect(&self.id).await {
                Err(e) if e.kind() == ErrorKind::SandboxGone => {
                    return Some("the sandbox was removed".to_owned());
                }
                // An engine that can't be asked says nothing about the container.
                Err(_) => {}
                Ok(seen) => {
                    let state = seen.state.unwrap_or_default();
                    if state.running == Some(false) {
                        return Some(if state.oom_killed == Some(true) {
                            "the sandbox ran out of memory and died".to_owned()
                        } else {
                            "the sandbox died".to_owned()
                        });
                    }
                }
            }
        }
        None
    }

    /// Why a program did not start, from the engine's words, which for a dying container are any.
    pub(crate) async fn never_started(&self, words: &[u8]) -> Error {
        let error = exec::never_started(&String::from_utf8_lossy(words));
        self.explain(error).await
    }

    /// The same error, or that the container is gone where that explains it.
    pub(crate) async fn explain(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Unexpected
            | ErrorKind::LimitExceeded
            | ErrorKind::MissingTool
            | ErrorKind::AlreadyExists => match self.died().await {
                Some(_) => error::gone().because(error),
                None => error,
            },
            _ => error,
        }
    }

    /// What `command` is to the engine, and the id its processes carry.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] for a form of command that this does not know.
    pub(crate) fn launch(&self, command: &Command) -> Result<(Launch, String)> {
        let argv = match &command.program {
            Program::Shell(text) => {
                let mut argv = shell::shell_argv(text);
                // By its path, whatever PATH is; its name for itself stays.
                "/bin/sh".clone_into(&mut argv[0]);
                argv
            }
            // It is there, or nothing works here.
            Program::Argv(argv) if argv.first().is_some_and(|p| p == "/bin/sh") => argv.clone(),
            // A shell finds the program and gives the usual codes and words if it can't; to the
            // engine a missing program is an error in words of its own.
            Program::Argv(argv) => ["/bin/sh", "-c", r#"exec "$@""#, "sh"]
                .into_iter()
                .map(str::to_owned)
                .chain(argv.iter().cloned())
                .collect(),
            _ => return Err(Error::unsupported("this form of command")),
        };
        let id = shell::command_id();
        let mut env: Vec<String> = Vec::new();
        if let (None, Some(home)) = (&command.user, &self.place.home)
            && !command.env.contains_key("HOME")
        {
            env.push(format!("HOME={home}"));
        }
        env.extend(command.env.iter().map(|(k, v)| format!("{k}={v}")));
        env.push(format!("{}={id}", shell::COMMAND_ID));
        let launch = Launch {
            argv,
            env,
            user: command.user.clone().or_else(|| self.place.user.clone()),
            cwd: command.cwd.clone().or_else(|| self.place.workdir.clone()),
            ends_with: command.ends_with,
            stdin: command.stdin.as_ref().is_some_and(|s| !s.is_empty()),
        };
        Ok((launch, id))
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
        // Nobody takes what it prints: it goes nowhere, and the program does not block.
        let command = Command::new("/bin/sh")
            .args(["-c", r#"exec >/dev/null 2>&1 && exec "$@""#, "sh"])
            .arg(program)
            .args(args);
        let (launch, _) = self.launch(&command.checked()?)?;
        let name = self.route.prepare(&launch).await?;
        let (mut output, _stdin) = self.route.start(&name).await?;
        let mut words = Vec::new();
        loop {
            match self.route.look(&name).await? {
                Look::Running | Look::Ended(_) => return Ok(()),
                Look::NotYet => sleep(Duration::from_millis(5)).await,
                unclear @ (Look::NeverStarted | Look::Unclear(_)) => {
                    while let Some(Ok((_, bytes))) = output.next().await {
                        words.extend_from_slice(&bytes);
                    }
                    if unclear != Look::NeverStarted && !exec::no_start(&words) {
                        return Ok(());
                    }
                    return Err(self.never_started(&words).await);
                }
            }
        }
    }

    /// Runs one of our own scripts as the sandbox's user, with one deadline for all of it.
    pub(crate) async fn script(
        &self,
        script: &str,
        args: impl IntoIterator<Item = String>,
        input: Vec<Bytes>,
        sink: &mut impl Sink,
        limit: Duration,
    ) -> Result<i32> {
        let id = shell::command_id();
        let mut argv = ["/bin/sh", "-c", script, "sandbox"]
            .map(str::to_owned)
            .to_vec();
        argv.extend(args);
        let launch = Launch {
            argv,
            env: vec!["LC_ALL=C".to_owned(), format!("{}={id}", shell::COMMAND_ID)],
            user: self.place.user.clone(),
            cwd: Some("/".to_owned()),
            stdin: !input.is_empty(),
            ends_with: None,
        };
        let run = async {
            let mut running = Running::start(self, &launch, id, input, Guard::new()).await?;
            running.drive(None, sink).await
        };
        match timeout(limit, run).await {
            Ok(ending) => ending?.code(),
            Err(_) => Err(error::timed_out("run a command of ours")),
        }
    }

    /// Runs one of our own short programs, and gives its exit code and what it printed on stdout.
    /// If this is dropped, the program goes on.
    pub(crate) async fn program(
        &self,
        command: &Command,
        limit: Duration,
    ) -> Result<(i32, Captured)> {
        let (mut launch, _) = self.launch(command)?;
        launch.env.push("LC_ALL=C".to_owned());
        launch.cwd = Some("/".to_owned());
        let run = async {
            let name = self.route.prepare(&launch).await?;
            let (mut output, _stdin) = self.route.start(&name).await?;
            let mut printed = Collector::new(PRINTED);
            while let Some(part) = output.next().await {
                if let (Stream::Stdout, bytes) = part? {
                    printed.push(&bytes);
                }
            }
            let printed = printed.finish();
            loop {
                match self.route.look(&name).await? {
                    Look::Ended(code) | Look::Unclear(code) => return Ok((code, printed)),
                    Look::NeverStarted => return Err(self.never_started(printed.bytes()).await),
                    Look::NotYet | Look::Running => sleep(Duration::from_millis(5)).await,
                }
            }
        };
        match timeout(limit, run).await {
            Ok(result) => result,
            Err(_) => Err(error::timed_out("run a command of ours")),
        }
    }
}

/// No sandbox of this id.
pub(crate) fn no_such(id: impl std::fmt::Display) -> Error {
    error::gone().with("sandbox", id)
}
