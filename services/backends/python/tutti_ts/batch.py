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
        results = runner.run(_join([member.values for member in group], runner.torch))
        outputs = [_output(port, results, runner.torch) for port in ports.outputs]
        total = sum(member.batch for member in group)
        if ports.is_batching:
            _check_batches(ports.outputs, outputs, total)
    except RequestFailure as failure:
        for member in group:
            responses[member.position] = _failed(failure)
        return
    begin = 0
    for member in group:
        end = begin + member.batch
        wanted = member.request.requested_output_names()
        tensors = []
        for port, output in zip(ports.outputs, outputs):
            if port.name in wanted:
                part = output[begin:end] if ports.is_batching and len(group) > 1 else output
                tensors.append(pb_utils.Tensor(port.name, part))
        responses[member.position] = pb_utils.InferenceResponse(tensors)
        begin = end


def _prepare(ports, runner, position: int, request) -> _Prepared:
    tensors = {tensor.name(): tensor for tensor in request.inputs()}
    values, shapes = [], []
    for port in ports.inputs:
        tensor = tensors.get(port.name)
        if tensor is None:
            raise RequestFailure(f"input '{port.name}' is missing", pb_utils.TritonError.INVALID_ARG)
        shapes.append(tuple(tensor.shape()))
        values.append(_value(port, tensor, runner))
    if not ports.is_batching:
        # Each alone.
        return _Prepared(position, request, values, 1, position)
    batch = shapes[0][0] if shapes[0] else 1
    return _Prepared(position, request, values, batch, tuple(shape[1:] for shape in shapes))


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


def _join(members: list, torch) -> list:
    """The inputs of all as one list of inputs; those of a single request as they are."""
    if len(members) == 1:
        return members[0]
    return [
        sum(values, []) if isinstance(values[0], list) else torch.cat(values, 0) for values in zip(*members)
    ]


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


def _check_batches(ports, outputs: list, total: int) -> None:
    for port, output in zip(ports, outputs):
        if output.shape[0] != total:
            raise RequestFailure(
                f"output '{port.name}': dimension 0 is {output.shape[0]}, want {total}, the batch of the inputs"
            )


def _failed(failure: RequestFailure):
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(failure), failure.code))
