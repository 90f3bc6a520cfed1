"""Ragged batches: inputs that are joined flat, inputs that the batcher makes, outputs that are split by the shapes of an input."""
from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from .failures import LoadFailure, RequestFailure


class Ragged(NamedTuple):
    """The rules of a configuration for ragged batches; empty for most models."""

    inputs: frozenset
    #: By the name of the input that is made.
    made: dict
    #: By the name of the output: its source, and its shape, where -1 stands for the source's extent of the same place.
    scattered: dict


class Made(NamedTuple):
    """An input that the batcher makes of the shapes of its source in each request, with their batch dimension."""

    kind: str
    datatype: str
    source: str

    def tensor(self, shapes: list):
        """The numbers that the model gets, as NumPy's array."""
        counts = [prod(shape) for shape in shapes]
        ends = np.cumsum(counts).tolist()
        items = [shape[1:] for shape in shapes for _ in range(shape[0])]
        values = {
            "BATCH_ELEMENT_COUNT": counts,
            "BATCH_ACCUMULATED_ELEMENT_COUNT": ends,
            "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO": [0] + ends,
            # The shape is what counts.
            "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE": [0] * max(counts),
            "BATCH_ITEM_SHAPE": items,
            "BATCH_ITEM_SHAPE_FLATTEN": [extent for item in items for extent in item],
        }[self.kind]
        return np.array(values, np.float32 if self.datatype == "FP32" else np.int32)


class Scattered(NamedTuple):
    """How an output is split."""

    source: str
    dims: tuple

    def split(self, name: str, output, shapes: list) -> list:
        """A part for the source's shape of each request; what is behind them is left out."""
        flat, parts, end = output.reshape(-1), [], 0
        for source in shapes:
            shape = [source[i] if extent < 0 else extent for i, extent in enumerate(self.dims)]
            begin, end = end, end + prod(shape)
            if end > flat.size:
                raise RequestFailure(
                    f"output '{name}': {flat.size} elements, want at least {end} for the shapes of input '{self.source}'"
                )
            parts.append(flat[begin:end].reshape(shape))
        return parts


def read_ragged(config: dict, outputs: list, datatypes: dict, model: str, is_batching: bool) -> Ragged:
    """`outputs` are the ports of the configuration, `datatypes` names those of its types. Raises LoadFailure."""
    made = {
        name: Made(entry.get("kind", "BATCH_ELEMENT_COUNT"), datatypes[entry["data_type"]], entry["source_input"][0])
        for entry in config.get("batch_input", [])
        for name in entry.get("target_name", [])
    }
    ports = {port.name: port for port in outputs}
    scattered = {}
    for entry in config.get("batch_output", []):
        for name in entry["target_name"]:
            if ports[name].datatype == "BYTES":
                raise LoadFailure(
                    f"unable to load model '{model}', batch output '{name}' is TYPE_STRING, want a datatype of a fixed size"
                )
            dims = (-1,) * is_batching + ports[name].dims
            scattered[name] = Scattered(entry["source_input"][0], dims)
    inputs = frozenset(port["name"] for port in config["input"] if port.get("allow_ragged_batch"))
    return Ragged(inputs, made, scattered)
