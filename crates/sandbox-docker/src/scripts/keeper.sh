# The keeper: the child of process 1, as root. The container ends with it: when the lifetime is
# over, and when the process that owns the sandbox is gone.
#
# Arguments: lifetime in seconds, a directory of its own, 1 if stdin is the tether, a script that
# prints the start tick of the youngest process.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
life=$1 dir=$2 tether=$3 youngest=$4
for tool in cat date sleep; do
  command -v "$tool" >/dev/null 2>&1 || { echo "missing:$tool"; exit 1; }
done
exec 3<&0 </dev/null
cd /
trap 'exit 0' TERM

# The owner holds the other end of the tether. End of input: it is gone. A line: it lets go.
if [ "$tether" = 1 ]; then
  ( IFS= read -r line && [ "$line" = detach ] && : >"$dir/detached" && exit
    kill -TERM $$ ) <&3 &
fi
exec 3<&-

# The one place that says when the sandbox ends, in seconds since 1970: renewing writes it and
# signals. The signal's handler ends the nap, or, just before the nap has a name, sets the flag.
nap=
trap 'again=1; [ -z "$nap" ] || kill "$nap" 2>/dev/null' USR1
echo $(( $(date +%s) + life )) >"$dir/expires" || { echo "missing:$dir"; exit 1; }
doze() {
  again=
  left=$(( $(cat "$dir/expires") - $(date +%s) ))
  [ "$left" -gt 0 ] || exit 0
  sleep "$left" >/dev/null 2>&1 &
  nap=$!
}
doze
# All that is there now is ours, and no part of a command.
sh -c "$youngest" >"$dir/floor"
echo $$ >"$dir/pid"
echo "ready $(cat "$dir/floor")"
exec >/dev/null 2>&1
while :; do
  [ -n "$again" ] || wait "$nap"
  kill "$nap" 2>/dev/null
  doze
done
