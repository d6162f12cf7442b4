//! The kit's report as a document.

use std::fmt::Write as _;

use serde_json::Value;

use crate::Result;

/// What the kit found on one target.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    name: String,
    passed: u64,
    failed: u64,
    skipped: Vec<Skip>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Skip {
    case: String,
    reason: String,
}

/// Reads a list of `{"target","passed","failed","skipped":[{"case","reason"}]}`.
pub(super) fn parse(json: &str) -> Result<Vec<Target>> {
    let bad = |what: &str| format!("the report has no {what}");
    let list: Vec<Value> = serde_json::from_str(json)?;
    let mut targets = list
        .iter()
        .map(|t| {
            let skipped = t["skipped"].as_array().ok_or_else(|| bad("`skipped`"))?;
            let mut skipped = skipped
                .iter()
                .map(|s| {
                    Ok(Skip {
                        case: s["case"].as_str().ok_or_else(|| bad("`case`"))?.to_owned(),
                        reason: s["reason"]
                            .as_str()
                            .ok_or_else(|| bad("`reason`"))?
                            .to_owned(),
                    })
                })
                .collect::<Result<Vec<_>>>()?;
            skipped.sort();
            Ok(Target {
                name: t["target"]
                    .as_str()
                    .ok_or_else(|| bad("`target`"))?
                    .to_owned(),
                passed: t["passed"].as_u64().ok_or_else(|| bad("`passed`"))?,
                failed: t["failed"].as_u64().ok_or_else(|| bad("`failed`"))?,
                skipped,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    if targets.is_empty() {
        return Err("the report names no target".into());
    }
    targets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(targets)
}

/// The whole document.
pub(super) fn render(targets: &[Target]) -> String {
    let mut out = String::from(
        "# Conformance\n\n\
         What the kit found on each target: which cases passed, and which a target skips because \
         it does not claim the capability they need. Written by `cargo xtask report`; \
         `cargo xtask test` compares it with its own run.\n\n\
         | target | passed | failed | skipped |\n|---|---|---|---|\n",
    );
    for target in targets {
        out.push_str(&row(target));
    }
    for target in targets.iter().filter(|t| !t.skipped.is_empty()) {
        let _ = write!(out, "\n{}", section(target));
    }
    out
}

/// Compares the targets that ran with the document; the others may stand in it.
pub(super) fn check(targets: &[Target], document: &str) -> Result {
    for target in targets {
        if target.failed > 0 {
            return Err(format!("{} cases failed on `{}`", target.failed, target.name).into());
        }
        let current = document.contains(&row(target))
            && (target.skipped.is_empty() || document.contains(&section(target)));
        if !current {
            return Err(format!(
                "what it says of `{}` is not what the kit found",
                target.name
            )
            .into());
        }
    }
    Ok(())
}

fn row(target: &Target) -> String {
    format!(
        "| `{}` | {} | {} | {} |\n",
        target.name,
        target.passed,
        target.failed,
        target.skipped.len()
    )
}

fn section(target: &Target) -> String {
    let mut out = format!("## Skipped on `{}`\n\n", target.name);
    for skip in &target.skipped {
        let _ = writeln!(out, "- `{}`: {}", skip.case, skip.reason);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"[
        {"target":"mock","passed":150,"failed":0,"skipped":[{"case":"files::fifo","reason":"no FIFOs"}]},
        {"target":"minimal","passed":90,"failed":0,"skipped":[]}
    ]"#;

    #[test]
    fn a_document_is_fresh_until_the_kit_finds_something_else() {
        let found = parse(REPORT).unwrap();
        let document = render(&found);
        assert!(document.contains("| `mock` | 150 | 0 | 1 |"), "{document}");
        assert!(document.contains("- `files::fifo`: no FIFOs"), "{document}");
        check(&found, &document).unwrap();
        check(&found[1..], &document).unwrap();
        for (from, to) in [
            ("150", "149"),
            ("no FIFOs", "why not"),
            ("\"mock\"", "\"docker\""),
        ] {
            let other = parse(&REPORT.replace(from, to)).unwrap();
            assert!(check(&other, &document).is_err(), "{to}");
        }
        let failed = parse(&REPORT.replace("\"failed\":0", "\"failed\":1")).unwrap();
        assert!(check(&failed, &render(&failed)).is_err());
    }

    #[test]
    fn what_is_no_report_is_an_error() {
        for bad in [
            "",
            "{}",
            "[]",
            "[{}]",
            r#"[{"target":"mock","passed":"all"}]"#,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
