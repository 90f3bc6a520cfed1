"""Runs the fixtures with onnxruntime and compares the numbers."""

import time

import numpy as np
import onnxruntime

from fixtures_basic import ENSEMBLES, MODELS

ROWS = np.arange(48, dtype=np.float32).reshape(3, 16)
LINE = np.array([4, -1, 0.5, 2], np.float32)
ONE = np.array([0.1], np.float32)
NUMPY_TYPES = {
    "fp16": np.float16,
    "fp32": np.float32,
    "fp64": np.float64,
    "bool": np.bool_,
    "string": object,
}

# name -> [(inputs, outputs)]
CASES = {
    "add_sub": [({"INPUT0": ROWS, "INPUT1": 2 * ROWS}, {"OUTPUT0": 3 * ROWS, "OUTPUT1": -ROWS})],
    "add_one": [({"x": LINE}, {"y": LINE + 1})],
    "add_one_matrix": [({"x": ROWS[:2]}, {"y": ROWS[:2] + 1})],
    "add_one_batch": [({"X": ROWS}, {"Y": ROWS + 1})],
    "identity_fp32_nonbatch": [({"x": LINE}, {"y": LINE})],
    "optional_input": [
        ({"x": LINE}, {"y": LINE + 10}),
        ({"x": LINE, "bias": ONE}, {"y": LINE + ONE}),
    ],
    "slow": [({"x": ONE, "rounds": np.array([n])}, {"y": ONE}) for n in (0, 100)],
    "big_identity": [({"x": ROWS.reshape(8, 2, 3)}, {"y": ROWS.reshape(8, 2, 3)})],
    "versioned": [({"x": LINE}, {"y": LINE + 3})],
    "fail_at_run": [({"x": LINE}, {"y": LINE})],
    "sum_batch": [({"X": ROWS}, {"Y": ROWS.sum(0, keepdims=True)})],
    "scalar_reshape": [({"X": LINE}, {"Y": 2 * LINE})],
    "labels": [({"SCORES": ROWS[:, :3]}, {"CLASSES": ROWS[:, :3]})],
    "ens_chain": [({"X": ROWS}, {"Y": ROWS + 2})],
    "ens_branch_join": [({"X": ROWS}, {"SUM": 2 * ROWS + 1, "DIFFERENCE": np.ones_like(ROWS)})],
    "ens_subset": [({"X": ROWS}, {"PLUS_ONE": ROWS + 1, "PLUS_TWO": ROWS + 2, "COPY": ROWS})],
    "ens_optional": [
        ({"x": LINE}, {"y": LINE + 10}),
        ({"x": LINE, "bias": ONE}, {"y": LINE + ONE}),
    ],
    "ens_nested": [({"X": ROWS}, {"Y": ROWS + 3})],
    "ens_batch_to_nonbatch": [({"X": ROWS}, {"Y": (ROWS + 1).sum(0, keepdims=True) + 1})],
    "ens_slow": [({"x": ONE, "rounds": np.array([2])}, {"y": ONE})],
    "ens_fail": [({"x": LINE}, {"y": LINE})],
    "ens_versioned": [({"x": LINE}, {"y": LINE + 4})],
}


def typed_case(name):
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(NUMPY_TYPES.get(name) or np.dtype(name))
    if name == "string":
        values = np.array([["", "a", "bcd"], ["ä", "0", "x y"]], object)
    return [({"x": values}, {"y": values})]


def run_model(repository, name, version, inputs):
    """version: -1 is the highest that is served."""
    version = max(MODELS[name].graphs) if version == -1 else version
    path = repository / name / str(version) / "model.onnx"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def run_ensemble(repository, name, tensors):
    """Runs the steps in their order, which in these fixtures is the order of the data."""
    for step in ENSEMBLES[name].steps:
        inputs = {key: tensors[tensor] for key, tensor in step.inputs.items() if tensor in tensors}
        outputs = run(repository, step.model, step.version, inputs)
        tensors = tensors | {tensor: outputs[key] for key, tensor in step.outputs.items()}
    return {output.name: tensors[output.name] for output in ENSEMBLES[name].outputs}


def run(repository, name, version, inputs):
    if name in ENSEMBLES:
        return run_ensemble(repository, name, inputs)
    return run_model(repository, name, version, inputs)


def check_case(repository, name, inputs, want):
    got = run(repository, name, -1, inputs)
    assert got.keys() == want.keys(), f"{name}: {list(got)}, want {list(want)}"
    for key, expected in want.items():
        assert got[key].dtype == expected.dtype, f"{name} {key}: {got[key].dtype}"
        assert np.array_equal(got[key], expected), f"{name} {key}: {got[key]}, want {expected}"


def check_fails(repository, name, inputs):
    try:
        run(repository, name, -1, inputs)
    except Exception as error:  # onnxruntime raises a class per status
        print(f"{name} fails as it should: {str(error).splitlines()[0][:120]}")
        return
    raise AssertionError(f"{name} ran")


def check(fixtures):
    repository = fixtures / "basic"
    for name in [*MODELS, *ENSEMBLES]:
        cases = CASES.get(name) or typed_case(name.removeprefix("identity_"))
        for inputs, want in cases:
            check_case(repository, name, inputs, want)
    print(f"{len(MODELS)} models and {len(ENSEMBLES)} ensembles give the right numbers")
    for name in ("fail_at_run", "ens_fail"):
        check_fails(repository, name, {"x": LINE + 3})
    for rounds in (400, 800):
        started = time.perf_counter()
        run(repository, "slow", -1, {"x": ONE, "rounds": np.array([rounds])})
        print(f"slow, {rounds} rounds: {1000 * (time.perf_counter() - started):.0f} ms")
