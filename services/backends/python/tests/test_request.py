"""Requests that come in, requests that a model makes, and the responses of both."""
import asyncio
import copy
import gc
import pickle
import unittest
import weakref

import numpy as np
import triton_python_backend_utils as pb_utils

from .fake_host import FakeCall, FakeHost, received

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def tensor(name="x"):
    return pb_utils.Tensor(name, np.zeros(1, np.float32))


def bls(**changes):
    fields = {"model_name": "m", "requested_output_names": ["OUT"], "inputs": [tensor()], **changes}
    return pb_utils.InferenceRequest(**fields)


class BoundCase(unittest.TestCase):
    def setUp(self):
        self.host = FakeHost()
        pb_utils._bind(self.host)
        self.addCleanup(pb_utils._bind, None)


class TestReceived(BoundCase):
    def test_tells_what_came_with_it(self):
        request = received(self.host, inputs=[tensor("a"), tensor("b")], trace='{"traceparent": "00"}')
        self.assertEqual([t.name() for t in request.inputs()], ["a", "b"])
        self.assertEqual(
            (request.request_id(), request.correlation_id(), request.flags(), request.timeout(), request.priority()),
            ("id", 42, 1, 2500, 3),
        )
        self.assertEqual(request.parameters(), '{"a": 1}')
        self.assertEqual(request.requested_output_names(), {"OUT"})
        self.assertEqual(request.trace().get_context(), '{"traceparent": "00"}')
        self.assertIsNone(received(self.host).trace().get_context())
        self.assertEqual((request.model_name(), request.model_version()), ("m", -1))

    def test_finds_an_input_by_name_or_none(self):
        request = received(self.host, inputs=[tensor("a")])
        self.assertIs(pb_utils.get_input_tensor_by_name(request, "a"), request.inputs()[0])
        self.assertIsNone(pb_utils.get_input_tensor_by_name(request, "optional"))

    def test_tells_that_it_is_cancelled(self):
        request = received(self.host)
        self.assertIs(request.is_cancelled(), False)
        self.host.cancelled.add("k")
        self.assertIs(request.is_cancelled(), True)
        self.assertIs(request.get_response_sender().is_cancelled(), True)

    def test_can_be_put_back(self):
        request = received(self.host)
        self.assertEqual(request._release_flags, pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL)
        request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        self.assertEqual(request._release_flags, 2)
        with self.assertRaisesRegex(TypeError, "'flags' must be from 0 to 4294967295, got -1"):
            request.set_release_flags(-1)

    def test_belongs_to_its_process(self):
        request = received(self.host)
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with self.assertRaisesRegex(TypeError, "belongs to its process"):
                attempt(request)

    def test_leaves_no_memory_behind(self):
        gc.disable()
        self.addCleanup(gc.enable)
        request = received(self.host, inputs=[tensor()], is_decoupled=True)
        sender = request.get_response_sender()
        sender.send(pb_utils.InferenceResponse([tensor("OUT")]), FINAL)
        watched = [weakref.ref(o) for o in (request, sender, request.inputs()[0])]
        self.host.sent.clear()
        del request, sender
        self.assertEqual([ref() for ref in watched], [None, None, None])


class TestSender(BoundCase):
    def sender(self, is_decoupled=True):
        return received(self.host, is_decoupled=is_decoupled).get_response_sender()

    def assert_refused(self, text, sender, *arguments, **named):
        with self.assertRaises(pb_utils.TritonModelException) as raised:
            sender.send(*arguments, **named)
        self.assertEqual(str(raised.exception), text)

    def test_sends_any_number_and_one_final_flag(self):
        sender = self.sender()
        response = pb_utils.InferenceResponse([tensor()])
        sender.send(response)
        sender.send(response=response, flags=0)
        sender.send(flags=FINAL)
        self.assertEqual(self.host.sent, [("k", response, 0), ("k", response, 0), ("k", None, FINAL)])
        for again in ((response,), (None, FINAL), (response, FINAL)):
            self.assert_refused("Unable to send response. Response sender has been closed.", sender, *again)
        self.assertEqual(len(self.host.sent), 3)

    def test_refuses_what_says_nothing(self):
        sender = self.sender()
        self.assert_refused("Unable to send response. Unsupported flag provided.", sender, None, 2)
        self.assert_refused(
            "Inference Response object must be provided when the response flags is set to zero.", sender
        )
        with self.assertRaisesRegex(TypeError, "'response' must be InferenceResponse, got str"):
            sender.send("text")
        self.assertEqual(self.host.sent, [])

    def test_sends_once_for_a_model_that_is_not_decoupled(self):
        sender = self.sender(is_decoupled=False)
        response = pb_utils.InferenceResponse()
        self.assert_refused(
            "Unable to send response. Non-decoupled model cannot send complete final before sending a response.",
            sender,
            None,
            FINAL,
        )
        sender.send(response)
        self.assert_refused(
            "Unable to send response. Non-decoupled model cannot send more than one response.", sender, response
        )
        sender.send(None, FINAL)
        self.assert_refused(
            "Unable to send response. Response sender has been closed.", sender, None, FINAL
        )
        self.assertEqual(self.host.sent, [("k", response, 0), ("k", None, FINAL)])

    def test_is_closed_once_the_server_has_answered(self):
        request = received(self.host)
        request._settle()
        self.assert_refused(
            "Unable to send response. Non-decoupled model cannot send more than one response.",
            request.get_response_sender(),
            pb_utils.InferenceResponse(),
        )

    def test_is_open_after_a_failure_to_send(self):
        self.host.send = None
        sender = self.sender()
        with self.assertRaises(TypeError):
            sender.send(pb_utils.InferenceResponse(), FINAL)
        del self.host.send
        sender.send(response := pb_utils.InferenceResponse(), FINAL)
        self.assertEqual(self.host.sent, [("k", response, FINAL)])

    def test_outlives_its_request(self):
        sender = self.sender()
        gc.collect()
        sender.send(None, FINAL)
        self.assertEqual(self.host.sent, [("k", None, FINAL)])
        self.assertEqual(self.host.told, [])

    def test_tells_the_server_that_no_sender_will_send_the_final_flag(self):
        sender = self.sender()
        sender.send(pb_utils.InferenceResponse())
        del sender
        self.assertEqual(self.host.told, [("abandoned", "k")])

    def test_has_no_use_on_a_request_that_was_made(self):
        self.assert_refused(
            "Unable to send response. Response sender has no reference to the decoupled state of the model.",
            bls().get_response_sender(),
            pb_utils.InferenceResponse(),
        )
        self.assertIs(bls().is_cancelled(), False)


class TestResponse(unittest.TestCase):
    def test_carries_outputs_error_and_parameters(self):
        empty = pb_utils.InferenceResponse()
        self.assertEqual((empty.output_tensors(), empty.has_error(), empty.error()), ([], False, None))
        self.assertEqual(empty.parameters(), "{}")
        error = pb_utils.TritonError("no", pb_utils.TritonError.NOT_FOUND)
        response = pb_utils.InferenceResponse([tensor("OUT")], error, {"b": True, "i": 1, "s": "x", "f": 0.5})
        self.assertIs(response.error(), error)
        self.assertIs(response.has_error(), True)
        self.assertEqual(response.parameters(), '{"b": true, "i": 1, "s": "x", "f": 0.5}')
        self.assertIsNotNone(pb_utils.get_output_tensor_by_name(response, "OUT"))
        self.assertIsNone(pb_utils.get_output_tensor_by_name(response, "OTHER"))
        twin = pickle.loads(pickle.dumps(response))
        self.assertEqual((twin.error().message(), twin.parameters()), ("no", response.parameters()))

    def test_refuses_what_it_cannot_carry(self):
        failures = [
            (([None],), pb_utils.TritonModelException, "Output tensor for inference response should not be empty."),
            ((["x"],), TypeError, "'output_tensors' must be Tensor, got str"),
            (([], "text"), TypeError, "'error' must be TritonError, got str"),
            (([], None, {1: 2}), pb_utils.TritonModelException, "keys to have type str, found type <class 'int'>"),
            (([], None, {"a": []}), pb_utils.TritonModelException, "found type <class 'list'>"),
            (([], None, "text"), pb_utils.TritonModelException, "Expect dict, got <class 'str'>"),
        ]
        for arguments, kind, text in failures:
            with self.subTest(text=text), self.assertRaisesRegex(kind, text):
                pb_utils.InferenceResponse(*arguments)

    def test_errors_have_a_text_and_a_code(self):
        self.assertEqual(pb_utils.TritonError("text").code(), pb_utils.TritonError.INTERNAL)
        self.assertEqual(str(pb_utils.TritonError("text")), "text")
        codes = ["UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS"]
        for number, name in enumerate([*codes, "CANCELLED"]):
            error = pb_utils.TritonError(message="text", code=getattr(pb_utils.TritonError, name))
            self.assertEqual((int(error.code()), error.code().name, error.message()), (number, name, "text"))
        with self.assertRaisesRegex(TypeError, "'message' must be str, got ValueError"):
            pb_utils.TritonError(ValueError("x"))
        raised = pb_utils.TritonModelException("text")
        self.assertEqual((str(raised), raised.message(), raised.args), ("text", "text", ("text",)))
        self.assertIsInstance(pickle.loads(pickle.dumps(raised)), pb_utils.TritonModelException)


class TestMade(BoundCase):
    def test_takes_its_arguments_in_tritons_order(self):
        memory = pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0)
        trace = received(self.host, trace="{}").trace()
        request = pb_utils.InferenceRequest(
            "id", "sequence", [tensor()], ["OUT"], "other", 3, 1, 900, memory, trace, {"a": 1}
        )
        self.assertEqual(
            (request.request_id(), request.correlation_id(), request.model_name(), request.model_version()),
            ("id", "sequence", "other", 3),
        )
        self.assertEqual((request.flags(), request.timeout(), request.parameters()), (1, 900, '{"a": 1}'))
        self.assertIs(request.trace(), trace)
        request.set_flags(2)
        self.assertEqual(request.flags(), pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END)

    def test_has_tritons_defaults(self):
        request = bls(requested_output_names={"OUT", "OTHER"})
        self.assertEqual(
            (request.request_id(), request.correlation_id(), request.model_version(), request.flags()), ("", 0, -1, 0)
        )
        self.assertEqual((request.timeout(), request.parameters()), (0, "{}"))
        self.assertEqual(request.requested_output_names(), {"OUT", "OTHER"})
        self.assertIsNone(request.trace().get_context())

    def test_takes_numbers_of_numpy(self):
        request = bls(correlation_id=np.uint64(7), timeout=np.int64(5), model_version=np.int32(2))
        self.assertEqual((request.correlation_id(), request.timeout(), request.model_version()), (7, 5, 2))
        self.assertIs(type(request.correlation_id()), int)

    def test_takes_texts_in_bytes(self):
        request = bls(request_id=b"id", model_name=b"m", requested_output_names=[b"OUT"])
        self.assertEqual((request.request_id(), request.model_name()), ("id", "m"))
        self.assertEqual(request.requested_output_names(), {"OUT"})

    def test_refuses_what_says_not_whether_it_is_decoupled(self):
        for value in (None, "yes", [], {}):
            for call in (bls().exec, bls().async_exec):
                with self.subTest(value=value), self.assertRaisesRegex(TypeError, "'decoupled' must be bool, got"):
                    call(value)

    def test_takes_only_members_for_kinds_and_codes(self):
        for make in (
            lambda: pb_utils.TritonError("t", 3),
            lambda: pb_utils.TritonError("t", 99),
            lambda: pb_utils.PreferredMemory(1),
            lambda: pb_utils.Logger.log("m", 2),
            lambda: pb_utils.Logger.log("m", "INFO"),
            lambda: pb_utils.Logger.log("m", None),
        ):
            self.assertRaises(TypeError, make)

    def test_refuses_what_cannot_be_sent(self):
        failures = [
            ({"inputs": [None]}, pb_utils.TritonModelException, "id '' and model name 'm' should not be empty"),
            ({"requested_output_names": [""]}, pb_utils.TritonModelException, "Requested output name for request"),
            ({"correlation_id": 1.5}, pb_utils.TritonModelException, "Correlation ID must be integer or string"),
            ({"requested_output_names": "OUT"}, TypeError, "must be a list of str"),
            ({"correlation_id": -1}, RuntimeError, "'correlation_id' must be from 0 to 18446744073709551615, got -1"),
            ({"correlation_id": 2**64}, RuntimeError, "'correlation_id' must be from 0"),
            ({"correlation_id": None}, TypeError, "'correlation_id' must be int or str, got None"),
            ({"flags": -1}, TypeError, "'flags' must be from 0 to 4294967295, got -1"),
            ({"flags": 2**32}, TypeError, "'flags' must be from 0"),
            ({"timeout": -5}, TypeError, "'timeout' must be from 0 to 18446744073709551615, got -5"),
            ({"trace": None}, TypeError, "'trace' must be InferenceTrace, got NoneType"),
            ({"preferred_memory": None}, TypeError, "'preferred_memory' must be PreferredMemory, got NoneType"),
            ({"model_version": 2**63}, TypeError, "'model_version' must be from -9223372036854775808"),
            ({"timeout": 1.5}, TypeError, "'timeout' must be int, got float"),
            ({"model_version": "1"}, TypeError, "'model_version' must be int, got str"),
            ({"model_name": None}, TypeError, "'model_name' must be str, got NoneType"),
            ({"inputs": ["x"]}, TypeError, "'inputs' must be Tensor, got str"),
        ]
        for fields, kind, text in failures:
            with self.subTest(text=text), self.assertRaisesRegex(kind, text):
                bls(**fields)
        with self.assertRaisesRegex(TypeError, "missing inputs, requested_output_names"):
            pb_utils.InferenceRequest(model_name="m")

    def test_gets_one_response(self):
        response = pb_utils.InferenceResponse([tensor("OUT")])
        self.host.calls = [FakeCall([response]), FakeCall([])]
        request = bls()
        self.assertIs(request.exec(), response)
        self.assertEqual(self.host.inferred, [(request, False)])
        self.assertEqual(self.host.calls[0].events, ["close"])
        with self.assertRaisesRegex(pb_utils.TritonModelException, "ended without a response"):
            request.exec()
        self.assertEqual(self.host.calls[1].events, ["close"])

    def test_gets_many_responses_of_a_decoupled_model(self):
        responses = [pb_utils.InferenceResponse() for _ in range(3)]
        self.host.calls = [FakeCall(responses)]
        iterator = bls().exec(decoupled=True)
        self.assertEqual(list(iterator), responses)
        self.assertEqual(list(iterator), [])
        self.assertEqual(self.host.calls[0].events, ["close"])
        self.assertEqual(self.host.inferred[0][1], True)
        iterator.cancel()
        self.assertEqual(self.host.calls[0].events, ["close"], "there is nothing left to cancel")

    def test_can_be_cancelled_and_dropped(self):
        self.host.calls = [FakeCall([pb_utils.InferenceResponse()] * 2)]
        iterator = bls().exec(decoupled=True)
        next(iterator)
        iterator.cancel()
        self.assertEqual(self.host.calls[0].events, ["cancel"])
        del iterator
        self.assertEqual(self.host.calls[0].events, ["cancel", "close"])

    def test_is_sent_at_once_and_awaited_later(self):
        one, other = pb_utils.InferenceResponse(), pb_utils.InferenceResponse()
        self.host.calls = [FakeCall([one]), FakeCall([other]), FakeCall([one, other])]

        async def execute():
            pending = [bls().async_exec(), bls().async_exec()]
            self.assertEqual(len(self.host.inferred), 2)
            both = await asyncio.gather(*pending)
            stream = await bls().async_exec(decoupled=True)
            return both, [response async for response in stream]

        both, many = asyncio.run(execute())
        self.assertEqual((both, many), ([one, other], [one, other]))
        self.assertEqual([call.events for call in self.host.calls], [["close"]] * 3)
        with self.assertRaises(RuntimeError):
            bls().async_exec()

    def test_can_be_copied_and_pickled(self):
        request = bls(request_id="id", correlation_id="c", parameters={"a": 1}, timeout=5)
        for twin in (copy.copy(request), copy.deepcopy(request), pickle.loads(pickle.dumps(request))):
            for getter in ("request_id", "correlation_id", "parameters", "timeout", "model_name", "model_version"):
                self.assertEqual(getattr(twin, getter)(), getattr(request, getter)())
            self.assertEqual(twin.requested_output_names(), {"OUT"})
            self.assertEqual(repr(twin.inputs()), repr(request.inputs()))


class TestConstants(unittest.TestCase):
    def test_are_tritons(self):
        self.assertEqual(pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, 1)
        self.assertEqual(pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END, 2)
        self.assertEqual(pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL, 1)
        self.assertEqual(pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL, 1)
        self.assertEqual(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, 2)
        self.assertEqual((pb_utils.TRITONSERVER_MEMORY_GPU, pb_utils.TRITONSERVER_MEMORY_CPU), (0, 1))
        error = pb_utils.TritonError
        codes = (
            error.UNKNOWN,
            error.INTERNAL,
            error.NOT_FOUND,
            error.INVALID_ARG,
            error.UNAVAILABLE,
            error.UNSUPPORTED,
            error.ALREADY_EXISTS,
            error.CANCELLED,
        )
        self.assertEqual(codes, tuple(range(8)))
        log = pb_utils.Logger
        self.assertEqual((log.INFO, log.WARNING, log.ERROR, log.VERBOSE), tuple(range(4)))
        self.assertIs(log.LogLevel.INFO, log.INFO)
        self.assertEqual(pb_utils.TRITON_STRING_TO_NUMPY["TYPE_FP32"], pb_utils.triton_to_numpy_type(11))


if __name__ == "__main__":
    unittest.main()
