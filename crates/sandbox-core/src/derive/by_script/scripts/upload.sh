# Writes files. Arguments: a path and a size for each; the contents follow each other on stdin.
# Prints a record for each, ended by NUL: nothing, or what went wrong. Ends with 9 when a failure
# left it without its place on stdin: the files after that have no record.
umask 022
copy() {
  k=$((n / 1048576)) r=$((n % 1048576))
  [ $k = 0 ] || dd bs=1048576 count=$k iflag=fullblock || return
  [ $r = 0 ] || dd bs=$r count=1 iflag=fullblock
}
while [ $# -gt 0 ]; do
  p=$1 n=$2 e=
  shift 2
  d=${p%/*}
  if [ -d "$p" ]; then
    e='Is a directory'
  elif [ -e "$p" ] && ! [ -f "$p" ]; then
    e='not a regular file'
  elif [ -n "$d" ] && ! [ -d "$d" ]; then
    e=$(mkdir -p -- "$d" 2>&1) && e= || e=${e:-failed}
    # A link that leads nowhere is in the way.
    case $e in *'No such file or directory') e='Not a directory' ;; esac
  fi
  # Opened without a change first: what fails here has taken nothing from stdin.
  [ -n "$e" ] || { e=$(exec 2>&1; : >>"$p") && e= || e=${e:-failed}; }
  if [ -n "$e" ]; then
    [ "$n" = 0 ] || copy >/dev/null 2>&1
  elif ! e=$(exec 2>&1; copy >"$p"); then
    printf '%s\0' "${e:-failed}"
    exit 9
  else
    e=
  fi
  printf '%s\0' "$e"
done
