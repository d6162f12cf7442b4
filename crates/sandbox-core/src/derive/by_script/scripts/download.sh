# Prints one file. Arguments: its path, the most bytes to print.
if [ -d "$1" ]; then
  echo 'Is a directory' >&2
  exit 1
elif [ -e "$1" ] && ! [ -f "$1" ]; then
  echo 'not a regular file' >&2
  exit 1
fi
# Not every shell says so itself.
d=${1%/*}
while [ -n "$d" ] && ! [ -e "$d" ]; do d=${d%/*}; done
if [ -n "$d" ] && ! [ -d "$d" ]; then
  echo 'Not a directory' >&2
  exit 1
fi
exec <"$1" && exec head -c "$2"
