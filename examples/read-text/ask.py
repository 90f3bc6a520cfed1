"""ask.py PICTURE: a JPEG, PNG or WebP file"""

import sys

import numpy as np
import tritonclient.grpc as triton

with open(sys.argv[1], "rb") as file:
    data = np.array([file.read()], np.object_)
tensor = triton.InferInput("file", [1], "BYTES").set_data_from_numpy(data)
answer = triton.InferenceServerClient("localhost:8001").infer("read_text", [tensor])
print(*(text.decode() for text in answer.as_numpy("text")), sep="\n")
