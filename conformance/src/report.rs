//! What a run found, as JSON. The same run gives the same report: it holds no times.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sandbox_core::{Capabilities, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::{Case, Outcome, Profile, Target};

/// What a run of one target found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TargetReport {
    /// The target's name.
    pub target: String,
    /// The backend's one word.
    pub backend: String,
    /// What the target promises.
    pub profile: Profile,
    /// Cases whose promise holds.
    pub passed: u64,
    /// Cases whose promise does not.
    pub failed: u64,
    /// Cases of the list of skips.
    pub skipped: Vec<SkippedCase>,
    /// The failed cases.
    pub failures: Vec<FailedCase>,
    /// Passed cases a group.
    pub groups: BTreeMap<String, u64>,
    /// Why nothing ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_run: Option<String>,
    /// What its sandboxes claim.
    pub capabilities: BTreeSet<String>,
}

/// A skipped case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SkippedCase {
    /// `group::name`.
    pub case: String,
    /// From the list of skips.
    pub reason: String,
}

/// A failed case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FailedCase {
    /// `group::name`.
    pub case: String,
    /// What was seen.
    pub why: String,
}

impl TargetReport {
    pub(crate) fn new(
        target: &Target,
        capabilities: Option<&Capabilities>,
        outcomes: &[(Case, Outcome)],
    ) -> Self {
        let mut report = Self {
            target: target.name().to_owned(),
            backend: target.backend().to_owned(),
            profile: target.promised(),
            passed: 0,
            failed: 0,
            skipped: Vec::new(),
            failures: Vec::new(),
            groups: BTreeMap::new(),
            not_run: None,
            capabilities: capabilities
                .map(|c| c.claimed().map(str::to_owned).collect())
                .unwrap_or_default(),
        };
        for (case, outcome) in outcomes {
            match outcome {
                Outcome::Passed => {
                    report.passed += 1;
                    *report.groups.entry(case.group.to_owned()).or_default() += 1;
                }
                Outcome::Skipped(reason) => report.skipped.push(SkippedCase {
                    case: case.full_name(),
                    reason: reason.clone(),
                }),
                Outcome::Failed(why) => report.failures.push(FailedCase {
                    case: case.full_name(),
                    why: why.clone(),
                }),
            }
        }
        report.failed = report.failures.len() as u64;
        report.skipped.sort_unstable();
        report.failures.sort_unstable();
        report
    }

    pub(crate) fn not_run(target: &Target, why: &str) -> Self {
        Self {
            not_run: Some(why.to_owned()),
            ..Self::new(target, None, &[])
        }
    }
}

/// Reads a report file.
///
/// # Errors
///
/// [`ErrorKind::Config`] if it can't be read or is no report.
pub(crate) fn read(path: &Path) -> Result<Vec<TargetReport>> {
    let bad = |e: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(ErrorKind::Config, "this is no conformance report")
            .with("file", path.display())
            .because(e)
    };
    let text = std::fs::read(path).map_err(|e| bad(e.into()))?;
    serde_json::from_slice(&text).map_err(|e| bad(e.into()))
}

/// Writes a report file. Targets of a file that is there already are kept, but for those that are
/// in `reports` too.
///
/// # Errors
///
/// [`ErrorKind::Config`] if the file can't be written, or is there and no report.
pub(crate) fn write(path: &Path, reports: &[TargetReport]) -> Result<()> {
    let mut all = if path.exists() {
        read(path)?
    } else {
        Vec::new()
    };
    all.retain(|old| reports.iter().all(|new| new.target != old.target));
    all.extend_from_slice(reports);
    all.sort_unstable_by(|a, b| a.target.cmp(&b.target));
    let failed = |e: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(ErrorKind::Config, "the report can't be written")
            .with("file", path.display())
            .because(e)
    };
    let mut text = serde_json::to_string_pretty(&all).map_err(|e| failed(e.into()))?;
    text.push('\n');
    std::fs::write(path, text).map_err(|e| failed(e.into()))
}
