"""What NVIDIA's own clients, unmodified, see of Python models: the same over gRPC and HTTP."""


import numpy as np
import tritonclient.grpc as grpc_client
from tritonclient.utils import np_to_triton_dtype

from behaviour import both, clients_of
from checks import CHECKS, check, read_flags, run
from waiting import Metrics, until

CHECKS.clear()
A = np.arange(16, dtype=np.int32).reshape(1, 16)
B = np.full((1, 16), 3, np.int32)


def text(value):
    return np.array([value.encode()], dtype=object)


def to_tensor(name, array):
    tensor = grpc_client.InferInput(name, array.shape, np_to_triton_dtype(array.dtype))
    tensor.set_data_from_numpy(array)
    return tensor


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
        error = c.error("py_call", {**inputs, "MODEL": text("missing")})
        assert "Failed for execute the inference request. Model 'missing' is not ready." in error.message(), error


@check
def calls_of_calls(clients):
    """calls go through one another, and to ensembles; what fails at their end is their error, with its traceback"""
    for c in both(clients):
        inputs = {"INPUT0": A, "INPUT1": B}
        for path, wanted in {
            "ens_py_add_sub": 2 * A,
            "py_call/py_add_sub": A + B,
            "py_call/py_call/ens_py_add_sub": 2 * A,
        }.items():
            got = c.infer("py_call", {**inputs, "MODEL": text(path)})
            assert np.array_equal(got.as_numpy("OUTPUT0"), wanted), path
        error = c.error("py_call", {**inputs, "MODEL": text("py_call/missing")})
        assert "Model 'missing' is not ready." in error.message(), error
        error = c.error("py_call", {**inputs, "MODEL": text("py_call/raise")})
        assert "message: ValueError: as ordered\n\nAt:\n" in error.message(), error
        error = c.error("py_call", {**inputs, "MODEL": text("py_call/py_repeat")})
        assert "decoupled" in error.message(), error


@check
def time_is_over(clients):
    """the client's deadline, and its cancel, reach a model, also one that is called by one that is called"""
    client = clients["grpc"].client
    for model, path in (("py_wait", ""), ("py_call", "py_wait"), ("py_call", "py_call/py_wait")):
        inputs = {"INPUT0": A, "INPUT1": B, **({"MODEL": text(path)} if path else {})}
        left = clients.metrics.sum("py_wait_left")
        error = clients["grpc"].error(model, inputs, client_timeout=0.5)
        assert error.status() == "StatusCode.DEADLINE_EXCEEDED", error
        until("it gives up", lambda: clients.metrics.sum("py_wait_left") == left + 1)
        begun = clients.metrics.sum("py_wait_begun")
        tensors = [to_tensor(name, array) for name, array in inputs.items()]
        call = client.async_infer(model, tensors, lambda result, error: None)
        until("it is there", lambda: clients.metrics.sum("py_wait_begun") == begun + 1)
        call.cancel()
        until("it gives up", lambda: clients.metrics.sum("py_wait_left") == left + 2)
        calls(clients)


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
    error = c.error("py_faults", {"ORDER": text("spin")}, client_timeout=0.5)
    assert error.status() == "StatusCode.DEADLINE_EXCEEDED", error
    assert order(c, "go on") == b"go on"


@check
def says_itself(clients):
    """a model that has a word on whether it is ready is asked, and serves requests all the same"""
    for c in both(clients):
        # As in Triton, the model that failed to load counts.
        assert not c.client.is_server_ready()
        for before, ready in ((False, True), (True, False)):
            assert c.client.is_model_ready("py_ready") == before
            assert c.client.is_model_ready("py_ready", "1") == before
            got = c.infer("py_ready", {"READY": np.array([ready])}).as_numpy("BEFORE")
            assert got.tolist() == [before], got


@check
def absent(clients):
    """a model that fails to load says why in the index"""
    index = {entry["name"]: entry for entry in clients["http"].client.get_model_repository_index()}
    reason = index["py_absent"]["reason"]
    assert "ModuleNotFoundError: No module named 'a_module_that_is_not_there'" in reason, reason


@check
def counted(clients):
    """requests are counted, by clients and by models that call, and metrics of models stand beside the server's"""

    def counts():
        stats = clients["http"].client.get_inference_statistics("py_add_sub")["model_stats"][0]
        return stats["inference_stats"]["success"]["count"], clients.metrics.sum("py_served_requests")

    before = counts()
    calls(clients)
    for c in both(clients):
        c.infer("py_add_sub", {"INPUT0": A, "INPUT1": B})
    assert [now - then for now, then in zip(counts(), before)] == [4, 4], (before, counts())


class Clients(dict):
    def __init__(self, clients, metrics):
        super().__init__(clients)
        self.metrics = metrics


if __name__ == "__main__":
    # The metrics are those of the process that has the models that are called.
    flags = read_flags("grpc", "http", "metrics")
    run(Clients(clients_of(flags), Metrics(flags.metrics)))
