"""Requests in, responses out: joined into runs where their shapes allow it, and split again."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
import triton_python_backend_utils as pb_utils

from .datatypes import dtypes
from .failures import RequestFailure


class _Prepared(NamedTuple):
    """A request's inputs as `forward` takes them. Requests of one key can be joined."""

    position: int
    request: object
    values: list
    #: Shapes of its own inputs, by name.
    shapes: dict
    batch: int
    key: object


def answer(ports, runner, requests: list) -> list:
    """One response per request, in order."""
    responses = [None] * len(requests)
    groups = {}
    for position, request in enumerate(requests):
        try:
            prepared = _prepare(ports, runner, position, request)
            groups.setdefault(prepared.key, []).append(prepared)
        except RequestFailure as failure:
            responses[position] = _failed(failure)
    for group in groups.values():
        _run(ports, runner, group, responses)
    return responses


def _run(ports, runner, group: list, responses: list) -> None:
    """Runs a group at once. What goes wrong in the model is the answer to all of it."""
    try:
        results = runner.run(_join(ports, group, runner))
        outputs = [_output(port, results, runner.torch) for port in ports.outputs]
        parts = [_split(ports, port, output, group) for port, output in zip(ports.outputs, outputs)]
    except RequestFailure as failure:
        for member in group:
            responses[member.position] = _failed(failure)
        return
    for place, member in enumerate(group):
        wanted = member.request.requested_output_names()
        tensors = [
            pb_utils.Tensor(port.name, part[place]) for port, part in zip(ports.outputs, parts) if port.name in wanted
        ]
        responses[member.position] = pb_utils.InferenceResponse(tensors)


def _prepare(ports, runner, position: int, request) -> _Prepared:
    tensors = {tensor.name(): tensor for tensor in request.inputs()}
    values, shapes = [], {}
    for port in ports.inputs:
        if port.name in ports.ragged.made:
            # Known when the batch is.
            values.append(None)
            continue
        tensor = tensors.get(port.name)
        if tensor is None:
            raise RequestFailure(f"input '{port.name}' is missing", pb_utils.TritonError.INVALID_ARG)
        shapes[port.name] = tuple(tensor.shape())
        values.append(_value(port, tensor, runner))
    if not ports.is_batching:
        # Each alone.
        return _Prepared(position, request, values, shapes, 1, position)
    first = next(iter(shapes.values()))
    key = tuple(shape[1:] for name, shape in shapes.items() if name not in ports.ragged.inputs)
    return _Prepared(position, request, values, shapes, first[0] if first else 1, key)


def _value(port, tensor, runner):
    if port.datatype == "BYTES":
        return _texts(port, tensor.as_numpy())
    array = tensor.as_numpy()
    if not array.flags.aligned or not array.flags.writeable:
        # Kernels expect aligned numbers, and torch knows no read-only memory.
        array = array.copy()
    value = runner.torch.from_numpy(array)
    if value.dtype != dtypes(runner.torch)[port.datatype]:
        raise RequestFailure(
            f"input '{port.name}': datatype {tensor._datatype}, want {port.datatype}",
            pb_utils.TritonError.INVALID_ARG,
        )
    return value.to(runner.device)


def _texts(port, array) -> list:
    texts = []
    for position, element in enumerate(array.ravel().tolist()):
        try:
            texts.append(element.decode("utf-8"))
        except UnicodeDecodeError:
            raise RequestFailure(
                f"input '{port.name}': element {position} is not UTF-8, as texts of a TorchScript model must be",
                pb_utils.TritonError.INVALID_ARG,
            ) from None
    return texts


def _join(ports, group: list, runner) -> list:
    """The inputs of all as one list of inputs."""
    columns = zip(*(member.values for member in group))
    return [_joined(ports.ragged, port, values, group, runner) for port, values in zip(ports.inputs, columns)]


def _joined(ragged, port, values: tuple, group: list, runner):
    made = ragged.made.get(port.name)
    if made is not None:
        return runner.torch.from_numpy(made.tensor([member.shapes[made.source] for member in group])).to(runner.device)
    if port.datatype == "BYTES":
        return sum(values, [])
    if port.name in ragged.inputs:
        values = [value.flatten() for value in values]
    return values[0] if len(values) == 1 else runner.torch.cat(values, 0)


def _split(ports, port, output, group: list) -> list:
    """The part of each request. Raises RequestFailure if there is not one for each."""
    scattered = ports.ragged.scattered.get(port.name)
    if scattered is not None:
        return scattered.split(port.name, output, [member.shapes[scattered.source] for member in group])
    if not ports.is_batching:
        return [output]
    total = sum(member.batch for member in group)
    if output.shape[0] != total:
        raise RequestFailure(
            f"output '{port.name}': dimension 0 is {output.shape[0]}, want {total}, the batch of the inputs"
        )
    parts, end = [], 0
    for member in group:
        begin, end = end, end + member.batch
        parts.append(output[begin:end])
    return parts


def _output(port, results: list, torch):
    """The result that a port names, as an array. Raises RequestFailure with Triton's texts."""
    if port.index >= len(results):
        raise RequestFailure(
            f"The output {port.name} in the model configuration refers to an output index which doesn't exist. This "
            f"model has {len(results)} outputs",
            pb_utils.TritonError.INVALID_ARG,
        )
    result = results[port.index]
    if isinstance(result, list):
        _check_datatype(port, "BYTES")
        texts = np.empty(len(result), np.object_)
        texts[:] = [text.encode("utf-8") for text in result]
        return texts
    names = {kind: name for name, kind in dtypes(torch).items()}
    _check_datatype(port, names.get(result.dtype, str(result.dtype)))
    if result.dim() == 0:
        raise RequestFailure(
            f"output '{port.name}' is a scalar which is not supported.", pb_utils.TritonError.INVALID_ARG
        )
    return result.detach().cpu().contiguous().numpy()


def _check_datatype(port, datatype: str) -> None:
    if datatype == port.datatype:
        return
    said = ["TYPE_STRING" if name == "BYTES" else f"TYPE_{name}" for name in (port.datatype, datatype)]
    raise RequestFailure(
        f"configuration expects datatype {said[0]} for output '{port.name}', model provides {said[1]}",
        pb_utils.TritonError.INVALID_ARG,
    )


def _failed(failure: RequestFailure):
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(failure), failure.code))
