# Prints files. Arguments: a token, then a path and the most bytes for each. Prints for each the
# token, a letter, a word and NUL: `f` and the size, before that many bytes of content; `l` and the
# size of one that is too large; `e` and what went wrong. Ends with the token, `z` and NUL.
t=$1
shift
while [ $# -gt 0 ]; do
  p=$1 m=$2 e=
  shift 2
  if [ -d "$p" ]; then
    e='Is a directory'
  elif [ -e "$p" ] && ! [ -f "$p" ]; then
    e='not a regular file'
  elif ! n=$(exec 2>&1; exec <"$p" && wc -c); then
    e=${n:-failed} d=${p%/*}
    # Not every shell says so itself.
    while [ -n "$d" ] && ! [ -e "$d" ]; do d=${d%/*}; done
    [ -z "$d" ] || [ -d "$d" ] || e='Not a directory'
  fi
  # A loader may have complained of a variable first.
  [ -n "$e" ] || n=${n##*[!0-9]}
  if [ -n "$e" ]; then
    printf '%s e %s\0' "$t" "$e"
  elif [ "$n" -gt "$m" ]; then
    printf '%s l %s\0' "$t" $n
  else
    printf '%s f %s\0' "$t" $n
    [ "$n" = 0 ] || head -c $((n)) <"$p"
  fi
done
printf '%s z \0' "$t"
