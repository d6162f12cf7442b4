# An engine in mount and network name spaces of its own, with its data on a disk of its own. Reads
# orders from stdin, a line each, and says `done` to each; at the end of input it takes all down. The
# mount ends with its name space.
#
# Arguments: a folder with the file `disk`, the group of the socket.
set -u
cd "$1" || exit 1
mount --make-rprivate /
mkdir -p data
mount -o loop disk data || exit 1
# The machine's containerd lives outside and can't see the disk: the engine starts its own.
[ ! -d /run/containerd ] || mount -t tmpfs none /run/containerd || exit 1
pid=
echo done
while read -r order; do
  case $order in
  start)
    dockerd --data-root "$1/data/docker" --exec-root "$1/exec" --pidfile "$1/pid" \
      --host "unix://$1/sock" --group "$2" --bridge none --iptables=false \
      --exec-opt native.cgroupdriver=cgroupfs >>log 2>&1 </dev/null &
    pid=$!
    ;;
  STOP | CONT) kill "-$order" "$pid" ;;
  *)
    kill "-$order" "$pid"
    wait "$pid"
    pid=
    ;;
  esac
  echo done
done
if [ -n "$pid" ]; then
  kill -CONT "$pid"
  kill -TERM "$pid"
  wait "$pid"
fi
