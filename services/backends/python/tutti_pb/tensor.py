"""Tensors as models see them."""
from __future__ import annotations

import sys

import numpy as np

from . import dlpack
from .datatypes import (
    NUMBER,
    STORAGE,
    datatype_of,
    deserialize_bytes_tensor,
    serialize_byte_tensor,
)
from .errors import TritonModelException, expect

_HOST = (dlpack.CPU, 0)
# Copied faster than viewed.
_SMALL_BYTES = 8192
# Datatypes whose tensors are arrays from the start where they came in: numbers that NumPy knows.
_ARRAYS = frozenset(STORAGE) - {"BF16", "BYTES"}


class Tensor:
    """
    A named tensor: an input of a request or an output of a response.

    The array is kept, not copied, unless it is not C-contiguous. Arrays of objects or byte strings are BYTES tensors; arrays
    of `str` are not supported, as in Triton.
    """

    # _array: what as_numpy gives, made on demand for BYTES that came in; _wire: the bytes on the wire, made on demand;
    # _device: DLPack's (type, id); _borrowed: memory of a device that NumPy cannot see.
    __slots__ = ("_name", "_datatype", "_shape", "_array", "_wire", "_device", "_borrowed", "__weakref__")

    def __init__(self, name: str, numpy_array: np.ndarray, /):
        if type(name) is not str:
            name = expect(name, str, "Tensor", "name")
        if type(numpy_array) is not np.ndarray:
            expect(numpy_array, np.ndarray, "Tensor", "numpy_array")
        datatype = datatype_of(numpy_array.dtype)
        if datatype is None:
            raise TritonModelException("NumPy dtype is not supported.")
        self._set(name, datatype, numpy_array.shape)
        self._array = np.asarray(numpy_array, order="C")

    def _set(self, name: str, datatype: str, shape) -> None:
        if name == "":
            raise TritonModelException("Tensor name cannot be an empty string.")
        self._name = name
        self._datatype = datatype
        self._shape = tuple(shape)
        self._array = None
        self._wire = None
        self._device = _HOST
        self._borrowed = None

    @classmethod
    def _received(cls, name: str, datatype: str, shape, data, start: int = 0, size: int | None = None) -> Tensor:
        """
        For the server's side: a tensor over the bytes that came in, viewed, not copied; they stay alive as long as the tensor or
        any array of it. `datatype` is the name on the wire; the tensor is `size` bytes of the buffer `data` from `start`, or all.
        """
        self = cls.__new__(cls)
        self._set(name, datatype, shape)
        if size and datatype in _ARRAYS:
            self._array = np.ndarray(self._shape, STORAGE[datatype], data, start)
        elif size is None:
            self._wire = memoryview(data).cast("B")
        else:
            self._wire = memoryview(b"" if data is None else data)[start : start + size]
        return self

    def _storage(self) -> np.ndarray:
        """The numbers as an array; bfloat16 as its 16 bits."""
        if self._array is None:
            dtype = STORAGE[self._datatype]
            # NumPy makes no array over an empty buffer.
            flat = np.frombuffer(self._wire, dtype) if len(self._wire) > 0 else np.empty(0, dtype)
            self._array = flat.reshape(self._shape)
        return self._array

    def _payload(self) -> memoryview | bytes:
        """For the server's side: the C-contiguous bytes on the wire; a view of the array where there is one that is not small."""
        if self._wire is not None:
            return self._wire
        array = self._array
        if array is not None and array.nbytes <= _SMALL_BYTES and self._datatype != "BYTES":
            return array.tobytes()
        if self._borrowed is not None:
            self._array, self._borrowed = _copy_to_host(self), None
            self._device = (dlpack.CPU, 0)
        if self._datatype == "BYTES":
            # Not kept: the model may change its array before the next use.
            return memoryview(serialize_byte_tensor(self._array))
        # reshape(-1) takes a scalar too, view(uint8) does not.
        return memoryview(self._array.reshape(-1).view(np.uint8))

    def _output(self) -> tuple:
        """For the server's side: name, number of the datatype, shape and bytes."""
        return self._name, NUMBER[self._datatype], self._shape, self._payload()

    def name(self) -> str:
        """The tensor's name in the model configuration."""
        return self._name

    def shape(self) -> list[int]:
        """The extents, the batch included."""
        return list(self._shape)

    def triton_dtype(self) -> int:
        """The datatype's number in the model configuration (11 is FP32). Triton 2.51 raises TypeError here."""
        return NUMBER[self._datatype]

    def is_cpu(self) -> bool:
        """Whether the memory is the host's."""
        return self._device[0] == dlpack.CPU

    def as_numpy(self) -> np.ndarray:
        """The tensor's memory as an array; BYTES as an array of `bytes` objects."""
        if not self.is_cpu():
            raise TritonModelException("Tensor is stored in GPU and cannot be converted to NumPy.")
        if self._datatype == "BF16":
            raise TritonModelException(
                "Tensor dtype is BF16 and cannot be converted to NumPy. Use to_dlpack() and from_dlpack() instead."
            )
        if self._array is None and self._datatype == "BYTES":
            array = deserialize_bytes_tensor(self._wire)
            if array.size != _count(self._shape):
                raise TritonModelException(
                    f"tensor '{self._name}' has {array.size} elements, its shape {list(self._shape)} says {_count(self._shape)}"
                )
            # From now on the array is the tensor: what a model changes in it is what goes out.
            self._array, self._wire = array.reshape(self._shape), None
            return self._array
        return self._storage()

    @staticmethod
    def from_dlpack(name: str, tensor) -> Tensor:
        """
        A tensor over the memory of another framework's, which stays alive as long as this one: `tensor` is a DLPack capsule or
        an object with `__dlpack__`. Nothing is copied; the memory must be C-contiguous.
        """
        name = expect(name, str, "Tensor.from_dlpack", "name")
        if name == "":
            raise TritonModelException("Tensor name cannot be an empty string.")
        borrowed = dlpack.from_capsule(_capsule_of(tensor))
        self = Tensor.__new__(Tensor)
        self._set(name, borrowed.datatype, borrowed.shape)
        self._device = borrowed.device
        if self.is_cpu():
            self._array = dlpack.as_array(borrowed)
        else:
            self._borrowed = borrowed
        return self

    def to_dlpack(self):
        """A DLPack capsule over the tensor's memory, for one consumer; the memory lives until that one is done."""
        if self._datatype == "BYTES":
            raise TritonModelException("DLPack does not have support for string tensors.")
        if self._borrowed is not None:
            address, keeper = self._borrowed.address, self._borrowed.keeper
        else:
            keeper = self._storage()
            # Consumers may write, and know no read-only memory.
            keeper = keeper if keeper.flags.writeable else keeper.copy()
            address = keeper.ctypes.data
        return dlpack.to_capsule(self._datatype, self._shape, address, self._device, keeper)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy:
            raise BufferError("a tensor is exported as it is, never as a copy")
        if dl_device is not None and tuple(dl_device) != self._device:
            raise BufferError(f"the tensor is on DLPack device {self._device}, not on {dl_device}")
        return self.to_dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __reduce__(self):
        return (_rebuild, (self._name, self._datatype, self._shape, bytes(self._payload())))

    def __copy__(self) -> Tensor:
        twin = Tensor.__new__(Tensor)
        for slot in ("_name", "_datatype", "_shape", "_array", "_wire", "_device", "_borrowed"):
            setattr(twin, slot, getattr(self, slot))
        return twin

    def __repr__(self) -> str:
        return f"Tensor({self._name!r}, {self._datatype}, {list(self._shape)})"


def _rebuild(name: str, datatype: str, shape, data: bytes) -> Tensor:
    # A bytearray, so that the copy's arrays can be written.
    return Tensor._received(name, datatype, shape, bytearray(data))


def _count(shape) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _capsule_of(tensor):
    if hasattr(tensor, "__dlpack__") and hasattr(tensor, "__dlpack_device__"):
        return tensor.__dlpack__(stream=None)
    if type(tensor).__name__ == "PyCapsule":
        return tensor
    raise TritonModelException(
        "Provided tensor is not supported. Tensor must be a DLPack capsule or have `__dlpack__` and "
        "`__dlpack_device__` attributes"
    )


def _copy_to_host(tensor: Tensor) -> np.ndarray:
    """Copies with the framework that made the tensor; it is imported already, or there would be no such memory."""
    torch = sys.modules.get("torch")
    if torch is not None:
        copied = torch.utils.dlpack.from_dlpack(tensor.to_dlpack()).cpu()
        return Tensor.from_dlpack(tensor.name(), copied)._storage()
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        return cupy.from_dlpack(tensor).get()
    raise TritonModelException(
        f"tensor '{tensor.name()}' is stored in GPU and neither torch nor cupy is imported to copy it to the host"
    )
