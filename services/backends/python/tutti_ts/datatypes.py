"""torch's types for the datatypes of tensors."""
from __future__ import annotations


def dtypes(torch) -> dict:
    """By the name on the wire; what is not here, TorchScript models do not take."""
    return {
        "BOOL": torch.bool,
        "UINT8": torch.uint8,
        "INT8": torch.int8,
        "INT16": torch.int16,
        "INT32": torch.int32,
        "INT64": torch.int64,
        "FP16": torch.float16,
        "FP32": torch.float32,
        "FP64": torch.float64,
    }
