"""Reads and writes frames on a connected socket."""

from __future__ import annotations

import collections
import threading

import numpy as np

from .frames import HEADER, MAGIC

_BUFFER_BYTES = 65536


class ServerGone(Exception):
    """The server closed the connection or wrote something that is no frame."""


class Frame:
    __slots__ = ("op", "id", "meta", "payload")

    def __init__(self, op, id, meta, payload):
        self.op = op
        self.id = id
        self.meta = meta
        # A private uint8 array, or None.
        self.payload = payload


class Connection:
    """One reader at a time; any number of threads may write, finalisers too."""

    def __init__(self, sock):
        self._sock = sock
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = 0
        self._writing = threading.Lock()
        self._posted = collections.deque()

    def _fill(self, size):
        """Makes `size` bytes readable in the buffer, which holds at least that many."""
        if self._start == self._end:
            self._start = self._end = 0
        if self._start + size > len(self._buffer):
            rest = bytes(self._view[self._start : self._end])
            self._view[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        while self._end - self._start < size:
            got = self._sock.recv_into(self._view[self._end :])
            if got == 0:
                raise ServerGone("the server closed the connection")
            self._end += got

    def _take(self, target):
        """Fills a writable buffer with what comes next."""
        target = memoryview(target)
        ready = min(len(target), self._end - self._start)
        target[:ready] = self._view[self._start : self._start + ready]
        self._start += ready
        while ready < len(target):
            got = self._sock.recv_into(target[ready:])
            if got == 0:
                raise ServerGone("the server closed the connection")
            ready += got

    def read(self):
        """Waits for the next frame."""
        self._fill(HEADER.size)
        magic, op, meta_bytes, payload_bytes, id = HEADER.unpack_from(self._buffer, self._start)
        if magic != MAGIC:
            raise ServerGone("no frame begins with %#x" % magic)
        self._start += HEADER.size
        if meta_bytes <= _BUFFER_BYTES:
            self._fill(meta_bytes)
            meta = bytes(self._view[self._start : self._start + meta_bytes])
            self._start += meta_bytes
        else:
            whole = bytearray(meta_bytes)
            self._take(whole)
            meta = bytes(whole)
        payload = None
        if payload_bytes > 0:
            payload = np.empty(payload_bytes, np.uint8)
            self._take(payload)
        return Frame(op, id, meta, payload)

    def send(self, op, id, meta=b"", payload=()):
        """Writes one frame. `payload` are buffers of bytes, in order."""
        views = [view for view in payload if len(view) > 0]
        size = sum(len(view) for view in views)
        head = HEADER.pack(MAGIC, op, len(meta), size, id) + meta
        with self._writing:
            if size <= _BUFFER_BYTES:
                self._sock.sendall(b"".join([head, *views]) if views else head)
            else:
                self._sock.sendall(head)
                for view in views:
                    self._sock.sendall(view)
        self._flush()

    def post(self, op, id, meta=b""):
        """
        Writes one small frame as soon as nothing else is being written. For finalisers: the collector may run one while this
        very thread is in `send`, where waiting for the lock would never end.
        """
        self._posted.append(HEADER.pack(MAGIC, op, len(meta), 0, id) + meta)
        self._flush()

    def _flush(self):
        # The holder of the lock looks here again after letting it go, so nothing stays behind.
        while self._posted and self._writing.acquire(blocking=False):
            try:
                while self._posted:
                    self._sock.sendall(self._posted.popleft())
            finally:
                self._writing.release()

    def forget(self):
        """In a process that a model forked: the connection is not its own."""
        self._writing = threading.Lock()
        self._posted = collections.deque()
        self._sock.close()
