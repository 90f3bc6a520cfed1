"""Writes the config.pbtxt of the OCR models, with the tensors of the published repository."""

from models import REPOSITORY

MAX_BATCH = 256
FP32, UINT8, STRING = "TYPE_FP32", "TYPE_UINT8", "TYPE_STRING"
SCORE, GEOMETRY = "feature_fusion/Conv_7/Sigmoid:0", "feature_fusion/concat_3:0"
PICTURE = "input_images:0"
CROPS, COLUMNS = "INPUT__0", "OUTPUT__0"
DETECTED = "detection_postprocessing"

# name -> (inputs, outputs); dims without the batch axis. With "python": no file of weights.
MODELS = {
    "detection_preprocessing": (
        [("detection_preprocessing_input", UINT8, "-1")],
        [("detection_preprocessing_output", FP32, "-1, -1, 3")],
    ),
    "text_detection": (
        [(PICTURE, FP32, "-1, -1, 3")],
        [(SCORE, FP32, "-1, -1, 1"), (GEOMETRY, FP32, "-1, -1, 5")],
    ),
    DETECTED: (
        [
            (f"{DETECTED}_input_1", FP32, "-1, -1, 1"),
            (f"{DETECTED}_input_2", FP32, "-1, -1, 5"),
            (f"{DETECTED}_input_3", FP32, "-1, -1, 3"),
        ],
        [(f"{DETECTED}_output", FP32, "-1, -1, -1")],
    ),
    "text_recognition": ([(CROPS, FP32, "1, 32, 100")], [(COLUMNS, FP32, "26, 37")]),
    "recognition_postprocessing": (
        [("recognition_postprocessing_input", FP32, "26, 37")],
        [("recognition_postprocessing_output", STRING, "-1")],
    ),
}
ONNX = {"text_detection", "text_recognition"}
ENSEMBLE = "ensemble_model"
# (model, what goes to its inputs, what its outputs are called), in the order of its tensors
STEPS = [
    ("detection_preprocessing", ["input_image"], ["preprocessed_image"]),
    ("text_detection", ["preprocessed_image"], ["Sigmoid:0", "concat_3:0"]),
    (DETECTED, ["Sigmoid:0", "concat_3:0", "preprocessed_image"], ["cropped_images"]),
    ("text_recognition", ["cropped_images"], ["recognition_output"]),
    ("recognition_postprocessing", ["recognition_output"], ["recognized_text"]),
]


def tensors(field, declared):
    entries = ",\n".join(
        f'  {{\n    name: "{name}"\n    data_type: {data_type}\n    dims: [ {dims} ]\n  }}'
        for name, data_type, dims in declared
    )
    return f"{field} [\n{entries}\n]\n"


def head(name, kind):
    return f'name: "{name}"\n{kind}\nmax_batch_size: {MAX_BATCH}\n'


def model_config(name):
    inputs, outputs = MODELS[name]
    kind = 'platform: "onnxruntime_onnx"' if name in ONNX else 'backend: "python"'
    text = head(name, kind) + tensors("input", inputs) + tensors("output", outputs)
    if name not in ONNX:
        text += "instance_group [\n  {\n    kind: KIND_CPU\n  }\n]\n"
    return text


def maps(field, declared, values):
    return "\n".join(
        f'      {field} {{\n        key: "{name}"\n        value: "{value}"\n      }}'
        for (name, _, _), value in zip(declared, values)
    )


def step(model, sources, results):
    inputs, outputs = MODELS[model]
    return (
        f'    {{\n      model_name: "{model}"\n      model_version: -1\n'
        f"{maps('input_map', inputs, sources)}\n{maps('output_map', outputs, results)}\n    }}"
    )


def ensemble_config():
    steps = ",\n".join(step(*each) for each in STEPS)
    return (
        head(ENSEMBLE, 'platform: "ensemble"')
        + tensors("input", [("input_image", UINT8, "-1")])
        + tensors("output", [("recognized_text", STRING, "-1")])
        + f"ensemble_scheduling {{\n  step [\n{steps}\n  ]\n}}\n"
    )


def write_configs():
    for name in MODELS:
        folder = REPOSITORY / name
        (folder / "1").mkdir(parents=True, exist_ok=True)
        (folder / "config.pbtxt").write_text(model_config(name))
    # An ensemble's version directory is empty; the file keeps it in git.
    folder = REPOSITORY / ENSEMBLE
    (folder / "1").mkdir(parents=True, exist_ok=True)
    (folder / "1" / ".gitkeep").touch()
    (folder / "config.pbtxt").write_text(ensemble_config())


if __name__ == "__main__":
    write_configs()
