//! What tests need around them, and examples that run without the real thing.
//!
//! - [`chat`]: stand-ins for language models on the loopback, as four different APIs speak.
//! - `engine`, behind the feature of that name: containers, and the real `OpenSandbox` server in one.
//! - [`recordings`]: what a real `OpenSandbox` server and its daemon were asked and answered.

pub mod chat;
#[cfg(feature = "engine")]
pub mod engine;
pub mod recordings;
