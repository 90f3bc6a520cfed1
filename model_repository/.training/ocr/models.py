"""The files of the models, as a server would load them; the Python models on the stand-in."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent


def load_model(name):
    """-> the module of REPOSITORY/name/1/model.py"""
    stand_in = str(HERE / "stand_in")
    if stand_in not in sys.path:
        sys.path.insert(0, stand_in)
    spec = spec_from_file_location(name, REPOSITORY / name / "1" / "model.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def session(path):
    """Of an ONNX file, on one thread."""
    import onnxruntime  # the Python models are tested without it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
