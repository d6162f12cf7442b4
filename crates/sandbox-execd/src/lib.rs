//! A drop-in for OpenSandbox's `execd`: the daemon that runs inside a sandbox and does what a
//! client asks over HTTP. One static binary.
//!
//! It has no interface but its program and its protocol; see the package's README for both. What
//! follows is for those who read the source.
//!
//! A request is read by `server` within bounds, told apart by `router`, and handled in `command`,
//! `files` or `metrics`. Whatever blocks runs on a fixed set of threads. Children are started and
//! collected in one place, `process::reaper`. What the real daemon does in a surprising way is
//! found by searching for `is_stock`.

mod body;
mod clock;
mod command;
mod daemon;
mod decode;
mod environment;
mod files;
mod json;
mod log;
mod metrics;
mod names;
mod options;
mod process;
mod proxy;
mod query;
mod respond;
mod router;
mod server;
mod stream;
mod token;

pub use daemon::run;
