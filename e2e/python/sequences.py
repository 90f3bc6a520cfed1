"""Sequences as NVIDIA's own clients, unmodified, send them: over gRPC, over a gRPC stream and over HTTP."""

import os
import queue
import signal
import threading
import time

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from checks import check, read_flags, refusal, run

NOT_STARTED = (
    "inference request for sequence {} to model '{}' must specify the START flag on the first request of the sequence"
)


def tensor(module, value):
    given = module.InferInput("INPUT", [1, 1], "INT32")
    given.set_data_from_numpy(np.array([[value]], dtype=np.int32))
    return [given]


class Client:
    """One protocol, behind a call that sends the next request of a sequence."""

    def __init__(self, module, url):
        self.module = module
        self.client = module.InferenceServerClient(url)

    def send(self, model, sequence, value, start=False, end=False, output="SUM", **options):
        flags = {"sequence_id": sequence, "sequence_start": start, "sequence_end": end}
        got = self.client.infer(model, tensor(self.module, value), **flags, **options)
        return int(got.as_numpy(output).reshape(-1)[0])

    def refusal(self, *arguments, **options):
        return refusal(self.send, *arguments, **options)


def clients_of(flags):
    return {"grpc": Client(grpc_client, flags.grpc), "http": Client(http_client, flags.http)}, flags


def pids(flags):
    """-> the processes of the steps, if the models are served by several replicas"""
    return [int(pid) for pid in flags.pids.split(",")] if flags.pids else []


IDS = iter(range(1000, 100000))


def sums(client, model, sequence, values, start_at=0):
    """-> what the model answers to a whole sequence"""
    last = len(values) - 1
    return [
        client.send(model, sequence, value, start=i == 0, end=i == last) for i, value in enumerate(values)
    ]


@check
def whole_sequences(clients, flags):
    """a sequence is summed up, over gRPC and HTTP, by models that keep the sum and by one whose state is kept for it"""
    for client in clients.values():
        assert sums(client, "seq_sum", next(IDS), [1, 2, 3]) == [1, 3, 6]
        assert sums(client, "seq_oldest", next(IDS), [1, 2, 3]) == [1, 3, 6]
        assert sums(client, "seq_state", next(IDS), [1, 2, 3]) == [1, 3, 6]
        assert sums(client, "seq_onnx", next(IDS), [1, 2, 3]) == [101, 103, 106]


@check
def begun_anew(clients, flags):
    """START begins a sequence anew, although it has had no END"""
    for client in clients.values():
        for model, first in (("seq_sum", 0), ("seq_oldest", 0), ("seq_state", 0), ("seq_onnx", 100)):
            sequence = next(IDS)
            assert client.send(model, sequence, 5, start=True) == first + 5
            assert client.send(model, sequence, 7, start=True) == first + 7
            assert client.send(model, sequence, 1, end=True) == first + 8


@check
def texts(clients, flags):
    """requests that belong to no sequence are refused in Triton's words"""
    for client in clients.values():
        for model in ("seq_sum", "seq_oldest", "seq_onnx"):
            error = client.refusal(model, 4711, 1)
            assert error.message() == NOT_STARTED.format(4711, model), error
            error = client.refusal(model, 4711, 1, end=True)
            assert error.message() == NOT_STARTED.format(4711, model), error
            error = client.refusal(model, 0, 1)
            want = f"inference request to model '{model}' must specify a non-zero or non-empty correlation ID"
            assert error.message() == want, error
    error = clients["grpc"].refusal("seq_sum", 4711, 1)
    assert error.status() == "StatusCode.INVALID_ARGUMENT", error.status()


@check
def after_its_end(clients, flags):
    """after END the sequence is not known any more"""
    for client in clients.values():
        sequence = next(IDS)
        client.send("seq_sum", sequence, 1, start=True)
        client.send("seq_sum", sequence, 1, end=True)
        assert client.refusal("seq_sum", sequence, 1).message() == NOT_STARTED.format(sequence, "seq_sum")


@check
def texts_as_ids(clients, flags):
    """a correlation id may be text of up to 128 characters, where the model takes one"""
    for client in clients.values():
        assert sums(client, "seq_oldest", "call-" + "7" * 123, [4, 5]) == [4, 9]
        error = client.refusal("seq_sum", "text", 1, start=True)
        assert "sequence batching control 'CORRID' data-type is 'BYTES'" in error.message(), error
    assert "129 characters" in clients["grpc"].refusal("seq_oldest", "x" * 129, 1, start=True).message()


@check
def many_at_once(clients, flags):
    """more sequences than there are slots are worked on at the same time, and each gets its own sums"""

    def one(url, model, sequence, failures):
        client = Client(grpc_client, url)
        values = [(sequence + i) % 17 for i in range(12)]
        try:
            got = sums(client, model, sequence, values)
            first = 100 if model == "seq_onnx" else 0
            assert got == [first + int(s) for s in np.cumsum(values)], (model, sequence, got)
        except Exception as error:
            failures.append(error)

    failures = []
    threads = [
        threading.Thread(target=one, args=(flags.grpc, model, next(IDS), failures))
        for model in ("seq_sum", "seq_oldest", "seq_onnx")
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


@check
def idle(clients, flags):
    """a sequence that is idle for too long is over"""
    client = clients["grpc"]
    sequence = next(IDS)
    client.send("seq_sum", sequence, 1, start=True)
    time.sleep(1.2)
    assert client.send("seq_sum", sequence, 1) == 2
    time.sleep(2.5)
    assert client.refusal("seq_sum", sequence, 1).message() == NOT_STARTED.format(sequence, "seq_sum")


@check
def errors_of_the_model(clients, flags):
    """an exception of the model fails its request, and the sequence goes on"""
    client = clients["grpc"]
    sequence = next(IDS)
    assert client.send("seq_sum", sequence, 3, start=True) == 3
    assert "no sum of this" in client.refusal("seq_sum", sequence, -2).message()
    assert client.send("seq_sum", sequence, 4, end=True) == 7


@check
def lost_state(clients, flags):
    """a model whose process ends loses its sequences: their clients are asked to start again"""
    client = clients["grpc"]
    lost, other = next(IDS), next(IDS)
    client.send("seq_sum", other, 3, start=True)
    client.send("seq_sum", lost, 3, start=True)
    assert "Stub process" in client.refusal("seq_sum", lost, -1).message()
    for sequence in (lost,) if pids(flags) else (lost, other):
        assert client.refusal("seq_sum", sequence, 1).message() == NOT_STARTED.format(sequence, "seq_sum")
    deadline = time.monotonic() + 10
    while True:
        try:
            assert client.send("seq_sum", lost, 9, start=True) == 9
            break
        except InferenceServerException:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    client.send("seq_sum", lost, 0, end=True)


@check
def streams(clients, flags):
    """a stream's requests are answered in their order, many sequences side by side and without waiting between them"""
    answers = queue.Queue()
    client = grpc_client.InferenceServerClient(flags.grpc)
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    sequences = [next(IDS) for _ in range(6)]
    for model, output in (("seq_sum", "SUM"), ("seq_oldest", "SUM"), ("seq_onnx", "SUM"), ("ens_seq", "SUM_OF_SUMS")):
        for i in range(5):
            for sequence in sequences:
                client.async_stream_infer(
                    model,
                    tensor(grpc_client, i + 1),
                    request_id=f"{sequence}.{i}",
                    sequence_id=sequence,
                    sequence_start=i == 0,
                    sequence_end=i == 4,
                )
        want = list(np.cumsum([1, 2, 3, 4, 5]) + (100 if model in ("seq_onnx", "ens_seq") else 0))
        if model == "ens_seq":
            want = list(np.cumsum(want))
        got = {sequence: [] for sequence in sequences}
        for _ in range(5 * len(sequences)):
            result, error = answers.get(timeout=30)
            assert error is None, error
            sequence, place = result.get_response().id.split(".")
            assert len(got[int(sequence)]) == int(place), "out of order"
            got[int(sequence)].append(int(result.as_numpy(output).reshape(-1)[0]))
        assert all(g == want for g in got.values()), (model, got, want)
    client.stop_stream()


@check
def stream_errors(clients, flags):
    """on a stream too a request that belongs to no sequence is refused, and the stream goes on"""
    answers = queue.Queue()
    client = grpc_client.InferenceServerClient(flags.grpc)
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    sequence = next(IDS)
    client.async_stream_infer("seq_sum", tensor(grpc_client, 1), sequence_id=sequence)
    _, error = answers.get(timeout=30)
    assert error.message() == NOT_STARTED.format(sequence, "seq_sum"), error
    client.async_stream_infer(
        "seq_sum", tensor(grpc_client, 1), sequence_id=sequence, sequence_start=True, sequence_end=True
    )
    result, error = answers.get(timeout=30)
    assert error is None and result.as_numpy("SUM").reshape(-1)[0] == 1
    client.stop_stream()


@check
def ensembles(clients, flags):
    """the steps of an ensemble get the sequence of its requests, and its answers say which it was"""
    for client in clients.values():
        sequence = next(IDS)
        got = [
            client.send("ens_seq", sequence, value, start=value == 1, end=value == 3, output="SUM_OF_SUMS")
            for value in (1, 2, 3)
        ]
        assert got == [101, 204, 310], got
        error = client.refusal("ens_seq", sequence, 1, output="SUM_OF_SUMS")
        assert error.message() == "in ensemble 'ens_seq', " + NOT_STARTED.format(sequence, "seq_onnx"), error
    answer = grpc_client.InferenceServerClient(flags.grpc).infer(
        "ens_seq", tensor(grpc_client, 1), sequence_id=99, sequence_start=True, sequence_end=True
    )
    parameters = answer.get_response().parameters
    assert parameters["sequence_id"].int64_param == 99
    assert parameters["sequence_start"].bool_param and parameters["sequence_end"].bool_param


@check
def calls(clients, flags):
    """a Python model calls another in a sequence, and may do so without being in one itself"""
    for client in clients.values():
        sequence = next(IDS)
        assert sums(client, "seq_call", sequence, [1, 2, 3]) == [1, 3, 6]
        message = client.refusal("seq_call", sequence, 1).message()
        assert NOT_STARTED.format(sequence, "seq_oldest") in message, message


@check
def places(clients, flags):
    """a sequence of the direct strategy keeps its place in the batch, with an idle one before it"""
    client = clients["grpc"]
    if pids(flags):
        return
    first, second = next(IDS), next(IDS)
    assert client.send("seq_sum", first, 1, start=True, output="PLACE") == 0
    assert client.send("seq_sum", second, 1, start=True, output="PLACE") == 1
    assert client.send("seq_sum", second, 1, output="PLACE") == 1
    client.send("seq_sum", first, 1, end=True)
    assert client.send("seq_sum", second, 5, output="PLACE") == 1
    assert client.send("seq_sum", second, 1, end=True) == 8


def iterate(client, answers, value, identifier, **sequence):
    """Sends a request to the model with iterative sequences. -> what `rounds` reads from"""
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    client.async_stream_infer(
        "seq_iter",
        tensor(grpc_client, value),
        request_id=identifier,
        enable_empty_final_response=True,
        **sequence,
    )


def rounds(answers, at_most=1000):
    """-> (SUM, START) of each response, up to the final one or the error"""
    got = []
    while len(got) < at_most:
        result, error = answers.get(timeout=30)
        if error is not None:
            return got, error.message()
        got.append((int(result.as_numpy("SUM").item()), int(result.as_numpy("START").item())))
        if result.get_response().parameters["triton_final_response"].bool_param:
            break
    return got, None


@check
def iterative(clients, flags):
    """a request of an iterative sequence executes as often as its model wants, beside others, and needs no correlation id"""
    streams = [(grpc_client.InferenceServerClient(flags.grpc), queue.Queue()) for _ in range(6)]
    for i, (client, answers) in enumerate(streams):
        iterate(client, answers, 5 + i, f"r{i}")
    for i, (client, answers) in enumerate(streams):
        assert rounds(answers) == ([(n, 1 if n == 1 else 0) for n in range(1, 6 + i)], None), i
        client.stop_stream()
    for client in clients.values():
        assert client.send("seq_again", 0, 4) == 4
        assert client.send("seq_again", 0, 1) == 1
    sequence = next(IDS)
    assert clients["http"].send("seq_again", sequence, 3, start=True) == 3
    assert clients["http"].send("seq_again", sequence, 2, start=True, end=True) == 2
    for client in clients.values():
        message = client.refusal("seq_again", sequence, 2).message()
        assert message == NOT_STARTED.format(sequence, "seq_again"), message


@check
def iterative_ends(clients, flags):
    """an iterative sequence ends with an exception of its model, and with a caller that leaves"""
    client, answers = grpc_client.InferenceServerClient(flags.grpc), queue.Queue()
    iterate(client, answers, 1003, "fails")
    got, message = rounds(answers)
    assert got == [(1, 1), (2, 0)] and "no further" in message, (got, message)
    client.stop_stream()
    # More than there are slots: each gives its slot back.
    for i in range(20):
        client, answers = grpc_client.InferenceServerClient(flags.grpc), queue.Queue()
        iterate(client, answers, -1, f"left{i}", sequence_id=next(IDS), sequence_start=True)
        assert len(rounds(answers, at_most=3)[0]) == 3
        client.stop_stream(cancel_requests=True)
    client, answers = grpc_client.InferenceServerClient(flags.grpc), queue.Queue()
    iterate(client, answers, 2, "after")
    assert rounds(answers) == ([(1, 1), (2, 0)], None)
    client.stop_stream()


def has_failed(answers):
    """-> whether an error is among what has come"""
    errors = []
    while not answers.empty():
        errors.append(answers.get()[1])
    return any(error is not None for error in errors)


@check
def lost_replica(clients, flags):
    """sequences of a replica that is gone are asked to start again, and the others go on"""
    if not pids(flags):
        return
    client = clients["grpc"]
    sequences = [next(IDS) for _ in range(12)]
    for sequence in sequences:
        assert client.send("seq_onnx", sequence, 1, start=True) == 101
    endless = [(grpc_client.InferenceServerClient(flags.grpc), queue.Queue()) for _ in range(6)]
    for i, (stream, answers) in enumerate(endless):
        iterate(stream, answers, -1, f"endless{i}")
        assert len(rounds(answers, at_most=3)[0]) == 3
    os.kill(pids(flags)[0], signal.SIGKILL)
    asked, gone_on = [], []
    for sequence in sequences:
        deadline = time.monotonic() + 20
        while True:
            try:
                assert client.send("seq_onnx", sequence, 1) == 102
                gone_on.append(sequence)
                break
            except InferenceServerException as error:
                if error.message() == NOT_STARTED.format(sequence, "seq_onnx"):
                    asked.append(sequence)
                    break
                assert error.status() == "StatusCode.UNAVAILABLE" and time.monotonic() < deadline, error
    assert asked and gone_on, (asked, gone_on)
    # An iterative request does not execute a second time elsewhere: it fails, and those of the other replica go on.
    deadline, failed = time.monotonic() + 20, set()
    while not failed:
        assert time.monotonic() < deadline
        failed = {i for i, (_, answers) in enumerate(endless) if has_failed(answers)}
        time.sleep(0.1)
    others = [answers for i, (_, answers) in enumerate(endless) if i not in failed]
    assert any(rounds(answers, at_most=5)[1] is None for answers in others), failed
    for stream, _ in endless:
        stream.stop_stream(cancel_requests=True)
    for sequence in asked:
        assert sums(client, "seq_onnx", sequence, [1, 2]) == [101, 103]


if __name__ == "__main__":
    run(*clients_of(read_flags("grpc", "http", optional=("pids",))))
