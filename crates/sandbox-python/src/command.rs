//! What to run.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use sandbox::Command;

use crate::arguments::{Content, SandboxPath, Text, Time};
use crate::spec::texts;

/// A command from shell text or a list of words, and keyword arguments, whose names and types
/// `_native.pyi` has. `None` is as not given. `timeout` is the deadline where none is given; an
/// infinite one is none.
pub(crate) fn command(
    program: &Bound<'_, PyAny>,
    given: Option<&Bound<'_, PyDict>>,
    timeout: Option<std::time::Duration>,
) -> PyResult<Command> {
    let mut command = if program.is_instance_of::<PyString>() {
        Command::shell(program.extract::<Text>()?.0)
    } else {
        let words: Vec<Text> = program.extract()?;
        let mut words = words.into_iter().map(|w| w.0);
        // No word at all is a program without a name, which core refuses.
        Command::new(words.next().unwrap_or_default()).args(words)
    };
    command.timeout = timeout;
    for (name, value) in given.into_iter().flatten() {
        if !value.is_none() {
            command = set(command, &name.extract::<String>()?, &value)?;
        }
    }
    command.timeout = command.timeout.filter(|t| *t != std::time::Duration::MAX);
    Ok(command)
}

fn set(mut command: Command, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Command> {
    match name {
        "timeout" => command.timeout = Some(value.extract::<Time>()?.0),
        "cwd" => command.cwd = Some(value.extract::<SandboxPath>()?.0),
        "env" => command.env = texts(value)?,
        "user" => command.user = Some(value.extract::<Text>()?.0),
        "stdin" => command.stdin = Some(value.extract::<Content>()?.0),
        "output_limit" => command.output_limit = Some(value.extract()?),
        "merge_stderr" => command.merge_stderr = value.extract()?,
        _ => {
            let why = format!("there is no option `{name}`");
            return Err(PyTypeError::new_err(why));
        }
    }
    Ok(command)
}
