//! Paths inside a sandbox.

use std::fmt;

use crate::{Error, ErrorKind, Result};

/// An absolute path inside a sandbox: UTF-8, without NUL and without `..`, at most 4,095 bytes and
/// 255 a name, which is what Linux takes.
///
/// `.` components, doubled and trailing slashes are removed, so two spellings of one path compare
/// equal and a trailing slash can't make an operation follow a link. Every other name is taken as
/// it is: spaces, quotes, newlines, `$`, `*` and leading dashes have no meaning.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SandboxPath(String);

/// `PATH_MAX` of Linux less its NUL.
const MAX_BYTES: usize = 4095;

/// `NAME_MAX` of Linux. Checked here: tools that look whether a longer name exists say that it does
/// not, those that open it say that it is too long.
const MAX_NAME: usize = 255;

impl SandboxPath {
    /// Checks and normalises `path`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidPath`] if it is empty, relative, too long, or holds NUL or `..`.
    pub fn new(path: impl AsRef<str>) -> Result<Self> {
        let path = path.as_ref();
        let invalid = |why: &'static str| {
            let shown: String = path.chars().take(200).collect();
            Err(Error::new(ErrorKind::InvalidPath, why).with("path", shown))
        };
        if path.is_empty() {
            return invalid("the path is empty: give an absolute path");
        }
        if !path.starts_with('/') {
            return invalid("the path is relative: give an absolute path");
        }
        if path.len() > MAX_BYTES {
            return invalid("the path is longer than 4095 bytes");
        }
        if path.contains('\0') {
            return invalid("the path holds a NUL character");
        }
        let mut normal = String::with_capacity(path.len());
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => return invalid("the path holds `..`: give the path it leads to"),
                name if name.len() > MAX_NAME => {
                    return invalid("the path holds a name longer than 255 bytes");
                }
                name => {
                    normal.push('/');
                    normal.push_str(name);
                }
            }
        }
        if normal.is_empty() {
            normal.push('/');
        }
        Ok(Self(normal))
    }

    /// The path as text, always beginning with `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last component, or `None` for `/`.
    pub fn file_name(&self) -> Option<&str> {
        self.0.rsplit('/').next().filter(|name| !name.is_empty())
    }

    /// The path one level up, or `None` for `/`.
    pub fn parent(&self) -> Option<Self> {
        let name = self.file_name()?;
        let parent = &self.0[..self.0.len() - name.len()];
        Some(Self(
            if parent == "/" {
                parent
            } else {
                &parent[..parent.len() - 1]
            }
            .to_owned(),
        ))
    }

    /// True for `/`.
    pub fn is_root(&self) -> bool {
        self.0 == "/"
    }

    /// This path with `relative` below it.
    ///
    /// # Errors
    ///
    /// As [`SandboxPath::new`].
    pub fn join(&self, relative: &str) -> Result<Self> {
        Self::new(format!("{}/{relative}", self.0))
    }
}

impl AsRef<str> for SandboxPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SandboxPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn normalises_spellings_and_refuses_what_is_no_absolute_path() {
        let longest = format!("/{}", "x".repeat(255));
        for (given, normal) in [
            ("/", "/"),
            ("//", "/"),
            ("/a//b/./c/", "/a/b/c"),
            ("/-rf", "/-rf"),
            ("/a/...", "/a/..."),
            ("/new\nline/$HOME/*", "/new\nline/$HOME/*"),
            (&longest, &longest),
        ] {
            assert_eq!(SandboxPath::new(given).unwrap().as_str(), normal);
        }
        for bad in [
            "",
            "a",
            "./a",
            "~",
            "/a/../b",
            "/..",
            "/a\0b",
            &format!("/a{}", "/x".repeat(2047)),
            &format!("/a/{}/b", "x".repeat(256)),
        ] {
            assert_eq!(
                SandboxPath::new(bad).unwrap_err().kind(),
                ErrorKind::InvalidPath,
                "{bad:?}"
            );
        }
        assert_eq!(
            SandboxPath::new("/a").unwrap().parent().unwrap().as_str(),
            "/"
        );
        assert_eq!(
            SandboxPath::new("/a/b").unwrap().parent().unwrap().as_str(),
            "/a"
        );
        assert!(SandboxPath::new("/").unwrap().parent().is_none());
    }

    proptest! {
        #[test]
        fn normalising_twice_is_normalising_once(s in "\\PC{0,40}") {
            if let Ok(p) = SandboxPath::new(format!("/{s}")) {
                prop_assert_eq!(&SandboxPath::new(&p).unwrap(), &p);
                prop_assert!(!p.as_str().split('/').any(|c| c == ".."));
            }
        }
    }
}
