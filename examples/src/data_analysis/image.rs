//! What is an image, by its bytes, and what it is called on the user's disk.

use std::collections::HashSet;

use crate::Result;

mod svg;

/// A kind of image that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Pixels.
    Png,
    /// Shapes.
    Svg,
}

/// Takes PNG and harmless SVG, nothing else, whatever the file is called.
pub(super) fn check(bytes: &[u8]) -> Result<Kind> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return png(bytes).map(|()| Kind::Png);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is neither PNG nor SVG")?;
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('<') {
        return Err("it is neither PNG nor SVG".into());
    }
    svg::check(text)?;
    Ok(Kind::Svg)
}

/// The header chunk first, a size that a viewer can take, the end chunk last.
fn png(bytes: &[u8]) -> Result<()> {
    const PIXELS: u64 = 64 << 20;
    let field = |at: usize| {
        let four = bytes.get(at..at + 4)?;
        Some(u64::from(u32::from_be_bytes(four.try_into().ok()?)))
    };
    if bytes.get(12..16) != Some(b"IHDR") || !bytes.ends_with(b"IEND\xae\x42\x60\x82") {
        return Err("it is a broken PNG".into());
    }
    match (field(16), field(20)) {
        (Some(w), Some(h)) if w > 0 && h > 0 && w.saturating_mul(h) <= PIXELS => Ok(()),
        _ => Err("it is a PNG with an unusable size".into()),
    }
}

/// A name for the disk from a path of the sandbox: its base name, the ending of its kind, and no
/// name twice, on disks that ignore case too.
pub(super) fn unique_name(path: &str, kind: Kind, taken: &mut HashSet<String>) -> String {
    let base = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = plain_name(
        base.rsplit_once('.').map_or(base, |(stem, _)| stem),
        "image",
    );
    let ending = match kind {
        Kind::Png => "png",
        Kind::Svg => "svg",
    };
    let mut name = format!("{stem}.{ending}");
    let mut n = 1;
    while !taken.insert(name.to_lowercase()) {
        n += 1;
        name = format!("{stem}-{n}.{ending}");
    }
    name
}

/// A file name of letters, digits, `.`, `_` and `-` that hides nothing and is no path.
pub(super) fn plain_name(name: &str, fallback: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .take(80)
        .collect();
    let plain = plain.trim_matches(['.', '-']);
    if plain.chars().all(|c| c == '_' || c == '.') {
        fallback.to_owned()
    } else {
        plain.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_sandbox_never_becomes_a_path_here() {
        let mut taken = HashSet::new();
        for (path, name) in [
            ("/workspace/out/bar.svg", "bar.svg"),
            ("/other/BAR.svg", "BAR-2.svg"),
            ("../../../etc/passwd", "passwd.svg"),
            ("/a/..", "image.svg"),
            ("/a/.bashrc", "image-2.svg"),
            ("C:\\Windows\\x.svg", "x.svg"),
            ("/a/report.md", "report.svg"),
            ("/a/b\n<c>.svg", "b__c_.svg"),
            ("/a/-rf.svg", "rf.svg"),
            ("", "image-3.svg"),
        ] {
            assert_eq!(unique_name(path, Kind::Svg, &mut taken), name, "{path}");
        }
        assert!(unique_name(&"x".repeat(500), Kind::Png, &mut taken).len() < 90);
    }

    #[test]
    fn the_type_is_what_the_bytes_say() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x02\x08\x02\0\0\0".to_vec();
        assert!(check(&png).is_err(), "no end");
        png.extend(b"IEND\xae\x42\x60\x82");
        assert_eq!(check(&png).unwrap(), Kind::Png);
        let mut bomb = png.clone();
        bomb[16..24].copy_from_slice(&[0xff; 8]);
        assert!(check(&bomb).is_err());
        for bad in [
            &b""[..],
            b"hello",
            b"<html><script>",
            b"GIF89a",
            b"\xff\xd8\xff",
            b"\xff<svg>",
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}
