"""A step of a face system in NumPy alone: pre-processing, a convolution of 3 x 3, or post-processing, by the name of the model."""

import numpy as np
import triton_python_backend_utils as pb_utils

# Sharpens a little; its sum is 1.
KERNEL = np.array([[-1, -2, -1], [-2, 28, -2], [-1, -2, -1]], dtype=np.float32) / np.float32(16)


def numpy_pre(image):
    """UINT8 [height, width, 3] to FP32 [1, 3, height, width] from -1 to 1."""
    planes = np.ascontiguousarray(image.transpose(2, 0, 1)[None]).astype(np.float32)
    planes /= np.float32(127.5)
    planes -= np.float32(1)
    return planes


def numpy_infer(planes):
    """Each plane convolved with KERNEL, its edges repeated."""
    height, width = planes.shape[2:]
    padded = np.pad(planes, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge")
    made = np.zeros_like(planes)
    for (row, column), weight in np.ndenumerate(KERNEL):
        made += padded[:, :, row : row + height, column : column + width] * weight
    return made


def numpy_post(planes):
    """FP32 [1, 3, height, width] from -1 to 1 to UINT8 [height, width, 3]."""
    scaled = np.rint((planes[0] + np.float32(1)) * np.float32(127.5))
    return np.ascontiguousarray(np.clip(scaled, 0, 255).astype(np.uint8).transpose(1, 2, 0))


STEPS = {step.__name__: step for step in (numpy_pre, numpy_infer, numpy_post)}


class TritonPythonModel:
    def initialize(self, args):
        self.step = STEPS[args["model_name"]]

    def execute(self, requests):
        responses = []
        for request in requests:
            given = pb_utils.get_input_tensor_by_name(request, "input__0").as_numpy()
            made = pb_utils.Tensor("output__0", self.step(given))
            responses.append(pb_utils.InferenceResponse([made]))
        return responses
