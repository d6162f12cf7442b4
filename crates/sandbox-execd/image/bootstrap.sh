#!/bin/sh
# Begins a sandbox: a server makes this the first process of every container, with the program the
# container is for as its arguments. The daemon takes this script's place, starts the program, passes
# signals on to it, collects orphans and ends with it. The script itself does not stay, for it has
# the access token in its environment.
set -e

EXECD="${EXECD:-/opt/opensandbox/execd}"
EXECD_ENVS="${EXECD_ENVS:-/opt/opensandbox/.env}"
export EXECD_ENVS
# Where variables for all commands can be put. An image that can't be written to goes without.
{ mkdir -p "${EXECD_ENVS%/*}" && touch "$EXECD_ENVS"; } 2>/dev/null || true

if [ -n "${EXECD_BOOTSTRAP_PRE_SCRIPT:-}" ] && [ -r "$EXECD_BOOTSTRAP_PRE_SCRIPT" ]; then
	# shellcheck disable=SC1090
	. "$EXECD_BOOTSTRAP_PRE_SCRIPT"
fi

# A text instead of a program is for a shell.
shell="${BOOTSTRAP_SHELL:-}"
[ -n "$shell" ] || shell="$(command -v bash || command -v sh)"
if [ -n "${BOOTSTRAP_CMD:-}" ]; then
	set -- "$shell" -c "$BOOTSTRAP_CMD"
elif [ "${1:-}" = "-c" ]; then
	set -- "$shell" "$@"
elif [ $# -eq 0 ]; then
	set -- tail -f /dev/null
fi
exec "$EXECD" --init -- "$@"
