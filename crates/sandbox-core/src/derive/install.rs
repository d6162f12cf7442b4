//! How new content gets into a file: one script for `write`, `edit` and `upload_from`.

use bytes::Bytes;

use super::script::{self, Run, garbled, number, script};
use crate::files::WriteMode;
use crate::lower::random_token;
use crate::{Result, SandboxBackend, SandboxPath, defaults};

/// Arguments: the file, a random token, what to do, and two numbers of bytes; for `text` two texts
/// and `all` or nothing.
///
/// - `write A B`: B bytes of stdin replace the content (A is 0).
/// - `new A B`: as `write`, for a file that is not there.
/// - `edit A B`: A bytes of stdin must be the content; the B bytes after them replace it.
/// - `text A B OLD NEW [all]`: OLD, of A bytes, is replaced by NEW, of B bytes, and how often it is
///   there is printed: nothing is changed where that is not at all, or, without `all`, more than
///   once. Where `awk` can't do it exactly, `=` and the content are printed instead: in a file that
///   is large, holds a CR or a NUL, or the text very often. Of what `awk` read and wrote the sizes
///   are checked.
/// - `part A B`: B bytes of stdin go behind the A bytes collected under the token so far.
/// - `parts A B`: what was collected, B bytes, replaces the content.
/// - `drop A B`: what was collected is thrown away.
///
/// The content is complete in a temporary file before the target is touched. It is renamed over
/// the target where all that can be seen of the two is equal: mode, owner, group, file system, one
/// link. Where it is not, in a sticky directory, and on a mount point, the target is written in
/// place.
///
/// The lock is a symbolic link, made in one step with its holder in it: pid and start time, so
/// that a lock whose holder was killed is known and broken, by one at a time.
const INSTALL: &str = script!(
    r#"need cat chmod head ln mkdir mv readlink rm sleep stat tail wc
umask 022
case $3 in edit) command -v cmp >/dev/null 2>&1 || need sha256sum ;; esac

# Also where a link of the kernel's leads, which has no name: /dev/stdout.
if [ -e "$1" ] && [ ! -d "$1" ] && [ ! -f "$1" ]; then exit 66; fi
# To the end of links, and into its directory.
p=$1 i=0
while [ -L "$p" ]; do
  [ "$3" != new ] || exit 65
  i=$((i+1)); [ "$i" -le 40 ] || exit 74
  r=$(readlink -n -- "$p" 2>/dev/null && printf .) || exit 62
  r=${r%.}
  case $r in /*) p=$r ;; *) p=${p%/*}/$r ;; esac
  while :; do case $p in ?*/) p=${p%/} ;; *) break ;; esac; done
done
[ ! -d "$p" ] || exit 63
d=${p%/*}; d=${d:-/}
if [ -e "$p" ]; then
  [ -f "$p" ] || exit 66
  [ "$3" != new ] || exit 65
elif [ "$3" = edit ] || [ "$3" = text ]; then
  gone "$p"
elif [ ! -d "$d" ]; then
  e=$(mkdir -p -- "$d" 2>&1) || case $e in
    *'File exists'*|*'ot a directory'*|*'o such file'*) exit 64 ;;
    *) fail "$e" ;;
  esac
fi
cd -- "$d" 2>/dev/null || exit 62
f=./${p##*/}

k= t= r=
clean() {
  set --
  [ -z "$k" ] || set -- "$k"
  [ -z "$t" ] || set -- "$@" "$t" "$t.old" "$t.new"
  [ "$#" = 0 ] || rm -f -- "$@"
}
trap clean EXIT; trap 'exit 69' HUP INT TERM

# The temporary file: beside the target, or where there is room.
for t in "./.sandbox-$2.tmp" "${TMPDIR:-/tmp}/.sandbox-$2.tmp" "/dev/shm/.sandbox-$2.tmp" ''; do
  [ -z "$t" ] || e=$( { : >>"$t"; } 2>&1 ) && break
done
[ -n "$t" ] || fail "$e"
case $3:$4 in
  drop:*) exit 0 ;;
  parts:*|text:*) ;;
  part:0) [ ! -s "$t" ] || exit 71 ;;
  part:*) [ "$(($(wc -c <"$t")))" = "$4" ] || exit 71 ;;
  *) [ ! -s "$t" ] || exit 71 ;;
esac
case $3 in parts|text) ;; *) e=$(cat 2>&1 >>"$t") || fail "$e" ;; esac
# Of the temporary file, the directory, and the target, if it is there.
know() {
  [ "$#" -ge 8 ] || fail "stat: $*"
  sent=$1 dir=$7-$8 size=${9-} links=${10-} file=${11-}-${12-}
}
know $(stat -c '%s %h %d %i' -- "$t" . "$f" 2>/dev/null)
case $3 in
  text) ;;
  edit|part) [ "$sent" = "$(($4+$5))" ] || exit 71 ;;
  *) [ "$sent" = "$5" ] || exit 71 ;;
esac
if [ "$3" = part ]; then t=; exit 0; fi
n=$t
if [ "$3" = edit ]; then
  n=$t.new
  e=$( { head -c "$4" -- "$t" >"$t.old" && tail -c "+$(($4+1))" -- "$t" >"$n"; } 2>&1 ) || fail "$e"
  rm -f -- "$t"
fi

# Sets s to the start time of process $1.
start() {
  s=; IFS= read -r s 2>/dev/null <"/proc/$1/stat" || return 1
  set -- ${s##*) }; s=${20}
}
# Whether a lock's holder $1 lives. Where there is no /proc, it is taken to.
alive() { [ ! -r /proc/self/stat ] || { start "${1%%:*}" && [ "$s" = "${1#*:}" ]; }; }
# Takes the lock $1, or fails if it can't be made there. Ends with 72 if it is held too long.
lock() {
  i=0 m=0
  while [ "$i" -lt 200 ]; do
    if ln -s "$me" "$1" 2>/dev/null; then k=$1; return 0; fi
    h=$(readlink -- "$1" 2>/dev/null)
    if [ -z "$h" ]; then
      m=$((m+1)); [ "$m" -lt 20 ] || return 1
      [ -w "${1%/*}" ] || return 1
      continue
    fi
    if ! alive "$h" && mkdir -- "$1.break" 2>/dev/null; then
      h=$(readlink -- "$1" 2>/dev/null)
      [ -z "$h" ] || alive "$h" || rm -f -- "$1"
      rmdir -- "$1.break"
      continue
    fi
    sleep 0.05 2>/dev/null || { sleep 1; i=$((i+19)); }
    i=$((i+1))
  done
  exit 72
}
start "$$"; me=$$:$s
# Two names of one file share a lock; it keeps its inode, for it is written in place.
i=i-$file
case $links in
  ''|1|*[!0-9]*)
    i=${f#./}
    case $i:${#i} in
      *[!A-Za-z0-9._-]*:*|*:???|*:[5-9]?)
        for h in cksum md5sum sha256sum; do ! command -v "$h" >/dev/null 2>&1 || break; done
        i=$(printf %s "$i" | "$h" 2>/dev/null); i=${i%% *}
        ;;
    esac
    i=n-$dir-$i
    ;;
esac
lock "/tmp/.sandbox-lock-$i" || lock "./.sandbox-lock-$i" || lock "/dev/shm/.sandbox-lock-$i" ||
  case $3 in edit|text) exit 62 ;; esac

# Of the target, the directory, and what replaces the former.
facts() {
  mode= sticky= like= other=
  [ "$#" = 18 ] || return 0
  mode=$1 sticky=$7 like="$2 $3 $4 $5" fresh=${13} other="${14} ${15} ${16} ${17}" sent=${18}
}
stats() { facts $(stat -c '%a %u %g %d %h %s' -- "$f" . "$n" 2>/dev/null); }
case $3 in edit|text) [ -e "$f" ] || gone "$p" ;; esac
if [ "$3" = text ]; then
  if [ "${size:-0}" -gt 0 ] && [ "$size" -le 262144 ]; then
    r=$(old=$6 new=$7 to=$t size=$size awk '
      BEGIN { RS = "\r"; ORS = ""; old = ENVIRON["old"]; new = ENVIRON["new"]; to = ENVIRON["to"] }
      NR == 1 {
        whole = length($0) == ENVIRON["size"] + 0
        for (rest = $0; n < 1000 && (i = index(rest, old)); n++) {
          print substr(rest, 1, i - 1) new > to
          rest = substr(rest, i + length(old))
        }
        print rest > to
      }
      END { if (NR == 1 && whole && n < 1000) print n + 0 }
    ' <"$f" 2>/dev/null)
    stats
    case $r in
      ''|*[!0-9]*) r= ;;
      0) ;;
      *) [ "$sent" = "$((size+r*($5-$4)))" ] || r= ;;
    esac
  fi
  case $r in
    '')
      head -c 1 -- "$f" >/dev/null 2>&1 || exit 62
      printf = && cat -- "$f" 2>/dev/null || exit 69
      exit 0
      ;;
    0) printf 0; exit 0 ;;
    1) ;;
    *) [ "$8" = all ] || { printf %s "$r"; exit 0; } ;;
  esac
fi
if [ "$3" = edit ]; then
  if command -v cmp >/dev/null 2>&1; then
    cmp -s -- "$t.old" "$f" || { head -c 1 -- "$f" >/dev/null 2>&1 || exit 62; exit 67; }
  else
    [ "$(sha256sum <"$t.old")" = "$(sha256sum <"$f")" ] || exit 67
  fi
fi
if [ ! -e "$f" ]; then
  case $n in
    ./*) ;;
    *) e=$( { : >"$f"; } 2>&1 ) || fail "$e" ;;
  esac
  if [ "$3" = new ]; then
    # A hard link is made in one step. Where `ln` makes another kind, or none, the shell does it.
    ln -- "$n" "$f" 2>/dev/null && [ ! -L "$f" ] && exit 0
    [ ! -L "$f" ] || rm -f -- "$f"
    [ ! -e "$f" ] || exit 65
    ( set -C; : >"$f" ) 2>/dev/null || exit 65
  fi
  e=$(mv -f -- "$n" "$f" 2>&1) || fail "$e"
  exit 0
fi
[ "$3" != new ] || exit 65
ok() { printf %s "$r"; exit 0; }
# A running program can't be opened for writing, yet may be replaced.
e=$( { : >>"$f"; } 2>&1 ) || case $e in *'ext file busy'*) ;; *) fail "$e" ;; esac
[ "$3" = text ] || stats
# Special bits may be lost without a word.
moded() {
  [ "$mode" != "$fresh" ] || return 0
  chmod "$mode" "$n" 2>/dev/null || return 1
  case $mode in ????*) [ "$(stat -c %a -- "$n" 2>/dev/null)" = "$mode" ] ;; esac
}
case $n:$sticky in
  ./*:[1357]???|*:) ;;
  ./*) [ "$like" = "$other" ] && moded && mv -f -- "$n" "$f" 2>/dev/null && ok ;;
esac
e=$( { cat -- "$n" >"$f"; } 2>&1 ) || fail "$e"
ok"#
);

/// What a file is to hold.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// This.
    Content(Bytes),
    /// The second, provided that it holds the first.
    Edit(&'a [u8], &'a [u8]),
}

/// Replaces the content of a file, in one command.
pub(crate) async fn install(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    source: Source<'_>,
    mode: WriteMode,
) -> Result<()> {
    let (action, old, new, stdin) = match source {
        Source::Content(content) => {
            let action = match mode {
                WriteMode::Overwrite => "write",
                WriteMode::CreateNew => "new",
            };
            (action, 0, content.len(), content)
        }
        Source::Edit(old, new) => ("edit", old.len(), new.len(), [old, new].concat().into()),
    };
    let run = Run::on(path)
        .arg(random_token())
        .arg(action)
        .arg(old)
        .arg(new)
        .stdin(stdin);
    script::run(backend, INSTALL, run).await.map(drop)
}

/// The longest texts that [`replace`] takes, in bytes: they travel as arguments, and `awk` may take
/// long for a long one.
const MAX_OLD: usize = 8 << 10;
const MAX_NEW: usize = 64 << 10;

/// What [`replace`] found.
#[derive(Debug)]
pub(crate) enum Replaced {
    /// The text, this often. It was replaced, but for more than once where once was asked for.
    Times(u64),
    /// What only the content can tell: nothing was changed.
    Unknown(Bytes),
}

/// Replaces `old` by `new` within the sandbox, in one command that takes no stdin. Lines end with
/// LF in both; a file with a CR in it is [`Replaced::Unknown`]. `None` if the texts can't travel.
pub(crate) async fn replace(
    backend: &dyn SandboxBackend,
    path: &SandboxPath,
    old: &str,
    new: &str,
    all: bool,
) -> Option<Result<Replaced>> {
    if old.len() > MAX_OLD || new.len() > MAX_NEW || [old, new].iter().any(|t| t.contains('\0')) {
        return None;
    }
    let run = Run::on(path)
        .arg(random_token())
        .arg("text")
        .arg(old.len())
        .arg(new.len())
        .arg(old)
        .arg(new)
        .arg(if all { "all" } else { "" })
        .output_limit(defaults::DOWNLOAD_LIMIT);
    let answer = match script::run(backend, INSTALL, run).await {
        Ok(answer) => answer.output.bytes().clone(),
        Err(e) => return Some(Err(e)),
    };
    Some(match answer.strip_prefix(b"=") {
        Some(content) => Ok(Replaced::Unknown(answer.slice_ref(content))),
        None if answer.is_empty() => Err(garbled("nothing")),
        None => number(&answer).map(Replaced::Times),
    })
}

/// New content that comes in parts: collected in a temporary file, then put in place at once.
pub(crate) struct Parts<'a> {
    backend: &'a dyn SandboxBackend,
    path: &'a SandboxPath,
    token: String,
    sent: u64,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(backend: &'a dyn SandboxBackend, path: &'a SandboxPath) -> Self {
        Self {
            backend,
            path,
            token: random_token(),
            sent: 0,
        }
    }

    /// Sends the next bytes.
    pub(crate) async fn push(&mut self, part: Bytes) -> Result<()> {
        let length = part.len() as u64;
        let run = self.run("part", self.sent, length).stdin(part);
        script::run(self.backend, INSTALL, run).await?;
        self.sent += length;
        Ok(())
    }

    /// Puts what was sent in place; gives its size.
    pub(crate) async fn finish(&mut self) -> Result<u64> {
        let run = self.run("parts", 0, self.sent);
        script::run(self.backend, INSTALL, run).await?;
        Ok(self.sent)
    }

    /// Throws away what was sent.
    pub(crate) async fn abandon(&self) -> Result<()> {
        let run = self.run("drop", 0, 0);
        script::run(self.backend, INSTALL, run).await.map(drop)
    }

    fn run(&self, action: &str, old: u64, new: u64) -> Run {
        Run::on(self.path)
            .arg(&self.token)
            .arg(action)
            .arg(old)
            .arg(new)
    }
}
