"""What NVIDIA's clients put into shared memory and find there: the same over gRPC and HTTP."""

import os

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import serialize_byte_tensor

from checks import check, read_flags, refusal_text, run

ROW = np.arange(16, dtype=np.float32).reshape(1, 16)
SIZE = ROW.nbytes


class Shared:
    """A client with a region for inputs and one for outputs."""

    def __init__(self, module, url, name):
        self.module = module
        self.client = module.InferenceServerClient(url)
        self.in_name, self.out_name = f"{name}_in", f"{name}_out"
        self.key = f"/tutti_e2e_{os.getpid()}_{name}"
        self.input = shm.create_shared_memory_region(self.in_name, f"{self.key}_in", 4096)
        self.output = shm.create_shared_memory_region(self.out_name, f"{self.key}_out", 4096)

    def register(self):
        self.client.register_system_shared_memory(self.in_name, f"{self.key}_in", 4096)
        self.client.register_system_shared_memory(self.out_name, f"{self.key}_out", 4096)

    def tensor(self, name, array, offset=0, size=None):
        shm.set_shared_memory_region(self.input, [array], offset=offset)
        tensor = self.module.InferInput(name, array.shape, "FP32")
        tensor.set_shared_memory(self.in_name, size or array.nbytes, offset=offset)
        return tensor

    def wanted(self, name, size, offset=0):
        wanted = self.module.InferRequestedOutput(name)
        wanted.set_shared_memory(self.out_name, size, offset=offset)
        return wanted

    def close(self):
        shm.destroy_shared_memory_region(self.input)
        shm.destroy_shared_memory_region(self.output)


@check
def listed(clients):
    """shared memory is in the metadata, and regions are registered once and listed"""
    for c in clients:
        metadata = c.client.get_server_metadata()
        extensions = metadata["extensions"] if isinstance(metadata, dict) else metadata.extensions
        assert {"system_shared_memory", "cuda_shared_memory"} <= set(extensions), extensions
        c.register()
        listed = c.client.get_system_shared_memory_status()
        names = [r["name"] for r in listed] if isinstance(listed, list) else list(listed.regions)
        assert {c.in_name, c.out_name} <= set(names), names
        again = refusal_text(c.client.register_system_shared_memory, c.in_name, f"{c.key}_in", 4096)
        assert again == f"shared memory region '{c.in_name}' already in manager", again


@check
def ensemble(clients):
    """an ensemble reads shared memory and writes it"""
    for c in clients:
        result = c.client.infer("ens_chain", [c.tensor("X", ROW, 64)], outputs=[c.wanted("Y", SIZE, 128)])
        assert result.get_output("Y") is not None
        got = shm.get_contents_as_numpy(c.output, np.float32, [1, 16], offset=128)
        assert np.array_equal(got, ROW + 2), got


@check
def one_of_two(clients):
    """one output goes to shared memory and the other into the answer"""
    for c in clients:
        wanted = [c.wanted("SUM", SIZE), c.module.InferRequestedOutput("DIFFERENCE")]
        result = c.client.infer("ens_branch_join", [c.tensor("X", ROW)], outputs=wanted)
        assert np.array_equal(result.as_numpy("DIFFERENCE"), np.ones_like(ROW))
        assert np.array_equal(shm.get_contents_as_numpy(c.output, np.float32, [1, 16]), 2 * ROW + 1)


@check
def texts(clients):
    """texts keep their lengths in shared memory"""
    given = np.array([b"one", b"", "drei".encode()], dtype=np.object_)
    written = serialize_byte_tensor(given)
    for c in clients:
        tensor = c.module.InferInput("x", [1, 3], "BYTES")
        shm.set_shared_memory_region(c.input, [written])
        tensor.set_shared_memory(c.in_name, len(written.item()))
        c.client.infer("identity_string", [tensor], outputs=[c.wanted("y", 512, 1024)])
        got = shm.get_contents_as_numpy(c.output, np.object_, [1, 3], offset=1024)
        assert np.array_equal(got[0], given), got


@check
def refusals(clients):
    """places that are not there, or too small, are refused in Triton's words"""
    for c in clients:
        outside = refusal_text(c.client.infer, "ens_chain", [c.tensor("X", ROW, 0, 5000)])
        assert outside == f"Invalid offset + byte size for shared memory region: '{c.in_name}'", outside
        mismatch = refusal_text(c.client.infer, "ens_chain", [c.tensor("X", ROW, 0, 32)])
        assert "byte size mismatch for input 'X' for model 'ens_chain'. Expected 64, got 32" in mismatch, mismatch
        small = refusal_text(c.client.infer, "ens_chain", [c.tensor("X", ROW)], outputs=[c.wanted("Y", 63)])
        assert small.endswith("output 'Y' (63 bytes) should be at least 64 bytes to hold the results"), small


@check
def forgotten(clients):
    """what is unregistered is unknown"""
    for c in clients:
        c.client.unregister_system_shared_memory(c.in_name)
        unknown = refusal_text(c.client.infer, "ens_chain", [c.tensor("X", ROW)])
        assert unknown == f"Unable to find shared memory region: '{c.in_name}'", unknown
        c.client.unregister_system_shared_memory(c.out_name)
        c.close()


if __name__ == "__main__":
    flags = read_flags("grpc", "http")
    run([Shared(grpc_client, flags.grpc, "grpc"), Shared(http_client, flags.http, "http")])
