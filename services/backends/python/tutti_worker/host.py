"""Services that `triton_python_backend_utils` may ask of the server; see tutti_pb/host.py."""

from __future__ import annotations

import threading
import time

from .calls import Calls, calling_for
from .frames import KIND_NONE, KIND_RESPONSE, Op, write_metric, write_response, write_send
from .responses import describe_response

# Responses of one request that may be on the way before its reader has taken the first.
WINDOW = 8


class Host:
    def __init__(self, server, model_dir, library, instance):
        self._server = server
        self._instance = instance
        self._library = library
        self._error = library.TritonModelException
        self.model_dir = model_dir
        # Calls to other models are allowed from `initialize` to `finalize`, as in Triton.
        self.is_executing = False
        # Within an execution of a model whose last one was short.
        self.is_short = False
        self._main = threading.get_ident()
        self._calls = Calls(server, library)
        self._lock = threading.Condition()
        # Requests that are open, by key: how many more responses may be sent now.
        self._credits = {}
        # Time that their inputs have taken, in nanoseconds.
        self._input_ns = {}
        self._cancelled = set()
        # Keys ascend.
        self._last_opened = 0
        server.handlers[Op.CANCEL] = self._on_cancel
        server.handlers[Op.CREDIT] = self._on_credit

    def opened(self, keys, input_ns):
        """`input_ns`: what it took to make the requests."""
        with self._lock:
            for key in keys:
                self._credits[key] = WINDOW
                self._input_ns[key] = input_ns
                self._last_opened = key

    def closed(self, keys):
        with self._lock:
            for key in keys:
                self._credits.pop(key, None)
                self._input_ns.pop(key, None)
            if self._cancelled:
                self._cancelled.difference_update(keys)

    def send(self, key, response, flags):
        """Sends a response of a request, or only its end. Waits while the reader is behind."""
        began = time.perf_counter_ns()
        tensors, extra = [], None
        if response is not None:
            tensors, extra = describe_response(response, None)
        records, payload = self._server.place(tensors)
        output_ns = time.perf_counter_ns() - began
        # A response that failed before this line is never sent, so it must not use up credit.
        if not flags:
            self._take_credit(key)
        kind = KIND_NONE if response is None else KIND_RESPONSE
        record = write_response(kind, flags, records, extra)
        sent = write_send(self._input_ns.get(key, 0), output_ns, record)
        self._server.connection.send(Op.SEND, key, sent, payload)
        if flags:
            self.closed((key,))

    def _take_credit(self, key):
        with self._lock:
            if self._credits.get(key, 1) > 0:
                if key in self._credits:
                    self._credits[key] -= 1
                return
        self._server.link.need_pump()
        with self._lock:
            self._lock.wait_for(lambda: self._credits.get(key, 1) > 0)
            if key in self._credits:
                self._credits[key] -= 1

    def _on_credit(self, frame):
        with self._lock:
            credit = self._credits.get(frame.id)
            if credit is not None:
                self._credits[frame.id] = credit + 1
                self._lock.notify_all()

    def is_cancelled(self, key):
        self._server.link.need_pump()
        with self._lock:
            return key in self._cancelled

    def _on_cancel(self, frame):
        with self._lock:
            # The frame of a request that is not open yet may wait for the main thread, and this one overtakes it.
            if frame.id in self._credits or frame.id > self._last_opened:
                self._cancelled.add(frame.id)

    def abandoned(self, key):
        """Forgets a request that no sender can answer from now on. Runs in finalisers, so it takes no lock."""
        self._credits.pop(key, None)
        self._input_ns.pop(key, None)
        self._cancelled.discard(key)
        self._server.connection.post(Op.ABANDONED, key)

    def callers(self):
        """Keys of the requests that the code at hand works for."""
        return calling_for.get()

    def infer(self, request, decoupled):
        """Begins a call to another model: for the requests that the code at hand works for, else for those that the request was made for."""
        if not self.is_executing:
            raise self._error("BLS is only supported during the 'execute' function.")
        origin, key = request.trace()._origin
        # Keys are the instance's own: the trace of another one's request is none here.
        callers = calling_for.get() or (request._callers if request._maker is self else ())
        return self._calls.begin(request, decoupled, callers, key if origin == id(self) else None)

    def log(self, level, message, filename, line):
        self._server.note("log", level=level, message=message, filename=filename, line=line)

    def metric_family(self, name, description, kind):
        return self._ask("metric_family", name=name, description=description, kind=kind)

    def metric(self, family_id, labels, buckets):
        return self._ask("metric", family=family_id, labels=labels, buckets=buckets)

    def metric_update(self, metric_id, op, value):
        write = self._server.connection.hold if self._may_hold() else self._server.connection.post
        write(Op.METRIC, metric_id, write_metric(op, value))

    def _may_hold(self):
        """Whether the frame that ends this execution is about to be sent: in the thread that executes a model that is short."""
        return self.is_short and threading.get_ident() == self._main

    def metric_value(self, metric_id):
        return float(self._ask("metric_value", metric=metric_id))

    def metric_remove(self, metric_id):
        self._server.note("metric_remove", metric=metric_id)

    def metric_family_remove(self, family_id):
        self._server.note("metric_family_remove", family=family_id)

    def load_model(self, name, config, files):
        sizes = [(path, len(content)) for path, content in files.items()]
        self._ask("load_model", list(files.values()), name=name, config=config, files=sizes)

    def unload_model(self, name, unload_dependents):
        self._ask("unload_model", name=name, unload_dependents=unload_dependents)

    def is_model_ready(self, name, version):
        return self._ask("is_model_ready", name=name, version=version)

    def _ask(self, call, payload=(), **arguments):
        answer = self._server.ask(Op.CALL, {"call": call, **arguments}, payload)
        if "error" in answer:
            self.refuse(answer["error"])
        return answer.get("value")

    def refuse(self, problem):
        """Raises the error of a question that the server refused, or would refuse. The text is Triton's."""
        raise self._error("Failed to process the request for model '%s', message: %s" % (self._instance, problem))
