#!/bin/sh
# First program of the machine, from the initrd: loads modules, mounts the host's shares, hands over to second.sh.
export PATH=/bin
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev

# The order is right except for what only the hardware decides: what fails is tried once more.
failed=
for module in $(cat /lab/order); do
    insmod "/lab/modules/$module.ko" 2>/lab/insmod.err || failed="$failed $module"
done
for module in $failed; do
    insmod "/lab/modules/$module.ko" 2>/lab/insmod.err
done

mount -t tmpfs -o mode=755,size=400m root /root
mkdir -p /root/proc /root/sys /root/dev /root/run /root/tmp /root/var/lib /root/var/log /root/var/tmp /root/boot \
    /root/etc /root/root /root/home/learner /root/home/other /root/lab /root/mnt /root/opt /root/srv
chmod 1777 /root/tmp /root/var/tmp
# The interpreter may live below root's home, so the learners must be able to pass it.
cp -a /lab/skeleton/. /root/
cp -a /bin/busybox /lab/kept/. /root/lab/

share() { # share TAG PATH: a folder of the host, read-only, at the same place
    mkdir -p "/root$2"
    if [ "$base" = yes ]; then
        # Until the server mounts the folder itself: a machine with a share cannot be saved.
        mount --bind "/root/base$2" "/root$2"
    else
        mount -t 9p -o trans=virtio,version=9p2000.L,msize=500000,ro,cache=loose "$1" "/root$2"
    fi
}
. /lab/kept/options
if [ "$base" = yes ]; then
    mkdir /root/base
    mount -t ext4 -o ro,noload /dev/vdb /root/base || poweroff -f
fi
eval "$shares"

if [ -n "$kept" ] && [ "$base" = yes ]; then
    mkdir -p "/root$kept"
elif [ -n "$kept" ]; then
    # Files that are written here stay on the host, also when the machine is thrown away.
    mkdir -p "/root$kept"
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=500000,cache=mmap kept "/root$kept" || poweroff -f
fi
if [ "$disk" = yes ]; then
    mkdir /root/disk
    mount -t ext4 /dev/vda /root/disk || poweroff -f
    for folder in etc var boot home; do
        [ -d "/root/disk/$folder" ] || cp -a "/root/$folder" /root/disk/
        mount --bind "/root/disk/$folder" "/root/$folder"
    done
fi
chown -R 1000:1000 /root/home/learner
chown -R 1001:1001 /root/home/other

if [ "$init" = systemd ]; then
    cp -a /lab/systemd/. /root/
    mkdir -p /root/srv/jitter-workshop /root/lab/usr-local-bin
    mount --bind "/root$project" /root/srv/jitter-workshop
    # /usr is the test runner's own, read-only, and a class host has its launcher below it.
    mount --bind /root/usr/local/bin /root/lab/usr-local-bin
    mount -t tmpfs -o mode=755 bin /root/usr/local/bin
    for file in /root/lab/usr-local-bin/*; do
        [ ! -e "$file" ] || ln -s "${file#/root}" /root/usr/local/bin/
    done
fi
mount --move /proc /root/proc
mount --move /sys /root/sys
mount --move /dev /root/dev
[ "$init" != systemd ] || exec switch_root /root /lib/systemd/systemd --unit=lab.target
exec switch_root /root /lab/busybox sh /lab/second.sh
