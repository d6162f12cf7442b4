//! Starting programs, hearing of their end, and signalling them.

pub(crate) mod accounts;
pub(crate) mod reaper;
pub(crate) mod shim;
pub(crate) mod spawn;
