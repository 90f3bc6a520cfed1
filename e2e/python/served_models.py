"""Models that are served already, whatever they are: their configurations, and their answers to tensors that follow from those
alone, over all four clients and the same as where they were served before.
"""

import argparse
import json
import os

import numpy as np
from tritonclient.utils import np_to_triton_dtype, triton_to_np_dtype

from checks import CHECKS, check, run
from seed_systems import Env

CHECKS.clear()


def array_for(entry, max_batch_size):
    """Small numbers, so that no datatype rounds them. What is free in a shape is 4, a batch is of 2."""
    shape = [4 if int(dim) < 0 else int(dim) for dim in entry["dims"]]
    if max_batch_size > 0:
        shape.insert(0, 2)
    dtype = triton_to_np_dtype(entry["data_type"].removeprefix("TYPE_"))
    return (np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype)


def answers(env, model):
    """The configuration, and each output as the four clients get it."""
    config = env.clients["http"][1].get_model_config(model)
    arrays = {entry["name"]: array_for(entry, config["max_batch_size"]) for entry in config["input"]}
    got = {}
    for name, (module, client) in env.clients.items():
        tensors = []
        for source, array in arrays.items():
            tensor = module.InferInput(source, array.shape, np_to_triton_dtype(array.dtype))
            tensor.set_data_from_numpy(array)
            tensors.append(tensor)
        result = client.infer(model, tensors)
        got[name] = {entry["name"]: result.as_numpy(entry["name"]) for entry in config["output"]}
    for name, outputs in got.items():
        for target, array in outputs.items():
            assert array.tobytes() == got["grpc"][target].tobytes(), f"{name} gets other values of {target} than grpc"
    return config, got["grpc"]


def same_config(env, model, config):
    """Keeps the first one, and compares the others with it."""
    path = os.path.join(env.flags.results, f"{model}.json")
    if not os.path.exists(path):
        with open(path, "w") as file:
            json.dump(config, file)
    with open(path) as file:
        before = json.load(file)
    assert config == before, (config, before)


@check
def served(env):
    """every model has its configuration and gives its bytes"""
    for model in env.flags.models:
        config, outputs = answers(env, model)
        same_config(env, model, config)
        for target, array in outputs.items():
            env.same_everywhere(f"{model}.{target}", array)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--grpc", required=True)
    parser.add_argument("--http", required=True)
    parser.add_argument("--results", required=True, help="a folder for results, the same for every way to serve")
    parser.add_argument("models", nargs="+")
    run(Env(parser.parse_args()))
