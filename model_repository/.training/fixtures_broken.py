"""The fixtures that must not load, each for its own reason, and `good`, which must."""

import fixture_graphs as graphs
from fixture_configs import Ensemble, Model, Step, Tensor

GRAPH = graphs.add(1, ["n"])
X, Y = Tensor("x", [-1]), Tensor("y", [-1])


def add_one(**changes):
    return Model(**{"graphs": {1: GRAPH}, "inputs": [X], "outputs": [Y], **changes})


def good_step(source, result, model="good"):
    return Step(model, {"x": source}, {"y": result})


MODELS = {
    "good": add_one(),
    "truncated_onnx": add_one(graphs={1: GRAPH.SerializeToString()[:60]}),
    "wrong_datatype": add_one(inputs=[Tensor("x", [-1], "INT32")]),
    "wrong_dims": add_one(inputs=[Tensor("x", [-1, 4])]),
    "missing_version": add_one(graphs={}),
    "missing_model_file": add_one(graphs={1: None}),
    "unknown_platform": add_one(platform="no_such_platform"),
    "name_mismatch": add_one(),
    "syntax_error": add_one(),
}

ENSEMBLES = {
    "ens_missing_model": Ensemble([X], [Y], [good_step("x", "y", model="no_such_model")]),
    # `a` waits for `b` and `b` for `a`.
    "ens_cycle": Ensemble(
        [X], [Y, Tensor("a", [-1])], [good_step("x", "y"), good_step("b", "a"), good_step("a", "b")]
    ),
    # These two contain each other.
    "ens_mutual_a": Ensemble([X], [Y], [good_step("x", "y", model="ens_mutual_b")]),
    "ens_mutual_b": Ensemble([X], [Y], [good_step("x", "y", model="ens_mutual_a")]),
    "ens_dtype_mismatch": Ensemble([Tensor("x", [-1], "INT32")], [Y], [good_step("x", "y")]),
}

# Edits of the finished text: name -> (written, put in its place)
EDITS = {
    "name_mismatch": ('name: "name_mismatch"', 'name: "another_name"'),
    # Line 7, column 15: a colon is wanted before the value.
    "syntax_error": ("data_type: TYPE_FP32\n    dims", "data_type TYPE_FP32\n    dims"),
}
