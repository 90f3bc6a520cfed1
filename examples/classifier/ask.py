"""ask.py PICTURE ...: RGB, 64 x 64"""

import sys

import numpy as np
import tritonclient.grpc as triton
from PIL import Image

pictures = np.stack([np.asarray(Image.open(path).convert("RGB")) for path in sys.argv[1:]])
tensor = triton.InferInput("picture", pictures.shape, "UINT8").set_data_from_numpy(pictures)
best = triton.InferRequestedOutput("probabilities", class_count=1)  # VALUE:INDEX:LABEL instead of all values
answer = triton.InferenceServerClient("localhost:8001").infer("shape_classifier", [tensor], outputs=[best])
for path, (text,) in zip(sys.argv[1:], answer.as_numpy("probabilities")):
    probability, _, label = text.decode().split(":")
    print(f"{path}: {label} ({float(probability):.0%})")
