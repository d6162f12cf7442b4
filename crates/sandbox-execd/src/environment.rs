//! The environment of commands, and the variables in paths.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::options::{Profile, TOKEN_VARIABLE};

/// What a hostile file of variables may cost.
const LARGEST_FILE: u64 = 4 << 20;

/// Variables and their values, sorted by name.
pub(crate) type Variables = BTreeMap<OsString, OsString>;

/// The daemon's own environment, without the access token, and its directory.
#[derive(Debug)]
pub(crate) struct Environment {
    variables: Variables,
    directory: PathBuf,
    profile: Profile,
}

impl Environment {
    pub(crate) fn new(profile: Profile) -> Self {
        let mut variables: Variables = std::env::vars_os().collect();
        variables.remove(OsStr::new(TOKEN_VARIABLE));
        let directory = std::env::current_dir().unwrap_or_else(|_| "/".into());
        Self {
            variables,
            directory,
            profile,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// What a command starts with: the daemon's environment, over it the file that
    /// `EXECD_ENVS` names, over both what the request gives. Reads a file.
    pub(crate) fn for_command(&self, given: &BTreeMap<String, String>) -> Variables {
        let mut all = self.variables.clone();
        all.extend(self.in_file());
        all.extend(
            given
                .iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        // A name that is empty or has a `=` can't be a variable; std would refuse the command.
        all.retain(|name, _| !name.is_empty() && !name.as_bytes().contains(&b'='));
        all
    }

    fn in_file(&self) -> Variables {
        let mut text = Vec::new();
        if let Some(file) = self
            .get("EXECD_ENVS")
            .filter(|it| !it.is_empty())
            .and_then(|path| self.expand(path, &self.variables).ok())
            .and_then(|path| File::open(path).ok())
        {
            let _ = file.take(LARGEST_FILE).read_to_end(&mut text);
        }
        text.split(|&it| it == b'\n')
            .map(<[u8]>::trim_ascii)
            .filter(|line| !line.starts_with(b"#"))
            .filter_map(|line| {
                let at = line.iter().position(|&it| it == b'=')?;
                let value = substitute(&line[at + 1..], &self.variables);
                Some((
                    OsString::from_vec(line[..at].to_vec()),
                    OsString::from_vec(value),
                ))
            })
            .collect()
    }

    /// A path of a request made into one for the system: `~` at its start is the home directory,
    /// and in the stock profile `$NAME` and `${NAME}` are variables.
    ///
    /// # Errors
    ///
    /// In the stock profile, when a variable isn't set.
    pub(crate) fn expand(&self, path: &OsStr, variables: &Variables) -> Result<OsString, String> {
        let mut path = path.as_bytes().to_vec();
        if self.profile.is_stock() {
            let missing = undefined(&path, variables);
            if !missing.is_empty() {
                let missing = missing.join(",");
                return Err(format!(
                    "path references undefined environment variables: {missing}"
                ));
            }
            path = substitute(&path, variables);
        }
        let below = match path.as_slice() {
            b"~" => Some(&b""[..]),
            other => other
                .strip_prefix(b"~/")
                .or_else(|| other.strip_prefix(b"~\\")),
        };
        if let Some(below) = below {
            let home = self
                .get("HOME")
                .filter(|it| !it.is_empty())
                .ok_or("$HOME is not defined")?;
            let joined = Path::new(home).join(OsStr::from_bytes(below));
            return Ok(clean(joined.as_os_str()));
        }
        Ok(OsString::from_vec(path))
    }

    /// As [`Self::expand`] with the daemon's own variables.
    pub(crate) fn path(&self, path: &OsStr) -> Result<PathBuf, String> {
        self.expand(path, &self.variables).map(PathBuf::from)
    }

    /// As [`Self::path`], absolute and without `.`, `..` and repeated slashes.
    pub(crate) fn absolute(&self, path: &OsStr) -> Result<PathBuf, String> {
        let expanded = self.path(path)?;
        Ok(PathBuf::from(clean(
            self.directory.join(expanded).as_os_str(),
        )))
    }
}

/// The shortest path that means the same where no symbolic link is involved.
pub(crate) fn clean(path: &OsStr) -> OsString {
    let bytes = path.as_bytes();
    let rooted = bytes.starts_with(b"/");
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in bytes.split(|&it| it == b'/') {
        match part {
            b"" | b"." => {}
            b".." if kept.last().is_some_and(|it| *it != b"..") => drop(kept.pop()),
            b".." if rooted => {}
            other => kept.push(other),
        }
    }
    let mut out = if rooted { b"/".to_vec() } else { Vec::new() };
    out.extend(kept.join(&b'/'));
    if out.is_empty() {
        out.push(b'.');
    }
    OsString::from_vec(out)
}

/// A reference in a path, and where it ends.
enum Reference<'a> {
    Name(&'a [u8], usize),
    /// Not a reference that can be read; it is left out.
    Broken(usize),
    /// A dollar sign that means itself.
    Dollar,
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Reads the reference whose dollar sign is the byte before `rest`.
fn reference(rest: &[u8]) -> Reference<'_> {
    const SPECIAL: &[u8] = b"*#$@!?-0123456789";
    match rest.first() {
        Some(b'{') => {
            if rest.get(1).is_some_and(|it| SPECIAL.contains(it)) && rest.get(2) == Some(&b'}') {
                return Reference::Name(&rest[1..2], 3);
            }
            match rest.iter().position(|&it| it == b'}') {
                Some(1) => Reference::Broken(2),
                Some(end) => Reference::Name(&rest[1..end], end + 1),
                None => Reference::Broken(1),
            }
        }
        Some(byte) if SPECIAL.contains(byte) => Reference::Name(&rest[..1], 1),
        _ => match rest
            .iter()
            .position(|&it| !is_name(it))
            .unwrap_or(rest.len())
        {
            0 => Reference::Dollar,
            end => Reference::Name(&rest[..end], end),
        },
    }
}

fn substitute(text: &[u8], variables: &Variables) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'$', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match reference(rest) {
            Reference::Name(name, length) => {
                if let Some(value) = variables.get(OsStr::from_bytes(name)) {
                    out.extend_from_slice(value.as_bytes());
                }
                rest = &rest[length..];
            }
            Reference::Broken(length) => rest = &rest[length..],
            Reference::Dollar => out.push(b'$'),
        }
    }
    out.extend_from_slice(rest);
    out
}

/// The variables `path` names that are not set, sorted. Only names a shell would take count.
fn undefined(path: &[u8], variables: &Variables) -> Vec<String> {
    let mut missing = std::collections::BTreeSet::new();
    let mut rest = path;
    while let Some(at) = memchr::memchr(b'$', rest) {
        rest = &rest[at + 1..];
        if let Reference::Name(name, length) = reference(rest) {
            let shell_name =
                !name.first().is_some_and(u8::is_ascii_digit) && name.iter().all(|&it| is_name(it));
            if shell_name && !variables.contains_key(OsStr::from_bytes(name)) {
                missing.insert(String::from_utf8_lossy(name).into_owned());
            }
            rest = &rest[length..];
        }
    }
    missing.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(profile: Profile) -> Environment {
        Environment {
            variables: [("HOME", "/root"), ("A", "x"), ("EMPTY", "")]
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
            directory: "/home".into(),
            profile,
        }
    }

    fn absolute(profile: Profile, path: &str) -> Result<String, String> {
        environment(profile)
            .absolute(OsStr::new(path))
            .map(|it| it.to_string_lossy().into_owned())
    }

    #[test]
    fn the_default_profile_takes_a_dollar_for_what_it_is() {
        assert_eq!(
            absolute(Profile::Default, "/f/a$NOPE.txt").unwrap(),
            "/f/a$NOPE.txt"
        );
        assert_eq!(absolute(Profile::Default, "~/x").unwrap(), "/root/x");
        assert_eq!(absolute(Profile::Default, "a/~").unwrap(), "/home/a/~");
    }

    #[test]
    fn the_stock_profile_expands() {
        for (path, expanded) in [
            ("$HOME/e", "/root/e"),
            ("${HOME}/e", "/root/e"),
            ("~", "/root"),
            ("~/e", "/root/e"),
            ("/a$", "/a$"),
            ("/a$/b", "/a$/b"),
            ("/a$1b", "/ab"),
            ("/a${}b", "/ab"),
            ("/${A}${EMPTY}$A", "/xx"),
            ("rel/r", "/home/rel/r"),
        ] {
            assert_eq!(absolute(Profile::Stock, path).unwrap(), expanded, "{path}");
        }
        assert_eq!(
            absolute(Profile::Stock, "/$Z/${Y}/$Z").unwrap_err(),
            "path references undefined environment variables: Y,Z"
        );
    }

    #[test]
    fn paths_are_cleaned_by_their_text() {
        for (path, cleaned) in [
            ("", "."),
            ("/", "/"),
            ("//a//b/", "/a/b"),
            ("/../a/./b/..", "/a"),
            ("../../a", "../../a"),
            ("a/../..", ".."),
        ] {
            assert_eq!(clean(OsStr::new(path)), cleaned, "{path}");
        }
    }
}
