"""What NVIDIA's four clients offer, each call of it by each of them. `--control` says whether the server takes loads and settings."""

import queue

import numpy as np
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from checks import check, read_flags, run
from clients import open_clients

X = np.arange(16, dtype=np.float32).reshape(1, 16)


class Env:
    def __init__(self, flags):
        self.clients = open_clients(flags)
        self.has_control = flags.control == "yes"


def inputs_of(module, **arrays):
    inputs = []
    for name, array in arrays.items():
        tensor = module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array)
        inputs.append(tensor)
    return inputs


def field(answer, name):
    """gRPC's messages have as attributes what REST's objects have as keys."""
    return answer[name] if isinstance(answer, dict) else getattr(answer, name)


def each(function):
    """Runs a check with each of the four clients."""
    for name in ("grpc", "http", "grpc.aio", "http.aio"):

        def called(env, name=name):
            function(env, *env.clients[name])

        called.__doc__ = f"{name}: {function.__doc__}"
        check(called)
    return function


def refused(call, *texts):
    try:
        call()
    except InferenceServerException as error:
        assert any(text in error.message() for text in texts), error.message()
        return
    raise AssertionError("it was not refused")


@each
def health(env, module, client):
    """the server and a model are ready, another model is not there"""
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("ens_nested") and client.is_model_ready("add_sub", "1")
    assert not client.is_model_ready("absent")


@each
def metadata(env, module, client):
    """metadata, configuration, index and statistics name the models"""
    assert field(client.get_server_metadata(), "name") == "triton"
    about = client.get_model_metadata("ens_chain")
    assert [field(tensor, "name") for tensor in field(about, "inputs")] == ["X"]
    config = client.get_model_config("add_one_batch")
    assert field(config if isinstance(config, dict) else config.config, "max_batch_size") == 8
    index = client.get_model_repository_index()
    names = {field(one, "name") for one in (index if isinstance(index, list) else index.models)}
    assert {"add_sub", "ens_nested", "seq_sum", "repeated"} <= names, names
    statistics = client.get_inference_statistics("add_one_batch")
    assert [field(one, "name") for one in field(statistics, "model_stats")] == ["add_one_batch"]


@each
def tensors(env, module, client):
    """a model with two outputs gives those that are asked for, binary and as JSON"""
    inputs = inputs_of(module, INPUT0=X, INPUT1=X)
    result = client.infer("add_sub", inputs, request_id="r")
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), X + X)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), X - X)
    assert field(result.get_response(), "id") == "r"
    only = client.infer("add_sub", inputs, outputs=[module.InferRequestedOutput("OUTPUT1")])
    assert only.as_numpy("OUTPUT0") is None and only.as_numpy("OUTPUT1") is not None


@each
def ensembles(env, module, client):
    """ensembles, nested ones too, run their steps"""
    for model, more in (("ens_chain", 2), ("ens_nested", 3)):
        result = client.infer(model, inputs_of(module, X=X))
        np.testing.assert_array_equal(result.as_numpy("Y"), X + more)


@each
def strings(env, module, client):
    """texts of any length come back"""
    texts = np.array([[b"", "\u00e9".encode(), b"x" * 70_000]], dtype=np.object_)
    result = client.infer("identity_string", inputs_of(module, x=texts))
    assert result.as_numpy("y").tolist() == texts.tolist()


@each
def sequences(env, module, client):
    """a sequence adds up, and its number may be no text where the model wants a number"""

    def add(value, **options):
        inputs = inputs_of(module, INPUT=np.array([[value]], dtype=np.int32))
        return int(client.infer("seq_sum", inputs, **options).as_numpy("SUM")[0][0])

    assert add(1, sequence_id=7, sequence_start=True) == 1
    assert add(2, sequence_id=7) == 3
    assert add(3, sequence_id=7, sequence_end=True) == 6
    refused(lambda: add(1, sequence_id="seven", sequence_start=True, sequence_end=True), "data-type is 'BYTES'")


@each
def errors(env, module, client):
    """what cannot be inferred is refused with Triton's text"""
    refused(lambda: client.infer("absent", inputs_of(module, X=X)), "Request for unknown model: 'absent' is not found")
    refused(lambda: client.infer("add_one_batch", inputs_of(module, X=X[:, :4])), "unexpected shape for input 'X'")
    refused(lambda: client.get_model_metadata("absent"), "'absent' is not found")


@each
def control(env, module, client):
    """models load and settings change in one process, and nowhere else"""
    calls = (
        lambda: client.load_model("add_sub"),
        lambda: client.update_log_settings({"log_verbose_level": 0}),
        lambda: client.update_trace_settings(settings={"trace_rate": "1000"}),
    )
    for call in calls:
        if env.has_control:
            call()
        else:
            refused(call, "not allowed", "of routers and steps are those of their flags", "not offered")


@check
def parallel(env):
    """grpc and http: requests that are sent together are all answered"""
    module, client = env.clients["http"]
    sent = [client.async_infer("ens_chain", inputs_of(module, X=X + i)) for i in range(20)]
    for i, one in enumerate(sent):
        np.testing.assert_array_equal(one.get_result().as_numpy("Y"), X + i + 2)
    module, client = env.clients["grpc"]
    answers = queue.Queue()
    for i in range(20):
        client.async_infer("ens_chain", inputs_of(module, X=X + i), lambda result, error: answers.put((result, error)))
    got = [answers.get(timeout=30) for _ in range(20)]
    assert all(error is None for _, error in got), got
    assert sorted(float(result.as_numpy("Y")[0][0]) for result, _ in got) == [i + 2.0 for i in range(20)]


def repeated(module):
    return inputs_of(
        module,
        IN=np.array([4, 5, 6], dtype=np.int32),
        DELAY=np.array([0, 0, 0], dtype=np.uint32),
        WAIT=np.array([0], dtype=np.uint32),
    )


@check
def stream(env):
    """grpc: a decoupled model streams its responses"""
    module, client = env.clients["grpc"]
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    client.async_stream_infer("repeated", repeated(module))
    got = [answers.get(timeout=30) for _ in range(3)]
    client.stop_stream()
    assert [int(result.as_numpy("OUT")[0]) for result, _ in got] == [4, 5, 6]


@check
def stream_of_asyncio(env):
    """grpc.aio: a decoupled model streams its responses"""
    module, client = env.clients["grpc.aio"]

    async def collect():
        async def requests():
            yield {"model_name": "repeated", "inputs": repeated(module)}

        values = []
        async for result, error in client.client.stream_infer(requests()):
            assert error is None, error
            values.append(int(result.as_numpy("OUT")[0]))
            if len(values) == 3:
                return values

    assert client.loop.run_until_complete(collect()) == [4, 5, 6]


if __name__ == "__main__":
    run(Env(read_flags("grpc", "http", "control")))
