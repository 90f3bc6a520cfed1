"""Writes the demo's picture of words and, beside it, the words in reading order.

Drawn with the two fonts that the training never saw; the models must read it exactly.
"""

import math

import numpy as np
from PIL import Image

from fonts import HELD_OUT, font_files
from models import REPOSITORY
from pictures import background, draw_word
from system import OcrSystem

SEED = 12
SIZE = (480, 352)
FILE = REPOSITORY / ".samples" / "words.jpg"
# text, family, style, height, degrees, centre, colour
WORDS = [
    ("tutti", 1, 1, 60, 4, (130, 66), (20, 40, 90)),
    ("plays", 0, 2, 44, -6, (318, 66), (150, 20, 30)),
    ("together", 1, 0, 48, -5, (160, 150), (20, 60, 40)),
    ("2026", 0, 1, 40, 8, (352, 150), (60, 20, 90)),
    ("ensembles", 0, 0, 50, 0, (240, 226), (10, 10, 10)),
    ("model7", 1, 2, 36, 10, (132, 300), (120, 50, 10)),
    ("python", 0, 3, 40, -9, (320, 300), (10, 70, 110)),
]


def draw():
    rng = np.random.default_rng(SEED)
    while True:  # until the paper is light and has a texture
        canvas, light = background(rng, *SIZE)
        if light > 215 and np.asarray(canvas).std() > 8:
            break
    fonts = font_files(HELD_OUT)
    for text, family, style, height, degrees, (x, y), colour in WORDS:
        mask, _ = draw_word(text, fonts[family][style], height, math.radians(degrees))
        canvas.paste(colour, (x - mask.width // 2, y - mask.height // 2), mask)
    return canvas


def main():
    FILE.parent.mkdir(exist_ok=True)
    draw().save(FILE, "JPEG", quality=90)
    words = [word[0] for word in WORDS]
    FILE.with_suffix(".txt").write_text("\n".join(words) + "\n")
    read = [text.decode() for text in OcrSystem().run(FILE.read_bytes())["recognized_text"]]
    print(f"{FILE.name}: {Image.open(FILE).size}, read {' '.join(read)}")
    assert read == words, "the sample is misread"


if __name__ == "__main__":
    main()
