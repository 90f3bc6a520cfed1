"""ask.py DEGRADED.png RESTORED.png"""

import sys

import numpy as np
import tritonclient.grpc as triton
from PIL import Image

picture = np.asarray(Image.open(sys.argv[1]).convert("RGB"))[..., ::-1].copy()  # the models take BGR, as OpenCV reads it
tensor = triton.InferInput("raw_image", picture.shape, "UINT8").set_data_from_numpy(picture)
answer = triton.InferenceServerClient("localhost:8001").infer("ens_face_restoration_v2.1", [tensor])
Image.fromarray(answer.as_numpy("image_out")[..., ::-1]).save(sys.argv[2])
