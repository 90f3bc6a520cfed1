"""
DLPack without a framework: capsules made from memory, and memory taken from capsules.

NumPy's own export has neither bfloat16 nor, in many versions, booleans and arrays that are not writable; its import has
no bfloat16. So the structures are read and written here, as DLPack 0.8 defines them (and 1.0 on the way in).
"""
from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from .datatypes import STORAGE
from .errors import TritonModelException

CPU, CUDA, CUDA_HOST = 1, 2, 3
_HOST_DEVICES = (CPU, CUDA_HOST)
# Type codes of DLPack.
_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6
_NUMPY_KIND = {"i": _INT, "u": _UINT, "f": _FLOAT, "b": _BOOL}
_TYPE_OF = {
    name: (_NUMPY_KIND[dtype.kind], dtype.itemsize * 8)
    for name, dtype in STORAGE.items()
    if name not in ("BYTES", "BF16")
}
_TYPE_OF["BF16"] = (_BFLOAT, 16)
_DATATYPE_OF = {code: name for name, code in _TYPE_OF.items()}


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


def _python(name, result, *arguments):
    function = ctypes.pythonapi[name]
    function.restype, function.argtypes = result, arguments
    return function


_capsule_new = _python(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
_capsule_is = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_capsule_pointer = _python(
    "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
)
_capsule_rename = _python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# A capsule that is being destroyed has no references: it must pass as an address, not as an object.
_dying_is = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_dying_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

#: Objects that the capsules that we gave out point to, by the address of their structure.
_given: dict[int, tuple] = {}


@_Deleter
def _release(address):
    _given.pop(address, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _capsule_destroyed(capsule):
    # Consumers rename the capsule; one that still has its first name was never consumed.
    if _dying_is(capsule, b"dltensor"):
        _given.pop(_dying_pointer(capsule, b"dltensor"), None)


# Frameworks may call these while the interpreter goes down, after this module was cleared: they must outlive it.
for _callback in (_release, _capsule_destroyed):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))


class Borrowed(NamedTuple):
    """Memory that a capsule held. `keeper` gives it back to its producer when the last reference to it ends."""

    datatype: str
    shape: tuple
    device: tuple
    address: int
    keeper: object


class _Lent:
    """Memory that NumPy exports for us: as numbers of its item size, whose type is corrected then."""

    __slots__ = ("_keeper", "__array_interface__")

    def __init__(self, datatype: str, shape, address: int, keeper: object):
        self._keeper = keeper
        typestr = f"<u{_TYPE_OF[datatype][1] // 8}"
        interface = {"version": 3, "shape": tuple(shape), "typestr": typestr, "data": (address, False)}
        self.__array_interface__ = interface


def to_capsule(datatype: str, shape, address: int, device: tuple, keeper: object):
    """A capsule over C-contiguous memory. The keeper lives until the consumer is done, or the capsule if there is none."""
    if not hasattr(np.ndarray, "__dlpack__"):
        return _own_capsule(datatype, shape, address, device, keeper)
    # An unused capsule may be freed while an exception is raised; a destructor written in Python would lose that exception.
    capsule = np.asarray(_Lent(datatype, shape, address, keeper)).__dlpack__()
    tensor = _Managed.from_address(_capsule_pointer(capsule, b"dltensor")).tensor
    tensor.data = address
    tensor.device.type, tensor.device.id = device
    tensor.dtype.code, tensor.dtype.bits = _TYPE_OF[datatype]
    return capsule


def _own_capsule(datatype: str, shape, address: int, device: tuple, keeper: object):
    managed = _Managed()
    extents = (ctypes.c_int64 * len(shape))(*shape)
    tensor = managed.tensor
    tensor.data = address
    tensor.device.type, tensor.device.id = device
    tensor.ndim = len(shape)
    tensor.dtype.code, tensor.dtype.bits = _TYPE_OF[datatype]
    tensor.dtype.lanes = 1
    tensor.shape = extents
    managed.deleter = ctypes.cast(_release, ctypes.c_void_p).value
    where = ctypes.addressof(managed)
    _given[where] = (managed, extents, keeper)
    return _capsule_new(where, b"dltensor", ctypes.cast(_capsule_destroyed, ctypes.c_void_p))


class _Keeper:
    """Owns consumed memory: NumPy arrays over it hold this object as their base."""

    __slots__ = ("_address", "_deleter", "__array_interface__", "__weakref__")

    def __init__(self, address: int, deleter: int | None):
        self._address = address
        self._deleter = deleter

    def __del__(self, _call=ctypes.CFUNCTYPE(None, ctypes.c_void_p)):
        if self._deleter:
            _call(self._deleter)(self._address)


def from_capsule(capsule) -> Borrowed:
    """Consumes a capsule; it must be C-contiguous and of a datatype that tensors have."""
    if _capsule_is(capsule, b"dltensor"):
        address = _capsule_pointer(capsule, b"dltensor")
        managed, used = _Managed.from_address(address), b"used_dltensor"
    elif _capsule_is(capsule, b"dltensor_versioned"):
        address = _capsule_pointer(capsule, b"dltensor_versioned")
        managed, used = _ManagedVersioned.from_address(address), b"used_dltensor_versioned"
        if managed.major != 1:
            raise TritonModelException(f"DLPack version {managed.major} is not supported.")
    else:
        raise TritonModelException("Provided tensor is not a DLPack capsule, or was used before.")
    tensor = managed.tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    _check_layout(tensor, shape)
    datatype = _datatype(tensor)
    device = _device(tensor)
    # From here on the memory is ours: the producer must not free it with the capsule.
    _capsule_rename(capsule, used)
    keeper = _Keeper(address, managed.deleter)
    return Borrowed(datatype, shape, device, (tensor.data or 0) + tensor.byte_offset, keeper)


def as_array(borrowed: Borrowed) -> np.ndarray:
    """The memory of a host device as an array; nothing is copied."""
    dtype = STORAGE[borrowed.datatype]
    if 0 in borrowed.shape:
        return np.empty(borrowed.shape, dtype)
    borrowed.keeper.__array_interface__ = {
        "version": 3,
        "shape": borrowed.shape,
        "typestr": dtype.str,
        "data": (borrowed.address, False),
    }
    return np.asarray(borrowed.keeper)


def _check_layout(tensor: _Tensor, shape: tuple) -> None:
    if not tensor.strides or 0 in shape:
        return
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(tensor.strides[: tensor.ndim])):
        # The stride of an axis of one element says nothing.
        if extent != 1 and stride != expected:
            raise TritonModelException(
                "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
            )
        expected *= extent


def _datatype(tensor: _Tensor) -> str:
    kind = tensor.dtype
    name = _DATATYPE_OF.get((kind.code, kind.bits))
    # PyTorch before 2.0 exports booleans as unsigned bytes; they arrive as UINT8, as in Triton.
    if name is None or kind.lanes != 1:
        raise TritonModelException(
            f"DLPack tensor of type code {kind.code}, {kind.bits} bits, {kind.lanes} lanes is not supported."
        )
    return name


def _device(tensor: _Tensor) -> tuple:
    device = tensor.device
    if device.type in _HOST_DEVICES:
        return (CPU, 0)
    if device.type == CUDA:
        return (CUDA, device.id)
    raise TritonModelException(f"DLDevice type {device.type} is not support by Python backend.")
