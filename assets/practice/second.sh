#!/bin/sh
# PID 1 of the machine, in its final root: the remaining mounts, then the server until it ends, then power off.
box=/lab/busybox
. /lab/options
$box mount -t tmpfs -o mode=755 run /run
$box mkdir -p /run/lock /dev/pts /dev/shm
$box mount -t devpts devpts /dev/pts
$box mount -t tmpfs -o mode=1777 shm /dev/shm
$box mount -t debugfs debugfs /sys/kernel/debug
$box mount -t tracefs tracefs /sys/kernel/tracing
if [ "$cgroup" = v1 ]; then
    $box mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
    for controller in cpuset cpu,cpuacct; do
        $box mkdir "/sys/fs/cgroup/$controller"
        $box mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller"
    done
elif [ "$cgroup" = v2 ]; then
    $box mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
if [ "$base" != yes ]; then
    $box mkdir -p /srv/jitter-workshop
    $box mount --bind "$project" /srv/jitter-workshop
fi
# A guest with another processor has a compiled module of its own.
[ ! -e /lab/native.so ] ||
    $box mount --bind /lab/native.so /srv/jitter-workshop/jitter_workshop/bench/_native.abi3.so
$box hostname -F /etc/hostname
$box ip link set lo up
if [ -n "$address" ]; then
    for place in /sys/class/net/*/device; do
        card=${place#/sys/class/net/}
        $box ip addr add "$address" dev "${card%/device}"
        $box ip link set "${card%/device}" up
    done
fi

# Of the base the server is the program's own interpreter with its packages, which its forks inherit.
if [ "$base" = yes ]; then
    LANG=C.UTF-8 HOME=/root TERM=xterm-256color "$python" -u /lab/server.py
else
    "$python" -I -S -u /lab/server.py
fi

$box sync
[ "$disk" != yes ] || $box mount -o remount,ro /disk
$box poweroff -f
