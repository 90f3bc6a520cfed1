"""Pictures to train on and to measure on, and the fixed degradation."""

import functools
import io
from pathlib import Path

import numpy as np
from PIL import Image

from faces import draw_face

SIZE = 256
SCALE, NOISE_SIGMA, JPEG_QUALITY = 4, 10, 40
MORE_NOISE_SIGMA = 25  # what v2.2 is trained on

HELD_OUT_FACE_SEEDS = range(1_000_000, 1_000_024)
# The astronaut is in no training picture. left, top, right, bottom in the 512 x 512 photograph.
ASTRONAUT_CROPS = [(96, 0, 352, 256), (0, 0, 256, 256), (128, 96, 384, 352), (0, 0, 512, 512)]


def degrade(picture, rng, noise_sigma=NOISE_SIGMA):
    """x4 bicubic down and up, Gaussian noise, JPEG. uint8 RGB [H,W,3] -> the same shape."""
    image = Image.fromarray(picture)
    small = image.resize((image.width // SCALE, image.height // SCALE), Image.BICUBIC)
    blurred = np.asarray(small.resize(image.size, Image.BICUBIC), np.float32)
    noisy = to_uint8(blurred + rng.normal(0, noise_sigma, blurred.shape))
    buffer = io.BytesIO()
    Image.fromarray(noisy).save(buffer, "JPEG", quality=JPEG_QUALITY)
    return np.asarray(Image.open(buffer).convert("RGB"))


def to_uint8(values):
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def psnr(a, b):
    """Of two uint8 pictures, in dB."""
    return 10 * np.log10(255**2 / np.mean((a.astype(np.float64) - b) ** 2))


def random_crop(photo, rng):
    """A square of a photograph at a random scale, SIZE x SIZE."""
    side = int(rng.uniform(min(140, min(photo.size)), min(photo.size)))
    left = int(rng.integers(0, photo.width - side + 1))
    top = int(rng.integers(0, photo.height - side + 1))
    return crop(photo, (left, top, left + side, top + side))


def crop(photo, box):
    return np.asarray(photo.resize((SIZE, SIZE), Image.LANCZOS, box))


class TrainingPictures:
    """Endless (degraded, clean) pairs: drawn faces and crops of photographs, in equal parts."""

    def __init__(self, photo_dir, faces, seed, noise_sigma=NOISE_SIGMA):
        self.noise_sigma = noise_sigma
        self.rng = np.random.default_rng(seed)
        self.faces = [draw_face(i) for i in range(faces)]
        paths = sorted(p for p in Path(photo_dir).iterdir() if p.stem != "astronaut")
        self.photos = [Image.open(p).convert("RGB") for p in paths]
        # Half of the photograph crops are of the one portrait.
        self.weights = np.array(
            [len(paths) - 1.0 if p.stem == "grace_hopper" else 1.0 for p in paths]
        )
        self.weights /= self.weights.sum()

    def pair(self):
        rng = self.rng
        if rng.uniform() < 0.5:
            clean = self.faces[rng.integers(len(self.faces))]
        else:
            clean = random_crop(self.photos[rng.choice(len(self.photos), p=self.weights)], rng)
        if rng.uniform() < 0.5:
            clean = np.ascontiguousarray(clean[:, ::-1])
        return degrade(clean, rng, self.noise_sigma), clean

    def batch(self, size):
        """Two float32 arrays [size,3,SIZE,SIZE] in [-1,1]."""
        pairs = [self.pair() for _ in range(size)]
        return to_network([p[0] for p in pairs]), to_network([p[1] for p in pairs])


def to_network(pictures):
    return np.stack(pictures).transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1


@functools.cache
def held_out(photo_dir, noise_sigma=NOISE_SIGMA):
    """{"drawn faces": [(degraded, clean)], "astronaut": [...]}, always the same."""
    rng = np.random.default_rng(0)
    photo = Image.open(Path(photo_dir) / "astronaut.png").convert("RGB")
    cleans = {
        "drawn faces": [draw_face(seed) for seed in HELD_OUT_FACE_SEEDS],
        "astronaut": [crop(photo, box) for box in ASTRONAUT_CROPS],
    }
    return {
        name: [(degrade(c, rng, noise_sigma), c) for c in group]
        for name, group in cleans.items()
    }
