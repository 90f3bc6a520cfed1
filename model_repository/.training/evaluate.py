"""PSNR of the degraded and of the restored held-out pictures."""

import argparse

import numpy as np
import torch

from data import held_out, psnr, to_network
from network import GFPGAN
from stages import PostProcess


@torch.no_grad()
def measure(network, photo_dir):
    """One line: per group of held-out pictures, mean PSNR degraded -> restored, in dB."""
    network.eval()
    lines = []
    for name, pairs in held_out(photo_dir).items():
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
    parser.add_argument("--checkpoint", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    network = GFPGAN()
    network.load_state_dict(torch.load(args.checkpoint))
    print(measure(network, args.photos))


if __name__ == "__main__":
    main()
