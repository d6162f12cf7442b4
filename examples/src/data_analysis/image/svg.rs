//! Whether an SVG only draws. A browser that opens the file runs what is in it, so only elements
//! and attributes that draw are let through; anything else is refused, never repaired.

use crate::Result;

/// Elements that draw or describe. `style` is looked into.
const ELEMENTS: &[&str] = &[
    "svg",
    "g",
    "defs",
    "title",
    "desc",
    "metadata",
    "style",
    "rect",
    "line",
    "circle",
    "ellipse",
    "polyline",
    "polygon",
    "path",
    "text",
    "tspan",
    "use",
    "symbol",
    "marker",
    "clipPath",
    "mask",
    "pattern",
    "linearGradient",
    "radialGradient",
    "stop",
];
/// Vocabularies of metadata, which nothing runs.
const METADATA: &[&str] = &["rdf:", "cc:", "dc:"];

/// Refuses an SVG that does more than draw, with the reason.
pub(super) fn check(text: &str) -> Result<()> {
    let mut rest = text;
    let mut open: Vec<&str> = Vec::new();
    let mut seen_root = false;
    while let Some(at) = rest.find('<') {
        let before = &rest[..at];
        plain(before, open.last().copied())?;
        if !before.trim().is_empty() && open.is_empty() {
            return Err("it has text outside its root".into());
        }
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("<!--") {
            let end = after.find("-->").ok_or("a comment does not end")?;
            rest = &after[end + 3..];
        } else if let Some(after) = rest.strip_prefix("<![CDATA[") {
            let end = after.find("]]>").ok_or("a CDATA section does not end")?;
            plain(&after[..end], open.last().copied())?;
            rest = &after[end + 3..];
        } else if let Some(after) = rest.strip_prefix("<?") {
            let end = after.find("?>").ok_or("an instruction does not end")?;
            declaration(&after[..end], seen_root)?;
            rest = &after[end + 2..];
        } else if let Some(after) = rest.strip_prefix("<!DOCTYPE") {
            let end = after.find('>').ok_or("the document type does not end")?;
            if seen_root || after[..end].contains('[') {
                return Err("its document type declares something".into());
            }
            rest = &after[end + 1..];
        } else if let Some(after) = rest.strip_prefix("</") {
            let end = after.find('>').ok_or("a tag does not end")?;
            if open.pop() != Some(after[..end].trim_end()) {
                return Err("its tags do not match".into());
            }
            rest = &after[end + 1..];
        } else {
            if seen_root && open.is_empty() {
                return Err("it has two roots".into());
            }
            rest = element(&rest[1..], &mut open, !seen_root)?;
            seen_root = true;
        }
    }
    if !seen_root || !open.is_empty() || !rest.trim().is_empty() {
        return Err("it is not a whole SVG".into());
    }
    Ok(())
}

/// `<?xml ...?>` at the beginning, in UTF-8: another encoding would make the browser read other text.
fn declaration(text: &str, late: bool) -> Result<()> {
    let lower = text.to_ascii_lowercase();
    let body = lower
        .strip_prefix("xml")
        .filter(|b| b.starts_with(char::is_whitespace));
    let Some(body) = body.filter(|_| !late) else {
        return Err("it has an instruction to its viewer".into());
    };
    if body.contains("encoding") && !body.contains("\"utf-8\"") && !body.contains("'utf-8'") {
        return Err("it is not in UTF-8".into());
    }
    Ok(())
}

/// One start tag; gives what follows it.
fn element<'a>(text: &'a str, open: &mut Vec<&'a str>, root: bool) -> Result<&'a str> {
    let end = text
        .find(|c: char| c.is_whitespace() || c == '>' || c == '/')
        .ok_or("a tag does not end")?;
    let name = &text[..end];
    if root && name != "svg" {
        return Err("its root is not svg".into());
    }
    if !ELEMENTS.contains(&name) && !METADATA.iter().any(|p| name.starts_with(p)) {
        let shown: String = name.chars().take(30).collect();
        return Err(format!("it has an element that does not draw: {shown:?}").into());
    }
    let mut rest = text[end..].trim_start();
    let mut namespace = None;
    loop {
        if let Some(after) = rest.strip_prefix("/>") {
            rest = after;
            break;
        }
        if let Some(after) = rest.strip_prefix('>') {
            open.push(name);
            rest = after;
            break;
        }
        let (key, after) = rest.split_once('=').ok_or("an attribute has no value")?;
        let (key, after) = (key.trim(), after.trim_start());
        let quote = after.chars().next().filter(|c| ['"', '\''].contains(c));
        let quote = quote.ok_or("an attribute is not quoted")?;
        let (value, after) = after[1..]
            .split_once(quote)
            .ok_or("an attribute does not end")?;
        attribute(key, value)?;
        if key == "xmlns" {
            namespace = Some(value);
        }
        rest = after.trim_start();
    }
    if root && namespace != Some("http://www.w3.org/2000/svg") {
        return Err("its root has not the namespace of SVG".into());
    }
    if !root && namespace.is_some_and(|n| n != "http://www.w3.org/2000/svg") {
        return Err("it changes to another namespace".into());
    }
    Ok(rest)
}

fn attribute(key: &str, value: &str) -> Result<()> {
    let ok = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
    if key.is_empty() || !key.chars().all(ok) {
        return Err("an attribute has no proper name".into());
    }
    if value.contains('<') {
        return Err("an attribute holds a tag".into());
    }
    let lower = key.to_ascii_lowercase();
    if lower.starts_with("on") {
        return Err(format!("it runs code: {key}").into());
    }
    if lower.starts_with("xmlns") || lower.starts_with("rdf:") {
        // Names, which no viewer fetches.
        return Ok(());
    }
    let value = decoded(value)?;
    if (lower == "href" || lower.ends_with(":href") || lower == "src") && !value.starts_with('#') {
        return Err(format!("it refers to something outside: {key}").into());
    }
    if lower == "xml:base" {
        return Err("it refers to something outside: xml:base".into());
    }
    style(&value)
}

/// Text between tags: entities that stand for a character only, and within `style` no reference.
fn plain(text: &str, parent: Option<&str>) -> Result<()> {
    let text = decoded(text)?;
    if parent == Some("style") {
        style(&text)
    } else {
        Ok(())
    }
}

/// CSS that refers to nothing but the image's own parts.
fn style(value: &str) -> Result<()> {
    let lower = value.to_ascii_lowercase();
    // An escape could spell any of the words looked for.
    let escaped = value.contains('\\') && (lower.contains(':') || lower.contains('('));
    let mut outside =
        lower.contains("@import") || lower.contains("javascript:") || lower.contains("image(");
    for (at, _) in lower.match_indices("url") {
        let target = lower[at + 3..].trim_start().strip_prefix('(');
        let target = target.map(|t| t.trim_start().trim_start_matches(['"', '\'']));
        outside |= target.is_some_and(|t| !t.starts_with('#'));
    }
    if escaped || outside {
        return Err("its style refers to something outside".into());
    }
    Ok(())
}

/// The value with its entities replaced; one that is no character is refused.
fn decoded(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let (name, after) = rest[at + 1..]
            .split_once(';')
            .ok_or("an entity does not end")?;
        out.push(match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let code = match name.strip_prefix("#x").or(name.strip_prefix("#X")) {
                    Some(hex) => u32::from_str_radix(hex, 16).ok(),
                    None => name.strip_prefix('#').and_then(|n| n.parse().ok()),
                };
                code.and_then(char::from_u32)
                    .ok_or("it has an entity of its own")?
            }
        });
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::check;

    fn svg(inner: &str) -> String {
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\">{inner}</svg>")
    }

    #[test]
    fn what_draws_is_taken() {
        for inner in [
            "",
            "<title>a &amp; b</title><rect x=\"1\" y='2' fill=\"#fff\"/>",
            "<g style=\"fill: url(#a); stroke:none\"><path d=\"M 0 0 L 1 1\"/></g>",
            "<defs><style type=\"text/css\">*{stroke-linejoin: round}</style></defs>",
            "<use xlink:href=\"#m1\" x=\"3\"/>",
            "<!-- <script> --><text>1 &lt; 2 &#8230;</text>",
            "<metadata><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"><cc:Work><dc:type rdf:resource=\"http://purl.org/dc/dcmitype/StillImage\"/></cc:Work></rdf:RDF></metadata>",
        ] {
            check(&svg(inner)).unwrap_or_else(|e| panic!("{inner}: {e}"));
        }
        check(&format!("<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"no\"?>\n<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\"\n \"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd\">\n{}\n", svg(""))).unwrap();
    }

    #[test]
    fn what_runs_or_fetches_is_refused() {
        for inner in [
            "<script>alert(1)</script>",
            "<SCRIPT/>",
            "<svg:script/>",
            "<rect onload=\"x()\"/>",
            "<rect OnClick='x()'/>",
            "<a href=\"http://x/\"><text>a</text></a>",
            "<image href=\"http://x/y.png\"/>",
            "<use href=\"http://x/y.svg#a\"/>",
            "<use xlink:href=\"data:image/svg+xml,x\"/>",
            "<use href=\"&#104;ttp://x/\"/>",
            "<foreignObject><p/></foreignObject>",
            "<iframe/>",
            "<animate attributeName=\"href\" to=\"javascript:x\"/>",
            "<set attributeName=\"onload\"/>",
            "<rect style=\"fill:url(http://x/#a)\"/>",
            "<rect fill=\"&#117;rl( 'http://x/' )\"/>",
            "<rect style=\"fill:\\75rl(http://x/)\"/>",
            "<style>@import 'http://x/';</style>",
            "<style><![CDATA[a{background:url(//x)}]]></style>",
            "<g xmlns=\"http://www.w3.org/1999/xhtml\"/>",
            "<g xml:base=\"http://x/\"/>",
            "<rect x=1/>",
            "<rect x/>",
            "<g>",
            "</g>",
            "<text>&own;</text>",
            "<text>& b</text>",
            "<?xml-stylesheet href=\"http://x\"?>",
        ] {
            assert!(check(&svg(inner)).is_err(), "{inner}");
        }
        for whole in [
            "<html/>",
            "<svg/>",
            "<svg xmlns=\"http://www.w3.org/1999/xhtml\"/>",
            "<!DOCTYPE svg [<!ENTITY a \"b\">]><svg xmlns=\"http://www.w3.org/2000/svg\"/>",
            "<?xml version=\"1.0\" encoding=\"utf-7\"?><svg xmlns=\"http://www.w3.org/2000/svg\"/>",
            "<?xml-stylesheet href=\"x\"?><svg xmlns=\"http://www.w3.org/2000/svg\"/>",
            "<svg xmlns=\"http://www.w3.org/2000/svg\"/><svg xmlns=\"http://www.w3.org/2000/svg\"/>",
            "<svg xmlns=\"http://www.w3.org/2000/svg\"",
            "<",
        ] {
            assert!(check(whole).is_err(), "{whole}");
        }
    }
}
