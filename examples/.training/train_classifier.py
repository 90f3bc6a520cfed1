"""Trains shape_classifier, and draws the pictures that the examples ask it about. Some minutes on one core; all seeds fixed."""

from pathlib import Path

import numpy as np
import onnxruntime
from draw_shapes import LABELS, SIDE, one_shape
from layers import Conv, Dense, Network, Relu
from PIL import Image

EXAMPLES = Path(__file__).parents[1]
BATCH, STEPS = 32, 3000


def pictures(random, count):
    names = random.integers(0, len(LABELS), count)
    return np.stack([one_shape(random, LABELS[name]) for name in names]), names


def softmax(logits):
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


random = np.random.default_rng(1)
network = Network(
    *(Conv(random, 3, 12, 2), Relu(), Conv(random, 12, 16, 2), Relu(), Conv(random, 16, 24, 2), Relu()),
    *(Conv(random, 24, 32, 2), Relu(), Dense(random, 32 * 4 * 4, len(LABELS))),
)
known = pictures(random, 12_000)
for step in range(STEPS):
    chosen = random.integers(0, len(known[1]), BATCH)
    gradient = softmax(network.forward(known[0][chosen]))
    wanted = known[1][chosen]
    if step % 300 == 0:
        print(step, "loss", -np.log(gradient[range(BATCH), wanted]).mean(), flush=True)
    gradient[range(BATCH), wanted] -= 1
    network.learn((gradient / BATCH).astype(np.float32), 2e-3 * (1 - step / STEPS))

folder = EXAMPLES / "classifier" / "models" / "shape_classifier"
network.save(folder / "1" / "model.onnx", "picture", "probabilities", "Softmax", [len(LABELS)], [SIDE, SIDE, 3])
(folder / "labels.txt").write_text("".join(f"{label}\n" for label in LABELS))

held_out, wanted = pictures(np.random.default_rng(2), 2000)
session = onnxruntime.InferenceSession(folder / "1" / "model.onnx")
(found,) = session.run(None, {"picture": held_out})
print("of 2000 held-out pictures", (found.argmax(1) == wanted).mean(), "are named rightly")
print("greatest difference to NumPy", abs(found - softmax(network.forward(held_out))).max())

random = np.random.default_rng(3)
for label in ["star", "ring", "triangle"]:
    Image.fromarray(one_shape(random, label)).save(EXAMPLES / "classifier" / f"input-{label}.png", optimize=True)
batch = EXAMPLES / "batch" / "pictures"
batch.mkdir(parents=True, exist_ok=True)
for i in range(24):
    Image.fromarray(one_shape(random, str(random.choice(LABELS)))).save(batch / f"{i:03}.png", optimize=True)
