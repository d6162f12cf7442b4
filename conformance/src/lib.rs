//! «Is this a sandbox?»: one executable suite for every backend.
//!
//! A [`Case`] states one promise of the contract. A [`Target`] is one way to set a backend up. A
//! run takes every case of a target's [`Profile`] and ends with a [report](TargetReport).
//!
//! What a sandbox claims in its [`Capabilities`](sandbox_core::Capabilities) must work; what it
//! does not claim must be refused or must fail visibly, and the kit checks that too. What a target
//! skips stands in a [list](Skip), with the reason: a skip that is not listed fails the run, and so
//! does a listed one that could have run.
//!
//! A provider proves itself with a test target of its own (`harness = false` in `Cargo.toml`):
//!
//! ```no_run
//! // tests/conformance.rs
//! use std::process::ExitCode;
//!
//! use sandbox_conformance::{Profile, Skip, Target};
//! use sandbox_core::Client;
//! # use sandbox_mock::MockProvider as AcmeProvider;
//!
//! fn main() -> ExitCode {
//!     let acme = Target::new("acme", || async { Ok(Client::new(AcmeProvider::new())) })
//!         .profile(Profile::Minimal)
//!         .skips(&[Skip::capability("acme", "fifos", "its file system has none")]);
//!     sandbox_conformance::main(vec![acme])
//! }
//! ```
//!
//! What the environment says:
//!
//! - `SANDBOX_TARGET=name`: only this target, or all targets of this backend.
//! - `SANDBOX_REQUIRE=docker,opensandbox`: a target of these backends that is not available fails
//!   the run, and under `CI` any target does. Otherwise the run says `NOT RUN: docker (why)` at its
//!   end.
//! - `SANDBOX_REPORT=file.json`: writes the [reports](TargetReport) as a JSON array. A file that is
//!   there already keeps its other targets, so that several test programs fill one file.

#[macro_use]
mod check;
mod case;
mod cases;
mod harness;
mod report;
mod required;
mod run;
mod skips;
mod target;

pub use case::{Case, Cx, Need, Profile};
pub use cases::all as cases;
pub use check::{CaseResult, Failure};
pub use harness::main;
pub use report::{FailedCase, SkippedCase, TargetReport};
pub use required::{is_required, unavailable};
pub use run::{Outcome, Run};
pub use skips::{OWN_SKIPS, Skip, SkipWhat};
pub use target::{Availability, Target};
