"""Classes by column -> words: the likeliest class of each, repeats merged, blanks dropped."""

import numpy as np
import triton_python_backend_utils as pb_utils

BLANK = 0
CLASSES = np.array([""] + list("0123456789abcdefghijklmnopqrstuvwxyz"))
INPUT, OUTPUT = "recognition_postprocessing_input", "recognition_postprocessing_output"


class TritonPythonModel:
    def execute(self, requests):
        return [respond(request) for request in requests]


def respond(request):
    columns = pb_utils.get_input_tensor_by_name(request, INPUT).as_numpy()
    return pb_utils.InferenceResponse([pb_utils.Tensor(OUTPUT, read(columns))])


def read(columns):
    """FP32 [N,26,37] -> N words, BYTES [N]: rank 1, as published"""
    path = columns.argmax(axis=2)
    begins = np.ones(path.shape, bool)
    begins[:, 1:] = path[:, 1:] != path[:, :-1]
    begins &= path != BLANK
    words = ["".join(CLASSES[row[mask]]).encode() for row, mask in zip(path, begins)]
    return np.array(words, np.object_)
