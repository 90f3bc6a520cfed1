"""Memory of other instances that the server lends to this one: inputs that another model made, without a copy.

The mappings are private: what a model writes into such an input is seen by no other process, and is gone once it has let go.
"""

from __future__ import annotations

import itertools
import json
import mmap
import os

import numpy as np

from .arena import Region, address_of, watch_bytes
from .frames import Op

# The arena with number N begins at N times this; the instance's own is number 0.
SPAN_BYTES = 2**40
# Private mappings count against the memory that may be promised, whatever is written to them; without reserve they do not.
_MAP_NORESERVE = 0x4000


class LentArena:
    """A private mapping of another instance's memory file."""

    def __init__(self, path, size):
        """OSError where that is not allowed."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            flags = mmap.MAP_PRIVATE | _MAP_NORESERVE
            self._mapping = mmap.mmap(fd, size, flags, mmap.PROT_READ | mmap.PROT_WRITE)
        finally:
            os.close(fd)
        self._base = address_of(self._mapping)
        try:
            self._pagemap = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._pagemap = None

    def close(self):
        """The mapping itself ends with the last array over it."""
        if self._pagemap is not None:
            os.close(self._pagemap)
            self._pagemap = None

    def region(self, offset, size):
        return Region(self._mapping, offset, size)

    def discard_writes(self, offset, size):
        """Drops this process's own copies of pages: the next tensor there must be seen. Returns True if there were some."""
        start = offset // mmap.PAGESIZE
        count = -(-(offset + size) // mmap.PAGESIZE) - start
        is_written = self._is_written(start, count)
        if is_written is not False:
            self._mapping.madvise(mmap.MADV_DONTNEED, start * mmap.PAGESIZE, count * mmap.PAGESIZE)
        return is_written is True

    def _is_written(self, start, count):
        """Whether some pages are copies; None where nothing tells. To look is much cheaper than to map them again."""
        if self._pagemap is None:
            return None
        entries = os.pread(self._pagemap, count * 8, (self._base // mmap.PAGESIZE + start) * 8)
        # The topmost bits: in memory, swapped out, and of a file. Copies are of no file.
        states = np.frombuffer(entries, np.uint8)[7::8] >> 5
        return len(states) < count or bool(((states != 0) & (states & 1 == 0)).any())


class LentArenas:
    """The arenas that this process has mapped, and what of them the execution at hand has."""

    def __init__(self, server):
        self._connection = server.connection
        server.handlers[Op.MAP] = self._on_map
        server.handlers[Op.UNMAP] = self._on_unmap
        self._arenas = {}
        self._taken = []
        self._watches = {}
        # The model has written into an input. The server then gives it copies: made page by page they take much longer.
        self.has_written = False

    def _on_map(self, frame):
        wanted = json.loads(frame.meta)
        answer = {}
        try:
            self._arenas[wanted["number"]] = LentArena(wanted["path"], wanted["bytes"])
        except (OSError, ValueError, OverflowError) as error:
            answer = {"problem": "%s: %s" % (type(error).__name__, error)}
        self._connection.post(Op.MAPPED, frame.id, json.dumps(answer).encode())

    def _on_unmap(self, frame):
        arena = self._arenas.pop(frame.id, None)
        if arena is not None:
            arena.close()

    def bytes_of(self, place, size):
        """The bytes of an input of the execution at hand."""
        number, offset = divmod(place, SPAN_BYTES)
        arena = self._arenas[number]
        region = arena.region(offset, size)
        self._taken.append((arena, region))
        return region.bytes

    def watch(self, execution):
        """
        Drops the inputs of the execution. Returns None if the model keeps none of them; else a function to call once the
        server knows that it does, as `Server.watch`.
        """
        if not self._taken:
            return None
        taken, self._taken = self._taken, []
        events = itertools.count(1)
        watches = []
        last = None

        def gone_or_told():
            if next(events) == last:
                self._watches.pop(execution, None)
                self._connection.post(Op.RETURNED, execution)

        for arena, region in taken:
            watch = self._watch_one(arena, region, gone_or_told)
            if watch is not None:
                watches.append(watch)
        if not watches:
            return None
        self._watches[execution] = watches
        last = len(watches) + 1
        return gone_or_told

    def _watch_one(self, arena, region, callback):
        offset, size = region.offset, region.size

        def discard():
            if arena.discard_writes(offset, size):
                self.has_written = True

        def gone():
            discard()
            callback()

        watch = watch_bytes(region, gone)
        if watch is None:
            discard()
        return watch
