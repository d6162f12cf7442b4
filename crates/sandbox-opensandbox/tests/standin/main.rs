//! Against a small stand-in for a server and its daemon: what was recorded of the real ones, and
//! what only a broken or hostile one would do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may stop at what can't be"
)]

mod decoded;
mod http;
mod lifecycle;
mod requested;
mod server;
mod streams;
mod transport;
