"""The bytes between the server and an instance: fixed little-endian headers, tensors by place, JSON for the rest.

The other half is services/backends/src/python/frames.ts; both sides are held equal by the tests there.
"""

from __future__ import annotations

import functools
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
    MAP = 11
    UNMAP = 12

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
    METRIC = 48
    MAPPED = 49
    RETURNED = 50
    INITIALIZING = 51


# Where a tensor's bytes are: in the frame's own payload, one after the other, or in the arena. Beyond its end are those of other
# instances (lent.py).
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

# datatype, rank, place, unused, bytes of the name, offset in the arena, bytes
_TENSOR = struct.Struct("<BBBBIQQ")
# requests, unused, offset and bytes of the region that holds the inputs, offset and bytes of the scratch region
_EXECUTE = struct.Struct("<IIQQQQ")
# key, tensors, bytes of their records or 0 where these are too many to say, bytes of JSON
_REQUEST = struct.Struct("<QHHI")
# responses, flags, nanoseconds of input, inference and output
_RESULT = struct.Struct("<IIQQQ")
# kind, flags, tensors, bytes of their records, bytes of JSON
_RESPONSE = struct.Struct("<BBHII")
# nanoseconds of the request's input, and of the output of this response
_SEND = struct.Struct("<QQ")
# operation, value; the id is the metric's
_METRIC = struct.Struct("<Bd")
_METRIC_OPERATIONS = {"increment": 0, "set": 1, "observe": 2}

RESULT_RETAINED = 1
# The model still has some of the inputs that are another instance's.
RESULT_KEEPS_LENT = 2
# It has written into some of these.
RESULT_WRITES_LENT = 4
KIND_RESPONSE = 0
KIND_NONE = 1
# The model wants the request again.
KIND_AGAIN = 2


class TensorPlace:
    """One tensor of a frame that was read: what it is and where its bytes are."""

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
    return TensorPlace(name, DATATYPES[datatype], shape, place, offset, size), at + name_bytes


def arena_record(name, datatype, shape, offset, size):
    """The record of a tensor in the arena."""
    return _record(name, datatype, shape, IN_ARENA, offset, size)


@functools.lru_cache(maxsize=1024)
def payload_record(name, datatype, shape, size):
    """The record of a tensor in the payload: the same for each response of a model whose shapes are fixed."""
    return _record(name, datatype, shape, IN_PAYLOAD, 0, size)


def _record(name, datatype, shape, place, offset, size):
    text = name.encode()
    rank = len(shape)
    head = _TENSOR.pack(datatype, rank, place, 0, len(text), offset, size)
    return head + struct.pack("<%dq" % rank, *shape) + text


# Tensors that the bytes of a request's records describe; those that name places in the arena differ each time.
_known_records = {}
_MOST_KNOWN = 256
_MOST_KNOWN_BYTES = 1024


def _read_records(meta, at, count, size):
    """Returns the tensors of a request, and where the next thing begins. `size` is that of their records, if it is known."""
    records = meta[at : at + size]
    tensors = _known_records.get(records) if size else None
    if tensors is not None:
        return tensors, at + size
    tensors = []
    for _ in range(count):
        tensor, at = read_tensor(meta, at)
        tensors.append(tensor)
    if 0 < size <= _MOST_KNOWN_BYTES and all(tensor.place == IN_PAYLOAD for tensor in tensors):
        if len(_known_records) >= _MOST_KNOWN:
            _known_records.clear()
        _known_records[records] = tensors
    return tensors, at


_NO_CONTEXT = {}


def _read_context(text):
    """The JSON of the parameters stands behind a line break, and stays text: it is what `parameters` gives."""
    own, _, parameters = text.partition(b"\n")
    context = json.loads(own) if own else {}
    if parameters:
        context["parameters"] = parameters.decode()
    return context


def read_execute(meta):
    """Returns the region of the inputs (offset, bytes), the scratch region, and each request's key, tensors and context."""
    count, _, region, region_bytes, scratch, scratch_bytes = _EXECUTE.unpack_from(meta, 0)
    at = _EXECUTE.size
    requests = []
    for _ in range(count):
        key, tensor_count, record_bytes, json_bytes = _REQUEST.unpack_from(meta, at)
        tensors, at = _read_records(meta, at + _REQUEST.size, tensor_count, record_bytes)
        context = _NO_CONTEXT
        if json_bytes:
            context = _read_context(meta[at : at + json_bytes])
            at += json_bytes
        requests.append((key, tensors, context))
    return (region, region_bytes), (scratch, scratch_bytes), requests


def read_response(meta, at):
    """Returns flags, tensors and the JSON part of a response, and where the next thing begins."""
    _, flags, tensor_count, _, json_bytes = _RESPONSE.unpack_from(meta, at)
    at += _RESPONSE.size
    tensors = []
    for _ in range(tensor_count):
        tensor, at = read_tensor(meta, at)
        tensors.append(tensor)
    extra = json.loads(meta[at : at + json_bytes]) if json_bytes else {}
    return flags, tensors, extra, at + json_bytes


def write_response(kind, flags, records, extra):
    """`records` are those of the tensors, as `Server.place` gives them."""
    text = json.dumps(extra).encode() if extra else b""
    tensors = b"".join(records)
    return b"".join((_RESPONSE.pack(kind, flags, len(records), len(tensors), len(text)), tensors, text))


def write_send(input_ns, output_ns, response):
    """`response` is a record by `write_response`."""
    return _SEND.pack(input_ns, output_ns) + response


def write_metric(operation, value):
    return _METRIC.pack(_METRIC_OPERATIONS[operation], value)


def write_result(responses, flags, times):
    """`responses` are records by `write_response`, `times` nanoseconds of input, inference and output."""
    return _RESULT.pack(len(responses), flags, *times) + b"".join(responses)
