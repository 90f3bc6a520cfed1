"""ask.py PICTURE: a JPEG or PNG file"""

import sys

import numpy as np
import tritonclient.grpc as triton

file = np.fromfile(sys.argv[1], np.uint8)[None]  # a batch of one
tensor = triton.InferInput("input_image", file.shape, "UINT8").set_data_from_numpy(file)
answer = triton.InferenceServerClient("localhost:8001").infer("ensemble_model", [tensor])
print(*answer.as_numpy("recognized_text").astype(str), sep="\n")
