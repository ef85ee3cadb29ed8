#!/bin/bash
# build-image.sh SUITE   (trixie or bookworm)
# Builds localhost/hermes-digup-host:SUITE, unless one made from the same inputs is there.
#
#   CONTAINER_ENGINE  podman (default) or docker
#   TEST_BASE_IMAGE   image to start from, default debian:SUITE-slim; "bootstrap" makes one
#                     with mmdebstrap from this machine's Debian mirror (root, no registry)
#   TEST_CACHE_DIR    where the hosts' SSH key lies; outside the clone, because the key is
#                     an input of the image and must not change with every fresh clone
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
suite=${1:?which Debian suite: trixie or bookworm}
engine=${CONTAINER_ENGINE:-podman}
base=${TEST_BASE_IMAGE:-debian:$suite-slim}
cache=${TEST_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/hermes-digup/hosts}
tag=localhost/hermes-digup-host:$suite

mkdir -p "$cache"
chmod 700 "$cache"
[ -f "$cache/id_ed25519" ] || ssh-keygen -q -t ed25519 -N '' -C test-host -f "$cache/id_ed25519"

# The week is an input, so an image is never older than seven days.
inputs=$({
  cat "$here/Containerfile" "$here/build-image.sh" "$cache/id_ed25519.pub"
  echo "$base $(date +%G-%V)"
} | sha256sum | cut -c1-16)
have=$("$engine" image inspect --format '{{index .Config.Labels "test-host.inputs"}}' "$tag" 2>/dev/null || true)
if [ "$have" = "$inputs" ]; then
  echo "$tag is up to date"
  exit 0
fi

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
cp "$here/Containerfile" "$cache/id_ed25519.pub" "$context/"
: >"$context/extra-ca.crt"
: >"$context/pip.conf"

# The long talk of package managers is shown only when it ends badly.
quietly() { "$@" >"$context/log" 2>&1 || { cat "$context/log" >&2; return 1; }; }

# mmdebstrap's result as an image; the mirror is this machine's own.
bootstrap() {
  local mirror
  mirror=$(grep -rhoPs '^(URIs: |deb (\[[^]]*\] )?)\Khttps?://\S*debian/?(?=\s|$)' \
    /etc/apt/sources.list /etc/apt/sources.list.d | head -1 || true)
  [ -n "$mirror" ] || { echo "build-image: no Debian mirror in this machine's apt sources" >&2; exit 1; }
  quietly mmdebstrap --variant=minbase --include=ca-certificates --dpkgopt=force-unsafe-io \
    --aptopt='APT::Install-Recommends "false"' "$suite" "$context/rootfs.tar" \
    "deb $mirror $suite main" "deb $mirror $suite-updates main"
  "$engine" import "$context/rootfs.tar" "$1" >/dev/null
  rm "$context/rootfs.tar"
}

start=$SECONDS
if [ "$base" = bootstrap ]; then
  base=localhost/hermes-digup-base:$suite
  bootstrap "$base"
  # pip in the hosts must trust what this machine trusts.
  cp /etc/ssl/certs/ca-certificates.crt "$context/extra-ca.crt"
  printf '[global]\ncert = /etc/test-host/extra-ca.crt\n' >"$context/pip.conf"
fi
quietly "$engine" build --build-arg BASE="$base" --label test-host.inputs="$inputs" \
  -t "$tag" -f "$context/Containerfile" "$context"
echo "$tag is built ($((SECONDS - start)) s)"
