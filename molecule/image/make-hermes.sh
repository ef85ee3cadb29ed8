#!/bin/bash
# make-hermes.sh SUITE
# Installs the real Hermes Agent (tests/clients/pins/hermes-agent.txt) once per content of that file, with the suite's own
# Python in a throwaway host and at the very place where its install script puts it: scripts and byte code then stay
# right when they are copied. The folder TEST_CACHE_DIR/hermes/SUITE is mounted in every host as /hermes; a host gets it
# with molecule/shared/tasks/hermes.yml, in seconds and without a network.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
suite=${1:?which Debian suite: trixie or bookworm}
engine=${CONTAINER_ENGINE:-podman}
pins=$here/../../tests/clients/pins/hermes-agent.txt
cache=${TEST_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/hermes-digup/hosts}
made=$cache/hermes/$suite
uv=$(command -v uv) || { echo "make-hermes: uv is not on PATH; it is in .venv/bin" >&2; exit 1; }

inputs=$(cat "$pins" "$here/make-hermes.sh" | sha256sum | cut -c1-16)
if [ "$(cat "$made/inputs" 2>/dev/null)" = "$inputs" ]; then
  echo "Hermes for $suite is up to date"
  exit 0
fi

start=$SECONDS
rm -rf "$made"
mkdir -p "$made" "$cache/hermes/uv"
# Where the build machine trusts a certificate authority of its own, uv must trust it, too.
# shellcheck disable=SC2016 # expanded in the host
"$engine" run --rm --volume "$made:/home/pi/.hermes/hermes-agent" --volume "$(realpath "$uv"):/usr/local/bin/uv:ro" \
  --volume "$cache/hermes/uv:/uv" --volume "$(realpath "$pins"):/pins.txt:ro" --env UV_CACHE_DIR=/uv \
  "localhost/hermes-digup-host:$suite" sh -c '
  [ ! -s /etc/test-host/extra-ca.crt ] || export SSL_CERT_FILE=/etc/test-host/extra-ca.crt
  venv=/home/pi/.hermes/hermes-agent/venv
  uv --quiet venv --python /usr/bin/python3 $venv &&
  uv --quiet pip install --python $venv --link-mode copy --compile-bytecode -r /pins.txt' >&2
chmod -R a+rX "$made"
echo "$inputs" >"$made/inputs"
echo "Hermes for $suite is there ($((SECONDS - start)) s)"
