//! The contract of a sandbox for code that an LLM agent runs, and everything derived from it.
//!
//! - Who writes an agent holds a [`Client`], which makes a [`Sandbox`] with every operation.
//! - Who offers sandboxes implements [`SandboxProvider`] and [`SandboxBackend`]: `execute`,
//!   `upload_files`, `download_files`, `kill`. The rest is derived ([`mod@derive`]).
//!
//! This crate knows no HTTP, no Docker and no Python. Use it through the facade `sandbox`.

mod backend;
pub mod blocking;
pub mod call;
mod capabilities;
mod cleanup;
mod client;
mod command;
pub mod defaults;
pub mod derive;
mod error;
pub mod files;
mod id;
mod lower;
mod output;
mod path;
mod process;
mod sandbox;
pub mod shell;
mod spec;
mod stream;
mod url;

pub use backend::{
    FileDownload, FileUpload, Lease, LogCursor, NativeFiles, ProcessId, ProcessLogs, Processes,
    SandboxBackend, SandboxProvider, SnapshotId, Snapshots, Streaming,
};
pub use capabilities::Capabilities;
pub use cleanup::{KillGuard, KillTicket, flush};
pub use client::Client;
pub use command::{Command, Program};
pub use error::{Error, ErrorKind, Operation, Result, Retry};
pub use files::{GrepOptions, ReadOptions, ReadPage};
pub use id::{Filter, SandboxId, SandboxInfo, SandboxRef, SandboxState};
pub use output::{Captured, Collector, ExecuteResponse, OutputCollector, Status, Stream};
pub use path::SandboxPath;
pub use process::Process;
pub use sandbox::Sandbox;
pub use spec::{Hardening, Mount, Network, SandboxSpec, SpecSupport};
pub use stream::{ExecuteEvent, ExecuteStream};
pub use url::BackendUrl;

/// For implementing the traits.
pub use async_trait::async_trait;
/// Bytes as this crate's signatures use them.
pub use bytes::Bytes;
