//! The kit's report, kept in the repository, and the page made from it.
//!
//! The report is kept so that a machine where not every target can run compares what it can.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::Result;

/// A report: what the kit found on each target.
#[derive(Debug, PartialEq)]
pub(super) struct Report(Vec<Target>);

#[derive(Debug, PartialEq)]
struct Target {
    name: String,
    passed: u64,
    failed: u64,
    skipped: Vec<Skip>,
    groups: BTreeMap<String, u64>,
    capabilities: BTreeSet<String>,
    not_run: bool,
    raw: Value,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Skip {
    case: String,
    reason: String,
}

impl Report {
    /// Reads what the kit writes: a list of objects with `target`, `passed`, `failed`, `skipped`,
    /// `groups`, `capabilities`, and `not_run` where a target was not available.
    pub(super) fn parse(json: &str) -> Result<Self> {
        let list: Vec<Value> = serde_json::from_str(json)?;
        let mut targets = list.into_iter().map(target).collect::<Result<Vec<_>>>()?;
        targets.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self(targets))
    }

    /// This with the targets that ran in `newer` instead of its own.
    pub(super) fn updated(mut self, newer: Self) -> Self {
        let ran: Vec<Target> = newer.0.into_iter().filter(|t| !t.not_run).collect();
        self.0
            .retain(|old| !old.not_run && ran.iter().all(|new| new.name != old.name));
        self.0.extend(ran);
        self.0.sort_by(|a, b| a.name.cmp(&b.name));
        self
    }

    /// Fails unless every target that ran in `newer` ran without a failure and stands here as it
    /// is there.
    pub(super) fn check(&self, newer: &Self) -> Result {
        let mut ran = newer.0.iter().filter(|t| !t.not_run).peekable();
        if ran.peek().is_none() {
            return Err("no target ran".into());
        }
        for new in ran {
            if new.failed > 0 {
                return Err(new.failure().into());
            }
            if !self.0.contains(new) {
                let hint = "run `cargo xtask report`";
                return Err(format!("`{}` is not what the kit found: {hint}", new.name).into());
            }
        }
        Ok(())
    }

    /// The report as the kit writes it.
    pub(super) fn to_json(&self) -> Result<String> {
        let raw: Vec<&Value> = self.0.iter().map(|t| &t.raw).collect();
        Ok(serde_json::to_string_pretty(&raw)? + "\n")
    }

    /// The page.
    pub(super) fn render(&self) -> String {
        let mut page = String::from(
            "# Conformance\n\n\
             What the kit found on each target. Written by `cargo xtask report` from \
             `docs/conformance.json`; `cargo xtask test` compares it with its own run.\n\n\
             ## Cases\n\n\
             Passed cases a group; `+n` is skipped, for the reason below.\n\n",
        );
        if self.0.is_empty() {
            page.push_str("No target has been run.\n");
            return page;
        }
        let groups: BTreeSet<&str> = self.0.iter().flat_map(Target::all_groups).collect();
        let mut rows: Vec<(String, Vec<String>)> = groups
            .iter()
            .map(|g| ((*g).to_owned(), self.cells(|t| t.cell(g))))
            .collect();
        rows.push(("passed".to_owned(), self.cells(|t| t.passed.to_string())));
        rows.push(("failed".to_owned(), self.cells(|t| t.failed.to_string())));
        rows.push((
            "skipped".to_owned(),
            self.cells(|t| t.skipped.len().to_string()),
        ));
        self.table(&mut page, "group", &rows);

        page.push_str("\n## Capabilities\n\n");
        let names: BTreeSet<&String> = self.0.iter().flat_map(|t| &t.capabilities).collect();
        let rows: Vec<(String, Vec<String>)> = names
            .iter()
            .map(|name| {
                let claims = |t: &Target| t.capabilities.contains(*name);
                let cell = |t: &Target| if claims(t) { "yes" } else { "no" }.to_owned();
                (format!("`{name}`"), self.cells(cell))
            })
            .collect();
        self.table(&mut page, "capability", &rows);

        page.push_str("\n## Skipped cases\n\n");
        let mut skips: BTreeMap<&Skip, Vec<String>> = BTreeMap::new();
        for target in &self.0 {
            for skip in &target.skipped {
                let name = format!("`{}`", target.name);
                skips.entry(skip).or_default().push(name);
            }
        }
        if skips.is_empty() {
            page.push_str("None.\n");
        }
        for (skip, targets) in skips {
            let on = targets.join(", ");
            let _ = writeln!(page, "- `{}` on {on}: {}", skip.case, skip.reason);
        }
        page
    }

    fn cells(&self, cell: impl Fn(&Target) -> String) -> Vec<String> {
        self.0.iter().map(cell).collect()
    }

    fn table(&self, page: &mut String, title: &str, rows: &[(String, Vec<String>)]) {
        let names = self.cells(|t| format!("`{}`", t.name));
        let _ = writeln!(page, "| {title} | {} |", names.join(" | "));
        let _ = writeln!(page, "|---|{}", "---|".repeat(names.len()));
        for (name, cells) in rows {
            let _ = writeln!(page, "| {name} | {} |", cells.join(" | "));
        }
    }
}

impl Target {
    /// How many cases failed, and which and why: what the kit printed may be far up.
    fn failure(&self) -> String {
        let mut text = format!("{} cases failed on `{}`", self.failed, self.name);
        for failure in self.raw["failures"].as_array().into_iter().flatten() {
            let field = |name: &str| failure[name].as_str().unwrap_or_default();
            let _ = write!(text, "\n{}: {}", field("case"), field("why"));
        }
        text
    }

    fn all_groups(&self) -> impl Iterator<Item = &str> {
        let skipped = self.skipped.iter().map(Skip::group);
        self.groups.keys().map(String::as_str).chain(skipped)
    }

    fn cell(&self, group: &str) -> String {
        let passed = self.groups.get(group).copied().unwrap_or(0);
        match self.skipped.iter().filter(|s| s.group() == group).count() {
            0 => passed.to_string(),
            skipped => format!("{passed} +{skipped}"),
        }
    }
}

impl Skip {
    fn group(&self) -> &str {
        self.case.split("::").next().unwrap_or(&self.case)
    }
}

fn target(raw: Value) -> Result<Target> {
    let text = |value: &Value, key: &str| {
        let text = value[key].as_str().map(str::to_owned);
        text.ok_or_else(|| format!("the report has no `{key}`"))
    };
    let number = |key: &str| {
        let number = raw[key].as_u64();
        number.ok_or_else(|| format!("the report has no `{key}`"))
    };
    let mut skipped = raw["skipped"]
        .as_array()
        .ok_or("the report has no `skipped`")?
        .iter()
        .map(|s| {
            let (case, reason) = (text(s, "case")?, text(s, "reason")?);
            Ok(Skip { case, reason })
        })
        .collect::<Result<Vec<_>>>()?;
    skipped.sort();
    let groups = raw["groups"].as_object().into_iter().flatten();
    let capabilities = raw["capabilities"].as_array().into_iter().flatten();
    Ok(Target {
        name: text(&raw, "target")?,
        passed: number("passed")?,
        failed: number("failed")?,
        skipped,
        groups: groups
            .filter_map(|(name, count)| Some((name.clone(), count.as_u64()?)))
            .collect(),
        capabilities: capabilities
            .filter_map(|c| c.as_str().map(str::to_owned))
            .collect(),
        not_run: raw.get("not_run").is_some_and(|why| !why.is_null()),
        raw,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"[
        {"target":"mock","passed":150,"failed":0,"groups":{"exec":150},"capabilities":["streaming"],
         "skipped":[{"case":"files::fifo","reason":"no FIFOs"}]},
        {"target":"minimal","passed":90,"failed":0,"groups":{"exec":90},"capabilities":[],"skipped":[]}
    ]"#;
    const OTHER: &str = r#"[
        {"target":"docker","passed":0,"failed":0,"skipped":[],"not_run":"no engine"},
        {"target":"mock","passed":151,"failed":0,"groups":{"exec":151},"skipped":[]}
    ]"#;

    fn report(json: &str) -> Report {
        Report::parse(json).unwrap()
    }

    #[test]
    fn the_page_holds_all_that_was_found() {
        let page = report(REPORT).render();
        for line in [
            "| group | `minimal` | `mock` |",
            "| exec | 90 | 150 |",
            "| files | 0 | 0 +1 |",
            "| passed | 90 | 150 |",
            "| `streaming` | no | yes |",
            "- `files::fifo` on `mock`: no FIFOs",
        ] {
            assert!(page.lines().any(|l| l == line), "{line}\n{page}");
        }
    }

    #[test]
    fn what_ran_must_stand_there_and_what_did_not_run_may() {
        let kept = report(REPORT);
        kept.check(&report(REPORT)).unwrap();
        assert!(kept.check(&report(OTHER)).is_err());
        assert!(kept.check(&report("[]")).is_err());
        let updated = kept.updated(report(OTHER));
        updated.check(&report(OTHER)).unwrap();
        let names: Vec<&str> = updated.0.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["minimal", "mock"]);
        assert_eq!(report(&updated.to_json().unwrap()), updated);
        let failures = r#""failed":1,"failures":[{"case":"exec::one","why":"no output"}]"#;
        let failed = report(&REPORT.replace("\"failed\":0", failures));
        let why = failed.check(&failed).unwrap_err().to_string();
        assert!(why.contains("exec::one: no output"), "{why}");
    }

    #[test]
    fn what_is_no_report_is_an_error() {
        for bad in [
            "",
            "{}",
            "[{}]",
            r#"[{"target":"mock","passed":"all","failed":0,"skipped":[]}]"#,
            r#"[{"target":"mock","passed":1,"failed":0,"skipped":[{}]}]"#,
        ] {
            assert!(Report::parse(bad).is_err(), "{bad}");
        }
    }
}
