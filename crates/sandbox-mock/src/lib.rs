//! A sandbox inside this process: a virtual shell on virtual files.
//!
//! For one's own code, for tests and for trying things out. It never sees the host's files,
//! environment or network. It is no security boundary for hostile code: that is what containers
//! are for.

#![allow(
    dead_code,
    reason = "families and tools that use it follow in the next commits"
)]

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
mod vfs;

#[doc = include_str!("../docs/fidelity.md")]
pub mod fidelity {}

pub use config::MockConfig;
pub use faults::{Calls, Faults};
pub use provider::MockProvider;
pub use record::{Call, Outcome, Record};
