"""
Python models without a server, a process for each, in a chain: what they cost by themselves on the same cores.

`python models_alone.py FOLDER... SHAPE` feeds the first model bytes of that shape (JSON), and each other one what the one before made, once.
Then a line "IN_FLIGHT REQUESTS" runs so many requests: only a token goes from process to process, and each model has its input
already. The answer is a line with the milliseconds of each request, as JSON.
"""

import importlib.util
import json
import multiprocessing
import os
import sys
import time
import types

import numpy as np


class Tensor:
    def __init__(self, name, array):
        self.name, self.array = name, array

    def as_numpy(self):
        return self.array


class InferenceResponse:
    def __init__(self, tensors):
        self.tensors = tensors


def load(folder):
    """The function of an input that a model's `execute` is."""
    library = types.ModuleType("triton_python_backend_utils")
    library.Tensor, library.InferenceResponse = Tensor, InferenceResponse
    library.get_input_tensor_by_name = lambda request, name: request
    sys.modules["triton_python_backend_utils"] = library
    spec = importlib.util.spec_from_file_location("model", os.path.join(folder, "1", "model.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.TritonPythonModel()
    if hasattr(model, "initialize"):
        name = os.path.basename(folder)
        model.initialize({"model_name": name, "model_repository": folder, "model_version": "1"})
    return lambda fed: model.execute([Tensor("", fed)])[0].tensors[0].array


def serve(folder, control, taken, passed):
    execute = load(folder)
    fed = control.recv()
    control.send(execute(fed))
    while True:
        try:
            token = taken.recv_bytes()
        except EOFError:
            return
        execute(fed)
        passed.send_bytes(token)


def run(first, last, in_flight, requests):
    began, took = {}, []
    for number in range(requests + in_flight):
        if number >= in_flight:
            token = last.recv_bytes()
            took.append((time.perf_counter() - began[token]) * 1000)
        if number < requests:
            token = b"%d" % number
            began[token] = time.perf_counter()
            first.send_bytes(token)
    return took


def main(folders, shape):
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(len(folders) + 1)]
    made = (np.arange(np.prod(shape), dtype=np.uint32) * 2654435761 >> 24).astype(np.uint8).reshape(shape)
    for i, folder in enumerate(folders):
        control, theirs = context.Pipe()
        process = context.Process(target=serve, args=(folder, theirs, pipes[i][0], pipes[i + 1][1]), daemon=True)
        process.start()
        control.send(made)
        made = control.recv()
    print("ready", flush=True)
    for line in sys.stdin:
        in_flight, requests = map(int, line.split())
        print(json.dumps(run(pipes[0][1], pipes[-1][0], min(in_flight, requests), requests)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:-1], json.loads(sys.argv[-1]))
