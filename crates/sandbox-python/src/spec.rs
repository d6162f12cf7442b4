//! The options of a new sandbox.

use std::collections::BTreeMap;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sandbox::{Hardening, Mount, Network, SandboxSpec};

use crate::access::Access;
use crate::arguments::{SandboxPath, Text, Time};

/// What methods that make or find sandboxes take.
pub(crate) struct Options {
    pub(crate) access: Access,
    pub(crate) spec: SandboxSpec,
    /// The deadline of commands that name none.
    pub(crate) timeout: Option<std::time::Duration>,
}

impl Options {
    /// From a URL and keyword arguments, whose names and types `_native.pyi` has. `None` is as not
    /// given.
    pub(crate) fn new(url: Text, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Self {
            access: Access::new(url),
            spec: SandboxSpec::new(),
            timeout: None,
        };
        for (name, value) in given.into_iter().flatten() {
            if !value.is_none() {
                options.set(&name.extract::<String>()?, &value)?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.access.take(name, value)? {
            return Ok(());
        }
        let spec = &mut self.spec;
        match name {
            "timeout" => self.timeout = Some(value.extract::<Time>()?.0),
            "image" => spec.image = Some(value.extract::<Text>()?.0),
            "entrypoint" => {
                let words: Vec<Text> = value.extract()?;
                spec.entrypoint = Some(words.into_iter().map(|w| w.0).collect());
            }
            "env" => spec.env = texts(value)?,
            "workdir" => spec.workdir = Some(value.extract::<SandboxPath>()?.0),
            "user" => spec.user = Some(value.extract::<Text>()?.0),
            "memory" => spec.memory = Some(value.extract()?),
            "milli_cpus" => spec.milli_cpus = Some(value.extract()?),
            "pids" => spec.pids = Some(value.extract()?),
            "disk" => spec.disk = Some(value.extract()?),
            "network" => spec.network = Some(network(value)?),
            "lifetime" => spec.lifetime = Some(value.extract::<Time>()?.0),
            "labels" => spec.labels = texts(value)?,
            "mounts" => {
                let mounts: Vec<Bound<'_, PyAny>> = value.extract()?;
                spec.mounts = mounts.iter().map(mount).collect::<PyResult<_>>()?;
            }
            "hardening" => spec.hardening = Some(hardening(value)?),
            _ => {
                let why = format!("there is no option `{name}`");
                return Err(PyTypeError::new_err(why));
            }
        }
        Ok(())
    }
}

/// Names and values.
pub(crate) fn texts(value: &Bound<'_, PyAny>) -> PyResult<BTreeMap<String, String>> {
    let items: Vec<(Text, Text)> = value
        .call_method0("items")?
        .try_iter()?
        .map(|i| i?.extract())
        .collect::<PyResult<_>>()?;
    Ok(items.into_iter().map(|(k, v)| (k.0, v.0)).collect())
}

fn network(value: &Bound<'_, PyAny>) -> PyResult<Network> {
    match value.extract::<Text>()?.0.as_str() {
        "none" => Ok(Network::None),
        "full" => Ok(Network::Full),
        _ => Err(PyValueError::new_err("network: 'none' or 'full'")),
    }
}

fn hardening(value: &Bound<'_, PyAny>) -> PyResult<Hardening> {
    match value.extract::<Text>()?.0.as_str() {
        "strict" => Ok(Hardening::Strict),
        "standard" => Ok(Hardening::Standard),
        _ => Err(PyValueError::new_err("hardening: 'strict' or 'standard'")),
    }
}

/// From a `Mount` of the package.
fn mount(value: &Bound<'_, PyAny>) -> PyResult<Mount> {
    let source: Text = value.getattr("source")?.extract()?;
    let target: SandboxPath = value.getattr("target")?.extract()?;
    Ok(if value.getattr("read_only")?.is_truthy()? {
        Mount::read_only(source.0, target.0)
    } else {
        Mount::writable(source.0, target.0)
    })
}
