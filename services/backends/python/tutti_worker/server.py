"""The server as this process sees it: frames, shared memory, and what waits for replies."""

from __future__ import annotations

import itertools
import json

import numpy as np

from .arena import ALIGNMENT, PAGE_BYTES, watch_bytes
from .frames import IN_ARENA, Op, arena_record, payload_record
from .lent import SPAN_BYTES, LentArenas
from .link import Link, Reply

# Up to this many bytes travel in the frame itself: cheaper than a place in the arena.
INLINE_BYTES = 8192


class TooLarge(Exception):
    """Tensors that the server would not take."""


class Server:
    def __init__(self, connection, arena, limit):
        """`arena` is None where memory cannot be shared; everything travels in frames then. `limit`: bytes of a frame."""
        self.connection = connection
        self.arena = arena
        self._limit = limit
        self._inline = min(INLINE_BYTES, limit)
        self.link = Link(connection, self._dispatch)
        self._ids = itertools.count(1)
        self._replies = {}
        self._watches = {}
        # Handlers of frames that are no replies, by operation.
        self.handlers = {}
        self.lent = LentArenas(self)

    def _dispatch(self, frame):
        if frame.op in (Op.REPLY, Op.REGION):
            reply = self._replies.pop(frame.id, None)
            if reply is not None:
                reply.take(frame)
        else:
            self.handlers[frame.op](frame)

    def next_id(self):
        return next(self._ids)

    def ask(self, op, question, payload=()):
        """Sends a question as JSON and waits for the answer."""
        id = self.next_id()
        reply = self._replies[id] = Reply()
        self.connection.send(op, id, json.dumps(question).encode(), payload)
        return json.loads(self.link.wait(reply).meta)

    def note(self, kind, **fields):
        """Tells something that is not answered."""
        self.connection.post(Op.NOTE, 0, json.dumps({"note": kind, **fields}).encode())

    def receive(self, received, tensors, region, payload, at=0):
        """
        Makes tensors that came in, by `received`, which is `Tensor._received`. Those of the payload begin at `at` in it.
        Returns them, and where the next begins.
        """
        made = []
        for tensor in tensors:
            size = tensor.size
            if tensor.place == IN_ARENA:
                data = self._arena_bytes(tensor, region)
                made.append(received(tensor.name, tensor.datatype, tensor.shape, data))
            else:
                made.append(received(tensor.name, tensor.datatype, tensor.shape, payload, at, size))
                at += size
        return made, at

    def _arena_bytes(self, tensor, region):
        if tensor.offset >= SPAN_BYTES:
            return self.lent.bytes_of(tensor.offset, tensor.size)
        start = tensor.offset - region.offset
        return region.bytes[start : start + tensor.size]

    def watch(self, region):
        """
        Lets go of a region. Returns None if nothing else has some of it; else what is to be called once the server was told so:
        the model may let go at any moment, and the server must not hear of the end first.
        """
        if region is None:
            return None
        offset = region.offset
        events = itertools.count()

        def told_or_ended():
            # Whichever comes second; `next` of a count is one step for all threads.
            if next(events) == 1:
                self._watches.pop(offset, None)
                self.connection.post(Op.RELEASE, offset)

        watch = watch_bytes(region, told_or_ended)
        if watch is None:
            return None
        self._watches[offset] = watch
        return told_or_ended

    def place(self, outputs, region=None, scratch=(0, 0)):
        """
        Finds places for tensors that go out.

        `outputs` are (name, datatype number, shape, bytes). What lies in `region` already stays there, small ones go into
        the frame, the others are copied into `scratch` (offset, bytes) or into more that the server gives.
        Returns a record for each output, and the buffers of the frame's payload.
        """
        total = 0
        for output in outputs:
            total += len(output[3])
        if total <= self._inline:
            return [payload_record(*output[:3], len(output[3])) for output in outputs], [output[3] for output in outputs]
        return self._place_large(outputs, region, scratch)

    def _place_large(self, outputs, region, scratch):
        records = [self._in_place(output, region) for output in outputs]
        moved = [i for i, record in enumerate(records) if record is None]
        total = sum(len(outputs[i][3]) for i in moved)
        if total > self._limit:
            raise TooLarge("the tensors take %d bytes, want at most %d" % (total, self._limit))
        start = None
        if self.arena is not None and total > INLINE_BYTES:
            start = self._room(sum(_aligned(len(outputs[i][3])) for i in moved), scratch)
        if start is not None:
            # Large ones first: each begins at a page then.
            moved.sort(key=lambda i: -len(outputs[i][3]))
        payload = []
        at = 0
        for i in moved:
            name, datatype, shape, data = outputs[i]
            size = len(data)
            if start is None:
                records[i] = payload_record(name, datatype, shape, size)
                payload.append(data)
            else:
                self.arena.write(start + at, data)
                records[i] = arena_record(name, datatype, shape, start + at, size)
                at += _aligned(size)
        return records, payload

    def _in_place(self, output, region):
        name, datatype, shape, data = output
        if region is None or len(data) <= INLINE_BYTES:
            return None
        offset = self.arena.offset_in(region, data)
        return None if offset is None else arena_record(name, datatype, shape, offset, len(data))

    def _room(self, size, scratch):
        offset, available = scratch
        if size <= available:
            return offset
        return self.ask(Op.GROW, {"bytes": size}).get("offset")


def _aligned(size):
    alignment = ALIGNMENT if size <= INLINE_BYTES else PAGE_BYTES
    return -(-size // alignment) * alignment
