"""The memory that this process shares with the server. The server decides what is where; here it is only mapped."""

from __future__ import annotations

import mmap
import os
import weakref

import numpy as np

ALIGNMENT = 64
# Tensors that the server may lend to other instances begin at such offsets, and share no page with others.
PAGE_BYTES = 65536


class Region:
    """A part of the arena that a request's tensors lie in: while any array over it lives, the server keeps it."""

    __slots__ = ("offset", "size", "bytes")

    def __init__(self, arena, offset, size):
        self.offset = offset
        self.size = size
        # Its base is the mapping, no array, so that NumPy makes it the base of every view of it.
        self.bytes = np.frombuffer(arena, np.uint8, size, offset)


class Arena:
    """A mapping of the server's memory file."""

    def __init__(self, path, size):
        """`path` opens the file, as /proc/PID/fd/N. OSError where that is not allowed."""
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._mapping = mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        finally:
            os.close(fd)
        self._view = memoryview(self._mapping)
        self._base = address_of(self._mapping)

    def region(self, offset, size):
        return Region(self._mapping, offset, size)

    def write(self, offset, data):
        self._view[offset : offset + len(data)] = data

    def offset_in(self, region, data):
        """Where bytes lie, if they lie in the region; else None."""
        start = address_of(data) - self._base
        if region.offset <= start and start + len(data) <= region.offset + region.size:
            return start
        return None


def address_of(data):
    return np.frombuffer(data, np.uint8).__array_interface__["data"][0]


def watch_bytes(region, callback):
    """Lets go of a region's bytes. Returns None if nothing else has them, else a weak reference that calls back once nothing does."""
    probe = weakref.ref(region.bytes)
    region.bytes = None
    retained = probe()
    return None if retained is None else weakref.ref(retained, lambda _: callback())
