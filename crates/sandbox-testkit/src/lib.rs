//! Fake servers on the loopback, for tests and for examples that run without the real thing.
//!
//! - [`chat`]: language models, as four different APIs speak.

pub mod chat;
