"""The fixtures that must load: models and ensembles by name."""

import fixture_graphs as graphs
from fixture_configs import Ensemble, Model, Step, Tensor

BATCHED_16 = ["batch", 16]


def one_to_one(graph, dims, datatype="FP32", names=("x", "y"), **more):
    source, result = names
    tensors = [Tensor(source, dims, datatype)], [Tensor(result, dims, datatype)]
    return Model({1: graph}, *tensors, **more)


def typed_identities():
    return {
        f"identity_{name}": one_to_one(
            graphs.identity(["batch", "n"], kind), [-1], name.upper(), max_batch_size=8
        )
        for name, kind in graphs.DATATYPES.items()
    }


MODELS = {
    "add_sub": Model(
        {1: graphs.add_sub()},
        [Tensor("INPUT0", [16]), Tensor("INPUT1", [16])],
        [Tensor("OUTPUT0", [16]), Tensor("OUTPUT1", [16])],
        max_batch_size=8,
    ),
    "add_one": Model({1: graphs.add(1, ["n"])}, has_config=False),
    "add_one_matrix": Model({1: graphs.add(1, [2, "n"])}, has_config=False),
    "add_one_batch": one_to_one(
        graphs.add(1, BATCHED_16, "X", "Y"),
        [16],
        names=("X", "Y"),
        max_batch_size=8,
        extra="dynamic_batching {\n  preferred_batch_size: [ 4, 8 ]\n"
        "  max_queue_delay_microseconds: 2000\n}\n",
    ),
    **typed_identities(),
    "identity_fp32_nonbatch": one_to_one(graphs.identity(["n"]), [-1]),
    "optional_input": Model(
        {1: graphs.optional_input()},
        [Tensor("x", [-1]), Tensor("bias", [1], extra="optional: true")],
        [Tensor("y", [-1])],
    ),
    "slow": Model(
        {1: graphs.slow()},
        [Tensor("x", [1]), Tensor("rounds", [1], "INT64")],
        [Tensor("y", [1])],
    ),
    "big_identity": one_to_one(graphs.identity(["height", "width", 3]), [-1, -1, 3]),
    "versioned": Model(
        {version: graphs.add(version, ["n"]) for version in (1, 2, 3)},
        [Tensor("x", [-1])],
        [Tensor("y", [-1])],
        extra="version_policy: { specific: { versions: [ 1, 3 ] } }\n",
    ),
    "fail_at_run": one_to_one(graphs.fail_at_run(), [-1]),
    "sum_batch": one_to_one(graphs.sum_batch(), [-1, 16], names=("X", "Y")),
    "scalar_reshape": Model(
        {1: graphs.scalar_reshape()},
        [Tensor("X", [1], extra="reshape: { shape: [ ] }")],
        [Tensor("Y", [1], extra="reshape: { shape: [ ] }")],
        max_batch_size=8,
    ),
    "labels": Model(
        {1: graphs.identity(["batch", 3], source="SCORES", result="CLASSES")},
        [Tensor("SCORES", [3])],
        [Tensor("CLASSES", [3], extra='label_filename: "labels.txt"')],
        max_batch_size=8,
    ),
}

LABELS = "cat\ndog\nbird\n"


def plus_one(source, result):
    return Step("add_one_batch", {"X": source}, {"Y": result})


def rows(name):
    return Tensor(name, [16])


X, Y = Tensor("x", [-1]), Tensor("y", [-1])

ENSEMBLES = {
    "ens_chain": Ensemble(
        [rows("X")], [rows("Y")], [plus_one("X", "middle"), plus_one("middle", "Y")], 8
    ),
    "ens_branch_join": Ensemble(
        [rows("X")],
        [rows("SUM"), rows("DIFFERENCE")],
        [
            plus_one("X", "left"),
            Step("identity_fp32", {"x": "X"}, {"y": "right"}),
            Step(
                "add_sub",
                {"INPUT0": "left", "INPUT1": "right"},
                {"OUTPUT0": "SUM", "OUTPUT1": "DIFFERENCE"},
            ),
        ],
        8,
    ),
    "ens_subset": Ensemble(
        [rows("X")],
        [rows("PLUS_ONE"), rows("PLUS_TWO"), rows("COPY")],
        [
            plus_one("X", "PLUS_ONE"),
            plus_one("PLUS_ONE", "PLUS_TWO"),
            Step("identity_fp32", {"x": "X"}, {"y": "COPY"}),
        ],
        8,
    ),
    "ens_optional": Ensemble(
        [X, Tensor("bias", [1], extra="optional: true")],
        [Y],
        [Step("optional_input", {"x": "x", "bias": "bias"}, {"y": "y"})],
    ),
    "ens_nested": Ensemble(
        [rows("X")],
        [rows("Y")],
        [Step("ens_chain", {"X": "X"}, {"Y": "middle"}), plus_one("middle", "Y")],
        8,
    ),
    "ens_batch_to_nonbatch": Ensemble(
        [rows("X")],
        [rows("Y")],
        [
            plus_one("X", "batch"),
            Step("sum_batch", {"X": "batch"}, {"Y": "total"}),
            plus_one("total", "Y"),
        ],
        8,
    ),
    "ens_slow": Ensemble(
        [Tensor("x", [1]), Tensor("rounds", [1], "INT64")],
        [Tensor("y", [1])],
        [
            Step("slow", {"x": "x", "rounds": "rounds"}, {"y": "middle"}),
            Step("slow", {"x": "middle", "rounds": "rounds"}, {"y": "y"}),
        ],
    ),
    "ens_fail": Ensemble(
        [X],
        [Y],
        [
            Step("identity_fp32_nonbatch", {"x": "x"}, {"y": "middle"}),
            Step("fail_at_run", {"x": "middle"}, {"y": "y"}),
        ],
    ),
    "ens_versioned": Ensemble(
        [X],
        [Y],
        [
            Step("versioned", {"x": "x"}, {"y": "middle"}, version=1),
            Step("versioned", {"x": "middle"}, {"y": "y"}),
        ],
    ),
}
