"""What steps of public ensembles share, by NumPy, OpenCV and PIL. The tests' own, written from the words for it."""

import io

import cv2
import numpy as np
from PIL import Image, ImageOps


def open_rgb(data):
    return ImageOps.exif_transpose(Image.open(io.BytesIO(bytes(data)))).convert("RGB")


def pil_resize(picture, size):
    # The width first, as Pillow did before 13: between the two it rounds.
    width, height = size
    return picture.resize((width, picture.height), Image.BILINEAR).resize((width, height), Image.BILINEAR)


def imagenet(image):
    f = np.float32
    return (image.astype(f) / f(255) - np.array([0.485, 0.456, 0.406], f)) / np.array([0.229, 0.224, 0.225], f)


def letterbox(image, side):
    height, width = image.shape[:2]
    r = min(side / height, side / width)
    w, h = max(1, round(width * r)), max(1, round(height * r))
    left, top = (max(0, round((side - extent) / 2 - 0.1)) for extent in (w, h))
    out = np.full((side, side, image.shape[2]), 114, image.dtype)
    out[top : top + h, left : left + w] = cv2.resize(image, (w, h))
    return out, r, (left, top)


def cut(image, box, width, height):
    x1, y1, x2, y2 = box.astype(int)
    h, w = image.shape[:2]
    x1, y1 = min(x1, w - 1), min(y1, h - 1)
    return cv2.resize(image[y1 : max(y2, y1 + 1), x1 : max(x2, x1 + 1)], (width, height))


def corners(boxes):
    middle, sides = boxes[:, :2], boxes[:, 2:4]
    return np.concatenate([middle - sides / 2, middle + sides / 2], 1)


def nms(boxes, scores, bound):
    order, kept = np.argsort(-scores, kind="stable"), []
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    while len(order):
        i, order = order[0], order[1:]
        kept.append(i)
        sides = np.minimum(boxes[i, 2:], boxes[order, 2:]) - np.maximum(boxes[i, :2], boxes[order, :2])
        common = np.maximum(sides, 0).prod(1)
        order = order[common / (areas[i] + areas[order] - common) <= bound]
    return kept


def best_of_classes(boxes, scores, threshold, bound=0.45):
    """Rows of the boxes that stay, each class for itself, by falling score."""
    best, classes = scores.max(1), scores.argmax(1)
    kept = []
    for k in range(scores.shape[1]):
        (rows,) = np.nonzero((best > threshold) & (classes == k))
        kept += [rows[i] for i in nms(boxes[rows], best[rows], bound)]
    return sorted(kept, key=lambda i: (-best[i], i))[:300]


def table(boxes, scores, kept, scale, pad, size):
    """x1, y1, x2, y2, score and class of each box that stays, in the picture."""
    back = np.clip((boxes[kept] - np.tile(pad, 2)) / scale, 0, np.tile(size[::-1], 2))
    return np.concatenate([back, scores.max(1)[kept, None], scores.argmax(1)[kept, None]], 1).astype(np.float32)
