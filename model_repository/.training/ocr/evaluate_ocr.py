"""Measures the exported models, end to end, on pictures and fonts that the training never saw.

A word is found if a box of ours covers it with an intersection over union of 0.5 or more, each box
for one word. It is read if the text of that box is the word's, all characters.
"""

import argparse
import time

import numpy as np
from PIL import Image, ImageDraw

from fonts import HELD_OUT, font_files
from pictures import Words, to_file
from system import OcrSystem

SEED = 2026
PICTURES = 200
SMALLEST, LARGEST = 320, 512  # pixels of a side
WANTED_IOU = 0.5
FOUND_GOAL, READ_GOAL = 0.90, 0.85


def held_out(count=PICTURES, families=HELD_OUT, seed=SEED):
    """Always the same pairs (bytes of a file, [(text, box)])."""
    words = Words(font_files(families), seed)
    for _ in range(count):
        width, height = (int(side) for side in words.rng.integers(SMALLEST, LARGEST + 1, 2))
        pixels, drawn = words.picture(width, height)
        yield to_file(words.rng, pixels), [(text, np.array(box)) for text, box in drawn]


def match(drawn, boxes, iou):
    """-> for each word the index of its box, or None: best pairs first."""
    pairs = []
    for i, (_, box) in enumerate(drawn):
        values = iou(box, boxes) if len(boxes) else []
        pairs += [(value, i, j) for j, value in enumerate(values) if value >= WANTED_IOU]
    matched, used = [None] * len(drawn), set()
    for _, i, j in sorted(pairs, reverse=True):
        if matched[i] is None and j not in used:
            matched[i] = j
            used.add(j)
    return matched


def show(path, tensors, boxes, texts, corners):
    image = Image.fromarray(tensors["preprocessed_image"][0].astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for outline, text in zip(corners(boxes), texts):
        draw.polygon([tuple(point) for point in outline], outline="red")
        draw.text(tuple(outline[0] - [0, 11]), text, fill="red")
    image.save(path)


def evaluate(system, samples, folder=None, verbose=False):
    post = system.models["detection_postprocessing"]
    words = found = read = extra = 0
    started = time.process_time()
    for index, (file, drawn) in enumerate(samples):
        tensors = system.run(file)
        texts = [text.decode() for text in tensors["recognized_text"]]
        boxes = system.boxes(tensors)
        matched = match(drawn, boxes, post.iou)
        hits = [(text, texts[j]) for (text, _), j in zip(drawn, matched) if j is not None]
        words, found = words + len(drawn), found + len(hits)
        read += sum(want == got for want, got in hits)
        extra += len(boxes) - len(hits)
        if verbose:
            missed = [text for (text, _), j in zip(drawn, matched) if j is None]
            print(index, "missed", missed, "misread", [pair for pair in hits if pair[0] != pair[1]])
        if folder is not None:
            show(f"{folder}/{index}.png", tensors, boxes, texts, post.corners)
    seconds = (time.process_time() - started) / (index + 1)
    return words, found, read, extra, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=PICTURES)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--show", help="a folder for the pictures with what was found")
    parser.add_argument("--verbose", action="store_true", help="names what was missed or misread")
    args = parser.parse_args()
    samples = held_out(args.pictures, seed=args.seed)
    result = evaluate(OcrSystem(), samples, args.show, args.verbose)
    words, found, read, extra, seconds = result
    print(f"{args.pictures} pictures, {words} words, fonts {', '.join(HELD_OUT)}")
    print(f"found {found} of {words}: {found / words:.1%} (goal {FOUND_GOAL:.0%})")
    print(f"read exactly {read} of {found} found: {read / found:.1%} (goal {READ_GOAL:.0%})")
    print(f"found and read: {read / words:.1%} of all words; boxes without a word: {extra}")
    print(f"{seconds * 1000:.0f} ms of processor time a picture, drawing included")
    assert found >= FOUND_GOAL * words and read >= READ_GOAL * found, "below the goal"


if __name__ == "__main__":
    main()
