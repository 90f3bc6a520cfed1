"""What NVIDIA's own clients see of TorchScript models: a traced one, and a scripted one with named arguments."""

import argparse
import os

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from checks import check, run


def infer(module, client, model, arrays):
    tensors = []
    for name, array in arrays.items():
        tensor = module.InferInput(name, array.shape, np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array)
        tensors.append(tensor)
    return client.infer(model, tensors)


def refusal(module, client, model, arrays):
    try:
        infer(module, client, model, arrays)
    except InferenceServerException as error:
        return error.message()
    raise AssertionError("the request should have failed")


@check
def traced(clients, folder):
    """a traced network gives what torch.jit.load gives, within 1e-5"""
    files = os.path.join(folder, "traced", "1")
    pixels = np.fromfile(os.path.join(files, "input.bin"), np.float32).reshape(2, 3, 20, 24)
    wanted = np.fromfile(os.path.join(files, "output.bin"), np.float32).reshape(2, 3, 20, 24)
    for module, client in clients:
        got = infer(module, client, "traced", {"INPUT__0": pixels}).as_numpy("OUTPUT__0")
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@check
def scripted(clients, folder):
    """arguments go in by name, and a tuple comes out by index"""
    arrays = {"right": np.array([1, 1], np.float32), "left": np.array([3, 5], np.float32)}
    for module, client in clients:
        result = infer(module, client, "scripted", arrays)
        assert result.as_numpy("difference__0").tolist() == [2, 4]
        assert result.as_numpy("sum__1").tolist() == [4, 6]


@check
def raised(clients, folder):
    """what the model raises is an error that begins with Triton's words, and the next request is served"""
    bad = {"right": np.array([1], np.float32), "left": np.array([-3], np.float32)}
    for module, client in clients:
        message = refusal(module, client, "scripted", bad)
        assert message.startswith("PyTorch execute failure: "), message
        assert "the sum is negative" in message, message
    scripted(clients, folder)


@check
def wrong_output(clients, folder):
    """an output of another datatype than the configuration's is refused"""
    arrays = {"right": np.array([1], np.float32), "left": np.array([1], np.float32)}
    text = "configuration expects datatype TYPE_INT32 for output 'difference__0', model provides TYPE_FP32"
    for module, client in clients:
        message = refusal(module, client, "mistyped", arrays)
        assert text in message, message


@check
def wrong_input(clients, folder):
    """an input of another datatype than the configuration's is refused"""
    arrays = {"right": np.array([1], np.int32), "left": np.array([1], np.float32)}
    for module, client in clients:
        message = refusal(module, client, "scripted", arrays)
        assert "inference input 'right' data-type is 'INT32', but model 'scripted' expects 'FP32'" in message, message


@check
def texts(clients, folder):
    """BYTES are the List[str] of a scripted model"""
    words = np.array(["ab".encode(), "ü".encode(), b""], np.object_)
    for module, client in clients:
        got = infer(module, client, "texts", {"INPUT__0": words}).as_numpy("OUTPUT__0")
        assert got.tolist() == [b"AB", "ü".encode(), b""], got


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--grpc", required=True)
    parser.add_argument("--http", required=True)
    parser.add_argument("--folder", required=True, help="the repository, for what the models should give")
    arguments = parser.parse_args()
    run(
        [
            (grpc_client, grpc_client.InferenceServerClient(arguments.grpc)),
            (http_client, http_client.InferenceServerClient(arguments.http)),
        ],
        arguments.folder,
    )
