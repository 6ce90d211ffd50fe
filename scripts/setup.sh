#!/bin/sh
# setup.sh - installs the Debian packages that ipu-stack is built with, when they are missing.
# The list is the whole of the project's needs; nothing is fetched from elsewhere.
set -eu
packages="gcc g++ cmake ninja-build pkg-config capnproto libcapnp-dev libelf-dev libjansson-dev
 libopenblas-dev libpng-dev libjpeg-dev libcmocka-dev libxxhash-dev"
[ "${1:-}" = check ] && packages="$packages clang clang-format clang-tidy cppcheck"

missing=""
for package in $packages; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "installing:$missing"
run=""
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "setup: become root, or install sudo" >&2; exit 1; }
    run=sudo
fi
export DEBIAN_FRONTEND=noninteractive
$run apt-get -qq update
$run apt-get -qq install -y --no-install-recommends $missing >/dev/null
