//! Rules for single files.

use std::path::{Path, PathBuf};

use crate::{Result, workspace};

/// A file with more lines of code, its unit tests apart, holds more than one concern.
const LINES: usize = 800;

/// What no committed text may hold, in two parts so that this file does not hold it.
const FORBIDDEN: [(&str, &str, &str); 6] = [
    ("TO", "DO", "an intention belongs in an issue"),
    ("FIX", "ME", "an intention belongs in an issue"),
    ("#[ig", "nore", "a test that does not run proves nothing"),
    ("<<<<", "<<<", "a merge is not finished"),
    (">>>>", ">>>", "a merge is not finished"),
    ("../sha", "red", "a path outside the repository"),
];

pub(super) fn check(files: &[PathBuf]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in files.iter().filter(|p| is_ours(p)) {
        // What is not UTF-8 is a picture or test data.
        let Ok(text) = String::from_utf8(std::fs::read(workspace::root().join(path))?) else {
            continue;
        };
        found.extend(text_of(path, &text));
    }
    found.extend(orphans(files)?);
    Ok(found)
}

/// Test data and licences are as others wrote them.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let data = path.components().any(|c| c.as_os_str() == "data");
    !data && name != "Cargo.lock" && !name.starts_with("LICENSE") && !name.ends_with(".csv")
}

fn text_of(path: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let rust = path.extension().is_some_and(|e| e == "rs");
    for (number, line) in (1..).zip(text.lines()) {
        let mut say = |what: &str| found.push(format!("{}:{number}: {what}", path.display()));
        for (a, b, why) in FORBIDDEN {
            if line.contains(&format!("{a}{b}")) {
                say(&format!("`{a}{b}`: {why}"));
            }
        }
        if line.ends_with([' ', '\t', '\r']) {
            say("white space at the end of the line");
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        found.push(format!("{}: no newline at the end", path.display()));
    }
    let code = text.split("\n#[cfg(test)]\n").next().unwrap_or(text);
    let lines = code.lines().count();
    if rust && lines > LINES {
        found.push(format!(
            "{}: {lines} lines, more than {LINES}",
            path.display()
        ));
    }
    if rust && text.trim().is_empty() {
        found.push(format!("{}: is empty", path.display()));
    }
    found
}

/// Rust files below `src` that no `mod` names, so that no compiler sees them.
fn orphans(files: &[PathBuf]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in files {
        let is_source = path.extension().is_some_and(|e| e == "rs")
            && path.components().any(|c| c.as_os_str() == "src");
        if !is_source || is_root(path) {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let folder = path.parent().unwrap_or(Path::new(""));
        let (name, folder) = if name == "mod" {
            let module = folder.file_name().unwrap_or_default().to_string_lossy();
            (module, folder.parent().unwrap_or(Path::new("")))
        } else {
            (name, folder)
        };
        let mut declared = false;
        for parent in parents(folder).iter().filter(|p| files.contains(p)) {
            let text = workspace::read(parent)?;
            declared |= text.lines().any(|line| declares(line, &name));
        }
        if !declared {
            found.push(format!("{}: no `mod {name};` names it", path.display()));
        }
    }
    Ok(found)
}

/// Whether a file is the root of a crate.
fn is_root(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs") || folder == "bin"
}

/// The files that may declare a module that lies in `folder`.
fn parents(folder: &Path) -> Vec<PathBuf> {
    vec![
        folder.join("mod.rs"),
        folder.join("lib.rs"),
        folder.join("main.rs"),
        folder.with_extension("rs"),
    ]
}

fn declares(line: &str, module: &str) -> bool {
    let line = line.trim();
    line.strip_suffix(&format!("mod {module};"))
        .is_some_and(|before| before.is_empty() || before.starts_with("pub"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_a_text_is_found() {
        let of = |text: &str| text_of(Path::new("a.rs"), text).len();
        assert_eq!(of("fn main() {}\n"), 0);
        for (a, b, _) in FORBIDDEN {
            assert_eq!(of(&format!("// {a}{b}\n")), 1, "{a}{b}");
        }
        assert_eq!(of("fn main() {} \n"), 1);
        assert_eq!(of("fn main() {}"), 1);
        assert_eq!(of(&"//\n".repeat(LINES + 1)), 1);
        assert_eq!(of(""), 1);
    }

    #[test]
    fn a_module_is_declared_by_its_own_name_only() {
        assert!(declares("mod a;", "a"));
        assert!(declares("    pub(crate) mod a;", "a"));
        assert!(!declares("mod aa;", "a"));
        assert!(!declares("// mod a;", "a"));
    }
}
