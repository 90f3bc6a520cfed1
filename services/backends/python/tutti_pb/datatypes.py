"""Datatypes in their four spellings, and the bytes of string tensors."""
from __future__ import annotations

import struct

import numpy as np

from .errors import TritonModelException

# Name on the wire, number in the model configuration, NumPy's type; BF16 has none there.
_TABLE = (
    ("BOOL", 1, np.bool_),
    ("UINT8", 2, np.uint8),
    ("UINT16", 3, np.uint16),
    ("UINT32", 4, np.uint32),
    ("UINT64", 5, np.uint64),
    ("INT8", 6, np.int8),
    ("INT16", 7, np.int16),
    ("INT32", 8, np.int32),
    ("INT64", 9, np.int64),
    ("FP16", 10, np.float16),
    ("FP32", 11, np.float32),
    ("FP64", 12, np.float64),
    ("BYTES", 13, np.object_),
)
NUMBER = {**{name: number for name, number, _ in _TABLE}, "BF16": 14}
_NUMPY_BY_NUMBER = {number: kind for _, number, kind in _TABLE}
_NAME_BY_DTYPE = {np.dtype(kind): name for name, _, kind in _TABLE}
#: How the bytes of each datatype are kept in an array: bfloat16 as its 16 bits, BYTES as its length-prefixed form.
STORAGE = {
    **{name: np.dtype(kind) for name, _, kind in _TABLE},
    "BF16": np.dtype(np.uint16),
    "BYTES": np.dtype(np.uint8),
}
TRITON_STRING_TO_NUMPY = {
    **{f"TYPE_{name}": kind for name, _, kind in _TABLE if name not in ("BOOL", "BYTES")},
    "TYPE_BOOL": bool,
    "TYPE_STRING": np.object_,
}


def triton_to_numpy_type(data_type: int):
    """NumPy's type for a number of the model configuration (11 is FP32); None where it has none."""
    return _NUMPY_BY_NUMBER.get(data_type)


def numpy_to_triton_type(data_type) -> int | None:
    """The model configuration's number for a NumPy type; None where there is none."""
    try:
        # NumPy takes None for its default, a double.
        name = None if data_type is None else datatype_of(np.dtype(data_type))
    except TypeError:
        return None
    return None if name is None else NUMBER[name]


def triton_string_to_numpy(triton_type_string: str):
    """NumPy's type for a name like TYPE_FP32, as it stands in a model configuration."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def datatype_of(dtype: np.dtype) -> str | None:
    """The datatype for an array's dtype: byte strings and objects are BYTES; text, records, dates and foreign byte order none."""
    if dtype.kind == "S":
        return "BYTES"
    return _NAME_BY_DTYPE.get(dtype)


def serialize_byte_tensor(input_tensor: np.ndarray) -> bytes | None:
    """
    The wire form of a BYTES array in row-major order: per element a little-endian uint32 length and that many bytes.

    Elements that are not bytes are written as the UTF-8 of their text. None for an array of another type.
    """
    if input_tensor.dtype.kind not in ("O", "S"):
        return None
    parts = []
    for element in input_tensor.ravel(order="C").tolist():
        data = element if isinstance(element, bytes) else str(element).encode("utf-8")
        parts.append(struct.pack("<I", len(data)))
        parts.append(data)
    return b"".join(parts)


def deserialize_bytes_tensor(encoded_tensor) -> np.ndarray:
    """A flat array of bytes objects from their wire form (any object with a buffer); the elements are copies."""
    view = memoryview(encoded_tensor).cast("B")
    elements = []
    offset = 0
    while offset < len(view):
        start = offset + 4
        end = start + struct.unpack_from("<I", view, offset)[0] if start <= len(view) else start
        if end > len(view):
            raise TritonModelException(
                f"BYTES tensor is cut: an element at byte {offset} ends at {end}, there are {len(view)} bytes"
            )
        elements.append(bytes(view[start:end]))
        offset = end
    # np.array(list, dtype=object) would ask each element whether it is a sequence.
    array = np.empty(len(elements), dtype=np.object_)
    array[:] = elements
    return array
