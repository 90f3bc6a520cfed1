#!/bin/sh
# run-in-root.sh ROOT UID GID [SOURCE:TARGET]... -- COMMAND...
# Runs a command on the file system of an image as a pod does: read-only but for /tmp, without rights, as process 1. It is
# started in namespaces of its own for mounts and processes (unshare), so nothing of it is left.
set -eu
root=$1 uid=$2 gid=$3
shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom; do
  : > "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir -m 1777 "$root/dev/shm"
while [ "$1" != -- ]; do
  target=$root${1#*:}
  [ -d "${1%%:*}" ] && mkdir -p "$target" || : > "$target"
  mount --bind "${1%%:*}" "$target"
  mount -o remount,bind,ro "$target"
  shift
done
shift
mount -o remount,bind,ro "$root"
# Each of them becomes the next, so that the command is process 1 in the end.
exec chroot "$root" setpriv --reuid "$uid" --regid "$gid" --clear-groups --no-new-privs --bounding-set=-all env -i "$@"
