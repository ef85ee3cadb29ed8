#!/bin/bash
# fetch-wheels.sh SUITE
# Downloads what templates/pi/requirements.txt names, once per content of that file, with the
# suite's own Python in a throwaway host: its markers and wheel tags are then the right ones.
# The folder TEST_CACHE_DIR/wheels/SUITE is mounted in every host as /wheels, so that
# installing there needs no network and takes seconds.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
suite=${1:?which Debian suite: trixie or bookworm}
engine=${CONTAINER_ENGINE:-podman}
requirements=$here/../../templates/pi/requirements.txt
cache=${TEST_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/hermes-digup/hosts}
wheels=$cache/wheels/$suite

inputs=$(sha256sum <"$requirements" | cut -c1-16)
if [ "$(cat "$wheels/inputs" 2>/dev/null)" = "$inputs" ]; then
  echo "wheels for $suite are up to date"
  exit 0
fi

start=$SECONDS
rm -rf "$wheels"
mkdir -p "$wheels"
cp "$requirements" "$wheels/requirements.txt"
"$engine" run --rm --volume "$wheels:/wheels" "localhost/hermes-digup-host:$suite" sh -c '
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends python3-pip >/dev/null 2>&1 &&
  python3 -m pip download --quiet --disable-pip-version-check \
    --only-binary :all: --require-hashes --dest /wheels --requirement /wheels/requirements.txt' >&2
chmod -R a+rX "$wheels"
echo "$inputs" >"$wheels/inputs"
echo "wheels for $suite are there ($((SECONDS - start)) s)"
