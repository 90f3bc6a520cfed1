"""Who reads the connection, and who gets what was read.

While the model only computes, the thread that executes reads: no thread has to be woken for a request. As soon as anything needs
frames while user code runs (a call to the server, a look at cancellations, several threads), a thread of its own reads
from then on, and the thread that executes takes its work from a queue. That thread, "main" below, is the one that made the link.
"""

from __future__ import annotations

import os
import queue
import threading

from .connection import ServerGone
from .frames import Op

# A process with nothing to do for so long is at rest.
REST_SECONDS = 1
# Frames that the main thread works on; everything else is handled by the thread that reads.
_WORK = frozenset((Op.EXECUTE, Op.FINALIZE))


class Reply:
    """Waits for one frame, from any thread, or tells an event loop of it."""

    __slots__ = ("frame", "_done", "_callback")

    def __init__(self, callback=None):
        self.frame = None
        self._done = threading.Event()
        self._callback = callback

    @property
    def is_done(self):
        return self.frame is not None

    def take(self, frame):
        self.frame = frame
        self._done.set()
        if self._callback is not None:
            self._callback(frame)

    def wait(self):
        self._done.wait()


class Link:
    def __init__(self, connection, dispatch):
        """`dispatch` takes each frame that is no work; it must not block."""
        self._connection = connection
        self._dispatch = dispatch
        self._work = queue.SimpleQueue()
        self._main = threading.get_ident()
        self._lock = threading.Lock()
        self._is_main_reading = False
        self._wants_pump = False
        self._pump = None
        # Called once if there is nothing to do for a second: gives memory back. Set by the main thread.
        self.at_rest = None

    def next_work(self):
        """Waits for the next thing that the main thread is to do."""
        if self._pump is None and self._work.empty():
            frame = self._read_as_main(lambda frame: frame.op in _WORK)
            if frame is not None:
                return frame
        try:
            return self._work.get(timeout=None if self.at_rest is None else REST_SECONDS)
        except queue.Empty:
            self._rest()
            return self._work.get()

    def _rest(self):
        at_rest, self.at_rest = self.at_rest, None
        at_rest()

    def wait(self, reply):
        """Waits for a reply that `dispatch` will fill."""
        is_main = threading.get_ident() == self._main
        if not reply.is_done and self._pump is None and is_main:
            self._read_as_main(lambda _: reply.is_done, keep_work=True)
        if not reply.is_done:
            self.need_pump()
            reply.wait()
        return reply.frame

    def need_pump(self):
        """From now on frames are read whatever the main thread does."""
        with self._lock:
            if self._pump is not None:
                return
            if self._is_main_reading:
                self._wants_pump = True
            else:
                self._start_pump()

    def _read_as_main(self, is_enough, keep_work=False):
        """Reads until a frame is enough. Returns it, or None if another thread reads."""
        with self._lock:
            if self._pump is not None:
                return None
            self._is_main_reading = True
        while True:
            if self.at_rest is not None and not self._connection.has_more_within(REST_SECONDS):
                self._rest()
            frame = self._read()
            if frame.op in _WORK:
                if keep_work:
                    self._work.put(frame)
            else:
                self._dispatch(frame)
            if is_enough(frame):
                break
        with self._lock:
            self._is_main_reading = False
            if self._wants_pump:
                self._start_pump()
        return frame

    def _start_pump(self):
        self._pump = threading.Thread(target=self._run_pump, name="tutti-frames", daemon=True)
        self._pump.start()

    def _run_pump(self):
        while True:
            frame = self._read()
            if frame.op in _WORK:
                self._work.put(frame)
            else:
                self._dispatch(frame)

    def _read(self):
        try:
            return self._connection.read()
        except (ServerGone, OSError):
            # Without the server there is no answer, and nothing here may outlive it.
            os._exit(1)
