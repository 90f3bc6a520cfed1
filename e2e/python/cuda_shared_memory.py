"""What NVIDIA's clients put into the memory of a GPU and find there: the same over gRPC and HTTP."""

import base64

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
import tritonclient.utils.cuda_shared_memory as shm
from tritonclient.utils import serialize_byte_tensor

from checks import check, read_flags, refusal_text, run

ROW = np.arange(16, dtype=np.float32).reshape(1, 16)
SIZE = 4096
DEVICE = 0
# More than is copied in one turn of the server's loop.
LARGE = np.random.default_rng(1).random((1, 1 << 20), dtype=np.float32)


class Shared:
    """A client with a region for inputs and one for outputs, and two large ones."""

    def __init__(self, module, url, name):
        self.module = module
        self.client = module.InferenceServerClient(url)
        sizes = {"in": SIZE, "out": SIZE, "large_in": LARGE.nbytes, "large_out": LARGE.nbytes}
        self.regions = {
            part: shm.create_shared_memory_region(f"{name}_{part}", size, DEVICE) for part, size in sizes.items()
        }
        self.names = {part: f"{name}_{part}" for part in sizes}
        self.sizes = sizes

    def register(self, part):
        handle = shm.get_raw_handle(self.regions[part])
        self.client.register_cuda_shared_memory(self.names[part], handle, DEVICE, self.sizes[part])

    def tensor(self, name, array, part="in", datatype="FP32", size=None):
        shm.set_shared_memory_region(self.regions[part], [array])
        tensor = self.module.InferInput(name, array.shape, datatype)
        tensor.set_shared_memory(self.names[part], size or array.nbytes)
        return tensor

    def wanted(self, name, size, part="out"):
        wanted = self.module.InferRequestedOutput(name)
        wanted.set_shared_memory(self.names[part], size)
        return wanted

    def close(self):
        for region in self.regions.values():
            shm.destroy_shared_memory_region(region)


@check
def listed(clients):
    """memory of a GPU is registered once and listed"""
    for c in clients:
        for part in c.regions:
            c.register(part)
        status = c.client.get_cuda_shared_memory_status()
        regions = status if isinstance(status, list) else list(status.regions.values())
        found = {r["name"]: r["byte_size"] for r in regions} if isinstance(status, list) else {
            r.name: r.byte_size for r in regions
        }
        for part, name in c.names.items():
            assert int(found[name]) == c.sizes[part], found
        again = refusal_text(c.register, "in")
        assert again == f"shared memory region '{c.names['in']}' already in manager", again


@check
def small(clients):
    """a model reads the memory of a GPU and writes it"""
    for c in clients:
        c.client.infer("identity_fp32", [c.tensor("x", ROW)], outputs=[c.wanted("y", ROW.nbytes)])
        got = shm.get_contents_as_numpy(c.regions["out"], np.float32, [1, 16])
        assert np.array_equal(got, ROW), got


@check
def ensemble(clients):
    """an ensemble reads the memory of a GPU and writes it"""
    for c in clients:
        c.client.infer("ens_chain", [c.tensor("X", ROW)], outputs=[c.wanted("Y", ROW.nbytes)])
        got = shm.get_contents_as_numpy(c.regions["out"], np.float32, [1, 16])
        assert np.array_equal(got, ROW + 2), got


@check
def large(clients):
    """tensors of megabytes come and go to the byte"""
    for c in clients:
        tensor = c.tensor("x", LARGE, "large_in")
        c.client.infer("identity_fp32", [tensor], outputs=[c.wanted("y", LARGE.nbytes, "large_out")])
        got = shm.get_contents_as_numpy(c.regions["large_out"], np.float32, LARGE.shape)
        assert got.tobytes() == LARGE.tobytes()


@check
def answered(clients):
    """an input in the memory of a GPU, and its output in the answer"""
    for c in clients:
        result = c.client.infer("identity_fp32", [c.tensor("x", ROW + 5)])
        assert np.array_equal(result.as_numpy("y"), ROW + 5)


@check
def texts(clients):
    """texts keep their lengths in the memory of a GPU"""
    given = np.array([b"one", b"", b"drei"], dtype=np.object_)
    written = serialize_byte_tensor(given)
    for c in clients:
        size = len(written.item())
        tensor = c.module.InferInput("x", [1, 3], "BYTES")
        shm.set_shared_memory_region(c.regions["in"], [written])
        tensor.set_shared_memory(c.names["in"], size)
        c.client.infer("identity_string", [tensor], outputs=[c.wanted("y", 512)])
        got = shm.get_contents_as_numpy(c.regions["out"], np.object_, [1, 3])
        assert np.array_equal(got[0], given), got


@check
def refusals(clients):
    """places that are not there, handles that are none and allocations that are smaller are refused, and the others still work"""
    for c in clients:
        outside = refusal_text(c.client.infer, "ens_chain", [c.tensor("X", ROW, size=5000)])
        assert outside == f"Invalid offset + byte size for shared memory region: '{c.names['in']}'", outside
        wrong = base64.b64encode(bytes(64))
        said = refusal_text(c.client.register_cuda_shared_memory, "wrong", wrong, DEVICE, SIZE)
        assert "cuIpcOpenMemHandle says" in said, said
        handle = shm.get_raw_handle(c.regions["large_in"])
        absent = refusal_text(c.client.register_cuda_shared_memory, "absent", handle, 99, SIZE)
        assert "cuDeviceGet says 101" in absent, absent
        # CUDA's allocations may be larger than what was asked for.
        much = refusal_text(c.client.register_cuda_shared_memory, "much", handle, DEVICE, 1 << 40)
        assert "much" in much, much
    small(clients)


@check
def forgotten(clients):
    """what is unregistered is unknown, and may be registered again"""
    for c in clients:
        c.client.unregister_cuda_shared_memory(c.names["in"])
        unknown = refusal_text(c.client.infer, "ens_chain", [c.tensor("X", ROW)])
        assert unknown == f"Unable to find shared memory region: '{c.names['in']}'", unknown
        c.register("in")
    small(clients)
    for c in clients:
        for name in c.names.values():
            c.client.unregister_cuda_shared_memory(name)
        c.close()


if __name__ == "__main__":
    flags = read_flags("grpc", "http")
    run([Shared(grpc_client, flags.grpc, "grpc"), Shared(http_client, flags.http, "http")])
