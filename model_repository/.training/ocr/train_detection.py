"""Trains the detector on one core. Everything is seeded."""

import argparse
import time

import numpy as np
import torch
from torch.nn import functional as F

from detection_network import TextDetection
from fonts import TRAINING, font_files
from pictures import Words
from schedule import one_cycle

SEED = 40
SIDE = 352
BATCH = 8
FRESH = 2  # pictures of a batch that were never seen; the others come again in other colours
POOL = 3000
STRIDE = 4
RATE = 2e-3
LOG_EVERY = 50


def labels(words, side):
    """-> float32 [7, side/4, side/4]: core, weight, top, right, bottom, left, angle.

    The core of a word is what the score shall mark. Around it, up to the word's edge, nothing is
    asked. Small words weigh more a cell.
    """
    cells = side // STRIDE
    y, x = np.mgrid[:cells, :cells].astype(np.float32) * STRIDE
    maps = np.zeros((7, cells, cells), np.float32)
    maps[1] = 1
    for _, (cx, cy, w, h, angle) in words:
        dx, dy = x - cx, y - cy
        along = dx * np.cos(angle) - dy * np.sin(angle)
        down = dx * np.sin(angle) + dy * np.cos(angle)
        inside = (abs(along) < w / 2) & (abs(down) < h / 2)
        core = (abs(along) < w / 2 - 0.2 * h) & (abs(down) < 0.3 * h)
        maps[1][inside & ~core] = 0
        maps[0][core] = 1
        maps[1][core] = np.sqrt(900 / (w * h)) * 2
        edges = (down + h / 2, w / 2 - along, h / 2 - down, along + w / 2, np.full_like(x, angle))
        for target, values in zip(maps[2:], edges):
            target[core] = values[core]
    return maps


def recolour(pixels, rng):
    """A picture seen before, with other colours. uint8 -> float32"""
    pixels = pixels[:, :, rng.permutation(3)].astype(np.float32)
    if rng.uniform() < 0.5:
        pixels = 255 - pixels
    return np.clip((pixels - 128) * rng.uniform(0.6, 1.1) + 128 + rng.uniform(-30, 30), 0, 255)


class Batches:
    def __init__(self):
        self.rng = np.random.default_rng(SEED)
        self.words = Words(font_files(TRAINING), SEED)
        self.pool = []

    def fresh(self):
        pixels, words = self.words.picture(SIDE, SIDE)
        entry = (pixels, labels(words, SIDE).astype(np.float16))
        if len(self.pool) < POOL:
            self.pool.append(entry)
        else:
            self.pool[self.rng.integers(POOL)] = entry
        return pixels.astype(np.float32), entry[1]

    def again(self):
        pixels, maps = self.pool[self.rng.integers(len(self.pool))]
        return recolour(pixels, self.rng), maps

    def next(self):
        pairs = [self.fresh() for _ in range(FRESH)]
        pairs += [self.again() for _ in range(BATCH - FRESH)]
        pictures, maps = (np.stack(side).astype(np.float32) for side in zip(*pairs))
        return torch.from_numpy(pictures), torch.from_numpy(maps)


def loss_of(network, pictures, maps):
    """Score: cross entropy and dice. Edges: log of the intersection over union. Angle: cosine."""
    core, weight = maps[:, :1], maps[:, 1:2]
    logits, distances, angle = network.maps(pictures)
    score = torch.sigmoid(logits)
    entropy = F.binary_cross_entropy_with_logits(logits, core, weight, reduction="sum")
    entropy = entropy / weight.sum()
    asked = (weight > 0).float()
    dice = 1 - 2 * (score * core * asked).sum() / ((score + core) * asked).sum().clamp(min=1)
    important = core * weight
    total = important.sum().clamp(min=1)
    overlap = (-torch.log(iou(distances, maps[:, 2:6])) * important).sum() / total
    turned = ((1 - torch.cos(angle - maps[:, 6:])) * important).sum() / total
    loss = 4 * entropy + dice + overlap + 20 * turned
    return loss, (entropy.item(), dice.item(), overlap.item(), turned.item())


def iou(found, wanted):
    """Of boxes around the same point at the same angle, given as top, right, bottom, left."""
    top, right, bottom, left = torch.minimum(found, wanted).split(1, dim=1)
    shared = (top + bottom) * (right + left)
    return (shared + 1) / (area(found) + area(wanted) - shared + 1)


def area(edges):
    top, right, bottom, left = edges.split(1, dim=1)
    return (top + bottom) * (right + left)


def train(out, steps):
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    network, batches = TextDetection(), Batches()
    for _ in range(BATCH):
        batches.fresh()
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=1e-3)
    started, recent = time.process_time(), np.zeros(4)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * one_cycle(step, steps)
        loss, parts = loss_of(network, *batches.next())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        recent += np.array(parts) / LOG_EVERY
        if (step + 1) % LOG_EVERY == 0 or step + 1 == steps:
            torch.save(network.state_dict(), out)
            shown = " ".join(f"{value:.4f}" for value in recent)
            print(f"step {step + 1} {shown} {time.process_time() - started:.0f} s", flush=True)
            recent[:] = 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, help="the checkpoint")
    parser.add_argument("--steps", type=int, default=1400)
    args = parser.parse_args()
    train(args.out, args.steps)


if __name__ == "__main__":
    main()
