//! One sandbox: its files, its users, what runs in it, and its end.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use sandbox_core::shell::text_args;
use sandbox_core::{Command, Error, ErrorKind, Program, Result, SandboxId, defaults};

use crate::clock::{self, Alarm};
use crate::shell::{self, Launch, Run, Session, Sink, Why};
use crate::vfs::{Account, Accounts, FileKind, HOSTNAME, Last, Table, Vfs, View};
use crate::{error, registry};

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A sandbox. It lives while the registry knows it.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) id: SandboxId,
    pub(crate) name: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) account: Account,
    pub(crate) workdir: String,
    pub(crate) memory: u64,
    pub(crate) vfs: Arc<Vfs>,
    env: BTreeMap<String, String>,
    life: Mutex<Life>,
}

#[derive(Debug)]
struct Life {
    ended: bool,
    expires: Option<(Instant, SystemTime)>,
    alarm: Option<Alarm>,
    runs: HashMap<u64, Arc<Run>>,
    next_run: u64,
    /// Background commands by name, ended ones too, and the order of their starts.
    processes: HashMap<String, Arc<Run>>,
    started: VecDeque<String>,
    snapshots: HashMap<String, Table>,
    next_name: u64,
}

/// Background commands that are remembered after their end.
const PROCESSES: usize = 256;

/// Snapshots at once: what they share with the files costs nothing, what was changed since does.
const SNAPSHOTS: usize = 64;

/// What a sandbox is made with.
#[derive(Debug)]
pub(crate) struct Birth {
    pub(crate) id: SandboxId,
    pub(crate) name: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) account: Account,
    pub(crate) workdir: String,
    pub(crate) memory: u64,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) seed: u64,
}

impl Machine {
    pub(crate) fn new(birth: Birth) -> Result<Arc<Self>> {
        let image = crate::vfs::base(shell::command_names).clone();
        let vfs = Vfs::new(image.with_limit(birth.memory), birth.seed);
        vfs.make_workdir(&birth.workdir, birth.account.cred)
            .map_err(|e| Error::from(e).with("workdir", &birth.workdir))?;
        Ok(Arc::new(Self {
            id: birth.id,
            name: birth.name,
            labels: birth.labels,
            account: birth.account,
            workdir: birth.workdir,
            memory: birth.memory,
            vfs: Arc::new(vfs),
            env: birth.env,
            life: Mutex::new(Life {
                ended: false,
                expires: None,
                alarm: None,
                runs: HashMap::new(),
                next_run: 0,
                processes: HashMap::new(),
                started: VecDeque::new(),
                snapshots: HashMap::new(),
                next_name: 1,
            }),
        }))
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error once the sandbox has ended.
    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.life().ended {
            Err(error::gone())
        } else {
            Ok(())
        }
    }

    /// When the sandbox ends unless renewed.
    pub(crate) fn expires_at(&self) -> Option<SystemTime> {
        self.life().expires.map(|(_, at)| at)
    }

    /// Sets the remaining lifetime, from now.
    pub(crate) fn renew(self: &Arc<Self>, lifetime: Duration) -> Result<()> {
        let lifetime = lifetime.min(defaults::COMMAND_TIMEOUT_MAX);
        let machine = Arc::downgrade(self);
        let alarm = clock::after(lifetime, move || {
            if let Some(machine) = machine.upgrade() {
                machine.kill("the lifetime of the sandbox is over");
            }
        });
        let mut life = self.life();
        if life.ended {
            drop(life);
            return Err(error::gone());
        }
        life.expires = Some((Instant::now() + lifetime, SystemTime::now() + lifetime));
        let old = life.alarm.replace(alarm);
        drop(life);
        drop(old);
        Ok(())
    }

    /// Ends the sandbox and all that runs in it. Again is nothing.
    pub(crate) fn kill(&self, why: &'static str) {
        let mut life = self.life();
        life.ended = true;
        let runs: Vec<Arc<Run>> = life.runs.values().cloned().collect();
        let remains = (
            life.alarm.take(),
            std::mem::take(&mut life.processes),
            std::mem::take(&mut life.snapshots),
        );
        drop(life);
        // Outside the lock: they may be large.
        drop(remains);
        for run in runs {
            run.end(Why::Killed(why));
        }
        registry::remove(&self.id);
        self.vfs.restore(Table::new());
    }

    /// Starts a command, checked by core. Its deadline runs from here.
    ///
    /// # Errors
    ///
    /// Before the start: the sandbox has ended, the user or the cwd is missing, no thread.
    pub(crate) fn start(self: &Arc<Self>, command: &Command, sink: Sink) -> Result<Arc<Run>> {
        self.check_alive()?;
        let launch = self.launch(command)?;
        let run = Run::new(sink);
        let key = {
            let mut life = self.life();
            if life.ended {
                drop(life);
                return Err(error::gone());
            }
            let key = life.next_run;
            life.next_run += 1;
            life.runs.insert(key, run.clone());
            key
        };
        let alarm = command.timeout.map(|timeout| self.deadline(&run, timeout));
        let machine = self.clone();
        let over = move || {
            drop(alarm);
            machine.life().runs.remove(&key);
        };
        shell::start(run.clone(), launch, over).map_err(|e| {
            self.life().runs.remove(&key);
            error::no_thread(e)
        })?;
        Ok(run)
    }

    /// Ends `run` at its deadline, and the sandbox if that takes longer than the grace.
    fn deadline(self: &Arc<Self>, run: &Arc<Run>, timeout: Duration) -> (Alarm, Alarm) {
        let (at_deadline, after_grace) = (Arc::downgrade(run), Arc::downgrade(run));
        let machine = Arc::downgrade(self);
        let deadline = clock::after(timeout, move || {
            if let Some(run) = at_deadline.upgrade() {
                run.end(Why::Deadline);
            }
        });
        let grace = clock::after(timeout + defaults::KILL_GRACE, move || {
            if after_grace.upgrade().is_some_and(|run| run.give_up())
                && let Some(machine) = machine.upgrade()
            {
                machine.kill("a command of the sandbox could not be stopped");
            }
        });
        (deadline, grace)
    }

    /// What is kept of each stream of a background command, in bytes.
    pub(crate) fn log_limit(&self) -> usize {
        usize::try_from(self.memory / 16).unwrap_or(usize::MAX)
    }

    /// Names a background command. The oldest that has ended is forgotten when there are many.
    pub(crate) fn add_process(&self, run: Arc<Run>) -> Result<String> {
        let mut life = self.life();
        if life.ended {
            drop(life);
            return Err(error::gone());
        }
        if life.processes.len() >= PROCESSES {
            let old = life.started.iter().position(|name| {
                let run = life.processes.get(name);
                run.is_none_or(|run| run.ended().is_some())
            });
            let Some(old) = old.and_then(|i| life.started.remove(i)) else {
                drop(life);
                run.end(Why::Dropped);
                return Err(Error::new(
                    ErrorKind::LimitExceeded,
                    "too many background commands at once: kill some",
                )
                .with("limit", PROCESSES));
            };
            life.processes.remove(&old);
        }
        let name = format!("p{}", life.next_name);
        life.next_name += 1;
        life.started.push_back(name.clone());
        life.processes.insert(name.clone(), run);
        Ok(name)
    }

    /// A background command by name.
    pub(crate) fn process(&self, name: &str) -> Option<Arc<Run>> {
        self.life().processes.get(name).cloned()
    }

    /// Waits until a stopped command has really ended; if it does not within the grace, the
    /// sandbox is killed.
    pub(crate) async fn confirm(self: &Arc<Self>, run: &Arc<Run>) {
        let (watched, machine) = (Arc::downgrade(run), Arc::downgrade(self));
        let _alarm = clock::after(defaults::KILL_GRACE, move || {
            if watched.upgrade().is_some_and(|run| run.give_up())
                && let Some(machine) = machine.upgrade()
            {
                machine.kill("a command of the sandbox could not be stopped");
            }
        });
        run.wait().await;
    }

    /// Keeps the files as they are now.
    pub(crate) fn snapshot(&self) -> Result<String> {
        let table = self.vfs.snapshot();
        let mut life = self.life();
        if life.snapshots.len() >= SNAPSHOTS {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                "too many snapshots: they are kept until the sandbox dies",
            )
            .with("limit", SNAPSHOTS));
        }
        let name = format!("s{}", life.next_name);
        life.next_name += 1;
        life.snapshots.insert(name.clone(), table);
        Ok(name)
    }

    /// Puts the files back.
    pub(crate) fn restore(&self, name: &str) -> Result<()> {
        let table = self.life().snapshots.get(name).cloned();
        let table = table.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "the sandbox has no such snapshot")
                .with("snapshot", name)
        })?;
        self.vfs.restore(table);
        Ok(())
    }

    fn launch(&self, command: &Command) -> Result<Launch> {
        let account = match &command.user {
            Some(user) => Accounts::find(user)?,
            None => self.account.clone(),
        };
        let view = View::new(self.vfs.clone(), account.cred);
        let cwd = command.cwd.as_deref().unwrap_or(&self.workdir);
        self.check_cwd(cwd, &view)?;
        let mut env: BTreeMap<String, String> = [
            ("PATH", PATH),
            ("HOME", &account.home),
            ("HOSTNAME", HOSTNAME),
            // The shells around the command's own count too.
            ("SHLVL", "-1"),
        ]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect();
        env.extend(self.env.clone());
        env.extend(command.env.clone());
        let args = match &command.program {
            Program::Shell(text) => text_args(text.clone()),
            Program::Argv(argv) => argv_args(argv),
            other => {
                return Err(Error::unsupported(format!(
                    "a program of the form {other:?}"
                )));
            }
        };
        Ok(Launch {
            session: Arc::new(Session {
                view: Arc::new(view),
                user: account.name,
            }),
            args,
            env: env.into_iter().collect(),
            cwd: cwd.to_owned(),
            stdin: command.stdin.clone().unwrap_or_default(),
            memory: self.memory,
            token: registry::token(),
        })
    }

    fn check_cwd(&self, cwd: &str, view: &View) -> Result<()> {
        let stat = self.vfs.stat(cwd, view.cred(), Last::Follow);
        let checked = match stat {
            Ok(stat) if stat.kind != FileKind::Dir => {
                return Err(Error::new(
                    ErrorKind::NotADirectory,
                    "the command's cwd is not a directory",
                )
                .with("cwd", cwd));
            }
            Ok(_) => self.vfs.access(cwd, view.cred(), 1),
            Err(e) => Err(e),
        };
        checked.map_err(|e| Error::from(e).with("cwd", cwd))
    }
}

/// The arguments of `sh` that run a program as it is: a shell's own are taken over.
fn argv_args(argv: &[String]) -> Vec<String> {
    let (program, rest) = match argv.split_first() {
        Some((program, rest)) => (program.as_str(), rest),
        None => ("", argv),
    };
    if matches!(program, "sh" | "/bin/sh" | "/usr/bin/sh") && !rest.is_empty() {
        return rest.to_vec();
    }
    let head = ["-c", r#""$@""#, "sh"].map(str::to_owned);
    head.into_iter().chain(argv.iter().cloned()).collect()
}
