"""Evaluates expressions of NumPy, OpenCV and PIL for the tests of built-ins: one JSON line in, one out."""

import base64
import json
import struct
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
NAMES = {"BYTES": "object", "BOOL": "bool", "FP16": "float16", "FP32": "float32", "FP64": "float64"}


def to_dtype(datatype):
    return np.dtype(NAMES.get(datatype, datatype.lower()))


def to_datatype(dtype):
    known = {np.dtype(name): datatype for datatype, name in NAMES.items()}
    return known.get(dtype, str(dtype).upper())


def to_array(tensor):
    data = base64.b64decode(tensor["data"])
    if tensor["datatype"] == "BYTES":
        array = np.empty(tensor["shape"], object)
        array.reshape(-1)[:] = elements(data)
        return array
    return np.frombuffer(data, to_dtype(tensor["datatype"])).reshape(tensor["shape"])


def elements(data):
    """The texts of a tensor, each behind its length."""
    found = []
    while data:
        (length,) = struct.unpack_from("<I", data)
        found.append(data[4 : 4 + length])
        data = data[4 + length :]
    return found


def to_tensor(array):
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    texts = array.dtype == object
    raw = b"".join(struct.pack("<I", len(one)) + one for one in array.flat) if texts else array.tobytes()
    data = base64.b64encode(raw).decode()
    return {"datatype": to_datatype(array.dtype), "shape": list(array.shape), "data": data}


def answer(request):
    import cv2
    from PIL import Image

    scope = {"np": np, "cv2": cv2, "Image": Image}
    scope.update({name: to_array(tensor) for name, tensor in request["inputs"].items()})
    exec(request["setup"], scope)  # The tests' own text.
    result = eval(request["expression"], scope)
    results = result if isinstance(result, tuple) else (result,)
    return {"outputs": [to_tensor(one) for one in results]}


for line in sys.stdin:
    try:
        reply = answer(json.loads(line))
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(reply), flush=True)
