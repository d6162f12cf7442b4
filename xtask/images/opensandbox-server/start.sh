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
$sandbox_env
END
unset OPENSANDBOX_API_KEY
exec python3 -m opensandbox_server.cli --config /etc/opensandbox.toml
