"""What NVIDIA's own clients, unmodified, see of a served repository: the same over gRPC and HTTP."""

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import np_to_triton_dtype

from checks import check, read_flags, refusal, run


class Client:
    """One protocol's client and its classes, behind the few calls that the checks make."""

    def __init__(self, module, url):
        self.module = module
        self.url = url
        self.client = module.InferenceServerClient(url)

    def infer(self, model, inputs, outputs=None, **options):
        tensors = []
        for name, array in inputs.items():
            tensor = self.module.InferInput(name, array.shape, np_to_triton_dtype(array.dtype))
            tensor.set_data_from_numpy(array)
            tensors.append(tensor)
        wanted = None if outputs is None else [self.module.InferRequestedOutput(o) for o in outputs]
        return self.client.infer(model, tensors, outputs=wanted, **options)

    def error(self, *arguments, **options):
        return refusal(self.infer, *arguments, **options)


def clients_of(flags):
    return {"grpc": Client(grpc_client, flags.grpc), "http": Client(http_client, flags.http)}


def both(clients):
    return clients.values()


ROW = np.arange(16, dtype=np.float32).reshape(1, 16)


@check
def server_is_live_and_ready(clients):
    """the server is live and ready, and so are its models"""
    for c in both(clients):
        assert c.client.is_server_live()
        assert c.client.is_server_ready()
        assert c.client.is_model_ready("ens_chain")
        assert c.client.is_model_ready("versioned", "3")
        assert not c.client.is_model_ready("versioned", "2")
        assert not c.client.is_model_ready("missing")


@check
def chain(clients):
    """a chain of two steps adds twice"""
    for c in both(clients):
        result = c.infer("ens_chain", {"X": ROW})
        assert np.array_equal(result.as_numpy("Y"), ROW + 2)


@check
def branch_and_join(clients):
    """one input feeds two branches that meet again"""
    for c in both(clients):
        result = c.infer("ens_branch_join", {"X": ROW})
        assert np.array_equal(result.as_numpy("SUM"), 2 * ROW + 1)
        assert np.array_equal(result.as_numpy("DIFFERENCE"), np.ones_like(ROW))


@check
def batches(clients):
    """a client's batch stays together through the steps"""
    batch = np.random.default_rng(0).standard_normal((5, 16), dtype=np.float32)
    for c in both(clients):
        result = c.infer("ens_branch_join", {"X": batch})
        assert result.as_numpy("SUM").shape == (5, 16)
        assert np.array_equal(result.as_numpy("SUM"), (batch + 1) + batch)


@check
def optional_input(clients):
    """an optional input may be given or left out"""
    x = np.arange(4, dtype=np.float32)
    for c in both(clients):
        default = c.infer("ens_optional", {"x": x}).as_numpy("y")
        zero = c.infer("ens_optional", {"x": x, "bias": np.zeros(1, np.float32)}).as_numpy("y")
        seven = c.infer("ens_optional", {"x": x, "bias": np.full(1, 7, np.float32)}).as_numpy("y")
        assert np.array_equal(zero, x)
        assert np.array_equal(seven, x + 7)
        assert default.shape == x.shape


@check
def nested(clients):
    """an ensemble may be a step of another"""
    for c in both(clients):
        assert np.array_equal(c.infer("ens_nested", {"X": ROW}).as_numpy("Y"), ROW + 3)


@check
def subsets(clients):
    """every subset of the outputs can be asked for, and nothing else comes"""
    expected = {"PLUS_ONE": ROW + 1, "PLUS_TWO": ROW + 2, "COPY": ROW}
    for wanted in (["PLUS_ONE"], ["PLUS_TWO"], ["COPY"], ["PLUS_ONE", "PLUS_TWO"], ["COPY", "PLUS_TWO"]):
        for c in both(clients):
            result = c.infer("ens_subset", {"X": ROW}, wanted)
            for name, value in expected.items():
                got = result.as_numpy(name)
                if name in wanted:
                    assert np.array_equal(got, value), name
                else:
                    assert got is None, name


@check
def batch_to_nonbatch(clients):
    """a tensor passes from a batching model through one without and back"""
    batch = np.ones((3, 16), np.float32)
    for c in both(clients):
        config = c.client.get_model_config("ens_batch_to_nonbatch")
        config = config.config if hasattr(config, "config") else config
        name = (config.input[0].name, config.output[0].name) if hasattr(config, "input") else (
            config["input"][0]["name"], config["output"][0]["name"])
        result = c.infer("ens_batch_to_nonbatch", {name[0]: batch})
        assert result.as_numpy(name[1]).shape[-1] == 16


@check
def versions(clients):
    """a version can be named, and the latest answers otherwise"""
    for c in both(clients):
        metadata = c.client.get_model_metadata("versioned")
        versions = metadata["versions"] if isinstance(metadata, dict) else list(metadata.versions)
        assert versions == ["1", "3"], versions


@check
def pre_equals_numpy(clients):
    """pre-processing equals numpy within 1e-6, for sizes that were not traced"""
    for height, width in ((37, 53), (1, 1), (311, 64)):
        image = np.random.default_rng(height).integers(0, 256, (height, width, 3), dtype=np.uint8)
        rgb = image[:, :, ::-1].astype(np.float32) / np.float32(255)
        expected = ((rgb - np.float32(0.5)) / np.float32(0.5)).transpose(2, 0, 1)[np.newaxis]
        for c in both(clients):
            got = c.infer("pre_gfpgan", {"input__0": image}).as_numpy("output__0")
            assert got.shape == (1, 3, height, width)
            assert np.max(np.abs(got - expected)) <= 1e-6


@check
def post_equals_numpy(clients):
    """post-processing equals numpy exactly, for sizes that were not traced"""
    for height, width in ((37, 53), (1, 1), (311, 64)):
        x = np.random.default_rng(width).uniform(-1.5, 1.5, (1, 3, height, width)).astype(np.float32)
        clipped = np.clip(x[0].transpose(1, 2, 0), np.float32(-1), np.float32(1))
        expected = ((clipped + np.float32(1)) / np.float32(2) * np.float32(255)).astype(np.uint8)[:, :, ::-1]
        for c in both(clients):
            got = c.infer("post_gfpgan", {"input__0": x}).as_numpy("output__0")
            assert got.shape == (height, width, 3)
            assert np.array_equal(got, expected)


@check
def face_restoration(clients):
    """the face ensemble answers with a picture of the same size, the same over both protocols"""
    image = np.random.default_rng(1).integers(0, 256, (96, 80, 3), dtype=np.uint8)
    pictures = [c.infer("ens_face_restoration_v2.1", {"raw_image": image}).as_numpy("image_out") for c in both(clients)]
    for picture in pictures:
        assert picture.shape == image.shape and picture.dtype == np.uint8
        assert np.array_equal(picture, pictures[0])


@check
def face_restoration_equals_its_steps(clients):
    """the face ensemble gives byte for byte what its steps give one after the other"""
    image = np.random.default_rng(2).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    for c in both(clients):
        pre = c.infer("pre_gfpgan", {"input__0": image}).as_numpy("output__0")
        net = c.infer("infer_face_restoration_v2.1", {"input__0": pre}).as_numpy("output__0")
        post = c.infer("post_gfpgan", {"input__0": net}).as_numpy("output__0")
        whole = c.infer("ens_face_restoration_v2.1", {"raw_image": image}).as_numpy("image_out")
        assert np.array_equal(whole, post)


@check
def strings(clients):
    """BYTES tensors survive, empty and long elements included"""
    texts = np.array([["", "a", "größe", "x" * 5000]], dtype=object)
    for c in both(clients):
        got = c.infer("identity_string", {"x": texts}).as_numpy("y")
        assert [t.decode() if isinstance(t, bytes) else t for t in got.flatten()] == list(texts.flatten())


@check
def datatypes(clients):
    """every numeric datatype comes back byte for byte"""
    values = {
        "bool": np.array([[True, False]]), "uint8": np.array([[0, 255]], np.uint8),
        "uint16": np.array([[0, 65535]], np.uint16), "uint32": np.array([[0, 2**32 - 1]], np.uint32),
        "uint64": np.array([[0, 2**64 - 1]], np.uint64), "int8": np.array([[-128, 127]], np.int8),
        "int16": np.array([[-(2**15), 2**15 - 1]], np.int16), "int32": np.array([[-(2**31), 2**31 - 1]], np.int32),
        "int64": np.array([[-(2**63), 2**63 - 1]], np.int64), "fp16": np.array([[1.5, -0.0]], np.float16),
        "fp32": np.array([[np.nan, -0.0]], np.float32), "fp64": np.array([[1e300, 5e-324]], np.float64),
    }
    for name, value in values.items():
        for c in both(clients):
            got = c.infer(f"identity_{name}", {"x": value}).as_numpy("y")
            assert got.dtype == value.dtype and got.tobytes() == value.tobytes(), name


@check
def request_id_comes_back(clients):
    """the request id, the model's name and its version are in the response"""
    for c in both(clients):
        response = c.infer("ens_chain", {"X": ROW}, request_id="id-7").get_response()
        get = (lambda key: response[key]) if isinstance(response, dict) else (lambda key: getattr(response, key))
        assert (get("id"), get("model_name"), get("model_version")) == ("id-7", "ens_chain", "1")


@check
def errors_name_what_is_wrong(clients):
    """a refused request gets Triton's text and status"""
    cases = [
        ("missing", {"X": ROW}, "Request for unknown model: 'missing' is not found", "NOT_FOUND", "404"),
        ("ens_chain", {"X": ROW[:, :15]}, "unexpected shape for input 'X' for model 'ens_chain'. Expected [-1,16], got [1,15]", "INVALID_ARGUMENT", "400"),
        ("ens_chain", {"X": ROW.astype(np.float64)}, "inference input 'X' data-type is 'FP64', but model 'ens_chain' expects 'FP32'", "INVALID_ARGUMENT", "400"),
        ("ens_chain", {"Z": ROW}, "unexpected inference input 'Z' for model 'ens_chain'", "INVALID_ARGUMENT", "400"),
        ("ens_chain", {"X": np.zeros((9, 16), np.float32)}, "inference request batch-size must be <= 8 for 'ens_chain'", "INVALID_ARGUMENT", "400"),
        ("ens_fail", {"x": np.full(3, 7, np.float32)}, "in ensemble 'ens_fail', onnx runtime error", "INTERNAL", "500"),
    ]
    for model, inputs, text, grpc_status, http_status in cases:
        for protocol, c in clients.items():
            error = c.error(model, inputs)
            assert text in error.message(), error.message()
            wanted = f"StatusCode.{grpc_status}" if protocol == "grpc" else http_status
            assert error.status() == wanted, (error.status(), wanted)


@check
def requested_output_must_exist(clients):
    """an unknown output is refused"""
    for c in both(clients):
        error = c.error("ens_chain", {"X": ROW}, ["NOPE"])
        assert "unexpected inference output 'NOPE' for model 'ens_chain'" in error.message(), error.message()


@check
def classification(clients):
    """classification gives value, index and label"""
    for c in both(clients):
        metadata = c.client.get_model_metadata("labels")
        read = (lambda m: (m["inputs"][0], m["outputs"][0]["name"])) if isinstance(metadata, dict) else (
            lambda m: ({"name": m.inputs[0].name, "shape": list(m.inputs[0].shape)}, m.outputs[0].name))
        source, target = read(metadata)
        shape = [1 if int(d) == -1 else int(d) for d in source["shape"]]
        tensor = c.module.InferInput(source["name"], shape, "FP32")
        tensor.set_data_from_numpy(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
        wanted = c.module.InferRequestedOutput(target, class_count=2)
        got = c.client.infer("labels", [tensor], outputs=[wanted]).as_numpy(target)
        texts = [t.decode() for t in got.flatten()]
        assert len(texts) == 2 and all(len(t.split(":")) == 3 for t in texts), texts


@check
def statistics(clients):
    """statistics count requests of ensembles and of their steps"""
    for c in both(clients):
        def count(model):
            stats = c.client.get_inference_statistics(model)
            if isinstance(stats, dict):
                return int(stats["model_stats"][0]["inference_stats"]["success"]["count"])
            return stats.model_stats[0].inference_stats.success.count
        before = count("ens_chain"), count("add_one_batch")
        c.infer("ens_chain", {"X": ROW})
        assert (count("ens_chain"), count("add_one_batch")) == (before[0] + 1, before[1] + 2)


@check
def index(clients):
    """the repository index lists what is served"""
    for c in both(clients):
        listed = c.client.get_model_repository_index()
        entries = listed if isinstance(listed, list) else [
            {"name": m.name, "version": m.version, "state": m.state} for m in listed.models]
        ready = {(e["name"], e["version"]) for e in entries if e["state"] == "READY"}
        assert {("ens_chain", "1"), ("versioned", "1"), ("versioned", "3"), ("gfpgan", "1")} <= ready, ready


@check
def compression(clients):
    """compressed requests and responses are understood"""
    for algorithm in ("gzip", "deflate"):
        got = clients["grpc"].infer("ens_chain", {"X": ROW}, compression_algorithm=algorithm)
        assert np.array_equal(got.as_numpy("Y"), ROW + 2)
        got = clients["http"].infer("ens_chain", {"X": ROW}, request_compression_algorithm=algorithm,
                                    response_compression_algorithm=algorithm)
        assert np.array_equal(got.as_numpy("Y"), ROW + 2)


@check
def json_tensors(clients):
    """tensors may travel as JSON"""
    module = http_client
    tensor = module.InferInput("X", [1, 16], "FP32")
    tensor.set_data_from_numpy(ROW, binary_data=False)
    wanted = module.InferRequestedOutput("Y", binary_data=False)
    got = clients["http"].client.infer("ens_chain", [tensor], outputs=[wanted])
    assert np.array_equal(got.as_numpy("Y"), ROW + 2)


if __name__ == "__main__":
    run(clients_of(read_flags("grpc", "http")))
