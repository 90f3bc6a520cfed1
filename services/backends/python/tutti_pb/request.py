"""Requests: those that a model gets, and those that it makes of other models."""
from __future__ import annotations

import asyncio
import enum
import numbers

from . import host
from .errors import INT64, UINT32, UINT64, TritonModelException, expect, expect_integer, expect_truth
from .response import (
    SETTLED,
    Channel,
    InferenceResponse,
    InferenceResponseSender,
    ResponseIterator,
    parameters_to_json,
)
from .tensor import Tensor

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2

_REQUIRED = object()


class MemoryType(enum.IntEnum):
    """Where a caller would like outputs."""

    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1


TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU
TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU


class PreferredMemory:
    """Where the outputs of a call should be; a preference, which the called model need not follow."""

    __slots__ = ("_type", "_device_id")

    def __init__(self, preferred_memory_type: MemoryType, preferred_device_id: int = 0):
        here = "PreferredMemory"
        self._type = expect(preferred_memory_type, MemoryType, here, "preferred_memory_type")
        self._device_id = expect_integer(preferred_device_id, INT64, here, "preferred_device_id")


class InferenceTrace:
    """The trace that a request belongs to; given on to requests that a model makes."""

    __slots__ = ("_context", "_origin")

    def __init__(self, context: str | None = None):
        self._context = context or None
        # The request that was received with it: its instance, by the id of the server's side, and its key there.
        self._origin = (None, None)

    def get_context(self) -> str | None:
        """OpenTelemetry's context as JSON, if the request is traced."""
        return self._context


_HOST_MEMORY = PreferredMemory(TRITONSERVER_MEMORY_CPU)
_NO_TRACE = InferenceTrace()


class InferenceRequest:
    """A request. What models get is made by the server; what they make themselves is sent with `exec` or `async_exec`."""

    __slots__ = (
        "_request_id",
        "_correlation_id",
        "_inputs",
        "_requested_output_names",
        "_model_name",
        "_model_version",
        "_flags",
        "_timeout",
        "_priority",
        "_preferred_memory",
        "_trace",
        "_parameters",
        "_release_flags",
        "_origin",
        "_maker",
        "_callers",
        "_channel",
        "_sender",
        "__weakref__",
    )

    def __init__(
        self,
        request_id: str = "",
        correlation_id: int | str = 0,
        inputs=_REQUIRED,
        requested_output_names=_REQUIRED,
        model_name: str = _REQUIRED,
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory = _HOST_MEMORY,
        trace: InferenceTrace = _NO_TRACE,
        parameters: dict | None = None,
    ):
        required = {"inputs": inputs, "requested_output_names": requested_output_names, "model_name": model_name}
        missing = [name for name, value in required.items() if value is _REQUIRED]
        if missing:
            raise TypeError(f"InferenceRequest: missing {', '.join(missing)}")
        here = "InferenceRequest"
        self._request_id = expect(request_id, str, here, "request_id")
        self._correlation_id = _checked_correlation(correlation_id)
        self._model_name = expect(model_name, str, here, "model_name")
        self._inputs = _checked_inputs(inputs, request_id, model_name)
        self._requested_output_names = _checked_names(requested_output_names, request_id, model_name)
        self._model_version = expect_integer(model_version, INT64, here, "model_version")
        self._flags = expect_integer(flags, UINT32, here, "flags")
        self._timeout = expect_integer(timeout, UINT64, here, "timeout")
        self._preferred_memory = expect(preferred_memory, PreferredMemory, here, "preferred_memory")
        self._trace = expect(trace, InferenceTrace, here, "trace")
        self._parameters = parameters_to_json(parameters)
        self._priority = 0
        self._release_flags = TRITONSERVER_REQUEST_RELEASE_ALL
        self._origin = None
        maker = self._maker = host.current()
        # A thread that the model starts may send what was made for a request.
        self._callers = () if maker is None else maker.callers()
        self._channel = None
        self._sender = None

    @classmethod
    def _received(
        cls,
        host,
        key,
        model_name: str,
        request_id: str,
        correlation_id: int | str,
        flags: int,
        timeout_us: int,
        priority: int,
        parameters_json: str,
        inputs: list[Tensor],
        requested_output_names,
        is_decoupled: bool,
        trace=None,
    ) -> InferenceRequest:
        """
        For the server's side: a request that has come in; `key` is what it is called in `host.send`. Nothing is checked again.
        The names are copied once they are asked for, if they are a frozenset.
        """
        self = cls.__new__(cls)
        self._request_id = request_id
        self._correlation_id = correlation_id
        self._inputs = inputs
        self._requested_output_names = requested_output_names
        self._model_name = model_name
        self._model_version = -1
        self._flags = flags
        self._timeout = timeout_us
        self._priority = priority
        self._preferred_memory = None
        self._trace = trace
        self._parameters = parameters_json
        self._release_flags = TRITONSERVER_REQUEST_RELEASE_ALL
        self._origin = (host, key, is_decoupled)
        self._maker = host
        self._callers = (key,)
        # Where a model may answer as it likes, the end of the channel tells that it never will.
        self._channel = Channel(host, key, True) if is_decoupled else None
        self._sender = None
        return self

    def _opened(self) -> Channel:
        """For the server's side: where the responses of a request that has come in go. Few models ask for it."""
        if self._channel is None:
            self._channel = Channel(*self._origin)
        return self._channel

    def _settle(self) -> None:
        """For the server's side: the request is answered."""
        if self._channel is not None:
            self._channel.settle()
        else:
            self._channel = SETTLED

    def _is_settled(self) -> bool:
        """For the server's side: the request has had its final response."""
        return self._channel is not None and self._channel.is_closed

    def inputs(self) -> list[Tensor]:
        """The input tensors."""
        return self._inputs

    def request_id(self) -> str:
        """The caller's id of the request; may be empty."""
        return self._request_id

    def correlation_id(self) -> int | str:
        """The sequence that the request belongs to; 0 or empty for none."""
        return self._correlation_id

    def flags(self) -> int:
        """Sequence flags: a sum of `TRITONSERVER_REQUEST_FLAG_SEQUENCE_START` and `..._END`."""
        return self._flags

    def set_flags(self, flags: int) -> None:
        """Sets the sequence flags of a request to be sent."""
        self._flags = expect_integer(flags, UINT32, "set_flags", "flags")

    def timeout(self) -> int:
        """Microseconds that the request may wait in a queue; 0 for no limit."""
        return self._timeout

    def priority(self) -> int:
        """1 is the highest; 0 is the model's default. (Triton has no such getter.)"""
        return self._priority

    def parameters(self) -> str:
        """The request's parameters as a JSON object."""
        return self._parameters

    def requested_output_names(self) -> set[str]:
        """The outputs that the caller wants."""
        names = self._requested_output_names
        if type(names) is not set:
            names = self._requested_output_names = set(names)
        return names

    def model_name(self) -> str:
        """The model that gets the request. (Triton 2.51 has no such getter.)"""
        return self._model_name

    def model_version(self) -> int:
        """The version asked for; -1 leaves it to the model's policy."""
        return self._model_version

    def trace(self) -> InferenceTrace:
        """The trace that the request belongs to."""
        if not isinstance(self._trace, InferenceTrace):
            self._trace = InferenceTrace(self._trace)
            self._trace._origin = (id(self._origin[0]), self._origin[1])
        return self._trace

    def set_release_flags(self, flags: int) -> None:
        """`TRITONSERVER_REQUEST_RELEASE_RESCHEDULE` puts the request back into the queue when `execute` returns (iterative sequences)."""
        self._release_flags = expect_integer(flags, UINT32, "set_release_flags", "flags")

    def is_cancelled(self) -> bool:
        """Whether the caller has stopped waiting for the answer."""
        return self.get_response_sender().is_cancelled()

    def get_response_sender(self) -> InferenceResponseSender:
        """Sends this request's responses, also after `execute` has returned."""
        if self._sender is None:
            self._sender = InferenceResponseSender(None if self._origin is None else self._opened())
        return self._sender

    def exec(self, decoupled: bool = False) -> InferenceResponse | ResponseIterator:
        """Sends the request and waits for its response; an error is in the response. For a decoupled model: an iterator."""
        decoupled = expect_truth(decoupled, "exec", "decoupled")
        call = self._call(decoupled)
        if decoupled:
            return ResponseIterator(call)
        try:
            return _only(call.next())
        finally:
            call.close()

    def async_exec(self, decoupled: bool = False) -> asyncio.Future:
        """
        As `exec`, to be awaited; the request is sent at once. Needs a running event loop. For a decoupled model it resolves with the first
        response, so that iterating with `for` does not keep other coroutines from running meanwhile.
        """
        decoupled = expect_truth(decoupled, "async_exec", "decoupled")
        loop = asyncio.get_running_loop()
        call = self._call(decoupled)
        return loop.create_task(_later(call, decoupled))

    def _call(self, decoupled: bool):
        return host.need_caller(self._maker).infer(self, decoupled)

    def __reduce__(self):
        if self._origin is not None:
            raise TypeError("a request that was received belongs to its process and cannot be copied or pickled")
        return (
            _rebuild,
            (
                self._request_id,
                self._correlation_id,
                self._inputs,
                list(self._requested_output_names),
                self._model_name,
                self._model_version,
                self._flags,
                self._timeout,
                self._preferred_memory,
                self._trace,
            ),
            (None, {"_parameters": self._parameters}),
        )


def _rebuild(*arguments) -> InferenceRequest:
    return InferenceRequest(*arguments)


async def _later(call, decoupled: bool):
    if decoupled:
        responses = ResponseIterator(call)
        await responses._fetch()
        return responses
    try:
        return _only(await call.next_async())
    finally:
        call.close()


def _only(response: InferenceResponse | None) -> InferenceResponse:
    if response is None:
        raise TritonModelException("the call ended without a response")
    return response


def _checked_correlation(correlation_id) -> int | str:
    if isinstance(correlation_id, str):
        return correlation_id
    if correlation_id is None:
        raise TypeError("InferenceRequest: 'correlation_id' must be int or str, got None")
    if not isinstance(correlation_id, numbers.Integral):
        raise TritonModelException("Correlation ID must be integer or string")
    least, most = UINT64
    if not least <= correlation_id <= most:
        # The class is Triton's here too.
        raise RuntimeError(f"InferenceRequest: 'correlation_id' must be from {least} to {most}, got {correlation_id}")
    return int(correlation_id)


def _checked_inputs(inputs, request_id: str, model_name: str) -> list[Tensor]:
    checked = list(inputs)
    for tensor in checked:
        if tensor is None:
            raise TritonModelException(
                f"Input tensor for request with id '{request_id}' and model name '{model_name}' should not be empty."
            )
        expect(tensor, Tensor, "InferenceRequest", "inputs")
    return checked


def _checked_names(names, request_id: str, model_name: str) -> set[str]:
    if isinstance(names, (str, bytes)):
        raise TypeError("InferenceRequest: 'requested_output_names' must be a list of str, got a text")
    checked = set()
    for name in names:
        name = expect(name, str, "InferenceRequest", "requested_output_names")
        if name == "":
            raise TritonModelException(
                f"Requested output name for request with id '{request_id}' and model name '{model_name}' should not be empty."
            )
        checked.add(name)
    return checked
