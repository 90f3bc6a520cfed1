"""Which input of the configuration is which argument of `forward`, and which output which of its results."""
from __future__ import annotations

import re
from typing import NamedTuple

from triton_python_backend_utils import Logger

from .datatypes import CONFIGURED
from .failures import LoadFailure
from .ragged import Ragged, read_ragged
from .results import refusal_of


class Port(NamedTuple):
    """An input or output. `dims` are those that the model sees, without the batch; `index` counts arguments or results."""

    name: str
    datatype: str
    dims: tuple
    index: int


class Ports(NamedTuple):
    """The inputs and outputs of a model. With `is_dict`, `forward` takes all inputs in one dictionary by name."""

    inputs: tuple
    outputs: tuple
    is_dict: bool
    is_batching: bool
    ragged: Ragged


def read_ports(config: dict, model: str, module) -> Ports:
    """Holds the configuration against the `forward` of a TorchScript module. Raises LoadFailure with Triton's texts."""
    is_batching = int(config.get("max_batch_size", 0)) > 0
    ports = {}
    for kind in ("input", "output"):
        if not config.get(kind):
            raise LoadFailure(f"model configuration must contain at least one {kind}, none were specified.")
        ports[kind] = [_read_port(port, kind, model, is_batching) for port in config[kind]]
    ragged = read_ragged(config, ports["output"], CONFIGURED, model, is_batching)
    for kind in ports:
        ports[kind] += [_read_port(port, kind, model, is_batching) for port in _states(config, kind)]
    ports["input"] += [Port(name, made.datatype, (), -1) for name, made in ragged.made.items()]
    arguments = _arguments(module)
    is_dict = len(arguments) == 1 and arguments[0].type.kind() == "DictType"
    controls = _controls(config)
    inputs = ports["input"] + [Port(name, datatype, (), index) for name, datatype, index in controls]
    if not is_dict:
        names = _argument_names(arguments)
        if len(names) != len(inputs):
            raise LoadFailure(
                f"unable to load model '{model}', configuration expects {len(inputs)} inputs, model provides {len(names)}"
            )
        numbered = _number_inputs(ports["input"], names, model)
        inputs = _in_order(numbered + inputs[len(numbered) :], model)
    outputs = tuple(_number_outputs(ports["output"], model))
    refused = refusal_of(module._c._get_method("forward").schema.returns[0].type)
    if refused is not None:
        raise LoadFailure(f"unable to load model '{model}', {refused}")
    return Ports(tuple(inputs), outputs, is_dict, is_batching, ragged)


def _read_port(port: dict, kind: str, model: str, is_batching: bool) -> Port:
    name, datatype = port["name"], port.get("data_type", "TYPE_INVALID")
    if datatype not in CONFIGURED:
        raise LoadFailure(f"unsupported datatype {datatype} for {kind} '{name}' for model '{model}'")
    seen = port["reshape"].get("shape", []) if "reshape" in port else port.get("dims", [])
    dims = tuple(int(extent) for extent in seen)
    if datatype == "TYPE_STRING" and len(dims) + is_batching > 1:
        raise LoadFailure(
            f"Triton only supports 1 dimensional List of String as {kind} for '{name}' for model '{model}'"
        )
    return Port(name, CONFIGURED[datatype], dims, -1)


def _arguments(module) -> list:
    """The arguments of `forward` without self."""
    arguments = module._c._get_method("forward").schema.arguments
    return arguments[1:] if arguments and arguments[0].type.kind() == "ClassType" else arguments


def _argument_names(arguments: list) -> list:
    if any(argument.type.kind() == "DictType" for argument in arguments[1:]):
        raise LoadFailure(
            "Multiple inputs of kind DictType were detected. Only a single input of type Dict(str, Tensor) is supported."
        )
    for argument in arguments:
        if argument.type.kind() not in ("TensorType", "ListType"):
            raise LoadFailure(
                f"An input of type '{argument.type.annotation_str}' was detected in the model. Only a single input of "
                "type Dict(str, Tensor) or input(s) of type Tensor are supported."
            )
    return [argument.name for argument in arguments]


def _controls(config: dict) -> list:
    """The inputs that the sequence batcher adds: name, datatype and index."""
    found = []
    for control in config.get("sequence_batching", {}).get("control_input", []):
        index = _index_of(control["name"])
        if index is None:
            raise LoadFailure(
                f"input '{control['name']}' does not follow <name>__<index> naming convention."
            )
        kind = control["control"][0]
        by_field = {"fp32_false_true": "TYPE_FP32", "int32_false_true": "TYPE_INT32", "bool_false_true": "TYPE_BOOL"}
        datatype = next((t for field, t in by_field.items() if kind.get(field)), kind.get("data_type"))
        found.append((control["name"], CONFIGURED.get(datatype, str(datatype)), index))
    return found


def _states(config: dict, kind: str) -> list:
    """The inputs or outputs of the states that the sequence batcher keeps, but for those that are outputs of the model too."""
    declared = {port["name"] for port in config[kind]}
    states = config.get("sequence_batching", {}).get("state", [])
    return [{**state, "name": state[f"{kind}_name"]} for state in states if state[f"{kind}_name"] not in declared]


def _number_inputs(inputs: list, names: list, model: str) -> list:
    """All by argument names, else all by `<name>__<index>`, else in the order of the configuration."""
    if all(port.name in names for port in inputs):
        return [port._replace(index=names.index(port.name)) for port in inputs]
    return _number_by_name(
        inputs,
        [names.index(port.name) if port.name in names else _index_of(port.name) for port in inputs],
        model,
        f"of model '{model}' are neither arguments of its forward function nor do they all follow the <name>__<index> "
        "naming convention",
        "inputs",
    )


def _number_outputs(outputs: list, model: str) -> list:
    return _number_by_name(
        outputs,
        [_index_of(port.name) for port in outputs],
        model,
        f"of model '{model}' do not all follow the <name>__<index> naming convention",
        "outputs",
    )


def _number_by_name(ports: list, named: list, model: str, otherwise: str, kind: str) -> list:
    """All by `<name>__<index>`, else in the order of the configuration, which no name may contradict. `named` has the position that each name means."""
    indices = [_index_of(port.name) for port in ports]
    if None in indices:
        for position, (port, index) in enumerate(zip(ports, named)):
            if index not in (None, position):
                raise LoadFailure(
                    f"unable to load model '{model}', {kind[:-1]} '{port.name}' names position {index} and stands at "
                    f"{position}; {kind} {otherwise}, so their order counts: want names and order to agree"
                )
        Logger.log_warn(f"{kind} {otherwise}; they are taken in the order of the configuration")
        indices = range(len(ports))
    return [port._replace(index=index) for port, index in zip(ports, indices)]


def _index_of(name: str):
    """Reads what follows the first `__`, if it is a number."""
    _, _, index = name.partition("__")
    return int(index) if re.fullmatch("[0-9]+", index) else None


def _in_order(inputs: list, model: str) -> list:
    """By index; each argument must have one input."""
    ordered = sorted(inputs, key=lambda port: port.index)
    for position, port in enumerate(ordered):
        if port.index != position:
            raise LoadFailure(
                f"unable to load model '{model}', input '{port.name}' names argument {port.index}, want each of 0 to "
                f"{len(ordered) - 1} once"
            )
    return ordered
