//! The report's Markdown: its images point at the local files, and nothing in it reaches elsewhere.

use std::fmt::Write as _;

/// Rewrites the targets of images and links.
///
/// `images` are pairs of a path in the sandbox and the local name. An image that was not delivered
/// becomes its caption; a picture from the network or a link that is none becomes text; HTML is
/// shown, not run. Images that the report does not show are added at its end.
pub(super) fn localise(report: &str, images: &[(&str, &str)]) -> String {
    let mut shown = vec![false; images.len()];
    let mut out = String::with_capacity(report.len() + 1000);
    let mut fenced = false;
    for line in report.lines() {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced {
            out.push_str(&rewrite(line, images, &mut shown));
            out.push('\n');
            continue;
        }
        out.push_str(line);
        out.push('\n');
    }
    // What is left of the sandbox's paths is text, as in a sentence on where a script is.
    for (path, name) in images {
        out = out.replace(path, name);
    }
    out = out.replace("/workspace/", "");
    let missing = images.iter().zip(&shown).filter(|(_, shown)| !**shown);
    for (i, ((_, name), _)) in missing.enumerate() {
        if i == 0 {
            out.push_str("\n## More images\n");
        }
        let _ = writeln!(out, "\n![{name}]({name})");
    }
    out
}

/// One line outside of code blocks.
fn rewrite(line: &str, images: &[(&str, &str)], shown: &mut [bool]) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['[', '<', '`']) {
        let (before, here) = rest.split_at(at);
        out.push_str(before);
        if let Some(after) = here.strip_prefix('<') {
            // HTML, also half of it, and autolinks.
            out.push_str("&lt;");
            rest = after;
            continue;
        }
        if here.starts_with('`') {
            let code = code_span(here);
            out.push_str(code);
            rest = &here[code.len()..];
            continue;
        }
        let Some((text, target, length)) = link(here) else {
            // A reference definition `[a]: target` would reach around all of this: it becomes text.
            let definition =
                before.trim().is_empty() && out.trim().is_empty() && here.contains("]:");
            out.push_str(if definition { "\\[" } else { "[" });
            rest = &here[1..];
            continue;
        };
        let picture = out.ends_with('!');
        let local = images.iter().position(|(path, _)| same(target, path));
        if let (true, Some(i)) = (picture, local) {
            shown[i] = true;
        }
        // The text of a link may hold a picture: it is looked at in the same way.
        let text = if text.contains('[') {
            rewrite(text, images, shown)
        } else {
            text.replace('<', "&lt;")
        };
        match local {
            Some(i) => {
                let _ = write!(out, "[{text}]({})", images[i].1);
            }
            None if picture => {
                out.pop();
                let _ = write!(out, "*{text}* (image not delivered)");
            }
            None if ["http://", "https://", "mailto:", "#"]
                .iter()
                .any(|p| target.starts_with(p)) =>
            {
                let _ = write!(out, "[{text}]({target})");
            }
            None => out.push_str(&text),
        }
        rest = &here[length..];
    }
    out.push_str(rest);
    out
}

/// A code span that begins here, or its backticks alone if it does not end on this line.
fn code_span(here: &str) -> &str {
    let ticks = here.len() - here.trim_start_matches('`').len();
    match here[ticks..].find(&here[..ticks]) {
        Some(end) => &here[..end + 2 * ticks],
        None => &here[..ticks],
    }
}

/// `[text](target)` at the beginning: its two parts, and its length.
fn link(here: &str) -> Option<(&str, &str, usize)> {
    let mut depth = 0;
    let close = here.char_indices().find_map(|(i, c)| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        (depth == 0).then_some(i)
    })?;
    let inner = here[close + 1..].strip_prefix('(')?;
    let end = if let Some(angle) = inner.trim_start().strip_prefix('<') {
        let start = inner.len() - angle.len();
        let stop = start + angle.find('>')?;
        stop + inner[stop..].find(')')?
    } else {
        inner.find(')')?
    };
    let target = inner[..end].trim();
    let target = match target.strip_prefix('<') {
        Some(angle) => angle.split('>').next()?,
        // A title may follow the target.
        None => target.split_whitespace().next().unwrap_or(""),
    };
    Some((&here[1..close], target, close + 2 + end + 1))
}

/// Whether a target of the report means the image at `path`: spelt out, or its end.
fn same(target: &str, path: &str) -> bool {
    let target = ["sandbox:", "file://", "./"]
        .iter()
        .fold(target, |t, prefix| t.strip_prefix(prefix).unwrap_or(t));
    target == path
        || (!target.is_empty()
            && path
                .strip_suffix(target)
                .is_some_and(|head| head.ends_with('/')))
}

#[cfg(test)]
mod tests {
    use super::localise;

    const IMAGES: &[(&str, &str)] = &[
        ("/workspace/out/a.svg", "a.svg"),
        ("/workspace/out/b c.svg", "b_c.svg"),
    ];

    fn line(text: &str) -> String {
        localise(text, IMAGES)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    #[test]
    fn images_point_at_the_local_files() {
        for text in [
            "![A](/workspace/out/a.svg)",
            "![A](out/a.svg)",
            "![A](./a.svg)",
            "![A](sandbox:/workspace/out/a.svg \"title\")",
            "![A](<a.svg>)",
        ] {
            assert_eq!(line(text), "![A](a.svg)", "{text}");
        }
        assert_eq!(
            line("![B](</workspace/out/b c.svg>) and"),
            "![B](b_c.svg) and"
        );
        assert_eq!(line("[![A](a.svg)](a.svg)"), "[![A](a.svg)](a.svg)");
        let all = localise("# R\n![A](a.svg)", IMAGES);
        assert!(
            all.ends_with("## More images\n\n![b_c.svg](b_c.svg)\n"),
            "{all}"
        );
    }

    #[test]
    fn nothing_reaches_elsewhere() {
        for (text, safe) in [
            ("![x](http://evil/p.png)", "*x* (image not delivered)"),
            ("![x](/etc/passwd)", "*x* (image not delivered)"),
            ("![x](../../secret.png)", "*x* (image not delivered)"),
            ("[x](javascript:alert(1))", "x)"),
            ("[x](/workspace/script.awk)", "x"),
            ("[x](https://example.org/)", "[x](https://example.org/)"),
            (
                "<script>alert(1)</script>",
                "&lt;script>alert(1)&lt;/script>",
            ),
            ("<img src=x onerror=y>", "&lt;img src=x onerror=y>"),
            ("[r]: http://evil/p.png", "\\[r]: http://evil/p.png"),
            ("`<b>` stays", "`<b>` stays"),
            (
                "see `/workspace/out/a.svg` and /workspace/run.awk",
                "see `a.svg` and run.awk",
            ),
            ("| a [1] | 2 < 3 |", "| a [1] | 2 &lt; 3 |"),
        ] {
            assert_eq!(line(text), safe, "{text}");
        }
    }
}
