"""Responses, and how a model sends them."""
from __future__ import annotations

import json
import threading

from .errors import UINT32, TritonError, TritonModelException, expect, expect_integer
from .tensor import Tensor

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1


def parameters_to_json(parameters: dict | None) -> str:
    """Parameters of a request or response as JSON; their values are bool, int, float or str."""
    if parameters is None:
        return "{}"
    if not isinstance(parameters, dict):
        raise TritonModelException(f"Expect dict, got {type(parameters)}")
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException(
                f"Expect parameters keys to have type str, found type {type(key)}"
            )
        if not isinstance(value, (bool, int, float, str)):
            raise TritonModelException(
                f"Expect parameters values to have type bool/int/float/str, found type {type(value)}"
            )
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise TritonModelException(
                f"Expect parameters values of type int to fit int64, found {value.bit_length()} bits for '{key}'"
            )
    return json.dumps(parameters)


class InferenceResponse:
    """Outputs or an error, and parameters, for one request."""

    __slots__ = ("_output_tensors", "_error", "_parameters", "__weakref__")

    def __init__(self, output_tensors=(), error: TritonError | None = None, parameters: dict | None = None):
        tensors = list(output_tensors)
        for tensor in tensors:
            if tensor is None:
                raise TritonModelException("Output tensor for inference response should not be empty.")
            if type(tensor) is not Tensor:
                expect(tensor, Tensor, "InferenceResponse", "output_tensors")
        if error is not None:
            expect(error, TritonError, "InferenceResponse", "error")
        self._output_tensors = tensors
        self._error = error
        self._parameters = parameters_to_json(parameters)

    def output_tensors(self) -> list[Tensor]:
        """The outputs; none if there is an error."""
        return self._output_tensors

    def has_error(self) -> bool:
        """Whether this is an error."""
        return self._error is not None

    def error(self) -> TritonError | None:
        """The error, if there is one."""
        return self._error

    def parameters(self) -> str:
        """The parameters as a JSON object."""
        return self._parameters


class Channel:
    """
    Where the responses of one request go; shared by the request and its sender, so it ends with the last of them.

    The server's side settles it once it has answered the request itself. A channel of a decoupled model that ends open will
    never get its final flag: the server's side is told, if it has `abandoned(key)`.
    """

    __slots__ = ("server", "key", "is_decoupled", "sent", "is_closed", "lock", "__weakref__")

    def __init__(self, server, key, is_decoupled: bool):
        self.server = server
        self.key = key
        self.is_decoupled = is_decoupled
        self.sent = 0
        self.is_closed = False
        self.lock = threading.Lock()

    def settle(self) -> None:
        """Nothing can be sent from now on."""
        with self.lock:
            self.sent += 1
            self.is_closed = True

    def rest(self) -> None:
        """The request waits for another execution: it can be answered there."""
        with self.lock:
            self.key = None

    def wake(self, key) -> None:
        """The request executes again; `key` is what it is called now."""
        with self.lock:
            self.key = key

    def __del__(self):
        try:
            tell = None if self.is_closed or self.key is None else getattr(self.server, "abandoned", None)
            if tell is not None:
                tell(self.key)
        except Exception:
            # The server has gone; a finaliser has no one to tell.
            pass


SETTLED = Channel(None, None, False)
"""That of every request that was answered before anybody asked for its own."""
SETTLED.settle()


class InferenceResponseSender:
    """Sends the responses of one request, from any thread."""

    __slots__ = ("_channel", "__weakref__")

    def __init__(self, channel: Channel | None):
        self._channel = channel

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """
        Sends a response, or, with None and the final flag, only that there will be no more.

        The final flag (`TRITONSERVER_RESPONSE_COMPLETE_FINAL`) ends the request; it must be sent exactly once. A model that is
        not decoupled sends exactly one response.
        """
        if response is not None:
            expect(response, InferenceResponse, "InferenceResponseSender.send", "response")
        flags = expect_integer(flags, UINT32, "InferenceResponseSender.send", "flags")
        if flags not in (0, TRITONSERVER_RESPONSE_COMPLETE_FINAL):
            raise TritonModelException("Unable to send response. Unsupported flag provided.")
        if flags == 0 and response is None:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        channel = self._channel
        if channel is None:
            raise TritonModelException(
                "Unable to send response. Response sender has no reference to the decoupled state of the model."
            )
        # Under the lock also for the sending itself: responses of several threads keep their order before the final flag.
        with channel.lock:
            _check_turn(channel, response)
            # A response that cannot be sent has not been: the model may send an error in its place, and if it gives up, the server is told.
            channel.server.send(channel.key, response, flags)
            channel.sent += 1
            channel.is_closed = flags != 0

    def is_cancelled(self) -> bool:
        """Whether the caller has stopped waiting for the responses."""
        channel = self._channel
        return channel is not None and channel.server is not None and bool(channel.server.is_cancelled(channel.key))


def _check_turn(channel: Channel, response: InferenceResponse | None) -> None:
    if not channel.is_decoupled:
        if response is not None and channel.sent > 0:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send more than one response."
            )
        if response is None and channel.sent == 0:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
            )
    if channel.is_closed:
        raise TritonModelException("Unable to send response. Response sender has been closed.")
    if channel.key is None:
        raise TritonModelException("Unable to send response. The request was rescheduled, and does not execute now.")


class ResponseIterator:
    """
    The responses of a call to a decoupled model, each once; also for `async for`. Blocks until there is one or the call has ended.

    Responses are not kept: iterating again yields only what has not been taken. (Triton repeats them.)
    """

    __slots__ = ("_call", "_fetched", "__weakref__")

    def __init__(self, call):
        self._call = call
        # The first response, if it has come before it is taken.
        self._fetched = None

    async def _fetch(self) -> None:
        """Waits until the first response can be taken, or until there is none."""
        self._fetched = await self._call.next_async()

    def __iter__(self) -> ResponseIterator:
        return self

    def __next__(self) -> InferenceResponse:
        if self._fetched is not None:
            return self._take_fetched()
        return self._take(None if self._call is None else self._call.next(), StopIteration)

    def __aiter__(self) -> ResponseIterator:
        return self

    async def __anext__(self) -> InferenceResponse:
        if self._fetched is not None:
            return self._take_fetched()
        return self._take(
            None if self._call is None else await self._call.next_async(), StopAsyncIteration
        )

    def _take_fetched(self) -> InferenceResponse:
        response, self._fetched = self._fetched, None
        return response

    def _take(self, response, ended):
        if response is None:
            self._close()
            raise ended
        return response

    def cancel(self) -> None:
        """Tells the called model that no more is wanted; what it still sends can be iterated."""
        if self._call is not None:
            self._call.cancel()

    def _close(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call.close()

    def __del__(self):
        try:
            self._close()
        except Exception:
            # The server has gone, and the call with it.
            pass
