//! Sandboxes for code that an LLM agent runs: one contract, many backends.
//!
//! [`connect`] opens the backend that a URL names, [`Client::create`] makes a sandbox, and a
//! [`Sandbox`] has every operation. [`blocking`] is the same without `async`.
//!
//! A backend is a feature of the same name. None is on by default, and there is no fallback from
//! one to another.
//!
//! This crate only re-exports. Who writes a backend depends on `sandbox-core` alone.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod blocking;
mod connect;

pub use connect::{SCHEMES, connect, connect_ref};
#[cfg(feature = "docker")]
#[cfg_attr(docsrs, doc(cfg(feature = "docker")))]
pub use sandbox_docker as docker;
#[cfg(feature = "mock")]
#[cfg_attr(docsrs, doc(cfg(feature = "mock")))]
pub use sandbox_mock as mock;
#[cfg(feature = "opensandbox")]
#[cfg_attr(docsrs, doc(cfg(feature = "opensandbox")))]
pub use sandbox_opensandbox as opensandbox;

/// What people hold and hand in.
pub use sandbox_core::{
    BackendUrl, Bytes, Capabilities, Captured, Client, Command, Error, ErrorKind, ExecuteEvent,
    ExecuteResponse, ExecuteStream, Filter, GrepOptions, Hardening, LogCursor, Mount, Network,
    Operation, Process, ProcessId, ProcessLogs, Program, ReadOptions, ReadPage, Result, Retry,
    Sandbox, SandboxId, SandboxInfo, SandboxPath, SandboxRef, SandboxSpec, SandboxState,
    SnapshotId, Status, Stream, defaults, files, flush,
};
/// For a backend inside an application; one in a crate of its own depends on `sandbox-core`.
pub use sandbox_core::{
    Collector, FileDownload, FileUpload, KillGuard, KillTicket, Lease, NativeFiles,
    OutputCollector, Processes, SandboxBackend, SandboxProvider, Snapshots, SpecSupport, Streaming,
    async_trait,
};

/// The code in the README compiles and runs.
#[cfg(all(doctest, feature = "mock"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
