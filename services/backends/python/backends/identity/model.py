"""
Triton's backend `identity`: each INPUT<n> comes back as OUTPUT<n>, in the datatype and shape that it has.

Parameters: `execute_delay_ms`, what an execution waits; `instance_wise_delay_multiplier`, by which its instance's number multiplies
that (at 0 and 1 the delay itself); `creation_delay_sec`, what an instance waits before it is ready.
"""
import json
import re
import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        parameters = {name: value["string_value"] for name, value in config["parameters"].items()}
        indexes = [_indexes(config[kind], prefix) for kind, prefix in (("input", "INPUT"), ("output", "OUTPUT"))]
        if indexes[0] != indexes[1]:
            raise pb_utils.TritonModelException(
                "expected an OUTPUT<index> for each INPUT<index>, got inputs %s and outputs %s" % tuple(map(sorted, indexes))
            )
        instance = int(args["model_instance_name"].rpartition("_")[2])
        factor = max(1, instance * _number(parameters, "instance_wise_delay_multiplier", 1))
        self._delay = _number(parameters, "execute_delay_ms", 0) * factor / 1000
        time.sleep(_number(parameters, "creation_delay_sec", 0))

    def execute(self, requests):
        time.sleep(self._delay)
        return [pb_utils.InferenceResponse([_named(tensor) for tensor in request.inputs()]) for request in requests]


def _named(tensor):
    name = "OUTPUT" + tensor.name()[len("INPUT") :]
    # A Tensor over the same memory; DLPack has all datatypes but one.
    if tensor.triton_dtype() == pb_utils.numpy_to_triton_type(object):
        return pb_utils.Tensor(name, tensor.as_numpy())
    return pb_utils.Tensor.from_dlpack(name, tensor)


def _indexes(ports, prefix):
    indexes = set()
    for port in ports:
        found = re.fullmatch(prefix + r"(\d+)", port["name"])
        if found is None:
            raise pb_utils.TritonModelException(
                "expected names of the form %s<index>, got '%s'" % (prefix, port["name"])
            )
        indexes.add(int(found.group(1)))
    return indexes


def _number(parameters, name, default):
    text = parameters.get(name, str(default))
    if re.fullmatch(r"\d{1,9}", text) is None:
        raise pb_utils.TritonModelException("parameter '%s': got '%s', want a whole number" % (name, text))
    return int(text)
