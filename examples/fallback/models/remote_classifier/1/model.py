"""Pictures -> probabilities of a service elsewhere: asks it by HTTP, with the bytes of the pictures."""

import json
from urllib.request import Request, urlopen

import numpy as np
import triton_python_backend_utils as pb_utils

TIMEOUT = 1  # seconds


class TritonPythonModel:
    def initialize(self, args):
        self.url = json.loads(args["model_config"])["parameters"]["url"]["string_value"]

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        pictures = pb_utils.get_input_tensor_by_name(request, "picture").as_numpy()
        try:
            with urlopen(Request(self.url, pictures.tobytes()), timeout=TIMEOUT) as reply:
                found = np.array(json.load(reply), np.float32)
        except OSError as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"{self.url}: {error}"))
        return pb_utils.InferenceResponse([pb_utils.Tensor("probabilities", found)])
