//! Waiting for a call without holding up the interpreter.

use std::time::Duration;

use pyo3::prelude::*;
use sandbox::blocking;

use crate::{error, exit};

/// How often a waiting thread looks for signals: well below the second in which a user expects
/// Ctrl-C to work. An answer is taken at once, whatever this is.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `call` on the background thread and waits for its answer. Other threads of Python run
/// meanwhile. A signal whose handler raises ends the wait, and with it the call: its future is
/// dropped, which kills a command.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    call: impl Future<Output = sandbox::Result<T>> + Send + 'static,
) -> PyResult<T> {
    let raise = |e: sandbox::Error| error::raise(py, &e);
    let _waiting = exit::Waiting::begin().map_err(raise)?;
    let mut call = blocking::start(call).map_err(raise)?;
    loop {
        if let Some(answer) = py.detach(|| call.wait_for(LOOK)).map_err(raise)? {
            return answer.map_err(raise);
        }
        py.check_signals()?;
        exit::check().map_err(raise)?;
    }
}
