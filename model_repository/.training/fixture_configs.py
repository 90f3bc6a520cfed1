"""Writes config.pbtxt from short Python descriptions."""

from dataclasses import dataclass, field


@dataclass
class Tensor:
    """One input or output. `extra` holds further lines, such as `optional: true`."""

    name: str
    dims: list
    datatype: str = "FP32"
    extra: str = ""


@dataclass
class Step:
    model: str
    inputs: dict  # the model's input -> ensemble tensor
    outputs: dict  # the model's output -> ensemble tensor
    version: int = -1


@dataclass
class Ensemble:
    inputs: list
    outputs: list
    steps: list
    max_batch_size: int = 0


@dataclass
class Model:
    """An ONNX model. `graphs`: version -> ModelProto, or bytes to write as they are."""

    graphs: dict
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    max_batch_size: int = 0
    extra: str = ""
    platform: str = "onnxruntime_onnx"
    has_config: bool = True


def tensors(kind, items):
    blocks = []
    for item in items:
        dims = ", ".join(map(str, item.dims))
        lines = [f'name: "{item.name}"', f"data_type: TYPE_{item.datatype}", f"dims: [ {dims} ]"]
        lines += item.extra.splitlines()
        blocks.append("  {\n" + "".join(f"    {line}\n" for line in lines) + "  }")
    return f"{kind} [\n" + ",\n".join(blocks) + "\n]\n"


def maps(kind, entries):
    return "".join(
        f'      {kind} {{ key: "{key}" value: "{tensor}" }}\n' for key, tensor in entries.items()
    )


def head(name, platform, item):
    return (
        f'name: "{name}"\nplatform: "{platform}"\nmax_batch_size: {item.max_batch_size}\n'
        + tensors("input", item.inputs)
        + tensors("output", item.outputs)
    )


def model_text(name, item):
    return head(name, item.platform, item) + item.extra


def ensemble_text(name, item):
    steps = ",\n".join(
        f'    {{\n      model_name: "{step.model}"\n      model_version: {step.version}\n'
        + maps("input_map", step.inputs)
        + maps("output_map", step.outputs)
        + "    }"
        for step in item.steps
    )
    return head(name, "ensemble", item) + f"ensemble_scheduling {{\n  step [\n{steps}\n  ]\n}}\n"
