//! What the Python package's suites found, kept in the repository, and its part of the page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::Result;

/// How one suite went on each target.
#[derive(Debug, PartialEq)]
pub(super) struct Report(Vec<Row>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    suite: String,
    target: String,
    passed: u64,
    expected_failures: u64,
    failed: u64,
}

impl Report {
    /// Reads what the suites write: a list of objects with `suite`, `target`, `passed`,
    /// `expected_failures` and `failed`. Targets that did not run are not in it.
    pub(super) fn parse(json: &str) -> Result<Self> {
        let list: Vec<Value> = serde_json::from_str(json)?;
        let mut rows = list.iter().map(row).collect::<Result<Vec<_>>>()?;
        rows.sort();
        Ok(Self(rows))
    }

    /// This with the rows of `newer` instead of its own.
    pub(super) fn updated(mut self, newer: Self) -> Self {
        self.0
            .retain(|old| newer.row(&old.suite, &old.target).is_none());
        self.0.extend(newer.0);
        self.0.sort();
        self
    }

    /// Fails unless everything in `newer` ran without a failure and stands here as it is there.
    pub(super) fn check(&self, newer: &Self) -> Result {
        if newer.0.is_empty() {
            return Err("no suite ran".into());
        }
        for row in &newer.0 {
            let what = format!("{} on `{}`", row.suite, row.target);
            if row.failed > 0 {
                return Err(format!("{} failed: {what}", row.failed).into());
            }
            if self.row(&row.suite, &row.target) != Some(row) {
                let hint = "run `cargo xtask report`";
                return Err(format!("not what the suites found: {what}: {hint}").into());
            }
        }
        Ok(())
    }

    fn row(&self, suite: &str, target: &str) -> Option<&Row> {
        let mut rows = self.0.iter();
        rows.find(|row| row.suite == suite && row.target == target)
    }

    /// The report as the suites write it.
    pub(super) fn to_json(&self) -> Result<String> {
        let rows: Vec<Value> = self.0.iter().map(Row::to_json).collect();
        Ok(serde_json::to_string_pretty(&rows)? + "\n")
    }

    /// The part of the page.
    pub(super) fn render(&self) -> String {
        let mut page = String::from(
            "\n## Python\n\n\
             Passed tests of the package `anysandbox`; `+n` is a test that has to fail, because it \
             contradicts the contract of Deep Agents that it tests. Which and why stands in \
             `crates/sandbox-python/tests/test_standard.py`.\n\n",
        );
        let suites: BTreeSet<&str> = self.0.iter().map(|r| r.suite.as_str()).collect();
        let targets: BTreeSet<&str> = self.0.iter().map(|r| r.target.as_str()).collect();
        let names: Vec<String> = targets.iter().map(|t| format!("`{t}`")).collect();
        let _ = writeln!(page, "| suite | {} |", names.join(" | "));
        let _ = writeln!(page, "|---|{}", "---|".repeat(names.len()));
        for suite in suites {
            let cells: Vec<String> = targets.iter().map(|t| self.cell(suite, t)).collect();
            let _ = writeln!(page, "| {suite} | {} |", cells.join(" | "));
        }
        page
    }

    fn cell(&self, suite: &str, target: &str) -> String {
        match self.row(suite, target) {
            None => String::new(),
            Some(row) if row.expected_failures == 0 => row.passed.to_string(),
            Some(row) => format!("{} +{}", row.passed, row.expected_failures),
        }
    }
}

impl Row {
    fn to_json(&self) -> Value {
        serde_json::json!({
            "suite": self.suite,
            "target": self.target,
            "passed": self.passed,
            "expected_failures": self.expected_failures,
            "failed": self.failed,
        })
    }
}

fn row(raw: &Value) -> Result<Row> {
    let text = |key: &str| {
        let text = raw[key].as_str().map(str::to_owned);
        text.ok_or_else(|| format!("the report has no `{key}`"))
    };
    let number = |key: &str| {
        let number = raw[key].as_u64();
        number.ok_or_else(|| format!("the report has no `{key}`"))
    };
    Ok(Row {
        suite: text("suite")?,
        target: text("target")?,
        passed: number("passed")?,
        expected_failures: number("expected_failures")?,
        failed: number("failed")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: u64, failed: u64) -> Report {
        let json = format!(
            r#"[{{"suite":"standard","target":"mock","passed":{passed},"expected_failures":7,"failed":{failed}}}]"#
        );
        Report::parse(&json).unwrap()
    }

    #[test]
    fn the_page_holds_what_was_found_and_what_differs_or_failed_is_noticed() {
        let kept = report(79, 0);
        assert!(kept.render().contains("| suite | `mock` |"));
        assert!(kept.render().contains("| standard | 79 +7 |"));
        kept.check(&report(79, 0)).unwrap();
        assert!(kept.check(&report(80, 0)).is_err());
        assert!(kept.check(&Report::parse("[]").unwrap()).is_err());
        assert!(report(79, 1).check(&report(79, 1)).is_err());
        let updated = kept.updated(report(80, 0));
        assert_eq!(
            Report::parse(&updated.to_json().unwrap()).unwrap(),
            report(80, 0)
        );
        assert!(Report::parse("[{}]").is_err());
    }
}
