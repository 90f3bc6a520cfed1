"""
Triton's backend `dyna_sequence`: sums up the INPUT (INT32, of any length) of the requests of a sequence. OUTPUT has the sum in each
element; that of the last request has the correlation id added to it (its lower 32 bits). The controls START, READY, END (INT32) and
CORRID (UINT64, or a number as text) must be configured.

Parameter `execute_delay_ms`: what an execution waits.
"""
import json
import re
import time

import numpy as np
import triton_python_backend_utils as pb_utils

CONTROLS = {"START", "READY", "END", "CORRID"}


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        controls = {control["name"] for control in config.get("sequence_batching", {}).get("control_input", [])}
        if controls != CONTROLS:
            raise pb_utils.TritonModelException("'START', 'END, 'READY' and 'CORRID' must be configured as the control inputs")
        for kind, name in (("input", "INPUT"), ("output", "OUTPUT")):
            found = [(port["name"], port["data_type"], len(port["dims"])) for port in config[kind]]
            if found != [(name, "TYPE_INT32", 1)]:
                raise pb_utils.TritonModelException(
                    "model must have one %s '%s' of TYPE_INT32 with vector shape, got %s" % (kind, name, found)
                )
        text = config.get("parameters", {}).get("execute_delay_ms", {}).get("string_value", "0")
        if re.fullmatch(r"\d{1,9}", text) is None:
            raise pb_utils.TritonModelException("parameter 'execute_delay_ms': got '%s', want a whole number" % text)
        self._delay = int(text) / 1000
        self._sums = {}

    def execute(self, requests):
        time.sleep(self._delay)
        return [self._answer({tensor.name(): tensor.as_numpy() for tensor in request.inputs()}) for request in requests]

    def _answer(self, inputs):
        start, ready, end, sequence = (inputs[name].ravel()[0] for name in ("START", "READY", "END", "CORRID"))
        if not ready:
            return pb_utils.InferenceResponse([])
        number = int(sequence)
        before = 0 if start else self._sums.get(number, 0)
        total = before + int(inputs["INPUT"].sum(dtype=np.int64)) + (number if end else 0)
        self._sums[number] = total
        if end:
            del self._sums[number]
        # Sums wrap around, as in Triton.
        value = np.uint32(total % 2**32).astype(np.int32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", np.full(inputs["INPUT"].shape, value, np.int32))])
