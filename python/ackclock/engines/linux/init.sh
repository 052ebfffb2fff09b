#!/bin/sh
# The guest's first process. The host started the guest in the folder of the run; the host's /proc, seen through the
# root file system, says which one that is. It is not on the command line: the kernel makes random numbers of that.
cd /proc/self/cwd || exit 1
folder=$(pwd -P)
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
# A run's folder below /run has just been covered.
case $folder in /run/*) mkdir -p "$folder" && mount --bind . "$folder" ;; esac
cd "$folder" || exit 1
ip link set lo up
# Linux lets all TCP together have a sixteenth of the memory, and then holds every flow back; here it may have half.
read -r _ kilobytes _ </proc/meminfo
pages=$((kilobytes / 4 / 2))
echo "$pages $pages $pages" >/proc/sys/net/ipv4/tcp_mem
sh ./command </dev/null 2>&1
echo "ended $?"
sync
echo 1 >/proc/sys/kernel/sysrq
echo o >/proc/sysrq-trigger
sleep 10
