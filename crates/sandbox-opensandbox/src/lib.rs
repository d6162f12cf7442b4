//! Sandboxes of an [OpenSandbox](https://github.com/opensandbox-group/OpenSandbox) server.
//!
//! ```no_run
//! use sandbox_core::{Client, SandboxSpec};
//! use sandbox_opensandbox::{OpenSandbox, OpenSandboxConfig};
//!
//! # async fn example() -> sandbox_core::Result<()> {
//! let config = OpenSandboxConfig::new("127.0.0.1:8080").image("python:3.12").api_key("…");
//! let client = Client::new(OpenSandbox::connect(config).await?);
//! let sandbox = client.create(SandboxSpec::new()).await?;
//! let result = sandbox.execute("echo hello").await?;
//! assert_eq!(result.output(), "hello\n");
//! sandbox.kill().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A server makes containers, and puts a daemon (`execd`) into each. [`Lifecycle`] is the API of the
//! first, [`Execd`] that of the second; [`OpenSandbox`] makes sandboxes of both.
//!
//! **Bytes** are exact, although the daemon's stream of events is not: commands write into files,
//! which are fetched. **Files** are read and written by programs in the sandbox, with the rights of
//! its user: the daemon would do it with root's. **Life**: a sandbox ends when it is killed, when
//! its owner drops it, or at the end of its lifetime, which the server enforces.

mod backend;
mod client;
mod config;
mod error;
mod events;
mod execd;
mod files;
mod http;
mod launch;
mod litter;
mod live;
mod model;
mod origin;
mod output;
mod place;
mod policy;
mod provider;
mod route;
mod running;
mod secret;
mod security;
mod server_file;
mod skew;
mod spec;
mod stop;
mod stream;
mod time;
mod user;

pub use client::Lifecycle;
pub use config::{OpenSandboxConfig, ServerProxy};
pub use events::{ExecdEnding, ExecdEvent};
pub use execd::{
    CommandStatus, Download, Events, Execd, FileInfo, LogPart, Metrics, Permissions, RunCommand,
};
pub use model::{SandboxObject, SandboxStatus};
pub use policy::NetworkPolicy;
pub use provider::OpenSandbox;
