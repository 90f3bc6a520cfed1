"""Runs the ONNX file beside it on one thread: a step of the face system as a Python model."""

import os

import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = os.path.join(args["model_repository"], args["model_version"], "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        responses = []
        for request in requests:
            fed = pb_utils.get_input_tensor_by_name(request, "input__0").as_numpy()
            (made,) = self.session.run(["output__0"], {"input__0": fed})
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("output__0", made)]))
        return responses
