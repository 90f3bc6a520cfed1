"""Metrics that a model adds to the server's."""
from __future__ import annotations

import contextlib
import enum
import json
import numbers
import weakref

from . import host
from .errors import TritonModelException, expect


class MetricKind(enum.IntEnum):
    """Kinds, numbered as in Triton."""

    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2


class Metric:
    """One series of a family; made by `MetricFamily.Metric`. It ends with its last reference, and keeps its family."""

    __slots__ = ("_server", "_id", "_family", "__weakref__")

    def __init__(self, server, identity, family):
        self._server = server
        self._id = identity
        self._family = family
        weakref.finalize(self, _remove, server.metric_remove, identity, "Metric").atexit = False

    def increment(self, value: float) -> None:
        """Adds to a counter or gauge; a counter takes no negative value."""
        self._change("increment", value, MetricKind.COUNTER, MetricKind.GAUGE)

    def set(self, value: float) -> None:
        """Sets a gauge."""
        self._change("set", value, MetricKind.GAUGE)

    def observe(self, value: float) -> None:
        """Adds an observation to a histogram."""
        self._change("observe", value, MetricKind.HISTOGRAM)

    def value(self) -> float:
        """The value now; a histogram has none."""
        with _explained("Failed to get metric value"):
            self._check("Value", MetricKind.COUNTER, MetricKind.GAUGE)
            return float(self._server.metric_value(self._id))

    def _change(self, operation: str, value: float, *kinds: MetricKind) -> None:
        if type(value) is not int and type(value) is not float:
            expect(value, numbers.Real, f"Metric.{operation}", "value")
        try:
            self._check(operation.capitalize(), *kinds)
            if value < 0 and self._family._kind is MetricKind.COUNTER:
                self._server.refuse(
                    "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by non-negative values."
                )
            self._server.metric_update(self._id, operation, float(value))
        except TritonModelException as error:
            # As _explained, which costs more than the rest: models count at each request.
            raise TritonModelException(f"Failed to {operation} metric value: {error}") from None

    def _check(self, what: str, *kinds: MetricKind) -> None:
        # Checked here, as changes of a metric are not answered.
        kind = self._family._kind
        if kind not in kinds:
            self._server.refuse(f"TRITONSERVER_METRIC_KIND_{kind.name} does not support {what}")


class MetricFamily:
    """
    Series of one name and kind, which are one in the server; the description is that of the first.

    It ends when neither it nor a metric of it is still referenced. (In Triton a metric whose family is not referenced is
    dead.)
    """

    __slots__ = ("_server", "_id", "_kind", "__weakref__")

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name: str, description: str, kind: MetricKind):
        name = expect(name, str, "MetricFamily", "name")
        description = expect(description, str, "MetricFamily", "description")
        self._kind = expect(kind, MetricKind, "MetricFamily", "kind")
        self._server = host.need("MetricFamily")
        with _explained("Error when creating MetricFamily"):
            self._id = self._server.metric_family(name, description, self._kind.name)
        ended = self._server.metric_family_remove
        weakref.finalize(self, _remove, ended, self._id, "MetricFamily").atexit = False

    def Metric(self, labels: dict | None = None, buckets: list | None = None) -> Metric:
        """A series with these labels; a histogram needs the upper bounds of its buckets, the others take none."""
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        if buckets is not None and not isinstance(buckets, list):
            raise TritonModelException("Failed to create metric. Buckets must be a list.")
        is_histogram = self._kind is MetricKind.HISTOGRAM
        if is_histogram and buckets is None:
            raise TritonModelException("Failed to create metric. Missing required buckets.")
        if buckets is not None and not is_histogram:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        # As in Triton, which makes JSON of them: keys become text, and are refused as names; what JSON has not is a TypeError.
        texts = json.loads(json.dumps(labels or {}))
        with _explained("Error when creating Metric"):
            if not all(isinstance(value, str) for value in texts.values()):
                self._server.refuse("attempt to access JSON non-string as string")
            identity = self._server.metric(self._id, texts, [float(b) for b in buckets or []])
        return Metric(self._server, identity, self)


@contextlib.contextmanager
def _explained(what: str):
    """Puts what failed before the text of the server."""
    try:
        yield
    except TritonModelException as error:
        raise TritonModelException(f"{what}: {error}") from None


def _remove(remove, identity, what: str) -> None:
    try:
        remove(identity)
    except Exception:
        # The server has gone, and its metrics with it; a finaliser has no one to tell.
        pass
