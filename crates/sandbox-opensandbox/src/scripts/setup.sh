# Prepares a sandbox, or finds it prepared. Runs as the daemon's own user, before any command.
#
# Arguments: `new` or `known`, the user of commands (name or number, with `:` and a group) or
# nothing, the workdir, a script that prints the start tick of the youngest process.
#
# Prints lines of a key and a value. What varies is kept in the file `place` for who comes later.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C; export LC_ALL
umask 022
mode=$1 who=$2 work=$3 youngest=$4
for tool in chmod cat mkdir; do
  command -v "$tool" >/dev/null 2>&1 || { echo "missing $tool"; exit 0; }
done
while read -r key me _; do
  [ "$key" != Uid: ] || break
done </proc/self/status
echo "me $me"

# Where output waits to be fetched: not below /tmp, which commands may empty. Anybody may put a
# file there, nobody may list it, and only its owner may remove one.
dir=
for base in /opt/opensandbox /var/lib /var/tmp /tmp; do
  d=$base/.sandbox
  if mkdir -p "$d" && [ -d "$d" ] && ! [ -L "$d" ] && [ -O "$d" ] && chmod 1733 "$d"; then
    dir=$d
    break
  fi 2>/dev/null
done
[ -n "$dir" ] || { echo 'missing a directory that can be written'; exit 0; }
echo "dir $dir"
if [ -f "$dir/place" ]; then
  cat "$dir/place"
  exit 0
fi

uid= gid= group= home=
if [ -n "$who" ]; then
  name=${who%%:*}
  case $who in *:*) group=${who#*:} ;; esac
  case $name in *[!0-9]*) number= ;; *) number=$name ;; esac
  while IFS=: read -r n _ u g _ h _ || [ -n "$n" ]; do
    if [ "$n" = "$name" ] || { [ -n "$number" ] && [ "$u" = "$number" ]; }; then
      uid=$u gid=$g home=$h
      break
    fi
  done 2>/dev/null </etc/passwd
  if [ -z "$uid" ]; then
    [ -n "$number" ] || { echo 'unknown user'; exit 0; }
    uid=$number gid=0
    group=${group:-0}
  fi
  case $group in
    '') ;;
    *[!0-9]*)
      gid=
      while IFS=: read -r n _ g _ || [ -n "$n" ]; do
        [ "$n" != "$group" ] || { gid=$g; break; }
      done 2>/dev/null </etc/group
      [ -n "$gid" ] || { echo 'unknown group'; exit 0; }
      group=$gid
      ;;
    *) gid=$group ;;
  esac
  [ "$me" = 0 ] || [ "$me" = "$uid" ] || { echo "bound $me"; exit 0; }
fi

if [ "$mode" = new ]; then
  at= rest=${work#/}
  set --
  while [ -n "$rest" ]; do
    at=$at/${rest%%/*}
    case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
    [ -d "$at" ] && continue
    e=$(mkdir "$at" 2>&1) || { echo "workless $e"; exit 0; }
    set -- "$@" "$at"
  done
  # After all are there: a root without all of its rights makes nothing in another's directory.
  if [ $# != 0 ] && [ -n "$uid" ] && [ "$uid" != "$me" ]; then
    e=$(chown "$uid:$gid" "$@" 2>&1) || { echo "workless $e"; exit 0; }
  fi
else
  work=
fi
{
  echo "uid $uid"
  echo "gid $group"
  echo "home $home"
  echo "work $work"
  echo "floor $(sh -c "$youngest")"
} >"$dir/place.new" && chmod 644 "$dir/place.new" && mv "$dir/place.new" "$dir/place"
cat "$dir/place"
