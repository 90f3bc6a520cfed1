"""PSNR of the degraded and of the restored held-out pictures."""

import argparse

import numpy as np
import torch

from configs import FIRST, SECOND, network_name
from data import MORE_NOISE_SIGMA, NOISE_SIGMA, held_out, psnr, to_network
from export import load_network, script_path
from stages import PostProcess


@torch.no_grad()
def measure(network, photo_dir, noise_sigma=NOISE_SIGMA):
    """One line: per group of held-out pictures, mean PSNR degraded -> restored, in dB."""
    network.eval()
    lines = []
    for name, pairs in held_out(photo_dir, noise_sigma).items():
        before = np.mean([psnr(degraded, clean) for degraded, clean in pairs])
        after = np.mean([psnr(restore(network, degraded), clean) for degraded, clean in pairs])
        lines.append(f"{name}: {before:.2f} -> {after:.2f} dB ({after - before:+.2f})")
    network.train()
    return "; ".join(lines)


def restore(network, picture):
    out = network(torch.from_numpy(to_network([picture])))
    return PostProcess()(out).numpy()[:, :, ::-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", required=True)
    parser.add_argument("--checkpoint", help="left out, the committed weights of both versions")
    args = parser.parse_args()
    torch.set_num_threads(1)
    committed = [script_path(network_name(version)) for version in (FIRST, SECOND)]
    for checkpoint in [args.checkpoint] if args.checkpoint else committed:
        network = load_network(checkpoint)
        for sigma in (NOISE_SIGMA, MORE_NOISE_SIGMA):
            print(f"{checkpoint}, noise {sigma}: {measure(network, args.photos, sigma)}")


if __name__ == "__main__":
    main()
