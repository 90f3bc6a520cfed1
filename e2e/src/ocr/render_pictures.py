"""Renders pictures of words: python render_pictures.py FOLDER COUNT [LINES], with so many lines of text each, or some."""

import glob
import os
import random
import sys

from PIL import Image, ImageDraw, ImageFont

FOLDER, COUNT = sys.argv[1], int(sys.argv[2])
LINES = int(sys.argv[3]) if len(sys.argv) > 3 else None
FONTS = sorted(glob.glob("/usr/share/fonts/truetype/*/*.ttf"))
WORDS = """model ensemble step tensor request router batch queue shape image serve deploy cluster replica station
market street window garden letter number winter summer bridge river mountain total amount price invoice order
Monday Tuesday Friday January August Berlin London Paris Tokyo Madrid""".split()


def draw_word(dice):
    kind = dice.random()
    if kind < 0.6:
        word = dice.choice(WORDS)
        return dice.choice([word, word.upper(), word.capitalize()])
    if kind < 0.8:
        return "".join(dice.choice("0123456789") for _ in range(dice.randint(2, 8)))
    return "".join(dice.choice("ABCDEFGHJKLMNPRSTUVWXYZ23456789") for _ in range(dice.randint(3, 8)))


def draw_line(text, size, ink, font, angle):
    """A line of text on nothing, turned."""
    font = ImageFont.load_default(size) if font is None else ImageFont.truetype(font, size)
    left, top, right, bottom = font.getbbox(text)
    line = Image.new("RGBA", (right - left + 12, bottom - top + 12), ink + (0,))
    ImageDraw.Draw(line).text((6 - left, 6 - top), text, ink, font)
    return line.rotate(angle, Image.Resampling.BICUBIC, expand=True)


def some_line(dice, ink):
    text = " ".join(draw_word(dice) for _ in range(dice.choice([1, 1, 2, 3])))
    size, font = dice.randint(18, 56), dice.choice([*FONTS, None])
    angle = dice.choice([0, 0, 0, dice.uniform(-15, 15), 180, 180 + dice.uniform(-8, 8), 90])
    return draw_line(text, size, ink, font, angle)


def paper(dice):
    """A picture without text, and the colour of its ink."""
    size = dice.randint(320, 1200), dice.randint(320, 900)
    light = tuple(dice.randint(170, 255) for _ in range(3))
    dark = tuple(dice.randint(0, 90) for _ in range(3))
    if dice.random() < 0.3:
        light, dark = dark, light
    noise = Image.effect_noise(size, dice.uniform(1, 25)).convert("RGB")
    return Image.blend(Image.new("RGB", size, light), noise, dice.uniform(0, 0.15)), dark


def scattered(dice):
    """Lines anywhere, none over another one."""
    picture, ink = paper(dice)
    taken = []
    for _ in range(dice.choice([0, 1, 4, 8, 12, 20])):
        line = some_line(dice, ink)
        if line.width >= picture.width or line.height >= picture.height:
            continue
        x, y = dice.randint(0, picture.width - line.width), dice.randint(0, picture.height - line.height)
        box = (x - 8, y - 8, x + line.width + 8, y + line.height + 8)
        if any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            continue
        taken.append(box)
        picture.paste(line, (x, y), line)
    return picture


def in_columns(lines):
    """So many numbers below one another, in columns of ten."""
    picture = Image.new("RGB", (1200, 900), "white")
    for i in range(lines):
        line = draw_line(f"{10000 + 137 * i}", 30, (0, 0, 0), None, 0)
        picture.paste(line, (20 + i // 10 * 145, 20 + i % 10 * 85), line)
    return picture


os.makedirs(FOLDER, exist_ok=True)
for i in range(COUNT):
    dice = random.Random(i)
    picture = scattered(dice) if LINES is None else in_columns(LINES)
    picture.save(os.path.join(FOLDER, f"{i:03}.png"))
