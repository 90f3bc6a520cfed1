"""Makes v2.2 of v2.1: some minutes more, on pictures with more noise. Everything is seeded."""

import argparse

import torch
from torch.nn import functional as F

from configs import FIRST, network_name
from data import MORE_NOISE_SIGMA, NOISE_SIGMA, TrainingPictures
from evaluate import measure
from export import load_network, script_path
from train import average_into, learning_rate, parameter_groups

SEED = 22
RATE = 0.25  # of the rate that v2.1 began with


def fine_tune(photo_dir, out, steps, faces):
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    network, averaged = (load_network(script_path(network_name(FIRST))) for _ in range(2))
    report(averaged, photo_dir)
    network.requires_grad_(True)
    pictures = TrainingPictures(photo_dir, faces, SEED, MORE_NOISE_SIGMA)
    optimizer = torch.optim.Adam(parameter_groups(network), betas=(0.9, 0.99))
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * group["rate"] * learning_rate(step, steps)
        degraded, clean = map(torch.from_numpy, pictures.batch(1))
        restored = network(degraded)
        loss = F.l1_loss(restored, clean) + 2 * F.mse_loss(restored, clean)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        average_into(averaged, network, step)
    torch.save(averaged.state_dict(), out)
    report(averaged, photo_dir)


def report(network, photo_dir):
    for sigma in (NOISE_SIGMA, MORE_NOISE_SIGMA):
        print(f"noise {sigma}: {measure(network, photo_dir, sigma)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", required=True, help="the folder that collect_photos.py fills")
    parser.add_argument("--out", required=True, help="the checkpoint")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--faces", type=int, default=60)
    args = parser.parse_args()
    fine_tune(args.photos, args.out, args.steps, args.faces)


if __name__ == "__main__":
    main()
