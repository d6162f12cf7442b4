//! What `glob` and `grep` share: where they search, and the frame of what is found.

use super::pattern::{Pattern, Scope};
use super::script::Run;
use crate::{Captured, SandboxPath};

/// The beginning of both scripts.
///
/// Arguments: the root, the depth or nothing, the number of directories of the prefix, two of the
/// script's own, the prefix, the names to look at as patterns for `find -name`.
///
/// After it the shell is where the search begins, `$@` is `find`'s expression, `$a` and `$b` are
/// the script's own arguments. `end N` ends the answer: an empty record, and how many directories
/// could not be read. `unreadable` looks again for how many that are, and ends.
macro_rules! enter {
    () => {
        r#"need find
end() { printf '\0%s\0' "$1"; exit 0; }
# What is not there any more is no gap.
complaints() {
  n=0
  while IFS= read -r x; do
    case $x in *': No such file or directory') ;; *) n=$((n+1)) ;; esac
  done
  echo "$n"
}
unreadable() { n=$(find . "$@" 2>&1 >/dev/null | complaints); end "$((n))"; }
p=$1 m=$2 n=$3 a=$4 b=$5; shift 5
[ -e "$p" ] || gone "$p"
if [ -d "$p" ]; then
  cd -P -- "$p" 2>/dev/null || exit 62
  [ -r . ] || exit 62
  while [ "$n" -gt 0 ]; do
    if [ -L "./$1" ] || [ ! -d "./$1" ]; then end 0; fi
    cd -P -- "./$1" 2>/dev/null || end 1
    shift; n=$((n-1))
  done
  n=$#
  while [ "$n" -gt 0 ]; do set -- "$@" -o -name "$1"; shift; n=$((n-1)); done
  shift
  # What the kernel shows there has no end and is nobody's file.
  if [ "$PWD" = / ]; then
    set -- '(' -path ./proc -o -path ./sys -o -path ./dev ')' -prune -o -type f '(' "$@" ')'
  else
    set -- -type f '(' "$@" ')'
  fi
  [ -z "$m" ] || set -- -maxdepth "$m" "$@"
fi
"#
    };
}
pub(crate) use enter;

/// A run of such a script.
pub(crate) fn run(root: &SandboxPath, scope: &Scope, own: [&str; 2]) -> Run {
    let depth = scope.depth.map(|d| d.to_string()).unwrap_or_default();
    Run::on(root)
        .arg(depth)
        .arg(scope.prefix.len())
        .arg(own[0])
        .arg(own[1])
        .args(&scope.prefix)
        .args(&scope.names)
        .ends_with(b"\x000\0")
}

/// Everything, where no pattern is given.
pub(crate) fn everywhere() -> Scope {
    Scope {
        prefix: Vec::new(),
        depth: None,
        names: vec!["*".to_owned()],
    }
}

impl Scope {
    /// Whether nothing is left out.
    pub(crate) fn is_everywhere(&self) -> bool {
        self.prefix.is_empty() && self.depth.is_none() && self.names == ["*"]
    }
}

/// The parts of an answer that hold whole bytes: all of it, or its beginning and its end.
pub(crate) fn parts(output: &Captured) -> (&[u8], &[u8]) {
    (output.head(), output.tail())
}

/// A name that a search printed, relative to the root.
pub(crate) enum Found {
    Path(String),
    /// Not UTF-8, though it would have been found.
    NotUtf8,
    /// Not what was asked for.
    Other,
    /// Not a path that `find` prints.
    Garbled,
}

/// Looks at a name as `find .` prints it.
pub(crate) fn found(name: &[u8], scope: &Scope, pattern: Option<&Pattern>) -> Found {
    let Some(name) = name.strip_prefix(b"./") else {
        return Found::Garbled;
    };
    if name
        .split(|b| *b == b'/')
        .any(|c| matches!(c, b"" | b"." | b".."))
    {
        return Found::Garbled;
    }
    let text = String::from_utf8_lossy(name);
    let mut relative = scope.prefix.join("/");
    if !relative.is_empty() {
        relative.push('/');
    }
    relative.push_str(&text);
    if pattern.is_some_and(|p| !p.matches(&relative)) {
        return Found::Other;
    }
    if std::str::from_utf8(name).is_err() {
        return Found::NotUtf8;
    }
    Found::Path(relative)
}
