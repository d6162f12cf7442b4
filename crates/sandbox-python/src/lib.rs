//! The native half of the Python package: what Python hands in becomes what the facade takes, and
//! what the facade gives becomes objects of the package's `_results` and `errors`. Nothing that
//! core knows is known here.
//!
//! Every call is a future on the library's one background thread. The caller's thread waits with
//! the interpreter's lock released, and looks for signals meanwhile (`wait`).

use pyo3::prelude::*;

mod access;
mod arguments;
mod command;
mod error;
mod events;
mod exit;
mod process;
mod results;
mod sandbox;
mod spec;
mod wait;

#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::events::Events;
    #[pymodule_export]
    use crate::exit::{close, flush};
    #[pymodule_export]
    use crate::process::Process;
    #[pymodule_export]
    use crate::sandbox::Sandbox;
}
