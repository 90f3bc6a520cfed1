"""Carries packets between two TAP devices that it makes.

    packet_relay.py ONE OTHER

Each line on stdin is `DELAY JITTER DUPLICATE`: every packet from then on waits DELAY and up to JITTER milliseconds, so that
packets overtake one another, and DUPLICATE of a hundred come twice. It does what netem does, on kernels that lack it.
"""

import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP_NO_PI = 0x1002
MOST_BYTES = 65536
"""Packets that wait; more are dropped, as a router does whose queue is full."""
MOST_WAITING = 10_000


def open_tap(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP_NO_PI))
    return device


def send(device, packet):
    try:
        os.write(device, packet)
    except OSError:
        # The device is down, or its queue is full: the packet is lost.
        pass


def main():
    one, other = [open_tap(name) for name in sys.argv[1:3]]
    across = {one: other, other: one}
    print("ready", flush=True)
    delay, jitter, duplicate = 0.0, 0.0, 0.0
    waiting = []
    count = 0
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([sys.stdin.fileno(), one, other], [], [], timeout)
        for source in readable:
            if source not in across:
                line = os.read(source, 4096).decode().splitlines()
                if not line:
                    return
                delay, jitter, duplicate = (float(word) for word in line[-1].split())
                continue
            try:
                packet = os.read(source, MOST_BYTES)
            except OSError:
                continue
            for _ in range(2 if random.random() * 100 < duplicate else 1):
                if delay == 0 and jitter == 0 and not waiting:
                    send(across[source], packet)
                elif len(waiting) < MOST_WAITING:
                    count += 1
                    due = time.monotonic() + (delay + random.random() * jitter) / 1000
                    heapq.heappush(waiting, (due, count, across[source], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, target, packet = heapq.heappop(waiting)
            send(target, packet)


main()
