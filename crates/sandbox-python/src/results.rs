//! What the library gives as objects of the package's `_results`, whose fields are in the order in
//! which they stand here.

use std::time::SystemTime;

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use sandbox::files::{Entry, EntryKind, Gap, GlobMatches, GrepMatches, Listing, TreeReport};
use sandbox::{
    Captured, ExecuteEvent, ExecuteResponse, ProcessLogs, ReadPage, SandboxInfo, SandboxRef,
    SandboxState, Status, Stream,
};

type Object<'py> = Bound<'py, PyAny>;

fn make<'py>(py: Python<'py>, class: &str, fields: impl PyCallArgs<'py>) -> PyResult<Object<'py>> {
    py.import("anysandbox._results")?
        .getattr(class)?
        .call1(fields)
}

fn list<'py, T>(
    py: Python<'py>,
    items: &[T],
    make: impl Fn(Python<'py>, &T) -> PyResult<Object<'py>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let items: Vec<_> = items.iter().map(|i| make(py, i)).collect::<PyResult<_>>()?;
    PyTuple::new(py, items)
}

pub(crate) fn status<'py>(py: Python<'py>, status: &Status) -> PyResult<Object<'py>> {
    let (kind, signal, reason) = match status {
        Status::Exited(_) => ("exited", None, None),
        Status::Signaled(signal) => ("signaled", Some(*signal), None),
        Status::TimedOut => ("timed_out", None, None),
        Status::Lost(why) => ("lost", None, Some(why.clone())),
        // Kinds may be added; their text says what happened.
        other => ("other", None, Some(other.to_string())),
    };
    make(py, "Status", (kind, status.exit_code(), signal, reason))
}

pub(crate) fn response<'py>(py: Python<'py>, r: &ExecuteResponse) -> PyResult<Object<'py>> {
    let bytes = |c: &Captured| PyBytes::new(py, c.bytes());
    let fields = (
        status(py, &r.status)?,
        bytes(&r.stdout),
        bytes(&r.stderr),
        r.output(),
        r.stdout.dropped() + r.stderr.dropped(),
        r.elapsed.as_secs_f64(),
        r.sandbox_killed,
    );
    make(py, "ExecuteResponse", fields)
}

pub(crate) fn event<'py>(py: Python<'py>, event: &ExecuteEvent) -> PyResult<Object<'py>> {
    match event {
        ExecuteEvent::Output(stream, bytes) => {
            let stream = match stream {
                Stream::Stdout => "stdout",
                Stream::Stderr => "stderr",
            };
            make(py, "Output", (stream, PyBytes::new(py, bytes)))
        }
        ExecuteEvent::Ended {
            status: s,
            sandbox_killed,
        } => make(py, "Ended", (status(py, s)?, *sandbox_killed)),
        // An event that this binding does not know carries nothing for it.
        _ => Ok(py.None().into_bound(py)),
    }
}

pub(crate) fn logs<'py>(py: Python<'py>, logs: &ProcessLogs) -> PyResult<Object<'py>> {
    let fields = (
        PyBytes::new(py, &logs.stdout),
        PyBytes::new(py, &logs.stderr),
        (logs.next.stdout, logs.next.stderr),
    );
    make(py, "ProcessLogs", fields)
}

pub(crate) fn reference<'py>(py: Python<'py>, r: &SandboxRef) -> PyResult<Object<'py>> {
    make(py, "SandboxRef", (&r.url, r.id.as_str()))
}

pub(crate) fn info<'py>(py: Python<'py>, info: &SandboxInfo) -> PyResult<Object<'py>> {
    let state = match info.state {
        SandboxState::Running => "running",
        SandboxState::Paused => "paused",
        _ => "not_running",
    };
    make(py, "SandboxInfo", (info.id.as_str(), &info.labels, state))
}

pub(crate) fn listing<'py>(py: Python<'py>, listing: &Listing) -> PyResult<Object<'py>> {
    let entries = list(py, &listing.entries, entry)?;
    make(py, "Listing", (entries, list(py, &listing.gaps, gap)?))
}

fn entry<'py>(py: Python<'py>, entry: &Entry) -> PyResult<Object<'py>> {
    let kind = match entry.kind {
        EntryKind::File => "file",
        EntryKind::Dir => "dir",
        EntryKind::Symlink => "symlink",
        _ => "other",
    };
    let fields = (entry.path.as_str(), kind, entry.size, time(entry.modified));
    make(py, "Entry", fields)
}

/// Seconds since 1970, before it negative.
pub(crate) fn time(time: SystemTime) -> f64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => after.as_secs_f64(),
        Err(e) => -e.duration().as_secs_f64(),
    }
}

fn gap<'py>(py: Python<'py>, gap: &Gap) -> PyResult<Object<'py>> {
    let (kind, count) = match gap {
        Gap::MatchLimit(n) => ("match_limit", Some(*n)),
        Gap::TimeLimit => ("time_limit", None),
        Gap::Unreadable(n) => ("unreadable", Some(*n)),
        Gap::NotUtf8(n) => ("not_utf8", Some(*n)),
        Gap::Changed(n) => ("changed", Some(*n)),
        Gap::OutputLimit => ("output_limit", None),
        _ => ("other", None),
    };
    make(py, "Gap", (kind, count, gap.to_string()))
}

pub(crate) fn page<'py>(py: Python<'py>, page: &ReadPage) -> PyResult<Object<'py>> {
    match page {
        ReadPage::Text(p) => {
            let fields = (
                &p.text,
                p.start_line,
                p.end_line,
                p.total_lines,
                p.next_offset,
                p.capped,
                p.line_cut,
            );
            make(py, "TextPage", fields)
        }
        ReadPage::Binary(bytes) => make(py, "BinaryPage", (PyBytes::new(py, bytes),)),
        ReadPage::Empty => make(py, "EmptyPage", (true,)),
        // Nothing was asked, so nothing is known.
        _ => make(py, "EmptyPage", (false,)),
    }
}

pub(crate) fn paths<'py>(py: Python<'py>, found: &GlobMatches) -> PyResult<Object<'py>> {
    let paths = PyTuple::new(py, found.paths.iter().map(sandbox::SandboxPath::as_str))?;
    make(py, "GlobMatches", (paths, list(py, &found.gaps, gap)?))
}

pub(crate) fn hits<'py>(py: Python<'py>, found: &GrepMatches) -> PyResult<Object<'py>> {
    let matches = list(py, &found.matches, |py, m| {
        make(py, "GrepMatch", (m.path.as_str(), m.line, &m.text, m.cut))
    })?;
    make(py, "GrepMatches", (matches, list(py, &found.gaps, gap)?))
}

pub(crate) fn tree<'py>(py: Python<'py>, report: &TreeReport) -> PyResult<Object<'py>> {
    let skipped = PyTuple::new(py, &report.skipped)?;
    make(py, "TreeReport", (report.files, report.bytes, skipped))
}
