"""As much of Triton's Python backend as the OCR models use, to run them without a server."""

import numpy as np


class Tensor:
    def __init__(self, name, array):
        self._name, self._array = name, np.asarray(array)

    def name(self):
        return self._name

    def as_numpy(self):
        return self._array


class TritonError:
    INTERNAL, INVALID_ARG = 1, 3

    def __init__(self, message, code=INTERNAL):
        self._message, self._code = message, code

    def code(self):
        return self._code

    def message(self):
        return self._message


class InferenceRequest:
    def __init__(self, inputs):
        self._inputs = inputs

    def inputs(self):
        return self._inputs


class InferenceResponse:
    def __init__(self, output_tensors, error=None):
        self._tensors, self._error = output_tensors, error

    def output_tensors(self):
        return self._tensors

    def has_error(self):
        return self._error is not None

    def error(self):
        return self._error


def get_input_tensor_by_name(request, name):
    return next((tensor for tensor in request.inputs() if tensor.name() == name), None)
