"""
Triton's backend `square`, which is decoupled: IN (INT32 [1]) of n comes back as n responses, each with OUT (INT32 [1]) of n.

Parameter `custom_infer_delay_ns`: what an execution waits, in nanoseconds.
"""
import json
import re
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        if not pb_utils.using_decoupled_model_transaction_policy(config):
            raise pb_utils.TritonModelException("expected model_transaction_policy { decoupled: true }")
        for kind, name in (("input", "IN"), ("output", "OUT")):
            found = {port["name"]: port["data_type"] for port in config[kind]}
            if found != {name: "TYPE_INT32"}:
                raise pb_utils.TritonModelException("expected %s %s of TYPE_INT32, got %s" % (kind, name, found))
        text = config["parameters"].get("custom_infer_delay_ns", {}).get("string_value", "0")
        if re.fullmatch(r"\d{1,15}", text) is None:
            raise pb_utils.TritonModelException(
                "parameter 'custom_infer_delay_ns': got '%s', want a whole number of nanoseconds" % text
            )
        self._delay = int(text) / 1e9

    def execute(self, requests):
        time.sleep(self._delay)
        for request in requests:
            (tensor,) = request.inputs()
            arguments = (request.get_response_sender(), tensor.as_numpy().copy())
            threading.Thread(target=_send, args=arguments, daemon=True).start()


def _send(sender, array):
    for _ in range(int(array.ravel()[0])):
        if sender.is_cancelled():
            break
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.full(array.shape, array.ravel()[0], np.int32))]))
    sender.send(flags=FINAL)
