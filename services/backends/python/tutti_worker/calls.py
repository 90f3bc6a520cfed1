"""Calls that a model makes to other models."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import threading

from tutti_pb.errors import TritonErrorCode

from .frames import IN_ARENA, KIND_RESPONSE, Op, read_response, write_response
from .link import Reply
from .responses import parameter_entries

# Keys of the requests that the code at hand works for.
calling_for = contextvars.ContextVar("calling_for", default=())


class Calls:
    """All calls of an instance that are open."""

    def __init__(self, server, library):
        self._server = server
        self._library = library
        self._open = {}
        server.handlers[Op.INFER_RESPONSE] = self._on_response

    def begin(self, request, is_decoupled, callers, traced):
        """`callers`: keys of the requests that it is for; `traced`: key of the one whose trace the call belongs to, or None."""
        records, payload = self._server.place([tensor._output() for tensor in request.inputs()])
        about = {
            "model": request.model_name(),
            "version": str(request.model_version()),
            "id": request.request_id(),
            # As text: JavaScript's numbers end at 2^53.
            "correlation_id": _correlation(request.correlation_id()),
            "flags": request.flags(),
            "timeout": str(request.timeout()),
            "priority": str(request.priority()),
            "parameters": parameter_entries(request.parameters()),
            "outputs": sorted(request.requested_output_names()),
            "decoupled": is_decoupled,
            "callers": callers,
            "traced": traced,
        }
        id = self._server.next_id()
        call = self._open[id] = Call(self._server, id, self._to_response, self._closed)
        record = write_response(KIND_RESPONSE, 0, records, about)
        self._server.connection.send(Op.INFER, id, record, payload)
        return call

    def _closed(self, id):
        self._open.pop(id, None)

    def _on_response(self, frame):
        call = self._open.get(frame.id)
        if call is not None:
            call.take(frame)
        else:
            # It is no longer wanted; what it brought in the arena is given back.
            self._to_response(frame)

    def _to_response(self, frame):
        _, tensors, extra, _ = read_response(frame.meta, 0)
        library = self._library
        region = None
        if any(tensor.place == IN_ARENA for tensor in tensors):
            region = self._server.arena.region(*extra["region"])
        outputs, _ = self._server.receive(library.Tensor._received, tensors, region, frame.payload)
        error = extra.get("error")
        if error is not None:
            error = library.TritonError(error["message"], TritonErrorCode(error["code"]))
        response = library.InferenceResponse(outputs, error, extra.get("parameters", {}))
        if region is not None:
            # The server counts it as the model's since it sent it.
            told = self._server.watch(region)
            if told is None:
                self._server.connection.post(Op.RELEASE, region.offset)
            else:
                told()
        return response


class Call:
    """One call: its responses in order, from any thread or coroutine."""

    def __init__(self, server, id, to_response, closed):
        self._server = server
        self._id = id
        self._to_response = to_response
        self._closed = closed
        self._lock = threading.Lock()
        self._frames = collections.deque()
        self._waiting = collections.deque()
        self._has_ended = False

    def take(self, frame):
        """Called by the thread that reads: a response has come."""
        with self._lock:
            self._frames.append(frame)
            waiting = list(self._waiting)
            self._waiting.clear()
        for reply in waiting:
            reply.take(frame)

    def next(self):
        """The next response, or None after the last one. Blocks."""
        while True:
            has_one, response, reply = self._poll(None)
            if has_one:
                return response
            self._server.link.wait(reply)

    async def next_async(self):
        """As `next`, for coroutines."""
        self._server.link.need_pump()
        loop = asyncio.get_running_loop()
        while True:
            come = loop.create_future()

            def wake(_, come=come):
                try:
                    loop.call_soon_threadsafe(lambda: come.done() or come.set_result(None))
                except RuntimeError:
                    # The loop was closed, and the waiter went with it. The thread that reads frames must go on.
                    pass

            has_one, response, _ = self._poll(wake)
            if has_one:
                return response
            await come

    def _poll(self, callback):
        """Whether there is something, what it is, and else what to wait for."""
        with self._lock:
            if not self._frames:
                if self._has_ended:
                    return True, None, None
                reply = Reply(callback)
                self._waiting.append(reply)
                return False, None, reply
            frame = self._frames.popleft()
            is_final = _is_final(frame)
            self._has_ended = self._has_ended or is_final
        if not is_final:
            self._server.connection.post(Op.TAKEN, self._id)
        return True, self._to_response(frame), None

    def cancel(self):
        """No more is wanted; what still comes can be taken."""
        if not self._has_ended:
            self._server.connection.post(Op.INFER_END, self._id)

    def close(self):
        """Ends the call: nothing more of it is wanted. Runs in finalisers."""
        self._closed(self._id)
        if not self._has_ended:
            self._server.connection.post(Op.INFER_END, self._id)


def _is_final(frame):
    return frame.meta[1] & 1 == 1


def _correlation(value):
    return {"text": value} if isinstance(value, str) else {"number": str(value)}
