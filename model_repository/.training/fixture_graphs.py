"""The ONNX graphs of the fixtures: name -> a function that builds the graph."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
OPSET, IR_VERSION = 17, 8

# Triton's datatype in lower case -> ONNX's
DATATYPES = {
    "bool": TensorProto.BOOL,
    "uint8": TensorProto.UINT8,
    "int8": TensorProto.INT8,
    "uint16": TensorProto.UINT16,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "fp16": TensorProto.FLOAT16,
    "fp32": TensorProto.FLOAT,
    "fp64": TensorProto.DOUBLE,
    "string": TensorProto.STRING,
}

node = helper.make_node


def value(name, shape, kind=FLOAT):
    """A graph input or output; a string in the shape is a free axis."""
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def floats(name, *values):
    return constant(name, np.array(values, np.float32))


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "fixture", inputs, outputs, list(constants))
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)


def identity(shape, kind=FLOAT, source="x", result="y"):
    return model(
        [node("Identity", [source], [result])],
        [value(source, shape, kind)],
        [value(result, shape, kind)],
    )


def add(amount, shape, source="x", result="y"):
    return model(
        [node("Add", [source, "amount"], [result])],
        [value(source, shape)],
        [value(result, shape)],
        [floats("amount", amount)],
    )


def add_sub():
    shape = ["batch", 16]
    return model(
        [
            node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]),
            node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"]),
        ],
        [value("INPUT0", shape), value("INPUT1", shape)],
        [value("OUTPUT0", shape), value("OUTPUT1", shape)],
    )


def optional_input():
    """`bias` is an input and an initializer too: a request may leave it out, and it is then 10."""
    return model(
        [node("Add", ["x", "bias"], ["y"])],
        [value("x", ["n"]), value("bias", [1])],
        [value("y", ["n"])],
        [floats("bias", 10)],
    )


def slow():
    """`rounds` matrix products of 256 x 256; y = x.

    The matrix starts full of x and is multiplied by one full of 1/256, which keeps its values, so
    no number of rounds overflows. min(|value|, 0) is 0 and makes y depend on the work.
    """
    side = 256
    body = helper.make_graph(
        [
            node("MatMul", ["state_in", "mean"], ["state_out"]),
            node("Identity", ["go_in"], ["go_out"]),
        ],
        "round",
        [
            value("i", [], INT64),
            value("go_in", [], TensorProto.BOOL),
            value("state_in", [side, side]),
        ],
        [value("go_out", [], TensorProto.BOOL), value("state_out", [side, side])],
    )
    mean = helper.make_tensor("mean_value", FLOAT, [1], [1 / side])
    return model(
        [
            node("ConstantOfShape", ["square"], ["mean"], value=mean),
            node("Expand", ["x", "square"], ["start"]),
            node("Loop", ["rounds", "go", "start"], ["end"], body=body),
            node("ReduceMax", ["end"], ["greatest"], keepdims=0),
            node("Abs", ["greatest"], ["magnitude"]),
            node("Min", ["magnitude", "zero"], ["nothing"]),
            node("Add", ["x", "nothing"], ["y"]),
        ],
        [value("x", [1]), value("rounds", [1], INT64)],
        [value("y", [1])],
        [
            constant("square", np.array([side, side])),
            constant("go", np.array(True)),
            floats("zero", 0),
        ],
    )


def fail_at_run():
    """Reshapes x to [x[0]]: runs when the first value is the number of values, else fails."""
    return model(
        [
            node("Gather", ["x", "first"], ["count"]),
            node("Cast", ["count"], ["shape"], to=INT64),
            node("Reshape", ["x", "shape"], ["y"]),
        ],
        [value("x", ["n"])],
        [value("y", ["m"])],
        [constant("first", np.array([0]))],
    )


def sum_batch():
    """Sums the rows: [n,16] -> [1,16], declared as [-1,16]."""
    return model(
        [node("ReduceSum", ["X", "axis"], ["Y"], keepdims=1)],
        [value("X", ["n", 16])],
        [value("Y", ["m", 16])],
        [constant("axis", np.array([0]))],
    )


def scalar_reshape():
    """One number per batch item and no further axis; y = 2 x."""
    return model(
        [node("Mul", ["X", "two"], ["Y"])],
        [value("X", ["batch"])],
        [value("Y", ["batch"])],
        [floats("two", 2)],
    )
