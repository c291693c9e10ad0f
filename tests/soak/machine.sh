#!/bin/bash
# One machine of the lab in namespaces (see machines.py), as its first process: its own file system (what this machine
# has in /, and whatever it writes itself in FOLDER/upper), devices, processes, and name; then sshd. It lives until its
# standard input ends.
#   machine.sh NAME FOLDER
set -eu
name=$1 folder=$2 root=$2/root

mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
# The kernel is this machine's: nothing here changes it.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
    # shellcheck disable=SC2086 # three words
    set -- $device
    mknod -m 666 "$root/dev/$1" c "$2" "$3"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
for link in "fd /proc/self/fd" "stdin /proc/self/fd/0" "stdout /proc/self/fd/1" "stderr /proc/self/fd/2"; do
    ln -s "${link#* }" "$root/dev/${link%% *}"
done
hostname "$name"

cd "$root"
mkdir -p old
pivot_root . old
umount -l old
rmdir old
cd /
/usr/sbin/sshd
echo ready
read -r _ || true
