"""What streaming clients see of decoupled Python models, alone (`py_repeat`) and as a step of an ensemble (`ens_repeat`)."""

import json
import queue
import re
import urllib.error
import urllib.request

import numpy as np
import tritonclient.grpc as grpc_client
from tritonclient.grpc import service_pb2, service_pb2_grpc

import grpc
from checks import check, read_flags, run
from waiting import LIMIT_SECONDS, Metrics, until

# model -> what it makes of an element
MODELS = {"py_repeat": 1, "ens_repeat": -1}
MIB = 1024 * 1024


def ask(model, values, id="", size=None, empty_final=False):
    request = service_pb2.ModelInferRequest(model_name=model, id=id)
    request.parameters["triton_enable_empty_final_response"].bool_param = empty_final
    for name, array in {"IN": values, "SIZE": None if size is None else [size]}.items():
        if array is not None:
            request.inputs.add(name=name, datatype="INT32", shape=[len(array)])
            request.raw_input_contents.append(np.array(array, np.int32).tobytes())
    return request


def value(response):
    """-> the element, or None of a response without outputs"""
    contents = response.raw_output_contents
    return int(np.frombuffer(contents[0], np.int32)[0]) if contents else None


def is_final(response):
    return response.parameters["triton_final_response"].bool_param


def total(env, model, values, limit):
    """What `py_sum` makes of the first responses of a model."""
    request = service_pb2.ModelInferRequest(model_name="py_sum")
    for name, array in {"IN": values, "LIMIT": [limit]}.items():
        request.inputs.add(name=name, datatype="INT32", shape=[len(array)])
        request.raw_input_contents.append(np.array(array, np.int32).tobytes())
    request.inputs.add(name="MODEL", datatype="BYTES", shape=[1])
    request.raw_input_contents.append(len(model).to_bytes(4, "little") + model.encode())
    answer = env.stub.ModelInfer(request, timeout=LIMIT_SECONDS)
    return int(np.frombuffer(answer.raw_output_contents[0], np.int32)[0])


class Env:
    def __init__(self, flags):
        self.flags = flags
        self.metrics = Metrics(flags.metrics)
        self.channel = grpc.insecure_channel(flags.grpc, [("grpc.max_receive_message_length", 64 * MIB)])
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(self.channel)

    def stream(self, *requests, **options):
        """Sends them all, half-closes and reads to the end. -> [(id, element or error, final)] and the status."""
        call = self.stub.ModelStreamInfer(iter(requests), timeout=LIMIT_SECONDS, **options)
        got = []
        try:
            for message in call:
                answer = message.infer_response
                got.append((answer.id, message.error_message or value(answer), is_final(answer)))
        except grpc.RpcError as error:
            assert error is call
        return got, call

    def memory(self):
        """Resident MiB of the serving processes, those of models not among them."""
        total = 0
        for pid in self.flags.pids.split(","):
            with open(f"/proc/{pid}/status") as status:
                total += int(re.search(r"^VmRSS:\s+(\d+) kB$", status.read(), re.MULTILINE)[1]) / 1024
        return total


def of_id(got, id):
    return [(what, final) for name, what, final in got if name == id]


@check
def order_and_finals(env):
    """responses come in order, requests overlap, each ends once, and half-close waits for them all"""
    for model, sign in MODELS.items():
        requests = [ask(model, range(1, n + 1), str(n), empty_final=True) for n in (3, 0, 200)]
        got, call = env.stream(*requests)
        assert call.code() == grpc.StatusCode.OK, call
        for n in (3, 0, 200):
            answers = of_id(got, str(n))
            assert [what for what, _ in answers if what is not None] == [sign * i for i in range(1, n + 1)], answers
            assert [final for _, final in answers] == [False] * (len(answers) - 1) + [True], answers
        assert of_id(got, "0") == [(None, True)], got


@check
def swallowed_finals(env):
    """an empty final response comes only to who asks for it"""
    for model, sign in MODELS.items():
        got, call = env.stream(ask(model, [5, 6], "some"), ask(model, [], "none"))
        assert call.code() == grpc.StatusCode.OK, call
        assert [what for what, _ in of_id(got, "some")] == [sign * 5, sign * 6], got
        assert of_id(got, "none") == [], got


@check
def errors_in_band(env):
    """an error of a model comes after its responses, with the final flag, and the stream goes on"""
    for model, sign in MODELS.items():
        values = [*range(1, 11), -7, 8]
        got, call = env.stream(ask(model, values, "bad"), ask(model, [1], "good"), ask("missing", [1], "lost"))
        assert call.code() == grpc.StatusCode.OK, call
        [*before, (text, final)] = of_id(got, "bad")
        assert before == [(sign * i, False) for i in range(1, 11)], got
        assert text == ("" if sign > 0 else "in ensemble 'ens_repeat', ") + "-7 is negative" and final, got
        assert [what for what, _ in of_id(got, "good")] == [sign], got
        assert of_id(got, "lost") == [("Request for unknown model: 'missing' is not found", False)], got


@check
def errors_of_a_later_step(env):
    """an error of a step behind the decoupled one comes after the responses before it, with the traceback, and ends its request alone"""
    got, call = env.stream(ask("ens_repeat", [1, 2, 3, 1313, 4], "bad"), ask("ens_repeat", [2], "good"))
    assert call.code() == grpc.StatusCode.OK, call
    [*before, (text, final)] = of_id(got, "bad")
    assert before == [(-1, False), (-2, False), (-3, False)], got
    assert final and text.startswith(
        "in ensemble 'ens_repeat', Failed to process the request(s) for model 'py_negate_0', "
        "message: ValueError: 1313 is too much\n\nAt:\n"
    ), text
    assert [what for what, _ in of_id(got, "good")] == [-2], got


@check
def errors_as_status(env):
    """with triton_grpc_error the first error of a model ends the stream with its status"""
    for model in MODELS:
        got, call = env.stream(ask(model, [4, -7, 8]), metadata=[("triton_grpc_error", "true")])
        assert call.code() == grpc.StatusCode.INVALID_ARGUMENT, call
        assert call.details().endswith("-7 is negative"), call.details()
        assert {what for _, what, _ in got} <= {4, -4}, got
        assert env.stream(ask(model, [1]))[1].code() == grpc.StatusCode.OK


@check
def cancelled(env):
    """a client that cancels its stream, or whose time is over, ends what the models do for it"""
    for model in MODELS:
        left = env.metrics.sum("py_repeat_left")
        # Without 1313, which ends a request.
        requests = [ask(model, range(2_000, 100_000), id, size=64) for id in ("a", "b")]
        call = env.stub.ModelStreamInfer(iter(requests))
        begun = set()
        while len(begun) < 2:
            begun.add(next(call).infer_response.id)
        call.cancel()
        assert call.code() == grpc.StatusCode.CANCELLED, call
        until("both requests were given up", lambda: env.metrics.sum("py_repeat_left") >= left + 2)
        call = env.stub.ModelStreamInfer(iter(requests[:1]), timeout=0.5)
        try:
            list(call)
            raise AssertionError("it should have run out of time")
        except grpc.RpcError:
            assert call.code() == grpc.StatusCode.DEADLINE_EXCEEDED, call
        got, _ = env.stream(ask(model, [1]))
        assert len(got) == 1, got


@check
def crashed(env):
    """a process that ends in the middle of a stream is an error with what it had sent before, and is replaced"""
    for model, sign in MODELS.items():
        got, call = env.stream(ask(model, [3, -1313, 4], "bad"))
        assert call.code() == grpc.StatusCode.OK, call
        text, final = of_id(got, "bad")[-1]
        assert "Stub process 'py_repeat_0' is not healthy: it exited with status 3" in str(text) and final, got
        got, _ = env.stream(ask(model, [1]))
        assert [what for _, what, _ in got] == [sign], got


@check
def read_by_a_model(env):
    """a model reads a decoupled one response by response, also an ensemble, and cancels what it does not want"""
    for model, sign in MODELS.items():
        assert total(env, model, range(1, 101), 1000) == sign * 5050
        left = env.metrics.sum("py_repeat_left")
        assert total(env, model, range(1, 100_000), 3) == sign * 6
        until("the rest is given up", lambda: env.metrics.sum("py_repeat_left") >= left + 1)
        try:
            total(env, model, [1, -7], 1000)
            raise AssertionError("it should have failed")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
            assert error.details().endswith("-7 is negative"), error


@check
def slow_reader(env):
    """while a client does not read the model waits and no memory grows; then it gets everything in order"""
    count = 300
    for model, sign in MODELS.items():
        # Memory that is used the first time is not memory that grows.
        env.stream(ask(model, range(1, 41), size=MIB // 4))
        before, sent = env.memory(), env.metrics.sum("py_repeat_sent")
        call = env.stub.ModelStreamInfer(iter([ask(model, range(1, count + 1), size=MIB // 4)]))
        assert value(next(call).infer_response) == sign
        seen = []
        # It may only seem to wait; then this sees less than it could, and is none the worse.
        until(
            "the model waits",
            lambda: seen.append(env.metrics.sum("py_repeat_sent") - sent) or len(seen) > 25 and seen[-25] == seen[-1],
        )
        assert seen[-1] < 100, f"it has sent {seen[-1]} of {count} responses of 1 MiB"
        grown = env.memory() - before
        assert grown < 256, f"{grown} MiB of {count}"
        values = [value(message.infer_response) for message in call]
        assert [v for v in values if v is not None] == [sign * i for i in range(2, count + 1)], values
        assert call.code() == grpc.StatusCode.OK
        assert env.metrics.sum("py_repeat_sent") - sent == count


@check
def nvidias_stream(env):
    """NVIDIA's client streams, marks the ends and half-closes"""
    client = grpc_client.InferenceServerClient(env.flags.grpc)
    for model, sign in MODELS.items():
        got = queue.Queue()
        client.start_stream(lambda result, error: got.put((result, error)))
        for n in (3, 40):
            values = grpc_client.InferInput("IN", [n], "INT32")
            values.set_data_from_numpy(np.arange(1, n + 1, dtype=np.int32))
            client.async_stream_infer(model, [values], request_id=str(n), enable_empty_final_response=True)
        client.stop_stream()
        answers = list(got.queue)
        assert all(error is None for _, error in answers), answers
        values = [int(r.as_numpy("OUT")[0]) for r, _ in answers if r.as_numpy("OUT") is not None]
        assert sorted(values) == sorted(sign * i for n in (3, 40) for i in range(1, n + 1)), values
        assert sum(is_final(r.get_response()) for r, _ in answers) == 2


@check
def not_by_unary_calls(env):
    """a decoupled model is refused by the calls that give one response, in Triton's words"""
    body = {"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [1]}]}
    for model in MODELS:
        try:
            env.stub.ModelInfer(ask(model, [1]))
            raise AssertionError("it should have been refused")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error
            assert error.details() == "ModelInfer RPC doesn't support models with decoupled transaction policy"
        try:
            urllib.request.urlopen(f"http://{env.flags.http}/v2/models/{model}/infer", json.dumps(body).encode())
            raise AssertionError("it should have been refused")
        except urllib.error.HTTPError as error:
            assert error.code == 501, error
            wanted = "HTTP end point doesn't support models with decoupled transaction policy"
            assert wanted in json.loads(error.read())["error"]


if __name__ == "__main__":
    # The metrics are those of the process that has py_repeat; the ids are those of all that serve, between commas.
    run(Env(read_flags("grpc", "http", "metrics", "pids")))
