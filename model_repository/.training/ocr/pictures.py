"""Draws pictures of words: the same for the same seed, fonts and sizes."""

import io
import math
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
ALPHABET = DIGITS + LETTERS
SHORTEST, LONGEST = 3, 10  # characters
LOWEST, HIGHEST = 20, 60  # pixels from the top of "b" to the bottom of "g"
STEEPEST = math.radians(15)
SIDE_MARGIN = 0.1  # of the height, left and right of a word's ink
GRAIN = 32  # pixels: sides of squares are multiples of it
TRIES = 14  # places tried in one picture


class Words:
    """Words to draw, without end.

    A box is (centre x, centre y, width, height, angle), as in detection_postprocessing.
    """

    def __init__(self, families, seed):
        self.families = families
        self.rng = np.random.default_rng(seed)

    def picture(self, width, height):
        """-> (uint8 RGB [height,width,3], [(text, box)])

        Words lie in the middle square that detection_preprocessing cuts out; boxes are seen in it.
        """
        rng = self.rng
        canvas, light = background(rng, width, height)
        side = min(width, height) // GRAIN * GRAIN
        corner = np.array([(width - side) // 2, (height - side) // 2])
        words, taken = [], []
        for _ in range(rng.integers(2, TRIES)):
            text, mask, (w, h, angle) = self.word()
            reach = outline(w, h, angle)
            free = side - 2 * reach - 4
            if free.min() <= 0:
                continue
            x, y = reach + 2 + rng.uniform(size=2) * free
            area = (x - reach[0], y - reach[1], x + reach[0], y + reach[1])
            if any(overlap(area, other) for other in taken):
                continue
            taken.append(area)
            left, top = round(x - mask.width / 2), round(y - mask.height / 2)
            canvas.paste(ink(rng, light), (left + corner[0], top + corner[1]), mask)
            box = (left + mask.width / 2, top + mask.height / 2, w, h, angle)
            words.append((text, box))
        return np.asarray(spoil(rng, canvas)), words

    def word(self):
        """-> (the text, its mask, the width, height and angle of its box)"""
        rng = self.rng
        letters = [LETTERS, DIGITS, ALPHABET, ALPHABET][rng.integers(4)]
        text = "".join(rng.choice(list(letters), rng.integers(SHORTEST, LONGEST + 1)))
        family = self.families[rng.integers(len(self.families))]
        path = family[rng.integers(len(family))]
        height = math.exp(rng.uniform(math.log(LOWEST), math.log(HIGHEST)))
        angle = rng.uniform(-STEEPEST, STEEPEST) if rng.uniform() < 0.8 else 0.0
        return text, *draw_word(text, path, height, angle)


def draw_word(text, path, height, angle):
    """-> (its ink, turned, as an 8 bit mask; width, height and angle of its box)"""
    font = load(path, max(8, round(height / line_height(path))))
    _, line_top, _, line_bottom = font.getbbox(ALPHABET, anchor="ls")
    left, _, right, _ = font.getbbox(text, anchor="ls")
    w, h = right - left, line_bottom - line_top
    margin = 4
    mask = Image.new("L", (w + 2 * margin, h + 2 * margin))
    ImageDraw.Draw(mask).text((margin - left, margin - line_top), text, 255, font, anchor="ls")
    mask = mask.rotate(math.degrees(angle), Image.Resampling.BICUBIC, expand=True)
    return mask, (w + 2 * SIDE_MARGIN * h, float(h), angle)


@lru_cache(maxsize=4096)
def load(path, size):
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)


@lru_cache(maxsize=None)
def line_height(path):
    """Of a font of size 1."""
    _, top, _, bottom = load(path, 200).getbbox(ALPHABET, anchor="ls")
    return (bottom - top) / 200


def outline(w, h, angle):
    """Half the width and height of an upright box around a turned one."""
    cos, sin = abs(math.cos(angle)), abs(math.sin(angle))
    return np.array([w * cos + h * sin, w * sin + h * cos]) / 2


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def luminance(colour):
    return float(np.dot(colour, (0.299, 0.587, 0.114)))


def colour_of(rng, light):
    """A random colour of a luminance of 0 to 255."""
    colour = rng.uniform(0, 255, 3) if rng.uniform() < 0.7 else np.full(3, 128.0)
    return np.clip(colour + light - luminance(colour), 0, 255)


def ink(rng, light):
    """A colour that differs from the background's luminance by 80 or more where it can."""
    darker, lighter = light - 80, light + 80
    choices = [(0, darker)] * (darker > 0) + [(lighter, 255)] * (lighter < 255)
    low, high = choices[rng.integers(len(choices))]
    return tuple(int(value) for value in colour_of(rng, rng.uniform(low, high)))


def background(rng, width, height):
    """-> (RGB picture, its mean luminance): plain, a gradient, clouds, stripes or shapes."""
    light = rng.uniform(0, 255)
    base = colour_of(rng, light)
    contrast = rng.uniform(8, 36)
    kind = rng.choice(["plain", "gradient", "clouds", "stripes", "shapes"], p=[0.3, 0.15, 0.25, 0.15, 0.15])
    if kind == "plain":
        field = np.zeros((height, width), np.float32)
    elif kind == "gradient":
        field = waves(rng, width, height, rng.uniform(0.1, 0.5))
    elif kind == "clouds":
        field = clouds(rng, width, height)
    elif kind == "stripes":
        field = np.sign(waves(rng, width, height, rng.uniform(2, 40)))
    else:
        field = shapes(rng, width, height)
    tint = 1 + rng.uniform(-0.4, 0.4, 3)
    scale = (contrast * tint).astype(np.float32)
    pixels = np.clip(base.astype(np.float32) + field[:, :, None] * scale, 0, 255)
    return Image.fromarray(pixels.astype(np.uint8)), luminance(base)


def waves(rng, width, height, periods):
    """Values of -1 to 1: a wave across the picture, so many periods of it."""
    turn = rng.uniform(0, 2 * math.pi)
    y, x = np.mgrid[:height, :width].astype(np.float32) / max(width, height)
    phase = rng.uniform(0, 2 * math.pi)
    return np.sin(2 * math.pi * periods * (x * math.cos(turn) + y * math.sin(turn)) + phase)


def clouds(rng, width, height):
    """Noise of several grains, about -1 to 1."""
    field = np.zeros((height, width), np.float32)
    for grain in rng.choice([2, 3, 6, 12, 24, 48, 96], 3, replace=False):
        small = rng.normal(0, 1, (height // grain + 2, width // grain + 2)).astype(np.float32)
        field += np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))
    return np.clip(field / 3, -1, 1)


def shapes(rng, width, height):
    """Boxes, ellipses and lines of one of three shades."""
    image = Image.new("L", (width, height), 128)
    draw = ImageDraw.Draw(image)
    for _ in range(rng.integers(4, 25)):
        x, y = rng.uniform(0, width), rng.uniform(0, height)
        w, h = rng.uniform(5, width / 2, 2)
        shade = int(rng.choice([1, 64, 192, 255]))
        kind = rng.integers(3)
        if kind == 0:
            draw.rectangle((x, y, x + w, y + h), shade)
        elif kind == 1:
            draw.ellipse((x, y, x + w, y + h), shade)
        else:
            draw.line((x, y, x + w, y + rng.uniform(-h, h)), shade, int(rng.integers(1, 6)))
    return np.asarray(image, np.float32) / 127.5 - 1


def spoil(rng, canvas):
    """Blur and noise, little of each."""
    if rng.uniform() < 0.5:
        canvas = canvas.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 0.9)))
    if rng.uniform() < 0.5:
        pixels = np.asarray(canvas, np.float32)
        noise = rng.standard_normal(pixels.shape, np.float32) * np.float32(rng.uniform(1, 9))
        canvas = Image.fromarray(np.clip(pixels + noise, 0, 255).astype(np.uint8))
    return canvas


def to_file(rng, pixels):
    """The bytes of a JPEG or PNG file."""
    buffer = io.BytesIO()
    if rng.uniform() < 0.7:
        Image.fromarray(pixels).save(buffer, "JPEG", quality=int(rng.integers(50, 96)))
    else:
        Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()
