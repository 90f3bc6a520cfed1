"""torch's types for the datatypes of tensors."""
from __future__ import annotations

import functools

_TORCH_NAMES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
}
#: Datatypes that a TorchScript model can take and give, by the configuration's name.
CONFIGURED = {**{f"TYPE_{name}": name for name in _TORCH_NAMES}, "TYPE_STRING": "BYTES"}


@functools.lru_cache(maxsize=1)
def dtypes(torch) -> dict:
    """torch's types by the name on the wire; texts are lists, and have none."""
    return {name: getattr(torch, attribute) for name, attribute in _TORCH_NAMES.items()}
