//! The kinds of errors as a document, from the documentation of `ErrorKind` itself: the first
//! paragraph of a kind says what it means, the second what to do.

use std::fmt::Write as _;

use crate::Result;

/// Where `ErrorKind` stands.
pub(super) const SOURCE: &str = "crates/sandbox-core/src/error.rs";

#[derive(Debug)]
struct Kind {
    variant: String,
    word: String,
    meaning: String,
    advice: String,
    retry: &'static str,
}

/// The whole document.
pub(super) fn render(source: &str) -> Result<String> {
    let mut out = format!(
        "# Errors\n\n\
         Every error has a kind (`Error::kind`), says what to do in its message, and advises \
         whether the call may be sent again (`Error::retry_advice`). Written by \
         `cargo xtask report` from `{SOURCE}`.\n\n\
         Retry says what follows from the kind; an error may know better. `safe`: the call had no \
         effect. `unsure`: it may have had its effect, so only what is idempotent may be \
         repeated.\n\n\
         | kind | in logs | meaning | what to do | retry |\n|---|---|---|---|---|\n"
    );
    for kind in kinds(source)? {
        let _ = writeln!(
            out,
            "| `{}` | `{}` | {} | {} | {} |",
            kind.variant, kind.word, kind.meaning, kind.advice, kind.retry
        );
    }
    Ok(out)
}

fn kinds(source: &str) -> Result<Vec<Kind>> {
    let body = between(source, "pub enum ErrorKind {\n", "\n}\n")?;
    let words = between(
        source,
        "pub fn as_str(self) -> &'static str {\n",
        "\n    }\n",
    )?;
    let retry = between(source, "let retry = match kind {\n", "};\n")?;
    let mut kinds = Vec::new();
    let mut docs = Vec::new();
    for line in body.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push(doc.trim());
            continue;
        }
        let Some(variant) = line.strip_suffix(',') else {
            return Err(format!("{SOURCE}: `{line}` is no kind").into());
        };
        let (meaning, advice) = paragraphs(&docs)
            .ok_or_else(|| format!("{SOURCE}: `{variant}` does not say what it means and what to do, in a paragraph each"))?;
        docs.clear();
        kinds.push(Kind {
            variant: variant.to_owned(),
            word: between(words, &format!("Self::{variant} => \""), "\"")?.to_owned(),
            meaning,
            advice,
            retry: retry_of(retry, variant),
        });
    }
    Ok(kinds)
}

/// Exactly two paragraphs, links turned into code.
fn paragraphs(docs: &[&str]) -> Option<(String, String)> {
    let text = docs.join("\n");
    let (meaning, advice) = text.split_once("\n\n")?;
    let plain = |s: &str| {
        s.replace('\n', " ")
            .replace("[`", "`")
            .replace("`]", "`")
            .replace("crate::", "")
    };
    (!advice.contains("\n\n")).then(|| (plain(meaning), plain(advice)))
}

/// The arm of the match that names the kind.
fn retry_of(arms: &str, variant: &str) -> &'static str {
    let wanted = format!("ErrorKind::{variant}");
    let arm = arms.split(",\n").find(|arm| {
        arm.split(|c: char| c.is_whitespace() || c == '|')
            .any(|w| w == wanted)
    });
    match arm {
        Some(arm) if arm.ends_with("Retry::Safe") => "safe",
        Some(arm) if arm.ends_with("Retry::Unsure") => "unsure",
        _ => "never",
    }
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Result<&'a str> {
    text.split_once(from)
        .and_then(|(_, rest)| rest.split_once(to))
        .map(|(inner, _)| inner)
        .ok_or_else(|| format!("{SOURCE}: `{}` is not where it was", from.trim()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn every_kind_of_the_source_has_its_row() {
        let source = workspace::read(SOURCE).unwrap();
        let document = render(&source).unwrap();
        for row in [
            "| `NotFound` | `not_found` |",
            "| `Unexpected` | `unexpected` |",
        ] {
            assert!(document.contains(row), "{document}");
        }
        let row = |kind: &str| {
            document
                .lines()
                .find(|l| l.contains(kind))
                .unwrap()
                .to_owned()
        };
        assert!(row("`timeout`").ends_with("| unsure |"));
        assert!(row("`rate_limited`").ends_with("| safe |"));
        assert!(row("`not_found`").ends_with("| never |"));
    }

    #[test]
    fn a_kind_without_advice_is_an_error() {
        let source = workspace::read(SOURCE).unwrap();
        let bad = source.replace(
            "pub enum ErrorKind {\n",
            "pub enum ErrorKind {\n    /// Odd.\n    Odd,\n",
        );
        assert!(render(&bad).unwrap_err().to_string().contains("Odd"));
    }
}
