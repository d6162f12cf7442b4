//! Sandboxes as Docker containers, through the Engine API.
//!
//! ```no_run
//! use sandbox_core::{Client, SandboxSpec};
//! use sandbox_docker::{Docker, DockerConfig};
//!
//! # async fn example() -> sandbox_core::Result<()> {
//! let client = Client::new(Docker::connect(DockerConfig::new("debian:12")).await?);
//! let sandbox = client.create(SandboxSpec::new()).await?;
//! let result = sandbox.execute("echo hello").await?;
//! assert_eq!(result.output(), "hello\n");
//! sandbox.kill().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Any image with a POSIX shell at `/bin/sh` works. What a sandbox gets unless its spec says
//! otherwise: no network, no capabilities, no new privileges, limits on memory, CPU and processes,
//! no mounts, a lifetime.
//!
//! **Life.** Process 1 is the engine's init. Its child is the keeper, a small shell script that runs
//! as root and ends the container when its lifetime is over, or when the process that made the
//! sandbox ends, however that ends. Commands run as the spec's user. If that is root, hostile code
//! can stop the keeper: run as another user what you do not trust.
//!
//! **Files** are read and written by programs in the container, with the rights of the sandbox's
//! user.

mod backend;
mod client;
mod config;
mod container;
mod error;
mod exec;
mod files;
mod gc;
mod keeper;
mod labels;
mod mounts;
mod owner;
mod provider;
mod pull;
mod running;
mod socket;
mod stop;
mod users;

pub use config::{DockerConfig, Pull, PullProgress};
pub use provider::Docker;
