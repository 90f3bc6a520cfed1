"""A server's side that records what it is told and answers from a script."""
from __future__ import annotations

import triton_python_backend_utils as pb_utils


class FakeCall:
    """A call to another model: gives the scripted responses, then None."""

    def __init__(self, responses):
        self.responses = list(responses)
        self.events = []

    def next(self):
        return self.responses.pop(0) if self.responses else None

    async def next_async(self):
        return self.next()

    def cancel(self):
        self.events.append("cancel")

    def close(self):
        self.events.append("close")


class FakeHost:
    """Records; `calls` are handed out in order, `failure` is raised by whatever is asked next."""

    model_dir = "/models/m/1"

    def __init__(self):
        self.calls = []
        self.inferred = []
        self.sent = []
        self.told = []
        self.cancelled = set()
        self.failure = None

    def callers(self):
        return ()

    def infer(self, request, decoupled):
        self.inferred.append((request, decoupled))
        return self.calls[len(self.inferred) - 1]

    def send(self, key, response, flags):
        self.sent.append((key, response, flags))

    def is_cancelled(self, key):
        return key in self.cancelled

    def abandoned(self, key):
        self.told.append(("abandoned", key))

    def log(self, level, message, filename, line):
        self.told.append((level, message, filename, line))

    def metric_family(self, name, description, kind):
        return self._tell("family", name, description, kind)

    def metric(self, family, labels, buckets):
        return self._tell("metric", family, labels, buckets)

    def metric_update(self, metric, operation, value):
        self._tell("update", metric, operation, value)

    def metric_value(self, metric):
        self._tell("value", metric)
        return 4

    def metric_remove(self, metric):
        self._tell("remove metric", metric)

    def metric_family_remove(self, family):
        self._tell("remove family", family)

    def load_model(self, name, config, files):
        self._tell("load", name, config, files)

    def unload_model(self, name, unload_dependents):
        self._tell("unload", name, unload_dependents)

    def is_model_ready(self, name, version):
        self._tell("ready", name, version)
        return name == "up"

    def refuse(self, problem):
        raise pb_utils.TritonModelException(problem)

    def _tell(self, *event):
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise pb_utils.TritonModelException(failure)
        self.told.append(event)
        return len(self.told)


def received(host, key="k", inputs=(), is_decoupled=False, trace=None):
    """A request as the server's side makes it."""
    return pb_utils.InferenceRequest._received(
        host, key, "m", "id", 42, 1, 2500, 3, '{"a": 1}', list(inputs), ["OUT"], is_decoupled, trace
    )
