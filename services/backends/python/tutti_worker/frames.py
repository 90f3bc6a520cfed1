"""The bytes between the server and an instance: fixed little-endian headers, tensors by place, JSON for the rest.

The other half is services/backends/src/python/frames.ts; both sides are held equal by the tests there.
"""

from __future__ import annotations

import json
import struct

MAGIC = 0x5454
# magic, operation, bytes of meta, bytes of payload, id
HEADER = struct.Struct("<HHIQQ")


class Op:
    """Operations. The first block goes to the instance, the second to the server."""

    INIT = 1
    EXECUTE = 2
    CANCEL = 3
    REPLY = 4
    REGION = 5
    INFER_RESPONSE = 6
    FINALIZE = 7
    CREDIT = 9
    ASK_READY = 10

    READY = 33
    FAILED = 34
    RESULT = 35
    SEND = 36
    CALL = 37
    NOTE = 38
    GROW = 39
    INFER = 40
    INFER_END = 41
    RELEASE = 42
    FINALIZED = 43
    ABANDONED = 45
    TAKEN = 46
    IS_READY = 47


# Where a tensor's bytes are: in the frame's own payload, or in the arena.
IN_PAYLOAD = 0
IN_ARENA = 1

# Datatypes travel as their numbers in model_config.proto.
DATATYPES = {
    1: "BOOL",
    2: "UINT8",
    3: "UINT16",
    4: "UINT32",
    5: "UINT64",
    6: "INT8",
    7: "INT16",
    8: "INT32",
    9: "INT64",
    10: "FP16",
    11: "FP32",
    12: "FP64",
    13: "BYTES",
    14: "BF16",
}

# datatype, rank, place, unused, bytes of the name, offset, bytes
_TENSOR = struct.Struct("<BBBBIQQ")
# requests, unused, offset and bytes of the region that holds the inputs, offset and bytes of the scratch region
_EXECUTE = struct.Struct("<IIQQQQ")
# key, tensors, unused, bytes of JSON
_REQUEST = struct.Struct("<QHHI")
# responses, flags, nanoseconds of input, inference and output
_RESULT = struct.Struct("<IIQQQ")
# kind, flags, tensors, bytes of JSON
_RESPONSE = struct.Struct("<BBHI")

RESULT_RETAINED = 1
KIND_RESPONSE = 0
KIND_NONE = 1
# The model wants the request again.
KIND_AGAIN = 2


class TensorPlace:
    """One tensor of a frame: what it is and where its bytes are."""

    __slots__ = ("name", "datatype", "shape", "place", "offset", "size")

    def __init__(self, name, datatype, shape, place, offset, size):
        self.name = name
        self.datatype = datatype
        self.shape = shape
        self.place = place
        self.offset = offset
        self.size = size


def read_tensor(meta, at):
    """Reads one tensor record. Returns it and where the next thing begins."""
    datatype, rank, place, _, name_bytes, offset, size = _TENSOR.unpack_from(meta, at)
    at += _TENSOR.size
    shape = struct.unpack_from("<%dq" % rank, meta, at)
    at += rank * 8
    name = meta[at : at + name_bytes].decode()
    return TensorPlace(name, datatype, shape, place, offset, size), at + name_bytes


def write_tensor(tensor):
    name = tensor.name.encode()
    rank = len(tensor.shape)
    head = _TENSOR.pack(
        tensor.datatype, rank, tensor.place, 0, len(name), tensor.offset, tensor.size
    )
    return head + struct.pack("<%dq" % rank, *tensor.shape) + name


class WireRequest:
    """One request of an EXECUTE frame."""

    __slots__ = ("key", "tensors", "context")

    def __init__(self, key, tensors, context):
        self.key = key
        self.tensors = tensors
        self.context = context


def read_execute(meta):
    """Returns the region of the inputs (offset, bytes), the scratch region and the requests."""
    count, _, region, region_bytes, scratch, scratch_bytes = _EXECUTE.unpack_from(meta, 0)
    at = _EXECUTE.size
    requests = []
    for _ in range(count):
        key, tensor_count, _, json_bytes = _REQUEST.unpack_from(meta, at)
        at += _REQUEST.size
        tensors = []
        for _ in range(tensor_count):
            tensor, at = read_tensor(meta, at)
            tensors.append(tensor)
        context = json.loads(meta[at : at + json_bytes]) if json_bytes else {}
        at += json_bytes
        requests.append(WireRequest(key, tensors, context))
    return (region, region_bytes), (scratch, scratch_bytes), requests


def read_response(meta, at):
    """Returns flags, tensors and the JSON part of a response, and where the next thing begins."""
    _, flags, tensor_count, json_bytes = _RESPONSE.unpack_from(meta, at)
    at += _RESPONSE.size
    tensors = []
    for _ in range(tensor_count):
        tensor, at = read_tensor(meta, at)
        tensors.append(tensor)
    extra = json.loads(meta[at : at + json_bytes]) if json_bytes else {}
    return flags, tensors, extra, at + json_bytes


def write_response(kind, flags, tensors, extra):
    text = json.dumps(extra).encode() if extra else b""
    head = _RESPONSE.pack(kind, flags, len(tensors), len(text))
    return b"".join([head, *[write_tensor(tensor) for tensor in tensors], text])


def write_result(responses, flags, times):
    """`responses` are records by `write_response`, `times` nanoseconds of input, inference and output."""
    return _RESULT.pack(len(responses), flags, *times) + b"".join(responses)
