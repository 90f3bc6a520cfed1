"""
Triton's backend `repeat`, which is decoupled: IN (INT32 [n]) comes back as n responses, each with OUT, one element, and IDX, its index
(UINT32). DELAY (UINT32 [n]) is what each waits before it is sent, WAIT (UINT32 [1]) what the execution takes: milliseconds.
"""
import json
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
INPUTS = {"IN": "TYPE_INT32", "DELAY": "TYPE_UINT32", "WAIT": "TYPE_UINT32"}
OUTPUTS = {"OUT": "TYPE_INT32", "IDX": "TYPE_UINT32"}


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        if not pb_utils.using_decoupled_model_transaction_policy(config):
            raise pb_utils.TritonModelException("expected model_transaction_policy { decoupled: true }")
        for kind, wanted in (("input", INPUTS), ("output", OUTPUTS)):
            found = {port["name"]: port["data_type"] for port in config[kind]}
            if found != wanted:
                raise pb_utils.TritonModelException("expected %ss %s, got %s" % (kind, wanted, found))

    def execute(self, requests):
        waits = [self._begin(request) for request in requests]
        time.sleep(max(waits) / 1000)

    def _begin(self, request):
        tensors = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        values, delays = tensors["IN"], tensors["DELAY"]
        sender = request.get_response_sender()
        if values.shape != delays.shape:
            text = "expected IN and DELAY shape to match, got %s and %s" % (list(values.shape), list(delays.shape))
            error = pb_utils.TritonError(text, pb_utils.TritonError.INVALID_ARG)
            sender.send(pb_utils.InferenceResponse(error=error), FINAL)
            return 0
        # The inputs are the request's, so they are copied for the thread that goes on after it.
        arguments = (sender, values.copy(), delays.copy())
        threading.Thread(target=_send, args=arguments, daemon=True).start()
        return int(tensors["WAIT"].ravel()[0])


def _send(sender, values, delays):
    shape = (1,) * values.ndim
    for index, (value, delay) in enumerate(zip(values.ravel(), delays.ravel())):
        time.sleep(int(delay) / 1000)
        if sender.is_cancelled():
            break
        outputs = (
            pb_utils.Tensor("OUT", np.full(shape, value, np.int32)),
            pb_utils.Tensor("IDX", np.full(shape, index, np.uint32)),
        )
        sender.send(pb_utils.InferenceResponse(list(outputs)))
    sender.send(flags=FINAL)
