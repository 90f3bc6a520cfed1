"""Trains the reader on two cores, on crops that detection_postprocessing cuts. Everything is seeded."""

import argparse
import time
from collections import deque

import numpy as np
import torch
from torch.nn import functional as F

from fonts import TRAINING, font_files
from models import load_model
from pictures import ALPHABET, Words
from recognition_network import COLUMNS, TextRecognition
from schedule import one_cycle

SEED = 41
SIDE = 352
PICTURES = 4500
CUTS = 3  # crops of a word, each with the errors that the detector was measured to make
END_ERROR, EDGE_ERROR = 0.08, 0.06  # of the height: left and right; top and bottom
ANGLE_ERROR = 0.04
BATCH = 64
RATE = 3e-3
STEPS = 2000
LOG_EVERY = 50
AVERAGED = 5  # weights: those of now and of every LOG_EVERY steps before


def misplaced(box, rng):
    """A box as the detector may see it."""
    x, y, w, h, angle = box
    left, right = rng.normal(0, END_ERROR, 2) * h
    top, bottom = rng.normal(0, EDGE_ERROR, 2) * h
    return (
        x + (left + right) / 2,
        y + (top + bottom) / 2,
        w + right - left,
        h + bottom - top,
        angle + rng.normal(0, ANGLE_ERROR),
    )


def cut_words(pictures):
    """-> uint8 crops [N,1,32,100], their texts"""
    postprocessing = load_model("detection_postprocessing")
    rng = np.random.default_rng(SEED)
    words = Words(font_files(TRAINING), SEED)
    crops, texts = [], []
    for _ in range(pictures):
        pixels, drawn = words.picture(SIDE, SIDE)
        boxes = [misplaced(box, rng) for _, box in drawn for _ in range(CUTS)]
        grey = postprocessing.to_grey(pixels)
        cut = postprocessing.crop_words(grey, np.array(boxes).reshape(-1, 5))
        crops.append(np.rint((cut + 1) * 127.5).astype(np.uint8))
        texts += [text for text, _ in drawn for _ in range(CUTS)]
    return np.concatenate(crops), texts


def altered(crops, rng):
    """uint8 [N,1,32,100] -> float32 in [-1,1]: other light, some inverted, some noisy."""
    size = (len(crops), 1, 1, 1)
    x = crops.astype(np.float32) / 127.5 - 1
    x *= rng.choice([-1.0, 1.0], size) * rng.uniform(0.6, 1.1, size)
    x += rng.uniform(-0.2, 0.2, size)
    x += rng.standard_normal(x.shape, np.float32) * np.maximum(0, rng.uniform(-0.08, 0.08, size))
    return np.clip(x, -1, 1).astype(np.float32)


def targets(texts):
    """-> all classes one after another, the length of each text"""
    classes = [1 + ALPHABET.index(letter) for text in texts for letter in text]
    return torch.tensor(classes), torch.tensor([len(text) for text in texts])


def loss_of(network, crops, texts):
    logits = network(torch.from_numpy(crops))
    columns = F.log_softmax(logits, dim=2).transpose(0, 1)
    sizes = torch.full((len(texts),), COLUMNS)
    classes, lengths = targets(texts)
    return F.ctc_loss(columns, classes, sizes, lengths, zero_infinity=True)


def average(states):
    return {
        name: torch.stack([state[name].float() for state in states]).mean(0).to(value.dtype)
        for name, value in states[0].items()
    }


def train(out, steps, pictures):
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    started, recent = time.process_time(), 0.0
    crops, texts = cut_words(pictures)
    print(f"{len(texts)} crops after {time.process_time() - started:.0f} s", flush=True)
    rng = np.random.default_rng(SEED)
    network = TextRecognition()
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=1e-2)
    states = deque(maxlen=AVERAGED)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * one_cycle(step, steps)
        chosen = rng.integers(len(texts), size=BATCH)
        loss = loss_of(network, altered(crops[chosen], rng), [texts[i] for i in chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        recent += loss.item() / LOG_EVERY
        if (step + 1) % LOG_EVERY == 0:
            states.append({name: value.clone() for name, value in network.state_dict().items()})
            torch.save(average(states), out)
            print(f"step {step + 1} {recent:.4f} {time.process_time() - started:.0f} s", flush=True)
            recent = 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, help="the checkpoint")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--pictures", type=int, default=PICTURES)
    args = parser.parse_args()
    train(args.out, args.steps, args.pictures)


if __name__ == "__main__":
    main()
