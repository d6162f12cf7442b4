//! The same without `async`: works on any thread, inside a runtime too, and dropping never blocks.

pub use sandbox_core::blocking::{Call, Client, Events, Process, Sandbox, start};

use crate::{Result, SandboxRef};

/// See [`crate::connect`].
///
/// # Errors
///
/// As there.
pub fn connect(url: &str) -> Result<Client> {
    let url = url.to_owned();
    Client::new(|| async move { crate::connect(&url).await })
}

/// See [`crate::connect_ref`].
///
/// # Errors
///
/// As there.
pub fn connect_ref(reference: &SandboxRef) -> Result<Sandbox> {
    connect(&reference.url)?.connect_ref(reference)
}
