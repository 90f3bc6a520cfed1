"""Runs a model's `execute` on the requests of a frame."""

from __future__ import annotations

import inspect
import time
import weakref

from .frames import (
    KIND_AGAIN,
    KIND_NONE,
    KIND_RESPONSE,
    RESULT_KEEPS_LENT,
    RESULT_RETAINED,
    RESULT_WRITES_LENT,
    Op,
    read_execute,
    write_response,
    write_result,
)
from .calls import calling_for
from .coroutines import Coroutines
from .responses import describe_response
from .server import TooLarge
from .tracebacks import describe_exception, place_of

# A metric may reach the server so much later.
_SHORT_NS = 1_000_000
_INTERNAL = 1
_INVALID_ARG = 3
_RESCHEDULE = 2
_NOT_RESCHEDULED = (
    "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle such a flag."
)


class WrongReturn(Exception):
    """A function of the model returned something that it may not. The text is Triton's, and complete."""

    is_plain = True


class Executor:
    def __init__(self, server, host, library, model, settings, give_back=None):
        """
        `settings`: model name, instance name, names of the outputs, whether the model is decoupled, and iterative. `give_back`, of
        `keep_freed`, is called when there is nothing to do after an execution.
        """
        self._server = server
        self._host = host
        self._library = library
        self._model = model
        self._name = settings["name"]
        self._instance = settings["instance"]
        self._outputs = frozenset(settings["outputs"])
        self._is_decoupled = settings["decoupled"]
        self._is_iterative = settings["iterative"]
        self._give_back = give_back
        # Senders of requests between two executions, by correlation id. A model that keeps the sender may use it in the next one.
        self._resting = weakref.WeakValueDictionary()
        self._coroutines = Coroutines()
        # Whether the model's last execution was: the next one may be expected to be, too.
        self._is_short = False

    def run(self, frame):
        """Executes the requests of a frame and sends what came of it."""
        began = time.perf_counter_ns()
        region_at, scratch, wires = read_execute(frame.meta)
        region = None
        if region_at[1] > 0:
            region = self._server.arena.region(*region_at)
        requests = []
        at = 0
        for wire in wires:
            request, at = self._request(wire, region, frame.payload, at)
            requests.append(request)
        frame.payload = request = None
        keys = tuple([key for key, _, _ in wires])
        host = self._host
        calling_for.set(keys)
        ready = time.perf_counter_ns()
        host.opened(keys, ready - began)
        host.is_short = self._is_short
        outcome = self._execute(requests)
        host.is_short = False
        inferred = time.perf_counter_ns()
        self._is_short = inferred - ready < _SHORT_NS
        # A short one has not freed much.
        if not self._is_short:
            self._server.link.at_rest = self._give_back
        records, payload = self._records(outcome, requests, keys, region, scratch)
        # From here on only the model itself may still hold something of the inputs.
        del outcome, requests
        told = self._server.watch(region)
        lent = self._server.lent
        lent_told = lent.watch(frame.id)
        flags = (0 if told is None else RESULT_RETAINED) | (0 if lent_told is None else RESULT_KEEPS_LENT)
        if lent.has_written:
            flags |= RESULT_WRITES_LENT
        times = (ready - began, inferred - ready, time.perf_counter_ns() - inferred)
        self._server.connection.send(Op.RESULT, frame.id, write_result(records, flags, times), payload)
        if told is not None:
            told()
        if lent_told is not None:
            lent_told()

    def _request(self, wire, region, payload, at):
        """Makes a request. Returns it, and where in the payload the next one's tensors begin."""
        key, tensors, context = wire
        inputs, at = self._server.receive(self._library.Tensor._received, tensors, region, payload, at)
        make = self._library.InferenceRequest._received
        if not context:
            request = make(
                self._host, key, self._name, "", 0, 0, 0, 0, "{}", inputs, self._outputs, self._is_decoupled
            )
            return request, at
        request = make(
            self._host,
            key,
            self._name,
            context.get("id", ""),
            context.get("correlation_id", 0),
            context.get("flags", 0),
            context.get("timeout", 0),
            context.get("priority", 0),
            context.get("parameters", "{}"),
            inputs,
            context.get("outputs", self._outputs),
            self._is_decoupled,
            context.get("trace"),
        )
        channel = self._resting.pop(request.correlation_id(), None) if self._is_iterative else None
        if channel is not None and request.flags() == 0:
            channel.wake(key)
            request._settle()
            request._channel = channel
        return request, at

    def _execute(self, requests):
        """Returns the list that the model returned, or the text of the error."""
        try:
            # A list of its own: a model may take requests out of it as it goes.
            returned = self._model.execute(list(requests))
            if inspect.iscoroutine(returned):
                self._server.link.need_pump()
                if self._is_decoupled:
                    self._coroutines.start(self._run_beside(returned, requests))
                    return [None] * len(requests)
                returned = self._coroutines.run(returned)
            return self._checked(returned, requests)
        except BaseException as error:
            # Also SystemExit: a model that ends its process says so with os._exit.
            return self._failed(error, requests)

    def _failed(self, error, requests):
        """Returns the text of an error of the model. The log has it where no request is left that could be answered with it."""
        text = self._failure(describe_exception(error))
        if all(request._is_settled() for request in requests):
            self._host.log("error", text, *place_of(error))
        return text

    def _failure(self, text):
        return "Failed to process the request(s) for model '%s', message: %s" % (self._instance, text)

    def _checked(self, returned, requests):
        if returned is None:
            # Senders answer, now or later.
            return [None] * len(requests)
        if self._is_decoupled:
            raise WrongReturn(
                "Python model '%s' is using the decoupled mode and the execute function must return None."
                % self._instance
            )
        if not isinstance(returned, list):
            raise WrongReturn(
                "Expected a list in the execute return, found type '%s'." % (type(returned),)
            )
        if len(returned) != len(requests):
            raise WrongReturn(
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                "InferenceRequest(s) size is:%d, and InferenceResponse(s) size is:%d\n"
                % (len(requests), len(returned))
            )
        for response, request in zip(returned, requests):
            if response is not None and request._release_flags == _RESCHEDULE:
                # "reschduled" is how Triton writes it.
                raise WrongReturn(
                    "Expected a None object in the execute function return list for reschduled request, found type '%s'."
                    % (type(response),)
                )
            if response is not None and not isinstance(response, self._library.InferenceResponse):
                raise WrongReturn(
                    "Expected an 'InferenceResponse' object in the execute function return list, found type '%s'."
                    % (type(response),)
                )
        return returned

    def _records(self, outcome, requests, keys, region, scratch):
        if not isinstance(outcome, str):
            try:
                return self._response_records(outcome, requests, keys, region, scratch)
            except TooLarge as error:
                outcome = self._failure(str(error))
            except Exception as error:
                outcome = self._failure(describe_exception(error))
        return self._error_records(outcome, requests, keys), []

    def _error_records(self, text, requests, keys):
        return [self._error_record(text, _INTERNAL, *each) for each in zip(requests, keys)]

    def _error_record(self, text, code, request, key):
        request._settle()
        self._host.closed((key,))
        return write_response(KIND_RESPONSE, 1, [], {"error": {"message": text, "code": code}})

    def _response_records(self, responses, requests, keys, region, scratch):
        outputs, described = [], []
        for response, request in zip(responses, requests):
            if response is None:
                described.append(None)
                continue
            tensors, extra = describe_response(response, request._requested_output_names)
            described.append((len(outputs), len(tensors), extra))
            outputs += tensors
        placed, payload = self._server.place(outputs, region, scratch)
        records, answered = [], []
        for what, request, key in zip(described, requests, keys):
            if what is None:
                records.append(self._record_without_response(request, key))
                continue
            first, count, extra = what
            records.append(write_response(KIND_RESPONSE, 1, placed[first : first + count], extra))
            request._settle()
            answered.append(key)
        self._host.closed(answered)
        return records, payload

    def _record_without_response(self, request, key):
        # Opened now, so that it closes when the model drops its last reference.
        channel = request._opened()
        if request._release_flags == _RESCHEDULE and not channel.is_closed:
            return self._again_record(request, key)
        return write_response(KIND_NONE, 0, [], None)

    def _again_record(self, request, key):
        if not self._is_iterative:
            return self._error_record(_NOT_RESCHEDULED, _INVALID_ARG, request, key)
        request._opened().rest()
        self._resting[request.correlation_id()] = request._opened()
        self._host.closed((key,))
        return write_response(KIND_AGAIN, 0, [], None)

    async def _run_beside(self, coroutine, requests):
        """A decoupled model's coroutine runs beside further executions. What it returns counts for nothing, as in Triton."""
        try:
            await coroutine
        except BaseException as error:
            self._fail_open(requests, self._failed(error, requests))

    def _fail_open(self, requests, text):
        """Ends the requests that have no final response yet."""
        error = self._library.InferenceResponse(error=self._library.TritonError(text))
        for request in requests:
            if not request._is_settled():
                request.get_response_sender().send(error, 1)
