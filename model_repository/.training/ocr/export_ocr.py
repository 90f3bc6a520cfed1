"""Writes text_detection and text_recognition as ONNX, with the tensor names of the published files,
and compares them with the originals."""

import argparse
import warnings

import numpy as np
import onnx
import torch

from detection_network import TextDetection
from models import REPOSITORY, session
from ocr_configs import COLUMNS, CROPS, GEOMETRY, MODELS, PICTURE, SCORE, write_configs
from recognition_network import TextRecognition

OPSET = 17
DETECTION_SIZES = [(1, 32, 32), (1, 384, 384), (2, 480, 320), (1, 100, 204)]
RECOGNITION_SIZES = [0, 1, 7, 64]


def trained(network, checkpoint):
    network.load_state_dict(torch.load(checkpoint))
    return network.eval().requires_grad_(False)


def free_axes(name):
    """The batch and what config.pbtxt declares as -1. A name of its own for each size."""
    axes = {}
    for side, size in zip(MODELS[name], ("", "quarter_")):
        for tensor, _, dims in side:
            free = [i + 1 for i, dim in enumerate(dims.split(", ")) if dim == "-1"]
            axes[tensor] = {0: "batch", **dict(zip(free, (f"{size}height", f"{size}width")))}
    return axes


def export(name, network, example):
    """Batch normalisation is folded into the convolutions by the exporter."""
    path = REPOSITORY / name / "1" / "model.onnx"
    inputs, outputs = ([tensor for tensor, _, _ in side] for side in MODELS[name])
    torch.onnx.export(
        network,
        (example,),
        str(path),
        opset_version=OPSET,
        input_names=inputs,
        output_names=outputs,
        dynamic_axes=free_axes(name),
    )
    onnx.checker.check_model(onnx.load(path), full_check=True)
    print(f"{name}: {path.stat().st_size} bytes")
    return path


def compare(label, wanted, got):
    for want, have in zip(wanted, got):
        assert have.shape == tuple(want.shape), f"{label}: {have.shape}, want {tuple(want.shape)}"
        difference = np.abs(have - want.numpy()).max(initial=0)
        assert difference < 5e-3, f"{label}: {difference}"
        print(f"{label}: greatest difference {difference:.2e}")


def check_detection(path, network):
    onnx_session = session(path)
    for size in DETECTION_SIZES:
        x = torch.rand(*size, 3) * 255
        got = onnx_session.run([SCORE, GEOMETRY], {PICTURE: x.numpy()})
        compare(f"text_detection {size}", network(x), got)


def check_recognition(path, network):
    onnx_session = session(path)
    for count in RECOGNITION_SIZES:
        x = torch.rand(count, 1, 32, 100) * 2 - 1
        # torch 1.13 refuses an empty batch here and there; its answer is known anyway.
        want = network(x) if count > 0 else torch.zeros(0, 26, 37)
        compare(f"text_recognition {count}", [want], onnx_session.run([COLUMNS], {CROPS: x.numpy()}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--detection", required=True, help="the checkpoint of train_detection.py")
    parser.add_argument("--recognition", required=True, help="that of train_recognition.py")
    args = parser.parse_args()
    # The channels and the sides of the stages are fixed on purpose.
    warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    write_configs()
    detection = trained(TextDetection(), args.detection)
    path = export("text_detection", detection, torch.rand(1, 64, 96, 3) * 255)
    check_detection(path, detection)
    recognition = trained(TextRecognition(), args.recognition)
    path = export("text_recognition", recognition, torch.rand(2, 1, 32, 100))
    check_recognition(path, recognition)


if __name__ == "__main__":
    main()
