"""Writes the demo's picture: a face that no training picture shows, clean and degraded.

The fixed degradation is applied at 256 x 256, the size the network works at; both pictures are then
enlarged to 512 x 512. `--restored FILE` also runs the exported models and prints the PSNR.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from check_export import run, session
from configs import FIRST, steps_of
from data import ASTRONAUT_CROPS, crop, degrade, psnr

SAMPLES = Path(__file__).resolve().parent.parent / ".samples"
SIZE = 512


def enlarge(picture):
    return np.asarray(Image.fromarray(picture).resize((SIZE, SIZE), Image.BICUBIC))


def restore(picture):
    """Through the exported pre, infer and post, as the ensemble does. uint8 RGB in and out."""
    tensor = np.ascontiguousarray(picture[:, :, ::-1])
    for model, _, _ in steps_of(FIRST):
        tensor = run(session(model), tensor)
    return tensor[:, :, ::-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--restored", type=Path)
    args = parser.parse_args()
    photo = Image.open(args.photos / "astronaut.png").convert("RGB")
    face = crop(photo, ASTRONAUT_CROPS[0])
    clean, degraded = enlarge(face), enlarge(degrade(face, np.random.default_rng(1)))
    SAMPLES.mkdir(exist_ok=True)
    for name, picture in (("clean", clean), ("degraded", degraded)):
        Image.fromarray(picture).save(SAMPLES / f"astronaut-{name}.png", optimize=True)
    if args.restored:
        restored = restore(degraded)
        Image.fromarray(np.hstack([degraded, restored, clean])).save(args.restored)
        print(f"degraded {psnr(degraded, clean):.2f} dB, restored {psnr(restored, clean):.2f} dB")


if __name__ == "__main__":
    main()
