#!/bin/sh
# A root file system like the image's, without a container engine: deploy/root-file-system.sh FOLDER. It needs root, mmdebstrap and
# bubblewrap (both are Debian packages). Debian's part stays in FOLDER; the package is installed anew each time.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
root=$1
if [ ! -e "$root/.debian" ]; then
    rm -rf "$root"
    mmdebstrap --variant=minbase --include=python3,python3-venv,ca-certificates trixie "$root" http://deb.debian.org/debian
    mkdir -p "$root/etc/navarch" "$root/var/lib/navarch" "$root/history"   # where the Deployment and a test mount something
    touch "$root/.debian"
fi
rm -rf "$root/src" "$root/opt/navarch"
mkdir "$root/src"
cd "$top"
cp -R src pyproject.toml README.md LICENSE constraints.txt deploy/requirements.lock deploy/environment.sh "$root/src/"
# pip needs the names and the certificates that this machine knows.
bwrap --bind "$root" / --dev /dev --proc /proc --tmpfs /tmp --ro-bind /etc/resolv.conf /etc/resolv.conf --ro-bind /etc/ssl /etc/ssl \
    --ro-bind /usr/share/ca-certificates /usr/share/ca-certificates --chdir /src --clearenv --setenv PATH /usr/bin:/bin sh environment.sh
rm -rf "$root/src"
