"""What NVIDIA's own clients, unmodified, see of Python models: the same over gRPC and HTTP."""

import argparse
import queue
import urllib.request

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from behaviour import Client, both
from checks import CHECKS, check, run

CHECKS.clear()
A = np.arange(16, dtype=np.int32).reshape(1, 16)
B = np.full((1, 16), 3, np.int32)


def text(value):
    return np.array([value.encode()], dtype=object)


def order(client, what):
    return client.infer("py_faults", {"ORDER": text(what)}).as_numpy("DONE")[0]


@check
def add_and_subtract(clients):
    """a Python model adds and subtracts, also batches and part of its outputs"""
    for c in both(clients):
        got = c.infer("py_add_sub", {"INPUT0": A, "INPUT1": B})
        assert np.array_equal(got.as_numpy("OUTPUT0"), A + B)
        assert np.array_equal(got.as_numpy("OUTPUT1"), A - B)
        rows = np.repeat(A, 5, axis=0)
        got = c.infer("py_add_sub", {"INPUT0": rows, "INPUT1": rows}, outputs=["OUTPUT1"])
        assert np.array_equal(got.as_numpy("OUTPUT1"), rows * 0)
        assert got.as_numpy("OUTPUT0") is None


@check
def completed(clients):
    """a model without config.pbtxt says itself what it takes"""
    config = clients["http"].client.get_model_config("py_complete")
    assert config["max_batch_size"] == 4 and config["input"][0]["data_type"] == "TYPE_STRING", config
    words = np.array([["straße".encode(), b"", b"\x00\xff"]], dtype=object)
    for c in both(clients):
        got = c.infer("py_complete", {"TEXT": words}).as_numpy("UPPER")
        assert got.tolist() == [[w.upper() for w in words[0]]], got


@check
def calls(clients):
    """a Python model calls others: a Python model, and one that is not there"""
    for c in both(clients):
        inputs = {"INPUT0": A, "INPUT1": B}
        got = c.infer("py_call", {**inputs, "MODEL": text("py_add_sub")})
        assert np.array_equal(got.as_numpy("OUTPUT0"), A + B)
        error = c.error("py_call", {**inputs, "MODEL": text("nobody")})
        assert "Failed for execute the inference request. Model 'nobody' is not ready." in error.message(), error


@check
def faults(clients):
    """every misbehaviour is a clear error, and the next request is served"""
    failed = "Failed to process the request(s) for model 'py_faults_0', message: "
    unhealthy = "Stub process 'py_faults_0' is not healthy: it "
    texts = {
        "raise": failed + "ValueError: as ordered\n\nAt:\n",
        "wrong": failed + "Expected an 'InferenceResponse' object in the execute function return list, "
        "found type '<class 'int'>'.",
        "exit": unhealthy + "exited with status 3",
        "kill": unhealthy + "was killed (SIGKILL), as when memory runs out",
        "crash": unhealthy + "was ended by SIGSEGV\n\nFatal Python error: Segmentation fault",
    }
    for c in both(clients):
        for what, wanted in texts.items():
            error = c.error("py_faults", {"ORDER": text(what)})
            assert error.message().startswith(wanted), (what, error.message())
            assert order(c, "go on") == b"go on"


@check
def endless(clients):
    """an endless loop is given up when its caller leaves, and its process replaced"""
    c = clients["grpc"]
    try:
        c.infer("py_faults", {"ORDER": text("spin")}, client_timeout=0.5)
        raise AssertionError("it should have timed out")
    except InferenceServerException as error:
        assert "Deadline" in error.message(), error
    assert order(c, "go on") == b"go on"


@check
def stream(clients):
    """a decoupled model streams, requests overlap, and the end is marked"""
    client = clients["grpc"].client
    got = queue.Queue()
    client.start_stream(lambda result, error: got.put((result, error)))
    try:
        for n in (3, 0, 200):
            values = grpc_client.InferInput("IN", [n], "INT32")
            values.set_data_from_numpy(np.arange(n, dtype=np.int32))
            client.async_stream_infer("py_repeat", [values], request_id=str(n), enable_empty_final_response=True)
        seen, finals = {}, set()
        while len(finals) < 3:
            result, error = got.get(timeout=60)
            assert error is None, error
            response = result.get_response()
            if result.as_numpy("OUT") is not None:
                seen.setdefault(response.id, []).append(int(result.as_numpy("OUT")[0]))
            if response.parameters["triton_final_response"].bool_param:
                finals.add(response.id)
        assert seen == {"3": [0, 1, 2], "200": list(range(200))}, seen
    finally:
        client.stop_stream()


@check
def absent(clients):
    """a model that fails to load says why in the index"""
    index = {entry["name"]: entry for entry in clients["http"].client.get_model_repository_index()}
    reason = index["py_absent"]["reason"]
    assert "ModuleNotFoundError: No module named 'a_module_that_is_not_there'" in reason, reason


@check
def counted(clients):
    """requests are counted, and metrics of models stand beside the server's"""
    stats = clients["http"].client.get_inference_statistics("py_add_sub")["model_stats"][0]
    # Four by the clients, two by the model that calls it.
    assert stats["inference_stats"]["success"]["count"] == 6, stats
    lines = urllib.request.urlopen(clients["metrics"]).read().decode().splitlines()
    assert 'py_served_requests{model="py_add_sub"} 6' in lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for door in ("grpc", "http", "metrics"):
        parser.add_argument(f"--{door}", required=True)
    flags = parser.parse_args()

    class Clients(dict):
        def values(self):
            return [self["grpc"], self["http"]]

    run(
        Clients(
            grpc=Client(grpc_client, flags.grpc),
            http=Client(http_client, flags.http),
            metrics=f"http://{flags.metrics}/metrics",
        )
    )
