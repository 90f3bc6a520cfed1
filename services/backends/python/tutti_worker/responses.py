"""Responses of models as frames carry them."""

from __future__ import annotations

import json


def _parameter(name, value):
    """Name, kind and value; numbers as text, so that nothing of them is lost on the way."""
    if isinstance(value, bool):
        return (name, "bool", value)
    if isinstance(value, int):
        return (name, "int64", str(value))
    if isinstance(value, float):
        return (name, "double", repr(value))
    return (name, "string", value)


def parameter_entries(text):
    """Parameters, given as JSON, as lists of name, kind and value."""
    return [_parameter(*item) for item in json.loads(text).items()]


def describe_response(response, wanted):
    """The tensors of a response as `Server.place` takes them, and the JSON part. `wanted` None means every output."""
    extra = None
    if response._parameters != "{}":
        extra = {"parameters": parameter_entries(response._parameters)}
    error = response._error
    if error is not None:
        return [], {**(extra or {}), "error": {"message": error.message(), "code": int(error.code())}}
    tensors = response._output_tensors
    return [tensor._output() for tensor in tensors if wanted is None or tensor._name in wanted], extra
