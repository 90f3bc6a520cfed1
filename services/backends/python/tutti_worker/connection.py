"""Reads and writes frames on a connected socket."""

from __future__ import annotations

import collections
import select
import threading

import numpy as np

from .frames import HEADER, MAGIC

_BUFFER_BYTES = 65536
# A payload up to here is cut out of the buffer.
_SMALL_BYTES = 8192


class ServerGone(Exception):
    """The server closed the connection or wrote something that is no frame."""


class Frame:
    __slots__ = ("op", "id", "meta", "payload")

    def __init__(self, op, id, meta, payload):
        self.op = op
        self.id = id
        self.meta = meta
        # Private bytes that can be written: a bytearray, or an array for many; None for none.
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

    def has_more_within(self, seconds):
        """Waits so long for something to read. False if nothing came."""
        if self._end > self._start:
            return True
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return len(poll.poll(seconds * 1000)) > 0

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
        if payload_bytes > _SMALL_BYTES:
            payload = np.empty(payload_bytes, np.uint8)
            self._take(payload)
        elif payload_bytes > 0:
            self._fill(payload_bytes)
            payload = bytearray(self._view[self._start : self._start + payload_bytes])
            self._start += payload_bytes
        return Frame(op, id, meta, payload)

    def send(self, op, id, meta=b"", payload=()):
        """Writes one frame, after what was held back. `payload` are buffers of bytes, in order."""
        size = 0
        for view in payload:
            size += len(view)
        parts = []
        with self._writing:
            while self._posted:
                parts.append(self._posted.popleft())
            parts += (HEADER.pack(MAGIC, op, len(meta), size, id), meta)
            if size <= _BUFFER_BYTES:
                parts += payload
                self._sock.sendall(b"".join(parts))
            else:
                self._sock.sendall(b"".join(parts))
                for view in payload:
                    self._sock.sendall(view)
        if self._posted:
            self._flush()

    def post(self, op, id, meta=b""):
        """
        Writes one small frame as soon as nothing else is being written. For finalisers: the collector may run one while this
        very thread is in `send`, where waiting for the lock would never end.
        """
        self._posted.append(HEADER.pack(MAGIC, op, len(meta), 0, id) + meta)
        self._flush()

    def hold(self, op, id, meta):
        """Writes one small frame together with the next one that is sent. Only if that is soon."""
        self._posted.append(HEADER.pack(MAGIC, op, len(meta), 0, id) + meta)

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
