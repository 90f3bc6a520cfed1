"""Trains the network on one core; about 35 minutes. Everything is seeded.

The checkpoint holds the averaged weights, so that it can be exported at any time.
"""

import argparse
import math
import time
from pathlib import Path

import torch
from torch.nn import functional as F

from data import TrainingPictures
from evaluate import measure
from network import GFPGAN

SEED = 20
BATCH = 1
LEARNING_RATE = 8e-4
STYLE_RATE = 0.03  # of the above: a style scales whole layers, and diverges at the full rate
WARMUP = 50
EMA_DECAY = 0.995
LOG_EVERY = 50
SAVE_EVERY = 250


def parameter_groups(network):
    """Everything that makes styles learns slower than the rest."""
    groups = {1.0: [], STYLE_RATE: []}
    for name, parameter in network.named_parameters():
        is_style = "final_linear" in name or "modulation" in name
        groups[STYLE_RATE if is_style else 1.0].append(parameter)
    return [{"params": params, "rate": rate} for rate, params in groups.items()]


def loss_of(network, degraded, clean):
    """Returns the loss and the gain in dB over the degraded picture.

    The loss is L1 and squared error of the picture, and L1 of the U-Net's own guess at each size.
    """
    restored, features = network.restore(degraded)
    error = F.mse_loss(restored, clean)
    loss = F.l1_loss(restored, clean) + 2 * error
    for guess in network.pyramid(features):
        target = F.interpolate(clean, guess.shape[2:], mode="area")
        loss = loss + 0.02 * F.l1_loss(guess, target)
    gain = 10 * math.log10(F.mse_loss(degraded, clean).item() / error.item())
    return loss, gain


def learning_rate(step, steps):
    return (
        LEARNING_RATE * min(1, (step + 1) / WARMUP) * (0.5 + 0.5 * math.cos(math.pi * step / steps))
    )


@torch.no_grad()
def average_into(averaged, network, step):
    decay = min(EMA_DECAY, (1 + step) / (10 + step))
    for a, b in zip(averaged.parameters(), network.parameters()):
        a.lerp_(b, 1 - decay)


def train(photo_dir, out, steps, faces):
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    network, averaged = GFPGAN(), GFPGAN()
    averaged.load_state_dict(network.state_dict())
    pictures = TrainingPictures(photo_dir, faces, SEED)
    optimizer = torch.optim.Adam(parameter_groups(network), betas=(0.9, 0.99))
    started, recent = time.time(), 0.0
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = group["rate"] * learning_rate(step, steps)
        degraded, clean = map(torch.from_numpy, pictures.batch(BATCH))
        loss, gain = loss_of(network, degraded, clean)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        average_into(averaged, network, step)
        recent += gain / LOG_EVERY
        if (step + 1) % LOG_EVERY == 0:
            print(
                f"step {step + 1} gain {recent:.2f} dB after {time.time() - started:.0f} s",
                flush=True,
            )
            recent = 0.0
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == steps:
            torch.save(averaged.state_dict(), out)
            print(measure(averaged, photo_dir), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", required=True, help="the folder that collect_photos.py fills")
    parser.add_argument("--out", type=Path, required=True, help="the checkpoint")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--faces", type=int, default=400)
    args = parser.parse_args()
    train(args.photos, args.out, args.steps, args.faces)


if __name__ == "__main__":
    main()
