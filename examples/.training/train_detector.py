"""Trains shape_detector, and draws the picture that its example asks about. Some minutes on one core; all seeds fixed."""

from pathlib import Path

import numpy as np
import onnxruntime
from draw_shapes import scene
from layers import Conv, Network, Relu
from PIL import Image

EXAMPLES = Path(__file__).parents[1]
CELL = 8  # pixels that one value of the detector stands for, in each direction
PART = 0.8  # of a shape's radius: so cells of neighbours do not touch
BATCH, STEPS = 6, 900


def wanted_of(shapes, height, width):
    """-> FP32 [1,H/8,W/8]: 1 where the middle of the cell is in the middle of a shape"""
    down, right = np.mgrid[0 : height // CELL, 0 : width // CELL] * CELL + CELL / 2
    cells = np.zeros(down.shape, bool)
    for _, a, b, radius in shapes:
        cells |= np.hypot(down - a, right - b) < radius * PART
    return cells[None].astype(np.float32)


def scenes(random, count):
    drawn = [scene(random) for _ in range(count)]
    return np.stack([one for one, _ in drawn]), np.stack([wanted_of(shapes, *one.shape[:2]) for one, shapes in drawn])


random = np.random.default_rng(4)
network = Network(
    *(Conv(random, 3, 12, 2), Relu(), Conv(random, 12, 16, 2), Relu(), Conv(random, 16, 24, 2), Relu()),
    *(Conv(random, 24, 32), Relu(), Conv(random, 32, 32), Relu(), Conv(random, 32, 32), Relu(), Conv(random, 32, 1, size=1)),
)
known = scenes(random, 900)
for step in range(STEPS):
    chosen = random.integers(0, len(known[0]), BATCH)
    logits, wanted = network.forward(known[0][chosen]), known[1][chosen]
    if step % 100 == 0:
        print(step, "loss", (np.logaddexp(0, logits) - wanted * logits).mean(), flush=True)
    gradient = (1 / (1 + np.exp(-logits)) - wanted) / BATCH / 40
    network.learn(gradient.astype(np.float32), 2e-3 * (1 - step / STEPS))

path = EXAMPLES / "detector" / "models" / "shape_detector" / "1" / "model.onnx"
network.save(path, "picture", "objectness", "Sigmoid", [1, "rows", "columns"], ["height", "width", 3])

held_out, wanted = scenes(np.random.default_rng(5), 100)
session = onnxruntime.InferenceSession(path)
(found,) = session.run(None, {"picture": held_out})
print("of the cells of 100 held-out pictures", ((found > 0.5) == (wanted > 0.5)).mean(), "are right")

random = np.random.default_rng(6)
while len((drawn := scene(random))[1]) != 6:
    pass
Image.fromarray(drawn[0]).save(EXAMPLES / "detector" / "input.png", optimize=True)
print(sorted(drawn[1], key=lambda shape: shape[1]))
