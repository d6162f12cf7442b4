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
mod machine;
mod provider;
mod registry;
mod shell;
mod tools;
mod vfs;

pub use config::MockConfig;
pub use provider::MockProvider;
