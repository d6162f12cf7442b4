#!/bin/sh
# Starts the server for this machine alone: it and the sandboxes' ports are on the loopback. So it
# runs in the host's network, with the engine's socket at its usual place.
#
#   OPENSANDBOX_PORT      where it listens
#   OPENSANDBOX_API_KEY   what clients must give
#   OPENSANDBOX_NETWORK   the engine's network that sandboxes are in
#   OPENSANDBOX_EXECD     the image with the daemon that goes into every sandbox
#   OPENSANDBOX_PROFILE   that daemon's profile, `default` if it is ours and nothing is said
set -eu
umask 077
sandbox_env=""
if [ -n "${OPENSANDBOX_PROFILE:-}" ]; then
	sandbox_env="sandbox_env = { EXECD_PROFILE = \"$OPENSANDBOX_PROFILE\" }"
fi
# Root in a sandbox obeys the rights of files, as another user does; the daemon keeps what it needs to
# run commands as others and to end them.
cat >/etc/opensandbox.toml <<END
[server]
host = "127.0.0.1"
port = $OPENSANDBOX_PORT
api_key = "$OPENSANDBOX_API_KEY"

[runtime]
type = "docker"
execd_image = "$OPENSANDBOX_EXECD"

[store]
type = "sqlite"
path = "/var/lib/opensandbox.db"

[docker]
network_mode = "$OPENSANDBOX_NETWORK"
publish_host = "127.0.0.1"
drop_capabilities = ["AUDIT_WRITE", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "MKNOD",
  "NET_ADMIN", "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETPCAP", "SYS_ADMIN", "SYS_CHROOT",
  "SYS_MODULE", "SYS_PTRACE", "SYS_TIME", "SYS_TTY_CONFIG"]
$sandbox_env
END
unset OPENSANDBOX_API_KEY
exec python3 -m opensandbox_server.cli --config /etc/opensandbox.toml
