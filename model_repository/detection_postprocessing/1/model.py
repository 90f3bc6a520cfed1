"""Score map and geometry of the detector, and the picture -> one grey crop a word, in reading order.

Boxes are rows (centre x, centre y, width, height, angle) in pixels of the picture and radians,
counter-clockwise on the screen: the width runs along (cos, -sin), the height along (sin, cos).
"""

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import Image

STRIDE = 4  # pixels of the picture to one cell of the maps
SCORE_THRESHOLD = 0.5
IOU_THRESHOLD = 0.4
COVERED_THRESHOLD = 0.6  # of its own area, by a better word
MIN_CELLS = 3  # fewer cells that agree are no word: one of 20 pixels has about ten
MAX_WORDS = 256  # the max_batch_size of text_recognition
MAX_ROUNDS = 4 * MAX_WORDS  # of suppression, whatever the maps hold
MIN_SIDE = 4.0  # pixels
CROP_WIDTH, CROP_HEIGHT = 100, 32
PREFIX = "detection_postprocessing_"


class TritonPythonModel:
    def execute(self, requests):
        return [respond(request) for request in requests]


def respond(request):
    try:
        score, geometry, picture = (only_picture(request, f"{PREFIX}input_{i}") for i in (1, 2, 3))
        crops = crop_words(to_grey(picture), find_words(score, geometry))
    except ValueError as error:
        refused = pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG)
        return pb_utils.InferenceResponse(output_tensors=[], error=refused)
    return pb_utils.InferenceResponse([pb_utils.Tensor(f"{PREFIX}output", crops)])


def only_picture(request, name):
    """The one picture of a batch: words of several could not be told apart in the answer."""
    batch = pb_utils.get_input_tensor_by_name(request, name).as_numpy()
    if len(batch) != 1:
        raise ValueError(f"input '{name}': got a batch of {len(batch)}, want one picture a request")
    return batch[0]


def find_words(score, geometry):
    """[H/4,W/4,1] and [H/4,W/4,5] -> boxes [N,5] of at most MAX_WORDS words, in reading order."""
    if score.shape[:2] != geometry.shape[:2]:
        raise ValueError(f"score map {score.shape[:2]} and geometry {geometry.shape[:2]} differ")
    rows, columns = np.nonzero(score[:, :, 0] > SCORE_THRESHOLD)
    best_first = np.argsort(-score[rows, columns, 0], kind="stable")
    rows, columns = rows[best_first], columns[best_first]
    cells = geometry[rows, columns].astype(np.float64)
    # A detector of another's making may answer anything.
    usable = np.isfinite(cells).all(axis=1) & (cells[:, :4] >= 0).all(axis=1)
    usable &= (cells[:, :4] <= 2 * STRIDE * max(score.shape)).all(axis=1)
    rows, columns, cells = rows[usable], columns[usable], cells[usable]
    points = np.stack([columns, rows], axis=1) * float(STRIDE)
    boxes = decode(*points.T, cells)
    large = (boxes[:, 2:4] >= MIN_SIDE).all(axis=1)
    return reading_order(suppress(boxes[large], points[large], cells[large]))


def decode(x, y, cells):
    """Cells (top, right, bottom, left, angle) seen from the points x, y -> boxes."""
    top, right, bottom, left, angle = cells.T
    along, down = (right - left) / 2, (bottom - top) / 2
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack(
        [x + cos * along + sin * down, y - sin * along + cos * down]
        + [left + right, top + bottom, angle],
        axis=1,
    )


def suppress(boxes, points, cells):
    """Non-maximum suppression, best first; each word is the mean of the boxes that it suppresses.

    Suppression is by intersection over union. A second round drops what is left of a word's ends.
    """
    words, sizes = [], []
    reach = np.hypot(boxes[:, 2], boxes[:, 3]) / 2
    left = np.arange(len(boxes))
    for _ in range(MAX_ROUNDS):
        if len(left) == 0:
            break
        best = boxes[left[0]]
        near = np.hypot(*(boxes[left, :2] - best[:2]).T) < reach[left] + reach[left[0]]
        same = np.zeros(len(left), bool)
        same[near] = iou(best, boxes[left[near]]) > IOU_THRESHOLD
        same[0] = True  # whatever the rounding
        if same.sum() >= MIN_CELLS:
            words.append(merge(best, points[left[same]], cells[left[same]]))
            sizes.append(same.sum())
        left = left[~same]
    if not words:
        return np.zeros((0, 5))
    return drop_covered(np.array(words)[np.argsort(sizes, kind="stable")[::-1]])[:MAX_WORDS]


def merge(best, points, cells):
    """One box of the cells of a word: a cell knows best the edges that it is close to."""
    angle = cells[:, 4].mean()
    cos, sin = np.cos(angle), np.sin(angle)
    dx, dy = (points - best[:2]).T
    along, down = dx * cos - dy * sin, dx * sin + dy * cos
    place = np.stack([down, along, down, along], axis=1)
    edges = place + cells[:, :4] * [-1, 1, 1, -1]
    weights = 1 / np.square(cells[:, :4] + 2 * STRIDE)
    top, right, bottom, left = (edges * weights).sum(axis=0) / weights.sum(axis=0)
    middle = np.array([[-top, right, bottom, -left, angle]])
    return decode(best[:1], best[1:2], middle)[0]


def drop_covered(boxes):
    kept = np.zeros((0, 5))
    for box in boxes:
        covered = intersection(box, kept) / (box[2] * box[3])
        if not (covered > COVERED_THRESHOLD).any() and not (iou(box, kept) > IOU_THRESHOLD).any():
            kept = np.vstack([kept, box])
    return kept


def iou(box, boxes):
    shared = intersection(box, boxes)
    return shared / (box[2] * box[3] + boxes[:, 2] * boxes[:, 3] - shared)


def corners(boxes):
    """Boxes [N,5] -> [N,4,2]: top left, top right, bottom right, bottom left, seen along the text."""
    cos, sin = np.cos(boxes[:, 4:]), np.sin(boxes[:, 4:])
    u = boxes[:, 2:3] / 2 * [-1, 1, 1, -1]
    v = boxes[:, 3:4] / 2 * [-1, -1, 1, 1]
    return np.stack([boxes[:, :1] + u * cos + v * sin, boxes[:, 1:2] - u * sin + v * cos], axis=2)


def intersection(box, boxes):
    """Areas that a box shares with boxes [N,5].

    In the frame of the box, by the divergence theorem: the integral of x, held to the box's width,
    over dy along the part of the other's outline that lies within the box's height.
    """
    half_width, half_height = box[2] / 2, box[3] / 2
    cos, sin = np.cos(box[4]), np.sin(box[4])
    dx, dy = np.moveaxis(corners(boxes) - box[:2], 2, 0)
    x, y = dx * cos - dy * sin, dx * sin + dy * cos
    next_x, next_y = np.roll(x, -1, axis=1), np.roll(y, -1, axis=1)
    rise = next_y - y
    slope = (next_x - x) / np.where(rise == 0, 1, rise)
    y0, y1 = np.clip(y, -half_height, half_height), np.clip(next_y, -half_height, half_height)
    x0, x1 = x + (y0 - y) * slope, x + (y1 - y) * slope
    return np.abs(((y1 - y0) * mean_held(x0, x1, half_width)).sum(axis=1))


def mean_held(x0, x1, limit):
    """The mean of clip(x, -limit, limit) for x from x0 to x1."""

    def integral(x):
        held = np.clip(x, -limit, limit)
        return held * held / 2 + np.abs(x - held) * limit

    run = x1 - x0
    short = np.abs(run) < 1e-6
    mean = (integral(x1) - integral(x0)) / np.where(short, 1, run)
    return np.where(short, np.clip((x0 + x1) / 2, -limit, limit), mean)


def reading_order(boxes):
    """Line by line from the top, each from the left: a line ends half a word's height further down."""
    by_height = boxes[np.argsort(boxes[:, 1], kind="stable")]
    lines = []
    for box in by_height:
        if not lines or box[1] - lines[-1][0][1] > lines[-1][0][3] / 2:
            lines.append([])
        lines[-1].append(box)
    ordered = [box for line in lines for box in sorted(line, key=lambda box: box[0])]
    return np.array(ordered).reshape(-1, 5)


def to_grey(picture):
    """FP32 RGB [H,W,3], 0 to 255 -> an 8 bit grey picture."""
    return Image.fromarray(np.clip(np.rint(picture), 0, 255).astype(np.uint8)).convert("L")


def crop_words(grey, boxes):
    """Boxes [N,5] of a grey picture -> FP32 [N,1,32,100] in [-1,1]."""
    crops = np.empty((len(boxes), 1, CROP_HEIGHT, CROP_WIDTH), np.float32)
    margin = int(max(grey.size))
    edge = Image.fromarray(np.pad(np.asarray(grey), PAD, mode="edge"))
    for crop, (x, y, width, height, angle) in zip(crops, boxes):
        # As many pixels as the word has in the picture, so that the resize sees them all.
        size = tuple(min(max(1, round(side)), margin) for side in (width, height))
        cos, sin = np.cos(angle), np.sin(angle)
        ux, uy = cos * width / size[0], -sin * width / size[0]
        vx, vy = sin * height / size[1], cos * height / size[1]
        left = x - cos * width / 2 - sin * height / 2 + PAD
        top = y + sin * width / 2 - cos * height / 2 + PAD
        straight = edge.transform(
            size, Image.Transform.AFFINE, (ux, vx, left, uy, vy, top), Image.Resampling.BILINEAR
        )
        pixels = straight.resize((CROP_WIDTH, CROP_HEIGHT), Image.Resampling.BILINEAR)
        crop[0] = np.asarray(pixels, np.float32) / 127.5 - 1
    return crops


PAD = 32  # pixels around the picture that repeat its edge, for words that touch it
