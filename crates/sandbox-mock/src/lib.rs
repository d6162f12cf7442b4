//! A sandbox inside this process: a virtual shell on virtual files.
//!
//! For tests, for one's own code, and for trying things out: no Docker, no network, no key. A new
//! sandbox takes microseconds, ten thousand fit into a gigabyte.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use sandbox_core::{Client, SandboxSpec};
//! use sandbox_mock::MockProvider;
//!
//! let sandbox = Client::new(MockProvider::new()).create(SandboxSpec::new()).await?;
//! sandbox.upload("/workspace/names", "b\na\n").await?;
//! let sorted = sandbox.execute("sort names").await?;
//! assert_eq!(sorted.output(), "a\nb\n");
//! # Ok::<(), sandbox_core::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Testing an agent
//!
//! [`Faults`] make the nth call fail, come late, lose its output or its sandbox; the [`Record`]
//! tells what reached the backend; a seed makes ids and noise the same in every run.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use sandbox_core::{Client, ErrorKind, Operation, SandboxSpec, Status};
//! use sandbox_mock::{Faults, MockConfig, MockProvider};
//!
//! let faults = Faults::new()
//!     .fail(Operation::Execute, 1, ErrorKind::Unavailable)
//!     .cut_output(Operation::Execute, 2, 5)
//!     .lose_sandbox(Operation::Execute, 3);
//! let provider = MockProvider::with_faults(MockConfig::new().seed(7), faults);
//! let sandbox = Client::new(provider.clone()).create(SandboxSpec::new()).await?;
//!
//! // What your agent does when its sandbox misbehaves:
//! let refused = sandbox.execute("make").await.unwrap_err();
//! assert_eq!(refused.kind(), ErrorKind::Unavailable);
//! let cut = sandbox.execute("echo 1234567890").await?;
//! assert!(matches!(cut.status, Status::Lost(_)) && cut.stdout == "12345");
//! assert!(matches!(sandbox.execute("true").await?.status, Status::Lost(_)));
//! let gone = sandbox.execute("true").await.unwrap_err();
//! assert_eq!(gone.kind(), ErrorKind::SandboxGone);
//!
//! let calls = provider.record().calls();
//! assert_eq!(calls[2].summary, "echo 1234567890");
//! assert_eq!(provider.record().count(Operation::Execute), 4);
//! # Ok::<(), sandbox_core::Error>(())
//! # }).unwrap();
//! ```
//!
//! # What it is and what not
//!
//! Commands never see the host's files, environment or network. Files have modes, owners and
//! links, checked as for a process without capabilities: number 0 is no exception. All files of a
//! sandbox share one budget ([`MockConfig::memory`]); the values that one command holds at a time
//! may take a quarter of it, at most 48 MiB, and its variables a sixteenth, at most 16 MiB.
//!
//! **It is no boundary for hostile code.** Scripts run in this process. Those known to overflow
//! the engine's stack or to eat memory end as values here, and that proves no absence of others;
//! what a tool holds besides the engine's own accounts is bounded by the size of its input only.
//! Containers are for code that nobody vouches for.
//!
//! What the engine can't do, and no capability says:
//!
//! - No programs of an image: no `python3`, no compiler, no package manager. No processes: `ps`
//!   and `/proc/PID` are empty, `$$` is 1, `kill` reaches the shell's own jobs only.
//! - Functions, `eval` in functions and sourced files nest 16 deep, shells in shells 8,
//!   substitutions 32. Deeper is [`Status::Signaled`](sandbox_core::Status::Signaled) with 11, as
//!   a stack that overflows, or an error of the shell.
//! - A loop takes 30 million turns, then the command ends with signal 24 and says so. A busy loop
//!   in the background holds its command; a deadline stops both.
//! - A command's output is held until it ends, at most 64 MiB a stream; what exceeds that is
//!   dropped. Tools write when they end, not while they run; output inside `{ ...; } 2>&1` comes
//!   when the braces close, and is lost if the deadline comes before.
//! - Only `read` takes standard input line by line; every other command sees all of it.
//! - A tool that reads an endless device to its end gets 1 MiB of it.
//! - A descriptor above 2 that a compound duplicates (`{ ...; } 3>&1`) is not seen inside a
//!   substitution.
//! - Pausing is [`Unsupported`](sandbox_core::ErrorKind::Unsupported).

mod backend;
mod clock;
mod config;
mod error;
mod faults;
mod machine;
mod native;
mod processes;
mod provider;
mod record;
mod registry;
mod shell;
mod snapshot;
mod streaming;
mod tools;
mod tree;
mod vfs;

#[doc = include_str!("../docs/fidelity.md")]
pub mod fidelity {}

pub use config::MockConfig;
pub use faults::{Calls, Faults};
pub use provider::MockProvider;
pub use record::{Call, Outcome, Record};
