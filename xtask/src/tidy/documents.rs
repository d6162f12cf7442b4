//! Rules for the documents: what they name exists, and decisions are numbered.

use std::path::{Path, PathBuf};

use crate::workspace::Member;
use crate::{Result, workspace};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const DECISIONS: &str = "docs/decisions";

pub(super) fn check(files: &[PathBuf], members: &[Member]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let architecture = workspace::read(ARCHITECTURE)?;
    let exists = |p: &str| workspace::root().join(p).exists();
    for path in paths(&architecture).filter(|p| !exists(p)) {
        found.push(format!("{ARCHITECTURE}: `{path}` does not exist"));
    }
    for member in members {
        let row = format!("| `{}` |", member.folder);
        if !architecture.lines().any(|l| l.starts_with(&row)) {
            found.push(format!("{ARCHITECTURE}: no row begins with {row}"));
        }
    }
    for file in files
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "md"))
    {
        let text = workspace::read(file)?;
        for link in links(&text) {
            let target = file.parent().unwrap_or(Path::new("")).join(link);
            if !workspace::root().join(target).exists() {
                found.push(format!("{}: the link {link} leads nowhere", file.display()));
            }
        }
    }
    found.extend(decisions(files)?);
    Ok(found)
}

/// What stands in backticks and looks like a path of the repository.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|s| {
        let plain = s
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        let file = [".rs", ".md", ".toml", ".yml"]
            .iter()
            .any(|e| s.ends_with(e));
        plain && !s.starts_with('/') && (file || s.contains('/'))
    })
}

/// Targets of links to other files.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link.split('#').next().unwrap_or(link))
        .filter(|link| !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:"))
}

fn decisions(files: &[PathBuf]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let records = files.iter().filter(|p| p.starts_with(DECISIONS));
    for (number, path) in (1..).zip(records) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = format!("{number:04}");
        let mut say = |what: String| found.push(format!("{}: {what}", path.display()));
        if !name.starts_with(&format!("{number}-")) {
            say(format!("the next number is {number}"));
        }
        let text = workspace::read(path)?;
        if !text.starts_with(&format!("# {number}: ")) {
            say(format!("does not begin with `# {number}: `"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_links_are_told_from_other_words() {
        let text = "`crates/a/src` and `b.rs`, not `Sandbox`, `/workspace`, `cargo test`, `a::b`";
        assert_eq!(paths(text).collect::<Vec<_>>(), ["crates/a/src", "b.rs"]);
        let text = "[a](docs/a.md#part) [b](https://b) [c](#part)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["docs/a.md"]);
    }
}
